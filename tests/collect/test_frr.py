"""FRR: what 8.4.4 printed in the lab, and the traps that the lab does not have."""

import json
import subprocess
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from gsid_service.collect.frr import (
    ADJACENT,
    BGP,
    NEIGHBOURS,
    RIB,
    ROUTER_STATES,
    STATES6,
    Frr,
    Options,
    Reading,
    commands,
    split,
)
from gsid_service.collect.settings import Router
from gsid_service.collect.source import Sight, SourceError
from gsid_service.records import Entity
from tests.collect.making import settings, view
from tests.lab import plan
from tests.lab.design import ROUTERS, usual
from tests.waiting import until

RECORDED = Path(__file__).parent / "frr"
NAMES = {plan.router_id(name): name for name in ROUTERS}
GATEWAY, REFLECTOR = (json.loads((RECORDED / f"{name}.json").read_text()) for name in ("R6", "RR1"))
BOTH = Options(families=("ipv4", "ipv6"))
SPEAKER = 0x0A000006
FORCED = Path(__file__).parents[2] / "deploy" / "collect" / "gsid-vtysh"


def sight(outputs: dict[str, Any], options: Options = BOTH) -> Sight:
    return Reading(outputs, options, NAMES).sight()


def facts(seen: Sight) -> dict[str, dict[str, int]]:
    return {str(key): dict(fact.params) for key, fact in view(seen).facts.items()}


def changed(outputs: dict[str, Any]) -> dict[str, Any]:
    return deepcopy(outputs)


def test_the_links_of_the_area_are_told_with_the_cost_of_each_direction() -> None:
    links = {key: p for key, p in facts(sight(GATEWAY)).items() if key.startswith("connected")}
    assert links == {
        f"connected({a}, {b})": {"ospf_weight": cost} for (a, b), cost in usual().costs.items()
    }


@pytest.mark.parametrize("families", [("ipv4",), ("ipv6",)])
def test_own_links_alone_by_ospf_of_either_version(families: tuple[str, ...]) -> None:
    """One of the reflector's links is a network with a designated router."""
    options = Options.model_validate({"families": families, "ospf": "own"})
    links = {key: p for key, p in facts(sight(REFLECTOR, options)).items() if "connected" in key}
    assert links == {
        "connected(RR1, R1)": {"ospf_weight": 25},
        "connected(RR1, R4)": {"ospf_weight": 35},
        "connected(RR1, RR2)": {"ospf_weight": 12},
    }


def test_without_ospf_no_link_is_told() -> None:
    options = Options.model_validate({"ospf": "off"})
    assert not [key for key in facts(sight(GATEWAY, options)) if key.startswith("connected")]
    assert not [command for command in commands(options) if "ospf" in command]


def test_a_link_that_only_one_end_names_is_none() -> None:
    """The link state of a router that went away is still there."""
    outputs = changed(GATEWAY)
    (area,) = outputs[ROUTER_STATES]["routerLinkStates"]["areas"].values()
    for state in area:
        if state["advertisingRouter"] == "10.0.0.7":
            state["routerLinks"] = {}
    told = facts(sight(outputs))
    assert not [key for key in told if key.startswith("connected") and "R7" in key]
    assert "connected(R6, R5)" in told


def test_a_gateway_tells_its_peerings_and_what_it_hears_there() -> None:
    told = facts(sight(GATEWAY))
    assert [key for key in told if key.startswith("ebgp")] == [
        "ebgp(R6, AS65101@R6)",
        "ebgp(R6, AS65102@R6)",
    ]
    first = {"local_pref": 200, "as_path_length": 2, "origin": 0, "med": 10, "speaker": SPEAKER}
    second = {"local_pref": 100, "as_path_length": 3, "origin": 0, "med": 20, "speaker": SPEAKER}
    assert told["bgp_route(AS65101@R6, 198.51.100.0/24)"] == first | {"med": 20}
    assert told["bgp_route(AS65102@R6, 203.0.113.0/24)"] == second
    assert told["bgp_route(AS65102@R6, 2001:db8:2::/48)"] == first
    assert len([key for key in told if key.startswith("bgp_route")]) == 7


def test_what_nobody_set_is_left_out() -> None:
    told = facts(sight(GATEWAY))
    unset = {"as_path_length": 4, "origin": 0, "speaker": SPEAKER}
    assert told["bgp_route(AS65102@R6, 100.64.0.0/20)"] == unset
    assert told["bgp_route(AS65101@R6, 2001:db8:1::/48)"] == unset | {"med": 0}


def test_a_default_preference_of_the_router_s_own_is_filled_in() -> None:
    outputs = changed(GATEWAY)
    outputs[BGP["ipv4"]]["defaultLocPrf"] = 150
    told = facts(sight(outputs))
    assert told["bgp_route(AS65102@R6, 100.64.0.0/20)"]["local_pref"] == 150
    assert told["bgp_route(AS65102@R6, 203.0.113.0/24)"]["local_pref"] == 100


def test_next_hops_are_those_in_the_forwarding_table() -> None:
    told = [key for key in facts(sight(GATEWAY)) if key.startswith("fwd")]
    assert sorted(told) == [
        "fwd(R6, 100.64.0.0/20, R7)",
        "fwd(R6, 192.0.2.0/24, R7)",
        "fwd(R6, 198.51.100.0/24, R3)",
        "fwd(R6, 2001:db8:1::/48, R3)",
        "fwd(R6, 2001:db8:2::/48, AS65102@R6)",
        "fwd(R6, 203.0.113.0/24, R3)",
    ]


def test_a_next_hop_that_leads_to_nobody_known_says_nothing() -> None:
    outputs = changed(GATEWAY)
    hops = outputs[RIB["ipv4"]]["203.0.113.0/24"][0]["nexthops"]
    hops[-1]["ip"] = "192.0.2.99"
    told = facts(sight(outputs))
    assert not [key for key in told if key.startswith("fwd(R6, 203.0.113.0/24")]


def test_a_static_route_in_the_way_is_told() -> None:
    outputs = changed(GATEWAY)
    entries = outputs[RIB["ipv4"]]["203.0.113.0/24"]
    entries[0]["selected"] = False
    nearby = outputs[ADJACENT]["neighbors"]["10.0.0.5"][0]["ifaceAddress"]
    static = {"protocol": "static", "selected": True, "nexthops": [{"fib": True, "ip": nearby}]}
    entries.append(static)
    assert "fwd(R6, 203.0.113.0/24, R5)" in facts(sight(outputs))


def test_a_reflector_tells_its_clients_and_its_peers() -> None:
    seen = sight(REFLECTOR)
    assert seen.role == "route_reflector"
    told = [key for key in facts(seen) if key.startswith("ibgp")]
    assert told == [*(f"ibgp(R{n}, RR1)" for n in range(1, 9)), "ibgp(RR1, RR2)"]
    assert {entity for entity in seen.entities if entity.kind == "route_reflector"} == {
        Entity("RR1", "route_reflector"),
        Entity("RR2", "route_reflector"),
    }


def test_a_client_leaves_its_sessions_to_the_reflectors() -> None:
    seen = sight(GATEWAY)
    assert seen.role == "router"
    assert not [key for key in facts(seen) if key.startswith("ibgp")]


def test_a_full_mesh_is_told_by_its_routers() -> None:
    told = facts(sight(GATEWAY, BOTH.model_copy(update={"mesh": True})))
    assert [key for key in told if key.startswith("ibgp")] == ["ibgp(R6, RR1)", "ibgp(R6, RR2)"]


def test_a_session_that_is_down_is_not_told() -> None:
    outputs = changed(REFLECTOR)
    outputs[NEIGHBOURS]["10.0.0.6"]["bgpState"] = "Active"
    assert "ibgp(R6, RR1)" not in facts(sight(outputs))


def test_another_as_of_the_confederation_is_inside() -> None:
    outputs = changed(GATEWAY)
    peer = outputs[NEIGHBOURS]["172.16.1.2"]
    del peer["nbrExternalLink"]
    peer |= {"nbrCommonAdmin": True, "remoteRouterId": "10.0.0.2"}
    told = facts(sight(outputs))
    assert "ibgp(R2, R6)" in told
    assert "ibgp(RR1, R6)" in told, "those inside are to a border router as clients"
    assert "bgp_route(AS65101@R6, 198.51.100.0/24)" not in told, "it is not heard from outside"


def test_two_sessions_with_one_as_are_two_peerings() -> None:
    outputs = changed(GATEWAY)
    outputs[NEIGHBOURS]["172.16.2.2"]["remoteAs"] = 65101
    told = [key for key in facts(sight(outputs)) if key.startswith("ebgp")]
    assert told == [
        "ebgp(R6, AS65101@R6)",
        "ebgp(R6, AS65101@R6/172.16.2.2)",
        "ebgp(R6, AS65102@R6)",
    ]


# How it is asked


def frr(folder: Path, script: str, **options: Any) -> Frr:
    """A router whose vtysh is a script."""
    program = folder / "vtysh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    asked = {"command": [str(program)], "timeout_seconds": 5, "ospf": "off", **options}
    router = Router.model_validate({"name": "R6", "source": "frr", **asked})
    return Frr(router, settings(folder, names=NAMES))


def printing(folder: Path) -> str:
    """A script that prints what the router printed, as vtysh echoes it."""
    text = "".join(f"vm# {command}\n{json.dumps(said)}\n" for command, said in GATEWAY.items())
    (folder / "said").write_text(text)
    return f'echo "$@" >> {folder}/asked; cat {folder}/said'


def test_everything_is_asked_for_at_once(tmp_path: Path) -> None:
    assert len(frr(tmp_path, printing(tmp_path)).read().routes) == 4
    (asked,) = (tmp_path / "asked").read_text().splitlines()
    assert asked.split(" -c ") == ["-u -E", *commands(Options(ospf="off"))]


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    hanging = frr(tmp_path, f"sleep 60 & echo $! > {tmp_path}/child; wait", timeout_seconds=0.5)
    with pytest.raises(SourceError, match=r"did not end within 0.5 s"):
        hanging.read()
    child = (tmp_path / "child").read_text().strip()
    status = Path(f"/proc/{child}/status")

    def is_over() -> bool:
        try:
            return "zombie" in status.read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True

    until(is_over)  # it was killed, and goes once it is its turn


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo bgpd is not running >&2; exit 1", "failed: bgpd is not running"),
        ("exit 3", "failed: 3"),
        ("echo", "no answer to 'show bgp neighbors json'"),
        ("echo 'vm# show bgp neighbors json'; echo '{'", "did not print JSON"),
        ("head -c 100000 /dev/urandom", "no answer to"),
    ],
)
def test_what_goes_wrong_is_said(tmp_path: Path, script: str, problem: str) -> None:
    with pytest.raises(SourceError, match=problem):
        frr(tmp_path, script).read()


def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No such file"):
        frr(tmp_path, "", command=["/nonexistent/vtysh"]).read()


@pytest.mark.parametrize(
    "value", ["null", "[]", "7", '{"a": 1}', '{"10.0.0.9": {"bgpState": "Established"}}']
)
def test_json_of_another_form_is_said(tmp_path: Path, value: str) -> None:
    script = "; ".join(
        f"echo 'vm# {command}'; echo '{value}'" for command in commands(Options(ospf="off"))
    )
    with pytest.raises(SourceError, match="not what FRR says"):
        frr(tmp_path, script).read()


@pytest.fixture
def forced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ssh whose other side runs the forced command, and has a vtysh."""
    ssh = tmp_path / "ssh"
    ssh.write_text(
        f'#!/bin/sh\necho "$1 $2" > {tmp_path}/to\nSSH_ORIGINAL_COMMAND="$3" exec {FORCED}\n'
    )
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def test_over_ssh_the_forced_command_takes_what_is_asked(forced: Path) -> None:
    over = frr(forced, printing(forced), ssh="gsid@r6", command=["vtysh"])
    assert over.read().router == "R6"
    assert (forced / "to").read_text() == "-oBatchMode=yes gsid@r6\n"


@pytest.mark.parametrize(
    "command",
    [
        "",
        "id",
        "vtysh",
        "vtysh -u -E -c 'clear bgp'",
        "vtysh -u -E -c 'show version'; id",
        "vtysh -u -E -c 'show version' $(id)",
        "vtysh -u -E -c 'show version'\nid",
        "vtysh -E -c 'show version'",
    ],
)
def test_the_forced_command_takes_nothing_else(forced: Path, command: str) -> None:
    frr(forced, printing(forced))
    done = subprocess.run(
        ["ssh", "-oBatchMode=yes", "gsid@r6", command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "gsid-vtysh: refused\n"


def test_outputs_are_found_by_the_command_before_them() -> None:
    text = 'R1# show a json\n{"x": 1}\nR1> show b json\n[\n{"# show": 2}]\n'
    assert split(text, ["show b json", "show a json"]) == {
        "show b json": [{"# show": 2}],
        "show a json": {"x": 1},
    }


def test_ipv6_alone_has_its_own_ospf() -> None:
    assert STATES6 in commands(Options(families=("ipv6",)))
    assert ROUTER_STATES not in commands(Options(families=("ipv6",)))
