"""The gradients written by hand are the derivatives, however the edges fall into blocks."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from gsid_service.score import batch
from gsid_service.score.attend import Down, Up
from gsid_service.score.batch import Edges

NAMED = (
    (0, 1, 2),
    (0, 2, 1),
    (1, 1, 0),
    (3, 2, 0),
    (3, 0, -1),
    (2, 1, -1),
    (2, 1, -1),
    (0, -1, -1),
)
SEATS = sum(len({name for name in role if name >= 0}) for role in zip(*NAMED, strict=True))
WIDTH, HEADS, ROLES = 4, 2, 3


@pytest.fixture(params=[3, 5, 512])
def edges(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Edges:
    monkeypatch.setattr(batch, "BLOCK", request.param)
    edges = batch._edges(np.array(NAMED))
    assert sum(sum(block.sizes) for block in edges.blocks) == len(edges.seat)
    return edges


@pytest.fixture
def inputs() -> tuple[Tensor, ...]:
    torch.manual_seed(0)
    shapes = (
        (len(NAMED), WIDTH),
        (SEATS, WIDTH),
        (ROLES, WIDTH, 2 * WIDTH),
        (ROLES, HEADS, WIDTH),
    )
    return tuple(torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in shapes)


def test_gradient_towards_facts(inputs: tuple[Tensor, ...], edges: Edges) -> None:
    assert gradcheck(lambda *x: Down.apply(*x, edges, True), inputs)


def test_gradient_towards_entities(inputs: tuple[Tensor, ...], edges: Edges) -> None:
    assert gradcheck(lambda *x: Up.apply(*x, edges, True), inputs)


def test_large_scores_do_not_overflow(inputs: tuple[Tensor, ...], edges: Edges) -> None:
    facts, seated, transform, a = inputs
    assert Up.apply(facts, seated, transform, 1e6 * a, edges, False).isfinite().all()
    assert Down.apply(facts, seated, transform, 1e6 * a, edges, False).isfinite().all()


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_parts_have_every_edge_once_and_all_of_a_seat(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "PART", size)
    edges = batch._edges(np.array(NAMED))
    found, seats = [], []
    for role, facts, part in edges.parts:
        assert len(facts) == part.facts[0] == len(part.seat)
        assert len(facts) <= size or part.entities == (1,)
        named = part.sitting[part.seat].tolist()
        found += [(f, role.start, e) for f, e in zip(facts.tolist(), named, strict=True)]
        seats += [(role.start, entity) for entity in part.sitting.tolist()]
    assert sorted(found) == sorted(
        (fact, role, entity)
        for fact, args in enumerate(NAMED)
        for role, entity in enumerate(args)
        if entity >= 0
    )
    assert len(seats) == len(set(seats)) == SEATS
