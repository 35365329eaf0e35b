"""A site: complete views first, then only what changed, and classes where prefixes are many."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gsid_service.collect.metrics import Metrics
from gsid_service.collect.site import Site
from gsid_service.collect.source import Sight
from gsid_service.collect.spool import Spool
from gsid_service.config import BadSettings
from gsid_service.ingest.wire import parse_snapshot
from tests.collect.making import settings, sight

AT = datetime(2026, 11, 15, 22, tzinfo=UTC)
A, B = "203.0.113.0/24", "198.51.100.0/24"


class Watched:
    """A site with a clock of its own, and what it spooled."""

    def __init__(self, folder: Path, *routers: str, **collector: Any) -> None:
        known = settings(folder, *routers, **collector)
        self.spool = Spool(folder / "spool.db", known.collector.spool_bytes, lambda: 1)
        self.now, self.told = 0.0, 0
        self.metrics = Metrics(["R1"])
        self.site = Site(known, self.spool, self.metrics, self._count, lambda: self.now)

    def _count(self) -> None:
        self.told += 1

    def see(self, seen: Sight) -> list[dict[str, Any]]:
        """Show the site something; what it has to say of it."""
        self.site.saw(seen.router, seen, AT)
        return self.said()

    def said(self) -> list[dict[str, Any]]:
        documents = []
        while (one := self.spool.oldest()) is not None:
            text = gzip.decompress(one.body)
            parse_snapshot(text)  # every one is as the service takes it
            documents.append(json.loads(text))
            self.spool.remove(one.number)
        return documents


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def facts(document: dict[str, Any]) -> list[tuple[str, ...]]:
    return [(fact["predicate"], *fact["args"]) for fact in document["facts"]]


def test_the_first_snapshot_is_complete(watched: Watched) -> None:
    (first,) = watched.see(sight(A))
    assert (first["complete"], first["sequence"]) == (True, 1)
    assert first["collector"] == {"id": "R1", "role": "router"}
    assert first["observed_at"] == "2026-11-15T22:00:00.000Z"
    assert facts(first) == [
        ("connected", "R1", "R9"),
        ("ebgp", "R1", "AS65101@R1"),
        ("bgp_route", "AS65101@R1", A),
        ("fwd", "R1", A, "AS65101@R1"),
    ]
    assert first["facts"][2]["params"] == {"local_pref": 100, "as_path_length": 2, "origin": 0}
    assert watched.told == 1


def test_what_is_not_set_is_left_out(watched: Watched) -> None:
    (first,) = watched.see(sight(A, local_pref=None))
    assert first["facts"][2]["params"] == {"as_path_length": 2, "origin": 0}


def test_later_only_what_changed_is_said(watched: Watched) -> None:
    watched.see(sight(A, B))
    assert watched.see(sight(A, B)) == []
    (second,) = watched.see(sight(A, B, cost=20))
    assert (second["complete"], second["sequence"]) == (False, 2)
    assert facts(second) == [("connected", "R1", "R9")]
    assert [entity["id"] for entity in second["entities"]] == ["R1", "R9"]
    (third,) = watched.see(sight(A, cost=20))
    assert third["facts"] == []
    assert [key["args"] for key in third["withdrawn"]] == [
        ["AS65101@R1", B],
        ["R1", B, "AS65101@R1"],
    ]


def test_a_router_that_does_not_change_is_heard_of(tmp_path: Path) -> None:
    watched = Watched(tmp_path, heartbeat_seconds=300)
    watched.see(sight(A))
    watched.now = 299
    assert watched.see(sight(A)) == []
    watched.now = 300
    (alive,) = watched.see(sight(A))
    assert (alive["complete"], alive["facts"], alive["withdrawn"]) == (False, [], [])
    watched.now = 301
    assert watched.see(sight(A)) == []


def test_signs_of_life_do_not_pile_up_while_the_service_is_away(tmp_path: Path) -> None:
    watched = Watched(tmp_path, heartbeat_seconds=1)
    for watched.now in range(0, 100, 10):
        watched.site.saw("R1", sight(A), AT)
    assert len(watched.said()) == 1


def test_a_complete_view_is_sent_now_and_then(tmp_path: Path) -> None:
    watched = Watched(tmp_path, complete_seconds=3600)
    watched.see(sight(A))
    watched.now = 3600
    (again,) = watched.see(sight(A, cost=11))
    assert again["complete"]
    assert len(again["facts"]) == 4
    watched.now = 3601
    assert not watched.see(sight(A, cost=12))[0]["complete"]


def test_after_a_refusal_the_view_is_sent_anew(watched: Watched) -> None:
    watched.see(sight(A))
    watched.site.start_anew("R1")
    (again,) = watched.see(sight(A))
    assert (again["complete"], again["sequence"]) == (True, 2)


def test_a_full_spool_makes_the_next_snapshot_complete_and_is_told(tmp_path: Path) -> None:
    watched = Watched(tmp_path, spool_bytes=1500)
    for cost in range(1, 40):
        watched.site.saw("R1", sight(A, cost=cost), AT)
    count, size = watched.spool.size()
    assert size < 2500
    assert count + watched.metrics.dropped._value.get() == 39
    said = watched.said()
    assert said[0]["complete"], "what is left can be understood without what was dropped"
    state = {tuple(f["args"]): f["params"] for one in said for f in one["facts"] if "params" in f}
    assert state["R1", "R9"] == {"ospf_weight": 39}


def test_many_prefixes_are_told_as_classes_once_every_router_was_tried(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "R1", "R2", classes_from=10)
    many = [f"10.0.{n}.0/24" for n in range(20)]
    assert watched.see(sight(*many)) == [], "R2 may tell them apart"
    one, other = watched.see(sight(*many[:5], router="R2"))
    assert sorted(facts(one)) == [
        ("bgp_route", "AS65101@R1", "10.0.0.0/24+"),
        ("bgp_route", "AS65101@R1", "10.0.5.0/24+"),
        ("connected", "R1", "R9"),
        ("ebgp", "R1", "AS65101@R1"),
        ("fwd", "R1", "10.0.0.0/24+", "AS65101@R1"),
        ("fwd", "R1", "10.0.5.0/24+", "AS65101@R1"),
    ]
    assert ("bgp_route", "AS65101@R2", "10.0.0.0/24+") in facts(other)
    labels = {e["id"]: e.get("label") for e in one["entities"] if e["kind"] == "network"}
    assert labels["10.0.5.0/24+"] == "15 prefixes such as 10.0.5.0/24, 10.0.6.0/24, 10.0.7.0/24"


def test_a_router_that_cannot_be_read_does_not_hold_the_others_up(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "R1", "R2", classes_from=1)
    assert watched.see(sight(A, B)) == []
    watched.site.failed("R2")
    (said,) = watched.said()
    assert ("bgp_route", "AS65101@R1", f"{A}+") in facts(said)


def test_a_split_by_one_router_is_told_of_all(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "R1", "R2", classes_from=1)
    watched.see(sight(A, B))
    watched.see(sight(A, B, router="R2"))
    first, second = watched.see(sight(A, router="R2"))
    assert {first["collector"]["id"], second["collector"]["id"]} == {"R1", "R2"}
    told = {one["collector"]["id"]: facts(one) for one in (first, second)}
    assert ("bgp_route", "AS65101@R1", f"{B}+") in told["R1"]


def test_classes_outlive_the_process(tmp_path: Path) -> None:
    first = Watched(tmp_path, classes_from=1)
    before = first.see(sight(A, B))
    # After a restart B comes first, and would name the class.
    second = Watched(tmp_path, classes_from=1)
    (after,) = second.see(sight(B, A))
    assert facts(after) == facts(before[0])
    kept = gzip.decompress((tmp_path / "classes.tsv.gz").read_bytes()).decode()
    assert kept == f"{A}+\t{A}\n{A}+\t{B}\n"


def test_classes_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    (tmp_path / "classes.tsv.gz").write_bytes(b"not gzip")
    with pytest.raises(BadSettings, match=r"classes.tsv.gz: cannot be read"):
        Watched(tmp_path)


def test_what_is_not_set_is_counted(watched: Watched) -> None:
    watched.see(sight(A, B, local_pref=None))
    unset = watched.metrics.unset
    assert unset.labels("R1", "local_pref")._value.get() == 2
    assert unset.labels("R1", "med")._value.get() == 2


def test_forwarding_that_differs_within_a_class_is_told(tmp_path: Path) -> None:
    watched = Watched(tmp_path, classes_from=1)
    seen = sight(A, B)
    odd = Sight(**{**seen.__dict__, "hops": {A: ("AS65101@R1",), B: ("R9",)}})
    (said,) = watched.see(odd)
    assert {fact[3] for fact in facts(said) if fact[0] == "fwd"} == {"AS65101@R1", "R9"}
