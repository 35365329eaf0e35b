"""The first tables."""

import sqlalchemy as sa
from alembic import op

from gsid_service.store import tables

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "groups",
        sa.Column("key", sa.String(length=32), nullable=False),
        sa.Column("cause", sa.String(), nullable=False),
        sa.Column("opened_at", tables.Instant(), nullable=False),
        sa.Column("flushed_at", tables.Instant(), nullable=True),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_groups")),
    )
    op.create_table(
        "maintenance",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("network", sa.String(length=200), nullable=True),
        sa.Column("entity", sa.String(), nullable=True),
        sa.Column("parameter", sa.String(length=64), nullable=True),
        sa.Column("mode", sa.String(length=16), nullable=False),
        sa.Column("starts_at", tables.Instant(), nullable=False),
        sa.Column("ends_at", tables.Instant(), nullable=False),
        sa.Column("rule", sa.String(), nullable=True),
        sa.Column("timezone", sa.String(length=64), nullable=False),
        sa.Column("author", sa.String(length=200), nullable=False),
        sa.Column("comment", sa.String(), nullable=False),
        sa.Column("created_at", tables.Instant(), nullable=False),
        sa.Column("cancelled_at", tables.Instant(), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_maintenance")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "networks",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("created_at", tables.Instant(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("news", sa.BigInteger(), nullable=False),
        sa.Column("done", sa.BigInteger(), nullable=False),
        sa.Column("scored", sa.BigInteger(), nullable=False),
        sa.Column("scored_at", tables.Instant(), nullable=True),
        sa.Column("problem", sa.String(), nullable=True),
        sa.Column("summary", sa.JSON(), nullable=False),
        sa.Column("notify_at", tables.Instant(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_networks")),
    )
    op.create_table(
        "receivers",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("disabled_at", tables.Instant(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_receivers")),
    )
    op.create_table(
        "silences",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("matchers", sa.JSON(), nullable=False),
        sa.Column("author", sa.String(length=200), nullable=False),
        sa.Column("comment", sa.String(), nullable=False),
        sa.Column("created_at", tables.Instant(), nullable=False),
        sa.Column("starts_at", tables.Instant(), nullable=False),
        sa.Column("ends_at", tables.Instant(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_silences")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("silences", schema=None) as batch_op:
        batch_op.create_index("ix_silences_ends_at", ["ends_at"], unique=False)

    op.create_table(
        "tokens",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("networks", sa.JSON(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", tables.Instant(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_tokens_digest")),
    )
    op.create_table(
        "alerts",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("network", sa.String(length=200), nullable=False),
        sa.Column("fact", sa.String(length=32), nullable=False),
        sa.Column("parameter", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("severity", sa.String(length=16), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("first_seen", tables.Instant(), nullable=False),
        sa.Column("last_seen", tables.Instant(), nullable=False),
        sa.ForeignKeyConstraint(["network"], ["networks.name"], name=op.f("fk_alerts_network")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_alerts")),
        sa.UniqueConstraint("network", "fact", "parameter", name=op.f("uq_alerts_network")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "baselines",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("network", sa.String(length=200), nullable=False),
        sa.Column("approved_at", tables.Instant(), nullable=False),
        sa.Column("approved_by", sa.String(length=200), nullable=False),
        sa.Column("provisional", sa.Boolean(), nullable=False),
        sa.Column("snapshot", sa.BigInteger(), nullable=False),
        sa.Column("collectors", sa.JSON(), nullable=False),
        sa.Column("ticket", sa.String(length=200), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["network"], ["networks.name"], name=op.f("fk_baselines_network")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_baselines")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("baselines", schema=None) as batch_op:
        batch_op.create_index("ix_baselines_network", ["network", "number"], unique=False)

    op.create_table(
        "changes",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("network", sa.String(length=200), nullable=False),
        sa.Column("author", sa.String(length=200), nullable=False),
        sa.Column("announced_by", sa.String(length=200), nullable=False),
        sa.Column("announced_at", tables.Instant(), nullable=False),
        sa.Column("ticket", sa.String(length=200), nullable=False),
        sa.Column("comment", sa.String(), nullable=False),
        sa.Column("begins_at", tables.Instant(), nullable=False),
        sa.Column("ends_at", tables.Instant(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("steps", sa.LargeBinary(), nullable=False),
        sa.Column("observed", sa.LargeBinary(), nullable=False),
        sa.Column("closed_at", tables.Instant(), nullable=True),
        sa.Column("cancelled_by", sa.String(length=200), nullable=True),
        sa.ForeignKeyConstraint(["network"], ["networks.name"], name=op.f("fk_changes_network")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_changes")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("changes", schema=None) as batch_op:
        batch_op.create_index("ix_changes_network", ["network", "number"], unique=False)

    op.create_table(
        "deliveries",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("key", sa.String(length=40), nullable=False),
        sa.Column("receiver", sa.String(length=200), nullable=False),
        sa.Column("network", sa.String(length=200), nullable=False),
        sa.Column("group", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", tables.Instant(), nullable=False),
        sa.Column("since", tables.Instant(), nullable=False),
        sa.Column("due", tables.Instant(), nullable=False),
        sa.Column("settled_at", tables.Instant(), nullable=True),
        sa.Column("answer", sa.String(), nullable=True),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["network"], ["networks.name"], name=op.f("fk_deliveries_network")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("key", name=op.f("uq_deliveries_key")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("deliveries", schema=None) as batch_op:
        batch_op.create_index(
            "ix_deliveries_due", ["receiver", "status", "due", "number"], unique=False
        )
        batch_op.create_index("ix_deliveries_group", ["group", "status", "number"], unique=False)
        batch_op.create_index("ix_deliveries_settled", ["status", "settled_at"], unique=False)

    op.create_table(
        "intents",
        sa.Column("network", sa.String(length=200), nullable=False),
        sa.Column("stated", sa.LargeBinary(), nullable=False),
        sa.Column("derived", sa.LargeBinary(), nullable=False),
        sa.Column("changed_at", tables.Instant(), nullable=False),
        sa.Column("changed_by", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(["network"], ["networks.name"], name=op.f("fk_intents_network")),
        sa.PrimaryKeyConstraint("network", name=op.f("pk_intents")),
    )
    op.create_table(
        "score_history",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("network", sa.String(length=200), nullable=False),
        sa.Column("fact", sa.String(length=32), nullable=False),
        sa.Column("parameter", sa.String(length=64), nullable=False),
        sa.Column("at", tables.Instant(), nullable=False),
        sa.Column("observed", sa.BigInteger(), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("snapshot", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["network"], ["networks.name"], name=op.f("fk_score_history_network")
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_score_history")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("score_history", schema=None) as batch_op:
        batch_op.create_index(
            "ix_score_history_slot", ["network", "fact", "parameter", "number"], unique=False
        )

    op.create_table(
        "scores",
        sa.Column("network", sa.String(length=200), nullable=False),
        sa.Column("fact", sa.String(length=32), nullable=False),
        sa.Column("parameter", sa.String(length=64), nullable=False),
        sa.Column("predicate", sa.String(length=64), nullable=False),
        sa.Column("args", sa.JSON(), nullable=False),
        sa.Column("observed", sa.BigInteger(), nullable=False),
        sa.Column("baseline", sa.BigInteger(), nullable=True),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("stale", sa.Boolean(), nullable=False),
        sa.Column("snapshot", sa.BigInteger(), nullable=False),
        sa.Column("since", tables.Instant(), nullable=False),
        sa.ForeignKeyConstraint(["network"], ["networks.name"], name=op.f("fk_scores_network")),
        sa.PrimaryKeyConstraint("network", "fact", "parameter", name=op.f("pk_scores")),
    )
    op.create_table(
        "snapshots",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("network", sa.String(length=200), nullable=False),
        sa.Column("collector", sa.String(length=200), nullable=False),
        sa.Column("role", sa.String(length=200), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("observed_at", tables.Instant(), nullable=False),
        sa.Column("received_at", tables.Instant(), nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("facts", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["network"], ["networks.name"], name=op.f("fk_snapshots_network")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_snapshots")),
        sa.UniqueConstraint("network", "collector", "sequence", name=op.f("uq_snapshots_network")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "verdicts",
        sa.Column("alert", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("since", tables.Instant(), nullable=False),
        sa.Column("network", sa.String(length=200), nullable=False),
        sa.Column("verdict", sa.String(length=8), nullable=False),
        sa.Column("at", tables.Instant(), nullable=False),
        sa.Column("who", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(["network"], ["networks.name"], name=op.f("fk_verdicts_network")),
        sa.PrimaryKeyConstraint("alert", "since", name=op.f("pk_verdicts")),
    )
    op.create_table(
        "alert_events",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("alert", sa.BigInteger(), nullable=False),
        sa.Column("at", tables.Instant(), nullable=False),
        sa.Column("what", sa.String(length=32), nullable=False),
        sa.Column("why", sa.String(), nullable=False),
        sa.Column("who", sa.String(length=200), nullable=True),
        sa.ForeignKeyConstraint(["alert"], ["alerts.number"], name=op.f("fk_alert_events_alert")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_alert_events")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("alert_events", schema=None) as batch_op:
        batch_op.create_index("ix_alert_events_alert", ["alert", "number"], unique=False)

    op.create_table(
        "notifications",
        sa.Column("alert", sa.BigInteger(), nullable=False),
        sa.Column("receiver", sa.String(length=200), nullable=False),
        sa.Column("network", sa.String(length=200), nullable=False),
        sa.Column("group", sa.String(length=32), nullable=True),
        sa.Column("told_status", sa.String(length=16), nullable=True),
        sa.Column("told_severity", sa.String(length=16), nullable=True),
        sa.Column("told_observed", sa.BigInteger(), nullable=True),
        sa.Column("told_at", tables.Instant(), nullable=True),
        sa.Column("stage", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("at", tables.Instant(), nullable=False),
        sa.Column("unfinished", sa.Boolean(), nullable=False),
        sa.Column("delivery", sa.String(length=40), nullable=True),
        sa.ForeignKeyConstraint(["alert"], ["alerts.number"], name=op.f("fk_notifications_alert")),
        sa.ForeignKeyConstraint(["group"], ["groups.key"], name=op.f("fk_notifications_group")),
        sa.ForeignKeyConstraint(
            ["network"], ["networks.name"], name=op.f("fk_notifications_network")
        ),
        sa.PrimaryKeyConstraint("alert", "receiver", name=op.f("pk_notifications")),
    )
    with op.batch_alter_table("notifications", schema=None) as batch_op:
        batch_op.create_index("ix_notifications_group", ["group"], unique=False)
        batch_op.create_index("ix_notifications_network", ["network", "unfinished"], unique=False)
