"""OpenConfig: a tree of state, from a file and from a real gNMI target."""

import json
import threading
import time
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from gsid_service.collect import gnmi
from gsid_service.collect.openconfig import Openconfig
from gsid_service.collect.settings import Router
from gsid_service.collect.source import SourceError
from gsid_service.config import BadSettings
from tests.collect.gnmi_target import Target, serving
from tests.collect.making import settings, view
from tests.collect.test_sender import certificate

NAMES = {"10.0.0.2": "F1", "10.0.0.1": "B1", "10.0.0.3": "F2"}


def session(address: str, asn: int, state: str = "ESTABLISHED", client: bool = False) -> Any:
    return {
        "neighbor-address": address,
        "state": {"neighbor-address": address, "peer-as": asn, "session-state": state},
        "route-reflector": {"state": {"route-reflector-client": client}},
    }


def attributes(index: int, path: list[Any], **state: Any) -> Any:
    origin = {"index": index, "origin": "IGP"}
    return {"index": index, "state": origin | state, "as-path": {"as-segment": path}}


def segment(*members: int, kind: str = "openconfig-rib-bgp:AS_SEQ") -> Any:
    return {"index": 0, "state": {"type": kind, "member": list(members)}}


def heard(address: str, **prefixes: int) -> Any:
    routes = [
        {"prefix": prefix, "path-id": 0, "state": {"prefix": prefix, "attr-index": index}}
        for prefix, index in prefixes.items()
    ]
    return {"neighbor-address": address, "adj-rib-in-post": {"routes": {"route": routes}}}


def interface(name: str, metric: int, router: str, state: str = "FULL") -> Any:
    near = {"router-id": router, "state": {"router-id": router, "adjacency-state": state}}
    return {"id": name, "state": {"metric": metric}, "neighbors": {"neighbor": [near]}}


BGP = {
    "global": {"state": {"as": 65000, "router-id": "10.0.0.2"}},
    "neighbors": {
        "neighbor": [
            session("10.0.0.1", 65000),
            session("10.0.0.3", 65000, client=True),
            session("172.16.1.2", 65102),
            session("2001:db8:f::2", 65102),
            session("172.16.2.2", 65103, "IDLE"),
        ]
    },
    "rib": {
        "attr-sets": {
            "attr-set": [
                attributes(1, [segment(65102, 65102, 65200)], **{"local-pref": 150, "med": 40}),
                attributes(2, [segment(65102), segment(1, 2, kind="AS_SET")], origin="INCOMPLETE"),
            ]
        },
        "afi-safis": {
            "afi-safi": [
                {
                    "afi-safi-name": "openconfig-bgp-types:IPV4_UNICAST",
                    "ipv4-unicast": {
                        "neighbors": {
                            "neighbor": [
                                heard("172.16.1.2", **{"203.0.113.0/24": 1, "192.0.2.0/24": 2}),
                                heard("10.0.0.1", **{"203.0.113.0/24": 1}),
                            ]
                        }
                    },
                },
                {
                    "afi-safi-name": "openconfig-bgp-types:IPV6_UNICAST",
                    "ipv6-unicast": {
                        "neighbors": {"neighbor": [heard("2001:db8:f::2", **{"2001:db8::/32": 1})]}
                    },
                },
            ]
        },
    },
}
OSPF = {
    "global": {"state": {"router-id": "10.0.0.2"}},
    "areas": {
        "area": [
            {
                "identifier": "0.0.0.0",  # noqa: S104 (the backbone)
                "interfaces": {
                    "interface": [
                        interface("eth0", 16, "10.0.0.1"),
                        interface("eth1", 35, "10.0.0.3"),
                        interface("eth2", 9, "10.0.0.9", "INIT"),
                    ]
                },
            }
        ]
    },
}
TREE: Any = {
    "openconfig-network-instance:network-instances": {
        "network-instance": [
            {"name": "mgmt"},
            {
                "name": "default",
                "protocols": {
                    "protocol": [
                        {"identifier": "openconfig-policy-types:BGP", "name": "bgp", "bgp": BGP},
                        {"identifier": "OSPF", "name": "1", "openconfig-ospfv2:ospfv2": OSPF},
                    ]
                },
            },
        ]
    }
}
(_, INSTANCE) = TREE["openconfig-network-instance:network-instances"]["network-instance"]
FACTS = {
    "connected(F1, B1)": {"ospf_weight": 16},
    "connected(F1, F2)": {"ospf_weight": 35},
    "ibgp(B1, F1)": {},
    "ibgp(F2, F1)": {},
    "ebgp(F1, AS65102@F1)": {},
    "bgp_route(AS65102@F1, 192.0.2.0/24)": {
        "as_path_length": 2,
        "origin": 2,
        "speaker": 0x0A000002,
    },
    **{
        f"bgp_route(AS65102@F1, {prefix})": {
            "local_pref": 150,
            "as_path_length": 3,
            "origin": 0,
            "med": 40,
            "speaker": 0x0A000002,
        }
        for prefix in ("203.0.113.0/24", "2001:db8::/32")
    },
}


def source(folder: Path, **options: Any) -> Openconfig:
    router = Router.model_validate({"name": "F1", "source": "openconfig", **options})
    return Openconfig(router, settings(folder, names=NAMES))


def facts(reading: Openconfig) -> dict[str, dict[str, int]]:
    return {str(key): dict(fact.params) for key, fact in view(reading.read()).facts.items()}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    path.write_text(json.dumps(TREE))
    return path


def test_a_file_is_read(file: Path) -> None:
    assert facts(source(file.parent, path=str(file))) == FACTS


def test_another_as_of_the_confederation_is_inside(file: Path) -> None:
    tree = deepcopy(INSTANCE)
    about = tree["protocols"]["protocol"][0]["bgp"]["global"]
    about["confederation"] = {"state": {"member-as": [65102]}}
    file.write_text(json.dumps(tree))
    found = facts(source(file.parent, path=str(file)))
    assert not [key for key in found if key.startswith(("ebgp", "bgp_route"))]


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"network-instances": {"network-instance": []}}']
)
def test_what_is_no_such_tree_is_said(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(SourceError, match="not OpenConfig"):
        source(file.parent, path=str(file)).read()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "either path or target"),
        ({"path": "x", "target": "r:1"}, "either path or target"),
        ({"target": "r:1"}, "either ca_file or insecure"),
        ({"target": "r"}, "target: String should match"),
    ],
)
def test_settings_are_checked(tmp_path: Path, options: dict[str, str], problem: str) -> None:
    with pytest.raises(BadSettings, match=problem):
        source(tmp_path, **options)


def test_a_target_is_asked_by_gnmi(tmp_path: Path) -> None:
    target = Target(INSTANCE)
    with serving(target):
        asked = {"target": f"127.0.0.1:{target.port}", "insecure": True, "on_change": False}
        assert facts(source(tmp_path, **asked, username="gsid")) == FACTS
    assert target.asked == ["network-instances/network-instance"]
    assert target.users == ["gsid"]


def test_a_target_that_is_away_is_said(tmp_path: Path) -> None:
    away = {"target": "127.0.0.1:9", "insecure": True, "on_change": False}
    with pytest.raises(SourceError, match="gNMI"):
        source(tmp_path, **away, timeout_seconds=1).read()


def test_a_change_is_told_of(tmp_path: Path) -> None:
    target = Target(INSTANCE)
    with serving(target):
        reading = source(tmp_path, target=f"127.0.0.1:{target.port}", insecure=True)
        reading.wait(30)  # until it is subscribed
        reading.read()
        tree = deepcopy(INSTANCE)
        sets = tree["protocols"]["protocol"][0]["bgp"]["rib"]["attr-sets"]["attr-set"]
        sets[0]["state"]["local-pref"] = 50
        threading.Timer(0.5, target.change, [tree]).start()
        begun = time.monotonic()
        reading.wait(30)
        assert time.monotonic() - begun < 15
        changed = facts(reading)["bgp_route(AS65102@F1, 203.0.113.0/24)"]
    assert changed["local_pref"] == 50


def test_a_target_that_comes_back_is_subscribed_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gnmi, "RETRY_SECONDS", 0.1)
    first, second = Target(INSTANCE), Target(INSTANCE)
    with serving(first):
        reading = source(tmp_path, target=f"127.0.0.1:{first.port}", insecure=True)
        reading.wait(30)
    with serving(second, port=first.port):
        begun = time.monotonic()
        reading.wait(30)  # for what the target has now
        assert time.monotonic() - begun < 15


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    key, own = certificate(tmp_path, "own")
    _, other = certificate(tmp_path, "other")
    target = Target(INSTANCE)
    with serving(target, key.read_bytes(), own.read_bytes()):
        asked = {"target": f"127.0.0.1:{target.port}", "on_change": False}
        assert facts(source(tmp_path, **asked, ca_file=str(own))) == FACTS
        with pytest.raises(SourceError, match="gNMI"):
            source(tmp_path, **asked, ca_file=str(other), timeout_seconds=2).read()
    assert len(target.asked) == 1
