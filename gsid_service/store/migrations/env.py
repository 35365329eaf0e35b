"""Run by Alembic: migrations on the connection that `database.py` hands over."""

from alembic import context

from gsid_service.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    user_module_prefix="tables.",
    render_as_batch=True,
    compare_type=True,
)
with context.begin_transaction():
    context.run_migrations()
