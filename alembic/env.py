"""Runs the migrations on the connection of `memory.migrate`: one transaction, one process at a time."""

from alembic import context
from sqlalchemy import text

from memory.schema import metadata

# Any number that nothing else locks in this database.
MIGRATION_LOCK = 0x63616C6C


def include_name(name, type_, parent_names):
    """Leave procrastinate's own tables out of comparisons."""
    return not (type_ == "table" and name is not None and name.startswith("procrastinate"))


def call_if_there(function):
    """Row-level security came with a migration: before it there is nothing to call."""
    if connection.execute(text("SELECT to_regproc(:name)"), {"name": function}).scalar() is not None:
        connection.execute(text(f"SELECT {function}()"))


connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, include_name=include_name)
with context.begin_transaction():
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
    if context.get_context().get_current_revision() != context.get_head_revision():
        # Locks tables, so only when there is something to do. Nobody sees them without it: this is one transaction.
        call_if_there("unforce_businesses")
        context.run_migrations()
        call_if_there("protect_businesses")
