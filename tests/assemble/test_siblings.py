"""How values stand among their siblings: as counted one by one, by equality and order alone."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gsid_service.assemble.graph import assemble
from gsid_service.assemble.siblings import PER_ROLE, Told, siblings, width
from gsid_service.records import Entity, Fact, Graph

ENTITIES = (
    *(Entity(f"P{i}", "external_as") for i in range(8)),
    *(Entity(f"N{k}", "network") for k in range(3)),
)
SAME, LOWER, TWINS, BUT_ONE = range(PER_ROLE)
ROLES = 2

routes = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 2), *[st.integers(1, 3)] * 3),
    unique_by=lambda r: r[:2],
    max_size=12,
)


def fact(peer: int, network: int, *values: int) -> Fact:
    names = "local_pref", "as_path_length", "med"
    params = dict(zip(names, values, strict=True)) | {"origin": 0}
    return Fact("bgp_route", (f"P{peer}", f"N{network}"), params)


def graph(drawn: Sequence[tuple[int, ...]], baseline: list[Fact] | None = None) -> Graph:
    return assemble(ENTITIES, [fact(*route) for route in drawn], baseline=baseline)


def local_pref(told: Told, role: int, what: int, reference: bool = False) -> list[float]:
    """One column of the first parameter."""
    column = ROLES + reference * (ROLES * PER_ROLE + 1) + role * PER_ROLE + what
    return [float(x) for x in told[:, column]]


@given(routes)
def test_as_counted_one_by_one(drawn: list[tuple[int, ...]]) -> None:
    told = graph(drawn).siblings
    for role in range(ROLES):
        for row, mine in enumerate(drawn):
            others = [r for r in drawn if r is not mine and r[role] == mine[role]]
            same = [r for r in others if r[2] == mine[2]]
            counted = {
                SAME: np.log1p(len(same)),
                LOWER: sum(r[2] < mine[2] for r in others) / max(len(others), 1),
                TWINS: np.log1p(sum(r[2:] == mine[2:] for r in others)),
                BUT_ONE: np.log1p(sum(r[3:] == mine[3:] for r in others if r[2] != mine[2])),
            }
            for what, expected in counted.items():
                assert abs(local_pref(told, role, what)[row] - expected) < 1e-2
            assert abs(float(told[row, role]) - np.log1p(len(others))) < 1e-2


@given(routes, st.integers(1, 1000), st.integers(0, 1000))
def test_no_scale_has_a_part_in_it(drawn: list[tuple[int, ...]], by: int, more: int) -> None:
    other = [(p, n, lp * by + more, length, med) for p, n, lp, length, med in drawn]
    assert (graph(drawn).siblings == graph(other).siblings).all()


def test_a_route_that_is_like_the_others_but_for_one_value() -> None:
    told = graph([(0, 0, 1, 2, 3), (1, 0, 2, 2, 3), (2, 0, 2, 2, 3)]).siblings
    assert local_pref(told, 1, BUT_ONE)[0] > local_pref(told, 1, BUT_ONE)[1] > 0
    assert local_pref(told, 1, TWINS)[0] == 0


def test_the_reference_is_compared_with_itself() -> None:
    baseline = [fact(0, 0, 2, 2, 3), fact(1, 0, 2, 2, 3)]
    told = graph([(0, 0, 1, 2, 3), (1, 0, 2, 2, 3), (2, 0, 2, 2, 3)], baseline).siblings
    assert local_pref(told, 1, TWINS, reference=True) == [*[np.float16(np.log(2))] * 2, 0]


def link(one: int, other: int, cost: int) -> Fact:
    return Fact("connected", (f"R{one}", f"R{other}"), {"ospf_weight": cost})


def together(drawn: Sequence[tuple[int, ...]]) -> list[list[float]]:
    """Of links with their costs now and before: what is told of those that changed together."""
    now = [link(a, b, cost) for a, b, cost, _ in drawn]
    before = [link(a, b, cost) for a, b, _, cost in drawn]
    routers = [Entity(f"R{i}", "router") for i in range(8)]
    told: list[list[float]] = assemble(routers, now, baseline=before).siblings[:, -2:].tolist()
    return told


def test_a_link_that_is_left_out_when_its_router_is_drained() -> None:
    drained = [(0, 1, 31, 4), (0, 2, 31, 9), (3, 0, 31, 31), (0, 4, 5, 7), (5, 6, 2, 2)]
    two_of_three = np.float16(2 / 3)
    assert together(drained) == [*[[two_of_three, 0]] * 3, [0, 1], [0, 0]]


links = st.lists(
    st.tuples(st.integers(0, 3), st.integers(4, 7), st.integers(1, 3), st.integers(1, 3)),
    unique_by=lambda drawn: drawn[:2],
    max_size=12,
)


@given(links)
def test_what_changed_together_as_counted_one_by_one(drawn: list[tuple[int, ...]]) -> None:
    for mine, told in zip(drawn, together(drawn), strict=True):
        expected = [0.0, 0.0]
        for router in mine[:2]:
            others = [x for x in drawn if x is not mine and router in x[:2]]
            to = [x[2] for x in others if x[2] != x[3]]
            if to:
                common = max(to, key=lambda cost: (to.count(cost), cost))
                share = sum(x[2] == common for x in others) / len(others)
                at = int(mine[2] != common)
                expected[at] = max(expected[at], share)
        assert told == [np.float16(share) for share in expected]


def test_of_nothing_there_is_nothing_to_tell() -> None:
    nothing = np.zeros((0, 15))
    assert siblings(nothing, None, np.zeros((0, 3), dtype=np.int64)).shape == (0, width())
