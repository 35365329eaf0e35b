"""Scores depend on no name, order, unit or offset, with a baseline and without."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gsid_service.assemble.graph import assemble
from gsid_service.evaluate.splits import SPLITS
from gsid_service.records import Entity, Fact, FloatArray, Graph
from gsid_service.score import batch as batches
from gsid_service.score import gsid
from gsid_service.score.batch import Vocabulary, collate
from gsid_service.score.calibration import Calibration
from gsid_service.score.gsid import ATTENTIONS, ENCODERS, GSID, Shape
from gsid_service.score.scorer import Scorer, logits
from gsid_service.simulate.cases import Case
from gsid_service.simulate.evidence import evidence
from gsid_service.simulate.forwarding import forward
from gsid_service.simulate.plane import build

CASE = SPLITS["operations-standard"].case("gsid", 1)
SHIFTED = ("local_pref", "as_path_length", "med")


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    torch.manual_seed(0)
    return Scorer("test", GSID(Shape(width=32, heads=4)).eval(), Calibration.none())


def graph(case: Case, with_baseline: bool = True) -> Graph:
    observed = forward(build(case.entities, case.facts), always_compare_med=True)
    approved, baseline = None, None
    if case.baseline and with_baseline:
        baseline = case.baseline[1]
        approved = forward(build(*case.baseline), always_compare_med=True)
    said = evidence(case.facts, case.intents, observed, approved)
    return assemble(case.entities, case.facts, case.intents, baseline, said)


def by_slot(scorer: Scorer, shown: Graph) -> dict[tuple[object, str], float]:
    return {(key, parameter): score for score, key, parameter in scorer(shown).ranked()}


def changed(case: Case, parameter: str, factor: int, offset: int) -> Case:
    def change(facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
        return tuple(
            f._replace(params={**f.params, parameter: f.params[parameter] * factor + offset})
            if parameter in f.params
            else f
            for f in facts
        )

    assert case.baseline
    baseline = (case.baseline[0], change(case.baseline[1]))
    return replace(case, facts=change(case.facts), baseline=baseline)


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from([*SHIFTED, "ospf_weight"]),
    st.integers(1, 1000),
    st.integers(0, 10_000),
    st.booleans(),
)
def test_unit_and_offset_leave_scores_unchanged(
    parameter: str, factor: int, offset: int, with_baseline: bool
) -> None:
    torch.manual_seed(0)
    scorer = Scorer("test", GSID(Shape(width=32, heads=4)).eval(), Calibration.none())
    other = changed(CASE, parameter, factor, offset if parameter in SHIFTED else 0)
    before, after = (scorer(graph(c, with_baseline)).probability for c in (CASE, other))
    assert np.allclose(before, after, atol=1e-5, equal_nan=True)


def test_order_and_names_leave_scores_unchanged(scorer: Scorer) -> None:
    rng = random.Random(1)
    assert CASE.baseline
    everybody = dict.fromkeys(e.id for e in (*CASE.entities, *CASE.baseline[0]))
    new = {name: f"X{i}" for i, name in enumerate(everybody)}

    def renamed(facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
        found = [f._replace(args=tuple(new[a] for a in f.args)) for f in facts]
        return tuple(rng.sample(found, len(found)))

    # Routers keep their order: where no ids are reported, the last tie of BGP goes by it.
    def called(entities: tuple[Entity, ...]) -> tuple[Entity, ...]:
        return tuple(entity._replace(id=new[entity.id]) for entity in entities)

    other = Case(
        CASE.topology,
        called(CASE.entities),
        renamed(CASE.facts),
        renamed(CASE.intents),
        baseline=(called(CASE.baseline[0]), renamed(CASE.baseline[1])),
    )
    shown = graph(other)
    before, after = by_slot(scorer, graph(CASE)), by_slot(scorer, shown)
    assert len(before) == len(after)
    for (key, parameter), score in before.items():
        theirs = key._replace(args=tuple(new[a] for a in key.args))  # type: ignore[attr-defined]
        assert after[theirs, parameter] == pytest.approx(score, abs=1e-5)


def test_the_order_of_entities_leaves_scores_unchanged(scorer: Scorer) -> None:
    one, other = (
        assemble(e, CASE.facts, CASE.intents) for e in (CASE.entities, CASE.entities[::-1])
    )
    assert np.allclose(
        scorer(one).probability, scorer(other).probability, atol=1e-5, equal_nan=True
    )


def test_a_graph_scores_the_same_alone_and_among_others(scorer: Scorer) -> None:
    others = [graph(SPLITS["operations-standard"].case("gsid", i)) for i in range(3)]
    alone = [scorer(g).probability for g in others]
    together = [s.probability for s in scorer.score_many(others)]
    for one, other in zip(alone, together, strict=True):
        assert np.allclose(one, other, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_model_scores_every_value_and_nothing_else(encoder: str, attention: str) -> None:
    model = GSID(Shape(encoder, attention, width=32, heads=4))
    for with_baseline in (True, False):
        found: FloatArray = logits(model, [graph(CASE, with_baseline)])[0]
        carried = {
            (row, column)
            for row, fact in enumerate(CASE.facts)
            for column, name in enumerate(("local_pref", "as_path_length", "med", "ospf_weight"))
            if name in fact.params
        }
        assert set(map(tuple, np.argwhere(np.isfinite(found)).tolist())) == carried


def test_what_the_last_steps_leave_out_is_never_asked_for() -> None:
    torch.manual_seed(0)
    model = GSID(Shape(width=32, heads=4)).eval()
    batch = collate([graph(CASE)], Vocabulary())
    with torch.inference_mode():
        h = model.encode(batch)
        for layer in model.layers:
            h = layer(h, batch)
        for _ in range(model.shape.decoder_steps):
            h = h + model.decoder(h, batch)
        read = torch.cat([readout(h[batch.entities :]) for readout in model.readout], dim=1)
        assert torch.allclose(model(batch), read * batch.applies, atol=1e-4)


@pytest.mark.parametrize("part", [1, 7, 100])
def test_a_large_network_is_scored_alike_by_parts(
    part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model = GSID(Shape(width=32, heads=4)).eval()
    whole = logits(model, [graph(CASE)])[0]
    monkeypatch.setattr(batches, "PART", part)
    monkeypatch.setattr(gsid, "BLOCK", 16)
    assert np.allclose(logits(model, [graph(CASE)])[0], whole, atol=1e-5, equal_nan=True)
