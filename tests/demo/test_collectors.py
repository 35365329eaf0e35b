"""Each collector tells what its router sees, and together they tell the whole."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from gsid_service import schema
from gsid_service.assemble.merge import extend, merge
from gsid_service.demo.collectors import COMPLETE_EVERY, GATEWAY, Collectors, news, views
from gsid_service.demo.network import network
from gsid_service.demo.play import configured
from gsid_service.records import Fact, FactKey, Snapshot
from gsid_service.simulate.topologies import real

BEGIN = datetime(2026, 11, 15, 22, tzinfo=UTC)


@pytest.fixture(params=["topozoo/Abilene", "topozoo/Geant2012"])
def whole(request: pytest.FixtureRequest) -> Snapshot:
    return network("n", real(request.param), 0)


def of_kind(snapshot: Snapshot, kind: schema.FactKind) -> list[Fact]:
    return [fact for fact in snapshot.facts if fact.predicate == kind.name]


def link(whole: Snapshot) -> FactKey:
    return of_kind(whole, schema.CONNECTED)[0].key


def route(whole: Snapshot) -> FactKey:
    return of_kind(whole, schema.BGP_ROUTE)[0].key


def test_the_views_together_are_the_whole(whole: Snapshot) -> None:
    merged = merge(extend(None, view, "s1") for view in views(whole))
    assert merged.entities == whole.entities
    assert {f.key: f for f in merged.facts} == {f.key: f for f in whole.facts}
    assert merged.conflicts == ()
    assert merged.complete


def test_a_gateway_sees_its_own_sessions_and_what_its_peers_announce(whole: Snapshot) -> None:
    for view in (v for v in views(whole) if v.collector.role == GATEWAY):
        gateway = view.collector.id
        assert of_kind(view, schema.CONNECTED) == []
        assert all(gateway in f.args for f in of_kind(view, schema.IBGP))
        assert all(f.args[0] == gateway for f in of_kind(view, schema.EBGP))
        own = {f.args[1] for f in of_kind(view, schema.EBGP)}
        announced = {f.args[0] for f in of_kind(view, schema.BGP_ROUTE)}
        assert announced == own != set()


def test_a_reflector_sees_all_links_and_its_own_sessions(whole: Snapshot) -> None:
    reflecting = [v for v in views(whole) if v.collector.role == schema.ROUTE_REFLECTOR.name]
    assert len(reflecting) == 2
    for view in reflecting:
        assert of_kind(view, schema.CONNECTED) == of_kind(whole, schema.CONNECTED)
        assert all(view.collector.id in f.args for f in of_kind(view, schema.IBGP))
        assert len(of_kind(view, schema.IBGP)) < len(of_kind(whole, schema.IBGP))


def test_a_reflector_that_is_a_gateway_too_is_one_collector(whole: Snapshot) -> None:
    reflector = next(v.collector.id for v in views(whole))
    ebgp = next(f for f in whole.facts if f.predicate == schema.EBGP.name)
    moved = ebgp._replace(args=(reflector, ebgp.args[1]))
    facts = tuple(moved if fact == ebgp else fact for fact in whole.facts)
    found = [v for v in views(replace(whole, facts=facts)) if v.collector.id == reflector]
    assert [v.collector.role for v in found] == [schema.ROUTE_REFLECTOR.name]
    assert moved in found[0].facts


def test_news_laid_upon_a_view_make_the_next_one(whole: Snapshot) -> None:
    before = views(whole)[0]
    changed, gone = before.facts[0], before.facts[1]
    fresh = changed._replace(params={schema.OSPF_WEIGHT.name: 77})
    after = replace(before, facts=(fresh, *before.facts[2:]))
    told = news(before, after)
    assert (told.complete, told.facts, told.withdrawn) == (False, (fresh,), (gone.key,))
    assert {entity.id for entity in told.entities} == set(fresh.args)
    view = extend(extend(None, before, "s1"), told, "s2")
    assert {key: stated.fact for key, stated in view.facts.items()} == {
        fact.key: fact for fact in after.facts
    }


class Ear:
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.heard: list[Snapshot] = []

    def __call__(self, snapshot: Snapshot) -> str:
        self.heard.append(snapshot)
        return f"s{len(self.heard)}"

    def forget(self) -> None:
        self.heard.clear()


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
def collectors(ear: Ear) -> Collectors:
    seconds = count()
    return Collectors(ear, lambda: BEGIN + timedelta(seconds=next(seconds)))


def test_the_first_views_are_complete(whole: Snapshot, ear: Ear, collectors: Collectors) -> None:
    ids = collectors.observe(whole)
    assert ids == [f"s{n}" for n in range(1, len(views(whole)) + 1)]
    assert all(snapshot.complete for snapshot in ear.heard)
    assert [s.facts for s in ear.heard] == [v.facts for v in views(whole)]


def test_only_who_sees_a_change_tells_it(whole: Snapshot, ear: Ear, collectors: Collectors) -> None:
    collectors.observe(whole)
    ear.forget()
    key = route(whole)
    collectors.observe(configured(whole, {(key, schema.LOCAL_PREF.name): 80}))
    (told,) = ear.heard
    assert told.collector.id == key.args[0].partition("@")[2]
    assert [(f.key, f.params[schema.LOCAL_PREF.name]) for f in told.facts] == [(key, 80)]
    assert not told.complete
    ear.forget()
    collectors.observe(configured(whole, {(link(whole), schema.OSPF_WEIGHT.name): 77}))
    links = [s for s in ear.heard if of_kind(s, schema.CONNECTED)]
    assert {s.collector.role for s in links} == {schema.ROUTE_REFLECTOR.name}


def test_nothing_new_is_not_told(whole: Snapshot, collectors: Collectors) -> None:
    collectors.observe(whole)
    assert collectors.observe(whole) == []


def test_a_beat_says_that_all_are_there(whole: Snapshot, ear: Ear, collectors: Collectors) -> None:
    collectors.observe(whole)
    ear.forget()
    collectors.beat()
    assert [s.collector for s in ear.heard] == [v.collector for v in views(whole)]
    assert all(not s.complete and s.facts == () == s.withdrawn for s in ear.heard)


def test_sequences_rise_also_within_a_millisecond(whole: Snapshot, ear: Ear) -> None:
    collectors = Collectors(ear, lambda: BEGIN)
    collectors.observe(whole)
    collectors.beat()
    collectors.beat()
    own = [s.sequence for s in ear.heard if s.collector == ear.heard[0].collector]
    assert own == [own[0], own[0] + 1, own[0] + 2]


def test_all_is_told_again_after_a_while(whole: Snapshot, ear: Ear) -> None:
    now = BEGIN
    collectors = Collectors(ear, lambda: now)
    collectors.observe(whole)
    for later, complete in ((COMPLETE_EVERY - timedelta(seconds=1), False), (COMPLETE_EVERY, True)):
        ear.forget()
        now = BEGIN + later
        collectors.beat()
        assert {snapshot.complete for snapshot in ear.heard} == {complete}
        assert all(bool(snapshot.facts) == complete for snapshot in ear.heard)
