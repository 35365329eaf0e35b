"""Silences and maintenance windows with names that nothing has: one that is mistyped keeps nothing
quiet, and the page comes at night."""

from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.api.inside import NET, Inside


def silence(net: Inside, *named: tuple[str, str], **more: Any) -> httpx.Response:
    matchers = [{"name": label, "value": value} for label, value in named]
    ends_at = (net.now + timedelta(hours=1)).isoformat()
    body = {"matchers": matchers, "comment": "known", "ends_at": ends_at} | more
    return net.client.post("/api/v1/silences", json=body)


def window(net: Inside, hours: float = 1, **more: Any) -> httpx.Response:
    starts_at, ends_at = net.now, net.now + timedelta(hours=hours)
    body = {"starts_at": starts_at.isoformat(), "ends_at": ends_at.isoformat(), "comment": "work"}
    return net.client.post("/api/v1/maintenance", json=body | more)


def warned(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 201, answer.text
    warnings: list[str] = answer.json()["warnings"]
    return warnings


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ([("network", "as6500"), ("parameter", "med")], "there is no network 'as6500'"),
        ([("network", NET), ("parameter", "mde")], "there is no parameter 'mde'"),
        ([("network", NET), ("severity", "crit")], "there is no severity 'crit'"),
        ([("network", NET), ("predicate", "route")], "there is no predicate 'route'"),
        ([("network", NET), ("entity", "R33")], "there is no entity 'R33'"),
        ([("alert", "17")], "there is no alert '17'"),
        ([("alert", "a17")], "there is no alert 'a17'"),
    ],
)
def test_a_silence_of_what_is_not_known_warns(
    net: Inside, named: list[tuple[str, str]], why: str
) -> None:
    assert warned(silence(net, *named)) == [why]


def test_a_silence_of_what_is_there_warns_of_nothing(net: Inside) -> None:
    net.see(local_pref=50)
    (alert,) = net.alerts()
    named = [
        *(("network", NET), ("entity", "R3"), ("parameter", "session"), ("severity", "major")),
        *(("predicate", "ebgp"), ("alert", alert["id"]), ("collector", "rr9")),
    ]
    assert warned(silence(net, *named)) == []


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"network": "as6500"}, "there is no network 'as6500'"),
        ({"network": NET, "entity": "R33"}, "there is no entity 'R33'"),
        ({"network": NET, "parameter": "local_perf"}, "there is no parameter 'local_perf'"),
    ],
)
def test_a_window_of_what_is_not_known_warns(net: Inside, wanted: dict[str, Any], why: str) -> None:
    assert warned(window(net, **wanted)) == [why]


@pytest.mark.parametrize("wanted", [{}, {"entity": "R3", "parameter": "next_hop"}])
def test_a_window_of_what_is_there_warns_of_nothing(net: Inside, wanted: dict[str, Any]) -> None:
    assert warned(window(net, network=NET, **wanted)) == []


def test_a_window_that_is_over_already_is_refused_unless_it_recurs(net: Inside) -> None:
    past: dict[str, Any] = {"starts_at": "2020-01-01T02:00:00Z", "ends_at": "2020-01-01T04:00:00Z"}
    answer = window(net, network=NET, **past)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "ends_at")
    assert window(net, network=NET, **past, rule="FREQ=WEEKLY").status_code == 201


@pytest.mark.parametrize("said", [1, "yes", 0])
def test_only_true_confirms(net: Inside, said: Any) -> None:
    answer = silence(net, ("network", NET), confirm=said)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "confirm")
