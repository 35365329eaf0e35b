"""Sources that read files: a folder of snapshots, and a simulated network router by router."""

import json
import threading
import time
from pathlib import Path

import pytest

from gsid_service.collect.settings import Router
from gsid_service.collect.source import Source, SourceError, open_source
from gsid_service.config import BadSettings
from tests.collect.making import settings
from tests.flow.network import small


def source(folder: Path, kind: str, name: str = "R3", **options: object) -> Source:
    router = Router.model_validate({"name": name, "source": kind, **options})
    return open_source(router, settings(folder))


def test_the_last_snapshot_of_a_folder_is_the_view(tmp_path: Path) -> None:
    folder = tmp_path / "snapshots"
    folder.mkdir()
    reading = source(tmp_path, "file", path=str(folder))
    with pytest.raises(SourceError, match=r"no \*.json"):
        reading.read()
    for number, preference in (("0001", 100), ("0002", 200)):
        text = json.dumps(small("net", local_pref=preference))
        (folder / f"{number}.json").write_text(text)
    sight = reading.read()
    assert (sight.router, sight.role) == ("R3", "route_reflector")
    assert len(sight.facts) == 11
    assert sight.facts[-1].params == {"local_pref": 200, "as_path_length": 2, "med": 0}


def test_a_new_snapshot_is_read_at_once(tmp_path: Path) -> None:
    reading = source(tmp_path, "file", path=str(tmp_path))
    (tmp_path / "1.json").write_text(json.dumps(small("net")))
    reading.read()
    threading.Timer(0.3, (tmp_path / "2.json").write_text, [json.dumps(small("net"))]).start()
    begun = time.monotonic()
    reading.wait(30)
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not a snapshot"),
        ("[]", "not a snapshot"),
        (json.dumps(small("net") | {"complete": False}), "not a complete snapshot"),
        (json.dumps(small("net") | {"facts": [{"predicate": "x"}]}), "not a snapshot: KeyError"),
    ],
)
def test_what_is_no_snapshot_is_said_so(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "1.json").write_text(text)
    with pytest.raises(SourceError, match=problem):
        source(tmp_path, "file", path=str(tmp_path / "1.json")).read()


def test_a_simulated_router_sees_its_own_part_only(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text(json.dumps(small("net")))
    sight = source(tmp_path, "simulated", path=str(tmp_path / "1.json")).read()
    assert [str(fact.key) for fact in sight.facts] == [
        "connected(R3, RR1)",
        "ibgp(R3, RR1)",
        "ebgp(R3, AS65101@R3)",
        "bgp_route(AS65101@R3, 203.0.113.0/24)",
    ]
    assert {entity.id for entity in sight.entities} == {"R3", "RR1", "AS65101@R3", "203.0.113.0/24"}


def test_all_simulated_routers_together_see_everything(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text(json.dumps(small("net")))
    path = str(tmp_path / "1.json")
    each = [source(tmp_path, "simulated", n, path=path).read() for n in ("R1", "R2", "R3", "RR1")]
    whole = source(tmp_path, "file", path=path).read()
    assert {fact.key for sight in each for fact in sight.facts} == {f.key for f in whole.facts}
    with pytest.raises(SourceError, match="no R7"):
        source(tmp_path, "simulated", "R7", path=path).read()


def test_settings_of_a_source_are_checked(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"routers.R3: path: Field required"):
        source(tmp_path, "file")
    with pytest.raises(BadSettings, match=r"routers.R3: paht: no such setting; known: path"):
        source(tmp_path, "file", path="x", paht="y")
    with pytest.raises(BadSettings, match="is none of frr, bird, openconfig"):
        source(tmp_path, "junos")
    with pytest.raises(BadSettings, match="is no source"):
        source(tmp_path, "json:Junos")
