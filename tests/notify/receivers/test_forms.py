"""The form of each receiver's message, on a real place to send it to where there is one."""

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsid_service.api.alert_documents import AlertDocument
from gsid_service.notices import Group, Message
from gsid_service.notify.batch import Note
from gsid_service.notify.message import compose, document
from gsid_service.notify.receivers import TYPES, BadReceiver, Target, make
from gsid_service.notify.receivers.pagerduty import Receiver as PagerDuty
from gsid_service.notify.receivers.webhook import BODY_BYTES, fitting
from gsid_service.notify.sample import sample
from gsid_service.records import Alert, BrokenIntent, Fact, Move, Severity, Status
from tests.notify.listener import SECRET, Listener, listening
from tests.notify.making import alert
from tests.store.making import NOW

GROUP = Group("k1", "rr1", NOW)


def message(*found: Alert, kind: str = "new") -> Message:
    return compose(kind, "why", GROUP, [Note(one) for one in found])


def evident(number: int, broken: int, moved: int) -> Alert:
    intent = Fact("reachable", ("R1", "203.0.113.0/24", "R3"))
    return alert(
        number,
        broken_intents=(BrokenIntent(intent, derived=True),) * broken,
        moved=(Move("R1", "203.0.113.0/24", "R3", None),) * moved,
        reverting_repairs=broken,
    )


def target(url: str | None = None, *secrets: str, **more: Any) -> Target:
    return Target("noc", url, lambda: secrets, "https://gsid.example", **more)


@pytest.fixture(scope="module")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    with listening(tmp_path_factory.mktemp("forms")) as found:
        yield found


def test_there_is_a_module_for_each_type() -> None:
    assert TYPES == ("alertmanager", "apprise", "pagerduty", "stdout", "webhook")


def test_the_document_of_an_alert_is_that_of_the_api() -> None:
    one = evident(1, 3, 2)
    shown = AlertDocument.told(one).model_dump(mode="json", exclude={"events", "notifications"})
    times = ("first_seen", "last_seen", "since")
    expected = shown | {name: document(one, 9)[name] for name in times}
    assert document(one, 9) == expected


def test_the_webhook_s_body_is_alertmanager_s() -> None:
    body = json.loads(fitting(message(evident(1, 1, 1)), "noc", "https://gsid.example"))
    assert set(body) >= {
        *("version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels"),
        *("commonLabels", "commonAnnotations", "externalURL", "alerts"),
    }
    assert (body["version"], body["status"], body["truncatedAlerts"]) == ("4", "firing", 0)
    (one,) = body["alerts"]
    assert set(one) == {
        *("status", "labels", "annotations", "startsAt", "endsAt", "generatorURL"),
        *("fingerprint", "gsid"),
    }
    assert body["commonLabels"] == one["labels"]
    assert len(one["gsid"]["broken_intents"]) == 1


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 300),
    st.integers(0, 400),
    st.integers(0, 400),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200),
)
def test_a_body_is_short_and_says_what_it_leaves_out(
    count: int, broken: int, moved: int, name: str
) -> None:
    one = replace(evident(1, broken, moved), network=name)
    found = [replace(one, id=f"a{n}") for n in range(count)]
    text = fitting(message(*found), "noc", "https://gsid.example")
    assert len(text.encode()) < BODY_BYTES
    body = json.loads(text)
    assert len(body["alerts"]) + body["truncatedAlerts"] == count
    for shown in body["alerts"]:
        about = shown["gsid"]
        left = about.get("left_out", {})
        assert len(about["broken_intents"]) + left.get("broken_intents", 0) == broken
        assert len(about["moved"]) + left.get("moved", 0) == moved
    if count == 1 and broken + moved < 50:
        assert "left_out" not in body["alerts"][0]["gsid"]


def test_the_gravest_alert_comes_first() -> None:
    found = [alert(1, severity=Severity.MINOR), alert(2), alert(3, status=Status.RESOLVED)]
    items = message(*found)["alerts"]
    assert [item["gsid"]["id"] for item in items] == ["a2", "a1", "a3"]


@pytest.mark.parametrize(
    "secret", ["whsec_QUJD", "whsec_" + "A" * 200, "whsec_", "no base64 ä", ""]
)
def test_a_webhook_secret_has_24_to_64_bytes(secret: str) -> None:
    with pytest.raises(BadReceiver, match="secret_env"):
        make("webhook", target("https://noc.example", *([secret] if secret else [])))


def test_a_webhook_is_signed_by_every_secret(listener: Listener) -> None:
    other = "whsec_" + base64.b64encode(b"o" * 32).decode()
    receiver = make("webhook", target(listener.url("/ok"), other, SECRET))
    assert receiver.send("msg_1", message(alert()), datetime.now(UTC)) == "200 OK: ok"
    receiver.close()


def test_pagerduty_gets_trigger_acknowledge_and_resolve_on_one_key(listener: Listener) -> None:
    receiver = make("pagerduty", target(listener.url("/pd"), "routing-key"))
    acknowledged = alert(status=Status.ACKNOWLEDGED)
    for one in (alert(), acknowledged, alert(status=Status.RESOLVED)):
        receiver.send("msg_1", message(one), datetime.now(UTC))
    receiver.close()
    events = [line["body"] for line in listener.received("/pd")]
    assert [e["event_action"] for e in events] == ["trigger", "acknowledge", "resolve"]
    assert {e["dedup_key"] for e in events} == {"k1"}
    assert {e["routing_key"] for e in events} == {"routing-key"}
    payload = events[0]["payload"]
    assert set(payload) == {"summary", "source", "severity", "class", "group", "custom_details"}
    assert (payload["source"], payload["severity"]) == ("net", "critical")
    assert payload["custom_details"]["alerts"][0]["expected"] == "200"


def test_a_pagerduty_summary_is_not_too_long() -> None:
    receiver = PagerDuty(target(None, "routing-key"))
    event = receiver.event(message(*(alert(n, network="n" * 2000) for n in range(30))))
    receiver.close()
    assert len(event["payload"]["summary"]) == 1024
    assert event["payload"]["summary"].endswith("And 29 more of the same cause.")
    assert event["payload"]["custom_details"]["not shown"] == 10


def test_apprise_sends_the_sentence_and_a_link(listener: Listener) -> None:
    receiver = make("apprise", target(None, f"json://127.0.0.1:{listener.port}/apprise"))
    receiver.send("msg_1", message(*(alert(n) for n in range(1, 8))), datetime.now(UTC))
    (line,) = listener.received("/apprise")
    assert line["body"]["title"] == "GSID firing: net"
    text = line["body"]["message"]
    assert "local_pref on AS65101@R1 → 203.0.113.0/24 is 80, expected 200" in text
    assert "And 2 more of the same cause." in text
    assert text.endswith("https://gsid.example/alerts/a1")


@pytest.mark.parametrize(
    ("secret", "more"),
    [
        ("nonsense", {}),
        ("json://noc.example/", {}),  # http, and not loopback
        ("jsons://noc.example/", {"hosts": ("other.example",)}),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ", {"hosts": ("noc.example",)}),
    ],
)
def test_apprise_goes_only_where_it_may(secret: str, more: dict[str, Any]) -> None:
    with pytest.raises(BadReceiver, match="secret_env") as refused:
        make("apprise", target(None, secret, **more))
    assert "TIiajkdnlazkcOXrIdevi7FQ" not in str(refused.value)


def test_slack_is_reached_by_https_at_its_own_site() -> None:
    slack = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
    made = make("apprise", target(None, slack, hosts=("slack.com",)))
    assert made.shown == "slack"


def test_stdout_is_a_line_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    make("stdout", target()).send("msg_1", message(alert()), NOW)
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["id"] == "msg_1"
    assert json.loads(line)["alerts"][0]["gsid"]["id"] == "a1"


def test_a_test_message_calls_nobody_out_of_bed() -> None:
    found = sample(NOW)
    assert found["status"] == "resolved"
    assert "nothing is wrong" in found["alerts"][0]["sentence"]


def test_no_secret_is_in_a_target_s_text(tmp_path: Path) -> None:
    assert SECRET not in repr(target(str(tmp_path), SECRET))
