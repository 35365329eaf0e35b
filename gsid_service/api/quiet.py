"""What silences and maintenance windows share: names that nothing has are warned of, what is
probably not meant asks for confirmation, and with each change all that was held is looked at."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from sqlalchemy import Connection

from gsid_service.api.problems import about
from gsid_service.app import ALERT_PARAMETERS, Service
from gsid_service.records import Severity
from gsid_service.schema import SCHEMA
from gsid_service.store import alerts, networks, notifications

LONG = timedelta(days=7)
WARNINGS = "Names that nothing has here yet: one that is mistyped keeps nothing quiet."
VALUES = {
    "parameter": ALERT_PARAMETERS,
    "predicate": frozenset(SCHEMA.fact),
    "severity": frozenset(severity.value for severity in Severity),
}
Named = Iterable[tuple[str, str]]  # labels, and the value that each must have


@contextmanager
def changing(service: Service, now: datetime) -> Iterator[Connection]:
    """Write, and have every alert looked at anew: one may be quiet now, or no longer."""
    with service.database.write() as connection:
        yield connection
        notifications.look_at_all(connection, now)
    service.notifier.wake()


def must_be_meant(reasons: Iterable[str], confirmed: bool) -> None:
    """Ask whether something is meant that has reasons against it."""
    against = " and ".join(reasons)
    if against and not confirmed:
        raise about(409, "confirm", f"{against}: say confirm: true (--yes) if this is meant")


def too_long(begin: datetime, end: datetime) -> list[str]:
    return [f"it is longer than {LONG.days} days"] if end - begin > LONG else []


def strangers(service: Service, named: Named) -> list[str]:
    """Which of the names nothing has here."""
    named = list(named)
    unknown = [pair for pair in named if not _is_known(service, *pair)]
    if not unknown:
        unknown = _strange_entities(service, named)
    return [f"there is no {label} {value!r}" for label, value in unknown]


def _is_known(service: Service, label: str, value: str) -> bool:
    with service.database.read() as connection:
        if label == "network":
            return networks.find(connection, value) is not None
        if label == "alert":
            number = alerts.number_of(value)
            return number is not None and alerts.find(connection, number) is not None
    return label not in VALUES or value in VALUES[label]


def _strange_entities(service: Service, named: Named) -> list[tuple[str, str]]:
    """Entities that a network, where one is named, does not have."""
    wanted = {value for label, value in named if label == "entity"}
    for label, network in named:
        if label == "network" and wanted:
            wanted -= {entity.id for entity in service.merged(network)[1].entities}
            return [("entity", value) for value in sorted(wanted)]
    return []
