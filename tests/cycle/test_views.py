"""Views that are merged again, snapshot by snapshot, give what merging all of them gives."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gsid_service.assemble.merge import Merged, View, extend, merge
from gsid_service.cycle import views
from gsid_service.cycle.views import Views
from gsid_service.records import Snapshot
from tests.assemble.test_merge import histories


def content(merged: Merged) -> tuple[object, ...]:
    """All of it; facts may come in another order."""
    facts = {fact.key: fact for fact in merged.facts}
    assert len(facts) == len(merged.facts)
    rest = merged.conflicts, merged.stale, merged.complete
    return merged.entities, facts, dict(merged.source), *rest


@pytest.fixture(scope="module", autouse=True)
def _whatever_is_touched() -> object:
    """Networks as small as these are otherwise merged anew each time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(views, "LARGEST_SHARE", 100)
        yield


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories(), st.lists(st.sets(st.sampled_from(["c1", "c2"])), min_size=1))
def test_merging_again_is_merging_anew(snapshots: list[Snapshot], silences: list[set[str]]) -> None:
    known, told = Views(), dict[str, View]()
    for number, one in enumerate(sorted(snapshots, key=lambda s: (s.sequence, s.collector.id))):
        told = {**told, one.collector.id: extend(told.get(one.collector.id), one, f"s{number}")}
        silent = silences[number // 3 % len(silences)]
        assert content(known.merged("net", told, silent)) == content(merge(told.values(), silent))


def test_what_is_merged_again_is_not_merged_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.store.making import ROUTERS, link, snapshot

    known = Views()
    facts = [link("R1", "R2", 1), link("R2", "R3", 2)]
    first = extend(None, snapshot(1, facts), "s1")
    known.merged("net", {"c1": first}, set())
    monkeypatch.setattr(views, "merge", lambda *_: pytest.fail("merged anew"))
    change = snapshot(2, [link("R1", "R2", 9)], complete=False, entities=ROUTERS[:2])
    second = known.merged("net", {"c1": extend(first, change, "s2")}, set())
    assert [fact.params["ospf_weight"] for fact in second.facts] == [9, 2]
