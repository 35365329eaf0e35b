"""Several processes on one database: what each remembered is in the store, and there is a queue.

Expands only: a process of the release before goes on beside this one.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from gsid_service.store import tables

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("networks", sa.Column("silent", sa.JSON(), nullable=True))
    op.add_column("networks", sa.Column("differing", sa.JSON(), nullable=True))
    op.add_column("maintenance", sa.Column("holding", sa.Boolean(), nullable=True))
    op.create_table(
        "collectors",
        sa.Column("network", sa.String(length=200), nullable=False),
        sa.Column("collector", sa.String(length=200), nullable=False),
        sa.Column("heard_at", tables.Instant(), nullable=False),
        sa.ForeignKeyConstraint(["network"], ["networks.name"], name=op.f("fk_collectors_network")),
        sa.PrimaryKeyConstraint("network", "collector", name=op.f("pk_collectors")),
    )
    op.create_index("ix_collectors_heard_at", "collectors", ["heard_at"])
    op.execute(
        "INSERT INTO collectors (network, collector, heard_at) "
        "SELECT network, collector, max(received_at) FROM snapshots GROUP BY network, collector"
    )
    op.create_table(
        "holds",
        sa.Column("receiver", sa.String(length=200), nullable=False),
        sa.Column("until", tables.Instant(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("receiver", name=op.f("pk_holds")),
    )
    op.create_table(
        "upkeep",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("at", tables.Instant(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_upkeep")),
    )
    # The oldest version whose release works on these tables; a migration that takes something away
    # that an older one needs raises it.
    op.create_table("compatible", sa.Column("since", sa.String(length=32), nullable=False))
    op.execute("INSERT INTO compatible (since) VALUES ('0001')")
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        from procrastinate.schema import SchemaManager

        # Past SQLAlchemy and without arguments: the text has percent signs and several statements.
        queue: Any = connection.connection.driver_connection
        queue.execute(SchemaManager.get_schema())
