"""The log has a line for each alert that opens or resolves, and does not drown in a flood."""

from dataclasses import replace

from structlog.testing import capture_logs

from gsid_service.cycle.turns import LINES, log_turns
from gsid_service.records import Alert, AlertEvent
from tests.notify.making import alert
from tests.store.making import NOW


def turned(what: str, known: Alert | None = None) -> Alert:
    return (known or alert()).with_event(AlertEvent(NOW, what, "so it is"))


def test_who_opens_or_resolves_is_logged_once_with_what_it_is_about() -> None:
    opened = turned("opened")
    changed = turned("changed", opened)
    with capture_logs() as logged:
        log_turns({}, [opened])
        log_turns({(opened.fact, opened.parameter): opened}, [changed])
        log_turns({(changed.fact, changed.parameter): changed}, [turned("resolved", changed)])
    assert [line["event"] for line in logged] == ["alert opened", "alert resolved"]
    for line in logged:
        assert (line["log_level"], line["alert"], line["network"]) == ("info", "a1", "net")
        assert line["fact"] == "bgp_route(AS65101@R1, 203.0.113.0/24)"
        assert (line["parameter"], line["severity"]) == ("local_pref", "critical")


def test_a_flood_is_counted() -> None:
    flood = [replace(turned("opened"), id=f"a{number}") for number in range(LINES + 5)]
    with capture_logs() as logged:
        log_turns({}, flood)
    assert len(logged) == LINES + 1
    assert logged[-1]["more"] == 5
