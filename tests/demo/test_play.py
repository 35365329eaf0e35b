"""The script: what is a mistake does harm, what was meant does none, and all of it repeats."""

from collections.abc import Iterator
from functools import cache
from itertools import islice

import pytest

from gsid_service.demo.network import network
from gsid_service.demo.play import (
    BROKEN_AT_LEAST,
    SLIPS,
    Act,
    Kind,
    NothingToShow,
    Script,
    configured,
    sampled,
)
from gsid_service.diagnose.diagnosis import diagnose
from gsid_service.diagnose.known import Observation, Reference
from gsid_service.records import Fact, Intents, Snapshot
from gsid_service.schema import SCHEMA
from gsid_service.score.scorer import load
from gsid_service.simulate import intents
from gsid_service.simulate.forwarding import Forwarding, forward, moved
from gsid_service.simulate.plane import build
from gsid_service.simulate.topologies import real
from tests.flow.server import MODEL, need_model

ROUND = 4  # acts: the mistake, its repair, what was meant, and its end


def abilene(seed: int) -> tuple[Snapshot, tuple[Fact, ...]]:
    whole = network("abilene", real("topozoo/Abilene"), seed)
    return whole, sampled(whole, seed)


@cache
def acts(seed: int) -> list[Act]:
    """Nine rounds, after a beginning of two acts."""
    whole, wanted = abilene(seed)
    return list(islice(Script(whole, wanted, seed).acts(20, 60), 2 + 9 * ROUND))


def state_of(whole: Snapshot) -> Forwarding:
    return forward(build(whole.entities, whole.facts))


class Step:
    """An act with the network before and after it, and what is wanted after it."""

    def __init__(self, act: Act, before: Snapshot, wanted: tuple[Fact, ...]) -> None:
        self.act, self.before, self.wanted = act, before, wanted
        self.after = configured(before, act.values)

    @property
    def broken(self) -> int:
        return len(intents.broken(self.wanted, state_of(self.after)))

    @property
    def moves(self) -> int:
        return len(moved(state_of(self.before), state_of(self.after)))


def steps(seed: int) -> Iterator[Step]:
    whole, wanted = abilene(seed)
    for act in acts(seed):
        wanted = act.wanted or wanted
        step = Step(act, whole, wanted)
        yield step
        whole = step.after


def test_acts_come_in_rounds() -> None:
    kinds = [act.kind for act in acts(0)]
    assert kinds[: 2 + 2 * ROUND] == [
        *(Kind.RETUNED, Kind.APPROVED),
        *(Kind.MISTAKE, Kind.REPAIRED, Kind.ANNOUNCED, Kind.OVER),
        *(Kind.MISTAKE, Kind.REPAIRED, Kind.RETUNED, Kind.APPROVED),
    ]


def test_acts_come_when_they_should() -> None:
    times = [act.at for act in acts(0)]
    assert times == sorted(times)
    mistakes = [act.at for act in acts(0) if act.kind is Kind.MISTAKE]
    assert mistakes == [20 + 60 * n for n in range(len(mistakes))]


def test_the_same_seed_plays_the_same() -> None:
    assert acts(1) == acts.__wrapped__(1)
    assert acts(1) != acts(2)


@pytest.mark.parametrize("seed", range(3))
def test_a_mistake_breaks_what_is_wanted_and_its_repair_mends_it(seed: int) -> None:
    for step in steps(seed):
        if step.act.kind is Kind.MISTAKE:
            assert step.broken >= BROKEN_AT_LEAST
            assert state_of(step.after).unsettled() == {}
            right = step.before
        elif step.act.kind is Kind.REPAIRED:
            assert step.after == right
            assert step.broken == 0


@pytest.mark.parametrize("seed", range(3))
def test_what_was_meant_moves_traffic_and_breaks_nothing(seed: int) -> None:
    meant = [s for s in steps(seed) if s.act.kind in {Kind.RETUNED, Kind.ANNOUNCED}]
    assert {step.act.kind for step in meant} == {Kind.RETUNED, Kind.ANNOUNCED}
    assert all(step.moves and not step.broken for step in meant)


def test_what_is_announced_is_told_with_its_window() -> None:
    announced = [act for act in acts(0) if act.kind is Kind.ANNOUNCED]
    over = [act for act in acts(0) if act.kind is Kind.OVER]
    assert [(a.ticket, a.until) for a in announced] == [(a.ticket, a.at) for a in over]
    assert announced[0].ticket == "CHG-1042"
    assert len({act.ticket for act in announced}) == len(announced)


def test_values_stay_inside_the_protocol_s_range() -> None:
    for act in acts(0):
        for (key, name), value in act.values.items():
            parameter = SCHEMA.fact[key.predicate].parameter(name)
            assert parameter is not None
            assert parameter.low <= value <= parameter.high


def test_mistakes_are_of_every_kind_and_nowhere_twice() -> None:
    mistakes = [act for act in acts(0) if act.kind is Kind.MISTAKE]
    assert {act.told.partition(":")[0] for act in mistakes} == {name for name, _ in SLIPS}
    slots = [slot for act in mistakes for slot in act.values]
    assert len(set(slots)) == len(slots)


def test_a_mistake_is_told_as_engineers_write_it() -> None:
    mistake = next(act for act in acts(0) if act.kind is Kind.MISTAKE)
    ((key, parameter),) = mistake.values
    peering, prefix = key.args
    assert mistake.told == f"typo: {parameter} 200 -> 80 on {peering} → {prefix}"


def test_where_nothing_is_wanted_no_mistake_does_harm() -> None:
    whole, _ = abilene(0)
    with pytest.raises(NothingToShow, match="try another topology"):
        list(islice(Script(whole, (), 0).acts(20, 60), ROUND))


def test_the_model_that_ships_finds_the_mistakes_and_nothing_else() -> None:
    need_model()
    detector, approved = load(MODEL), abilene(0)[0]
    for step in steps(0):
        act, whole = step.act, step.after
        if act.kind is Kind.ANNOUNCED:
            approved = configured(approved, act.values)
        elif act.kind is Kind.APPROVED:
            approved = whole
        wanted = Intents(step.wanted, intents.derive(state_of(approved), 2000))
        reference = Reference(approved.entities, approved.facts)
        seen = Observation(whole.entities, whole.facts, wanted, reference)
        found = {v.slot for v in diagnose(seen, detector).values if v.score >= 0.65}
        if act.kind is Kind.MISTAKE:
            assert found
            assert found <= act.values.keys()
        else:
            assert found == set(), f"{act.told} was meant"
