"""Runs the migrations on the connection of `memory.migrate`: one transaction, one process at a time."""

from alembic import context
from sqlalchemy import text

from memory.schema import metadata

# Any number that nothing else locks in this database.
MIGRATION_LOCK = 0x63616C6C


def include_name(name, type_, parent_names):
    """Leave procrastinate's own tables out of comparisons."""
    return not (type_ == "table" and name is not None and name.startswith("procrastinate"))


connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, include_name=include_name)
with context.begin_transaction():
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
    context.run_migrations()
