"""BIRD: what 2.0.12 printed in the small lab, and what that lab does not have."""

from pathlib import Path

import pytest

from gsid_service.collect.bgp import path_length
from gsid_service.collect.bird import (
    NEIGHBOURS,
    PROTOCOLS,
    ROUTES,
    STATE,
    STATUS,
    Bird,
    Options,
    Reading,
    states,
)
from gsid_service.collect.ospf import Link
from gsid_service.collect.settings import Router
from gsid_service.collect.source import Sight, SourceError
from tests.collect.making import settings, view

RECORDED = Path(__file__).parent / "bird" / "B1"
NAMES = {"10.0.0.1": "B1", "10.0.0.2": "F1", "10.0.0.3": "F2"}
FILES = {
    STATUS: "status",
    PROTOCOLS: "protocols",
    ROUTES: "routes",
    STATE: "ospf-state",
    NEIGHBOURS: "ospf-neighbors",
}
PRINTED = {command: (RECORDED / name).read_text() for command, name in FILES.items()}


def sight(printed: dict[str, str], options: Options | None = None) -> Sight:
    return Reading(printed, options or Options(), NAMES).sight()


def facts(seen: Sight) -> list[str]:
    return [str(key) for key in view(seen).facts]


def test_what_bird_prints_is_read() -> None:
    assert facts(sight(PRINTED)) == [
        "connected(B1, F1)",
        "connected(B1, F2)",
        "connected(F1, B1)",
        "connected(F1, F2)",
        "connected(F2, B1)",
        "connected(F2, F1)",
        "ibgp(B1, F1)",
        "ibgp(F2, B1)",
        "ebgp(B1, AS65101@B1)",
        "bgp_route(AS65101@B1, 198.51.100.0/24)",
        "bgp_route(AS65101@B1, 203.0.113.0/24)",
        "bgp_route(AS65101@B1, 2001:db8:1::/48)",
        "fwd(B1, 198.51.100.0/24, AS65101@B1)",
        "fwd(B1, 203.0.113.0/24, AS65101@B1)",
        "fwd(B1, 2001:db8:1::/48, AS65101@B1)",
    ]


def test_a_session_that_is_down_is_not_told() -> None:
    down = PRINTED[PROTOCOLS].replace("x1         BGP        ---        up", "x1 BGP --- start")
    lines = [
        line.replace("Established", "Active") if line.startswith("x1 ") else line
        for line in down.splitlines()
    ]
    told = facts(sight({**PRINTED, PROTOCOLS: "\n".join(lines)}))
    assert "bgp_route(AS65101@B1, 198.51.100.0/24)" not in told
    assert "ebgp(B1, AS65101@B1)" in told, "by its session of IPv6"


def test_another_as_of_the_confederation_is_inside() -> None:
    printed = PRINTED[PROTOCOLS].replace("external AS4", "external confederation AS4")
    told = facts(sight({**PRINTED, PROTOCOLS: printed}))
    assert not [key for key in told if key.startswith(("ebgp", "bgp_route"))]


def test_routes_through_others_are_told_by_their_neighbours() -> None:
    routes = (
        PRINTED[ROUTES]
        .replace("unicast [x1 ", "unicast [f1 ")
        .replace("via 172.16.0.2 on to-X1", "via 10.1.0.2 on to-F1")
    )
    told = facts(sight({**PRINTED, ROUTES: routes}))
    assert "fwd(B1, 203.0.113.0/24, F1)" in told


def test_shared_networks_are_read() -> None:
    text = (
        "area 0.0.0.0\n\n\trouter 10.0.0.1\n\t\tdistance 0\n\t\tnetwork 10.1.0.0/24 metric 7\n"
        "\t\tstubnet 10.0.0.1/32 metric 0\n\n\tnetwork 10.1.0.0/24\n\t\tdr 10.0.0.2\n"
        "\t\tdistance 7\n\t\trouter 10.0.0.2\n\t\trouter 10.0.0.1\n"
    )
    links, attached = states(text)
    assert links == [Link("10.0.0.1", "10.1.0.0/24", 7)]
    assert attached == {"10.1.0.0/24": ["10.0.0.2", "10.0.0.1"]}


@pytest.mark.parametrize(
    ("path", "length"),
    [
        ("65101 65102", 2),
        ("65101 {1 2 3}", 2),
        ("65101 {1,2}", 2),
        ("(65001 65002) 65101", 1),
        ("[65001] (65002) 65101 65101", 2),
        ("", 1),
    ],
)
def test_lengths_of_paths(path: str, length: int) -> None:
    assert path_length(path) == length


def bird(folder: Path, script: str) -> Bird:
    program = folder / "birdc"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    router = Router.model_validate({"name": "B1", "source": "bird", "command": [str(program)]})
    return Bird(router, settings(folder, names=NAMES))


def test_it_is_asked_in_restricted_mode(tmp_path: Path) -> None:
    cases = "".join(f'"-r {c}") cat {RECORDED}/{name};;\n' for c, name in FILES.items())
    assert bird(tmp_path, f'case "$*" in\n{cases}esac').read().router == "B1"


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo 'Unable to connect to server control socket' >&2; exit 1", "Unable to connect"),
        ("echo hello", "no answer to 'show status'"),
        ("echo BIRD 2.0.12 ready.", "not what BIRD says"),
    ],
)
def test_what_goes_wrong_is_said(tmp_path: Path, script: str, problem: str) -> None:
    with pytest.raises(SourceError, match=problem):
        bird(tmp_path, script).read()
