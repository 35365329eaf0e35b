"""The message that `gsid receivers test` sends: an alert about nothing, which says so."""

from datetime import datetime

from gsid_service.notices import Group, Message
from gsid_service.notify.batch import Note
from gsid_service.notify.message import compose
from gsid_service.records import Alert, FactKey, Severity, Status
from gsid_service.schema import BGP_ROUTE, LOCAL_PREF

TEST = "test"


def sample(now: datetime) -> Message:
    alert = Alert(
        id="a0",
        network=TEST,
        fact=FactKey(BGP_ROUTE.name, ("AS64496@R1", "192.0.2.0/24")),
        parameter=LOCAL_PREF.name,
        status=Status.RESOLVED,  # so that nobody is called out of bed
        severity=Severity.MINOR,
        score=1.0,
        observed=80,
        expected=200,
        snapshot_id="s0",
        collector=TEST,
        first_seen=now,
        last_seen=now,
        since=now,
    )
    group = Group(f"test-{now.timestamp():.0f}", TEST, now)
    message = compose(TEST, "a test message; nothing is wrong", group, [Note(alert)])
    first = {**message["alerts"][0], "sentence": "A test message of GSID: nothing is wrong."}
    return {**message, "alerts": [first]}
