"""Merging: the same snapshots give the same network, whatever order they came in."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import reduce
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from gsid_service.assemble.merge import Conflict, Merged, View, extend, merge
from gsid_service.records import Entity, Fact, FactKey, Snapshot
from tests.store.making import NOW, ROUTERS, link, snapshot

PEERING = Entity("AS1@R1", "external_as", 1)
REFLECTOR = Entity("R3", "route_reflector")
LINK = FactKey("connected", ("R1", "R2"))


def view(*laid: Snapshot) -> View:
    """The snapshots laid upon each other as given; ids name the collector and the sequence."""
    found = reduce(lambda v, s: extend(v, s, f"{s.collector.id}/{s.sequence}"), laid, nothing())
    assert found is not None
    return found


def nothing() -> View | None:
    return None


def in_order(snapshots: Iterable[Snapshot]) -> list[View]:
    """Each collector's view, by sequence: as the store hands the snapshots over."""
    by_collector: dict[str, list[Snapshot]] = {}
    for one in snapshots:
        by_collector.setdefault(one.collector.id, []).append(one)
    return [view(*sorted(kept, key=lambda s: s.sequence)) for kept in by_collector.values()]


def values(merged: Merged) -> dict[tuple[str, ...], int]:
    return {f.args: f.params["ospf_weight"] for f in merged.facts if f.predicate == "connected"}


# A view: what it rests on


def test_a_complete_snapshot_replaces_all_that_was_said() -> None:
    found = view(
        snapshot(1, [link("R1", "R2", 1), link("R2", "R3", 2)]),
        snapshot(2, [link("R1", "R2", 5)], entities=ROUTERS[:2]),
    )
    assert list(found.facts) == [LINK]
    assert sorted(found.entities) == ["R1", "R2"]
    assert (found.sequence, found.complete) == (2, True)


def test_an_incremental_snapshot_changes_only_what_it_names() -> None:
    first = snapshot(1, [link("R1", "R2", 1), link("R2", "R3", 2), link("R1", "R3", 3)])
    second = snapshot(
        2, [link("R2", "R3", 9)], complete=False, entities=ROUTERS[1:], withdrawn=[LINK]
    )
    found = view(first, second)
    assert values(merge([found])) == {("R2", "R3"): 9, ("R1", "R3"): 3}
    assert {s.snapshot_id for s in found.facts.values()} == {"c1/1", "c1/2"}
    assert found.complete
    assert view(first).facts[LINK].fact.params == {"ospf_weight": 1}, "it changed the older view"


def test_a_view_of_incremental_snapshots_alone_is_not_complete() -> None:
    partial = view(snapshot(1, [link("R1", "R2", 1)], complete=False))
    other = view(snapshot(1, collector="c2"))
    assert not merge([partial]).complete
    assert not merge([partial, other]).complete
    assert merge([other]).complete
    assert not merge([]).complete


def test_what_is_withdrawn_may_be_stated_again_and_need_not_be_there() -> None:
    found = view(
        snapshot(1, withdrawn=[LINK]),
        snapshot(2, complete=False, withdrawn=[LINK]),
        snapshot(3, [link("R1", "R2", 4)], complete=False),
    )
    assert values(merge([found])) == {("R1", "R2"): 4}


# Several views: what counts


def test_the_newer_observation_counts_and_the_disagreement_is_listed() -> None:
    older = view(snapshot(9, [link("R1", "R2", 1)], collector="c1", at=NOW))
    newer = view(snapshot(1, [link("R1", "R2", 7)], collector="c2", at=NOW + timedelta(seconds=1)))
    merged = merge([older, newer])
    assert values(merged) == {("R1", "R2"): 7}
    assert merged.source[LINK].snapshot_id == "c2/1"
    (conflict,) = merged.conflicts
    assert conflict[:3] == (LINK, "ospf_weight", (("c2", 7), ("c1", 1)))
    assert merge([newer, older]) == merged


def test_collectors_that_agree_are_no_conflict() -> None:
    views = [view(snapshot(1, [link("R1", "R2", 3)], collector=c)) for c in ("c1", "c2", "c3")]
    assert merge(views).conflicts == ()


def test_equal_times_are_decided_the_same_way_every_time() -> None:
    views = [
        view(snapshot(1, [link("R1", "R2", w)], collector=c, at=NOW))
        for c, w in (("b", 2), ("a", 1), ("c", 3))
    ]
    assert merge(views) == merge(reversed(views))
    assert values(merge(views)) == {("R1", "R2"): 3}


def test_a_value_that_one_states_and_the_other_leaves_to_the_protocol_is_a_disagreement() -> None:
    """A route without a local_pref has the protocol's 100."""
    entities = (PEERING, Entity("N", "network"))
    stated, left_out = (
        Fact("bgp_route", ("AS1@R1", "N"), {"as_path_length": 2} | more)
        for more in ({"local_pref": 900}, {})
    )
    merged = merge(
        [
            view(snapshot(1, [stated], collector="c1", entities=entities)),
            view(snapshot(2, [left_out], collector="c2", entities=entities)),
        ]
    )
    assert [c.parameter for c in merged.conflicts] == ["local_pref"]


def test_a_peering_at_two_routers_is_a_disagreement() -> None:
    """The schema says that a peering has one session; a single snapshot with two is refused."""
    entities = (*ROUTERS, PEERING)
    merged = merge(
        view(snapshot(1, [Fact("ebgp", (r, "AS1@R1"))], collector=c, entities=entities))
        for c, r in (("c1", "R1"), ("c2", "R2"))
    )
    assert merged.conflicts


def test_the_newest_word_on_an_entity_counts() -> None:
    old = view(snapshot(1, entities=(Entity("R1", "router", label="old"),)))
    new = view(snapshot(2, collector="c2", entities=(Entity("R1", "router", label="new"),)))
    assert merge([old, new]).entities == merge([new, old]).entities
    assert merge([old, new]).entities[0].label == "new"


def test_a_fact_whose_entity_is_of_another_kind_now_is_left_out_and_listed() -> None:
    session = Fact("ibgp", ("R1", "R3"))
    old = view(snapshot(1, [session], entities=(*ROUTERS[:2], REFLECTOR)))
    others = (*ROUTERS[:2], Entity("R3", "network"))
    new = view(snapshot(2, [link("R1", "R2", 1)], collector="c2", entities=others))
    merged = merge([old, new])
    assert values(merged) == {("R1", "R2"): 1}
    assert session.key not in merged.source
    assert [(c.fact, c.parameter, c.values) for c in merged.conflicts] == [(session.key, None, ())]
    assert "another kind" in merged.conflicts[0].reason


def test_a_reflector_that_others_know_as_a_router_is_a_reflector() -> None:
    """Only the reflector itself knows its clients; to its neighbours it is a router like others."""
    session = Fact("ibgp", ("R1", "R3"))
    labelled = (*ROUTERS[:2], REFLECTOR._replace(label="in Kyoto"))
    own = view(snapshot(1, [session], entities=labelled))
    neighbour = view(snapshot(2, [link("R1", "R3", 1)], collector="c2"))
    for merged in (merge([own, neighbour]), merge([neighbour, own])):
        assert merged.entities[2] == Entity("R3", "route_reflector", label="in Kyoto")
        assert session.key in merged.source
        assert merged.conflicts == ()


def test_a_fact_is_stale_only_when_all_who_state_it_are_silent() -> None:
    views = [
        view(snapshot(1, [link("R1", "R2", 1), link("R2", "R3", 1)], collector="c1")),
        view(snapshot(2, [link("R1", "R2", 1), link("R1", "R3", 1)], collector="c2")),
    ]
    assert merge(views).stale == frozenset()
    assert {key.args for key in merge(views, {"c1"}).stale} == {("R2", "R3")}
    assert {key.args for key in merge(views, {"c2", "c9"}).stale} == {("R1", "R3")}
    assert merge(views, {"c1", "c2"}).stale == merge(views).source.keys()


# Any order of arrival

PAIRS = [("R1", "R2"), ("R2", "R1"), ("R1", "R3"), ("R2", "R3")]
links = st.dictionaries(st.sampled_from(PAIRS), st.integers(1, 3), max_size=4)


@st.composite
def histories(draw: st.DrawFn) -> list[Snapshot]:
    """The snapshots of up to three collectors, in no order, at times that often coincide."""
    found = []
    for collector in ("c1", "c2", "c3")[: draw(st.integers(1, 3))]:
        for sequence in draw(st.sets(st.integers(0, 9), min_size=1, max_size=4)):
            stated = draw(links)
            gone = draw(st.sets(st.sampled_from(PAIRS), max_size=2)) - stated.keys()
            kinds = (*ROUTERS[:2], draw(st.sampled_from([ROUTERS[2], REFLECTOR])))
            facts = [link(*pair, weight) for pair, weight in stated.items()]
            if kinds[2] is REFLECTOR:
                facts.append(Fact("ibgp", ("R1", "R3")))
            found.append(
                snapshot(
                    *(sequence, facts),
                    collector=collector,
                    complete=draw(st.booleans()),
                    entities=kinds,
                    withdrawn=[FactKey("connected", pair) for pair in gone],
                    at=NOW + timedelta(seconds=draw(st.integers(0, 3))),
                )
            )
    return found


def content(merged: Merged) -> tuple[object, ...]:
    return merged.entities, merged.facts, dict(merged.source), merged.conflicts, merged.complete


@settings(max_examples=150, deadline=None)
@given(histories(), st.randoms(use_true_random=False))
def test_any_order_of_arrival_gives_the_same_network(
    snapshots: list[Snapshot], chance: Random
) -> None:
    expected = content(merge(in_order(snapshots)))
    shuffled = list(snapshots)
    chance.shuffle(shuffled)
    assert content(merge(in_order(shuffled))) == expected


def told(snapshots: Sequence[Snapshot]) -> dict[str, dict[FactKey, Snapshot]]:
    """What each collector says in the end, worked out without the code under test."""
    said: dict[str, dict[FactKey, Snapshot]] = {}
    for one in sorted(snapshots, key=lambda s: s.sequence):
        mine = said.setdefault(one.collector.id, {})
        if one.complete:
            mine.clear()
        for key in one.withdrawn:
            mine.pop(key, None)
        mine.update({fact.key: one for fact in one.facts})
    return said


@settings(max_examples=150, deadline=None)
@given(histories(), st.sets(st.sampled_from(["c1", "c2", "c3"])))
def test_every_fact_is_the_newest_of_what_is_said_of_it(
    snapshots: list[Snapshot], silent: set[str]
) -> None:
    said = told(snapshots)
    merged = merge(in_order(snapshots), silent)
    left_out = {c.fact for c in merged.conflicts if c.parameter is None}
    assert merged.source.keys() | left_out == {key for mine in said.values() for key in mine}
    assert not merged.source.keys() & left_out
    for key, stated in merged.source.items():
        versions = {c: mine[key] for c, mine in said.items() if key in mine}
        winner = max(versions, key=lambda c: (versions[c].observed_at, c))
        assert stated.collector == winner
        assert stated.fact in versions[winner].facts
        assert (key in merged.stale) == (versions.keys() <= silent)
        weights = {
            f.params.get("ospf_weight") for s in versions.values() for f in s.facts if f.key == key
        }
        assert (len(weights) > 1) == any(c.fact == key for c in merged.conflicts)


def test_conflicts_name_the_value_that_counts_first() -> None:
    views = [view(snapshot(n, [link("R1", "R2", n)], collector=f"c{n}")) for n in (2, 3, 1)]
    reason = merge(views).conflicts[0].reason
    wanted = Conflict(LINK, "ospf_weight", (("c3", 3), ("c2", 2), ("c1", 1)), reason)
    assert merge(views).conflicts == (wanted,)
