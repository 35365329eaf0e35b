"""The tables. Times are microseconds since 1970, so that both databases order them alike."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    TypeDecorator,
    UniqueConstraint,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Instant(TypeDecorator[datetime]):
    """A moment in UTC, as microseconds since 1970."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else (value - EPOCH) // MICROSECOND

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else EPOCH + value * MICROSECOND


# SQLite numbers rows by itself only where the key is an INTEGER.
Number = BigInteger().with_variant(Integer, "sqlite")
Name = String(200)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)


def _network() -> Column[str]:
    return Column("network", Name, ForeignKey("networks.name"), nullable=False)


networks = Table(
    "networks",
    metadata,
    Column("name", Name, primary_key=True),
    Column("created_at", Instant, nullable=False),
    Column("settings", JSON, nullable=False),
    # Raised with all news (a snapshot, an approval, other intents); `done` is how far the cycle is.
    Column("news", BigInteger, nullable=False),
    Column("done", BigInteger, nullable=False),
    Column("scored", BigInteger, nullable=False),  # the newest snapshot that the scores include
    Column("scored_at", Instant),
    Column("problem", String),  # why the last cycle failed
    Column("summary", JSON, nullable=False),  # conflicts, stale facts, broken intents of the state
    Column("notify_at", Instant),  # when there may be something to tell of its alerts
    Column("silent", JSON),  # the collectors that the last cycle took for silent
    Column("differing", JSON),  # routers that it saw forward otherwise, and since when
)

collectors = Table(
    "collectors",
    metadata,
    Column("network", Name, ForeignKey("networks.name"), primary_key=True),
    Column("collector", Name, primary_key=True),
    Column("heard_at", Instant, nullable=False),  # when its newest came in
    Index("ix_collectors_heard_at", "heard_at"),
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    _network(),
    Column("collector", Name, nullable=False),
    Column("role", Name, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("observed_at", Instant, nullable=False),
    Column("received_at", Instant, nullable=False),
    Column("complete", Boolean, nullable=False),
    Column("facts", Integer, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    UniqueConstraint("network", "collector", "sequence"),
    sqlite_autoincrement=True,
)

baselines = Table(
    "baselines",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    _network(),
    Column("approved_at", Instant, nullable=False),
    Column("approved_by", Name, nullable=False),
    Column("provisional", Boolean, nullable=False),
    Column("snapshot", BigInteger, nullable=False),
    Column("collectors", JSON, nullable=False),
    Column("ticket", Name),  # of the announced change that it comes from
    Column("body", LargeBinary, nullable=False),
    Index("ix_baselines_network", "network", "number"),
    sqlite_autoincrement=True,
)

changes = Table(
    "changes",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    _network(),
    Column("author", Name, nullable=False),
    Column("announced_by", Name, nullable=False),
    Column("announced_at", Instant, nullable=False),
    Column("ticket", Name, nullable=False),
    Column("comment", String, nullable=False),
    Column("begins_at", Instant, nullable=False),
    Column("ends_at", Instant, nullable=False),
    Column("status", String(16), nullable=False),
    Column("steps", LargeBinary, nullable=False),
    Column("observed", LargeBinary, nullable=False),  # of each step, as last seen in the window
    Column("closed_at", Instant),
    Column("cancelled_by", Name),
    Index("ix_changes_network", "network", "number"),
    sqlite_autoincrement=True,
)

intents = Table(
    "intents",
    metadata,
    Column("network", Name, ForeignKey("networks.name"), primary_key=True),
    Column("stated", LargeBinary, nullable=False),
    Column("derived", LargeBinary, nullable=False),
    Column("changed_at", Instant, nullable=False),
    Column("changed_by", Name, nullable=False),
)

scores = Table(
    "scores",
    metadata,
    Column("network", Name, ForeignKey("networks.name"), primary_key=True),
    Column("fact", String(32), primary_key=True),  # FactKey.digest
    Column("parameter", String(64), primary_key=True),
    Column("predicate", String(64), nullable=False),
    Column("args", JSON, nullable=False),
    Column("observed", BigInteger, nullable=False),
    Column("baseline", BigInteger),
    Column("score", Float, nullable=False),
    Column("stale", Boolean, nullable=False),
    Column("snapshot", BigInteger, nullable=False),
    Column("since", Instant, nullable=False),
)

score_history = Table(
    "score_history",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    _network(),
    Column("fact", String(32), nullable=False),
    Column("parameter", String(64), nullable=False),
    Column("at", Instant, nullable=False),
    Column("observed", BigInteger, nullable=False),
    Column("score", Float, nullable=False),
    Column("snapshot", BigInteger, nullable=False),
    Index("ix_score_history_slot", "network", "fact", "parameter", "number"),
    sqlite_autoincrement=True,
)

alerts = Table(
    "alerts",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    _network(),
    Column("fact", String(32), nullable=False),
    Column("parameter", String(64), nullable=False),
    Column("status", String(16), nullable=False),
    Column("severity", String(16), nullable=False),
    Column("document", JSON, nullable=False),
    Column("first_seen", Instant, nullable=False),
    Column("last_seen", Instant, nullable=False),
    UniqueConstraint("network", "fact", "parameter"),
    sqlite_autoincrement=True,
)

alert_events = Table(
    "alert_events",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("alert", BigInteger, ForeignKey("alerts.number"), nullable=False),
    Column("at", Instant, nullable=False),
    Column("what", String(32), nullable=False),
    Column("why", String, nullable=False),
    Column("who", Name),
    Index("ix_alert_events_alert", "alert", "number"),
    sqlite_autoincrement=True,
)

tokens = Table(
    "tokens",
    metadata,
    Column("name", Name, primary_key=True),
    Column("role", String(16), nullable=False),
    Column("networks", JSON, nullable=False),  # those it is bound to; an empty list is all
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("created_at", Instant, nullable=False),
)

silences = Table(
    "silences",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("matchers", JSON, nullable=False),
    Column("author", Name, nullable=False),
    Column("comment", String, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("starts_at", Instant, nullable=False),
    Column("ends_at", Instant, nullable=False),
    Index("ix_silences_ends_at", "ends_at"),
    sqlite_autoincrement=True,
)

maintenance = Table(
    "maintenance",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("network", Name),
    Column("entity", String),
    Column("parameter", String(64)),
    Column("mode", String(16), nullable=False),
    Column("starts_at", Instant, nullable=False),
    Column("ends_at", Instant, nullable=False),
    Column("rule", String),
    Column("timezone", String(64), nullable=False),
    Column("author", Name, nullable=False),
    Column("comment", String, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("cancelled_at", Instant),
    Column("holding", Boolean),  # it lets no alert open, as far as anybody has looked
    sqlite_autoincrement=True,
)

receivers = Table(  # those that answered 410; all others are only in the settings
    "receivers",
    metadata,
    Column("name", Name, primary_key=True),
    Column("disabled_at", Instant, nullable=False),
    Column("reason", String, nullable=False),
)

holds = Table(  # receivers that are away, or asked to wait
    "holds",
    metadata,
    Column("receiver", Name, primary_key=True),
    Column("until", Instant, nullable=False),
    Column("failures", Integer, nullable=False),  # one after the other
)

upkeep = Table(  # what one process at a time does for all, and when it was last done
    "upkeep",
    metadata,
    Column("name", Name, primary_key=True),
    Column("at", Instant, nullable=False),
)

groups = Table(
    "groups",
    metadata,
    Column("key", String(32), primary_key=True),
    Column("cause", String, nullable=False),
    Column("opened_at", Instant, nullable=False),
    Column("flushed_at", Instant),
)

notifications = Table(
    "notifications",
    metadata,
    Column("alert", BigInteger, ForeignKey("alerts.number"), primary_key=True),
    Column("receiver", Name, primary_key=True),
    _network(),
    Column("group", String(32), ForeignKey("groups.key")),
    Column("told_status", String(16)),
    Column("told_severity", String(16)),
    Column("told_observed", BigInteger),
    Column("told_at", Instant),
    Column("stage", String(16), nullable=False),
    Column("reason", String, nullable=False),
    Column("at", Instant, nullable=False),
    Column("unfinished", Boolean, nullable=False),
    Column("delivery", String(40)),  # the key of the last message about it
    Index("ix_notifications_network", "network", "unfinished"),
    Index("ix_notifications_group", "group"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("key", String(40), nullable=False, unique=True),  # the webhook-id
    Column("receiver", Name, nullable=False),
    _network(),
    Column("group", String(32), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("status", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("since", Instant, nullable=False),
    Column("due", Instant, nullable=False),
    Column("settled_at", Instant),
    Column("answer", String),
    Column("message", LargeBinary, nullable=False),
    Index("ix_deliveries_due", "receiver", "status", "due", "number"),
    Index("ix_deliveries_group", "group", "status", "number"),
    Index("ix_deliveries_settled", "status", "settled_at"),
    sqlite_autoincrement=True,
)

verdicts = Table(  # kept when the alert is forgotten
    "verdicts",
    metadata,
    Column("alert", BigInteger, primary_key=True, autoincrement=False),
    Column("since", Instant, primary_key=True),  # when the alert that was judged had opened
    _network(),
    Column("verdict", String(8), nullable=False),
    Column("at", Instant, nullable=False),
    Column("who", Name, nullable=False),
)
