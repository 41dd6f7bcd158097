"""Bringing a database to the newest schema. The caller says where they lie (repository or wheel)."""

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError

from memory.embedded import normalise_url
from memory.errors import StorageUnavailable

CONNECT_TIMEOUT_S = 5
GRANT_LOCK = 0x6772616E
ABOVE_ALL_ROWS = text(
    "SELECT rolname FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls)"
)
UNPROTECTED = text(
    """
    SELECT relname FROM pg_class
    JOIN pg_attribute ON attrelid = pg_class.oid AND attname = 'business_id' AND NOT attisdropped
    WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace AND relname <> 'businesses'
        AND NOT (relrowsecurity AND relforcerowsecurity)
    ORDER BY relname
    """
)

# Alembic keeps its context in module globals: two upgrades in threads of one process would share it.
_one_at_a_time = threading.Lock()


# What a service does with the tables, and no more: it neither owns nor alters them.
GRANTS = (
    "GRANT USAGE ON SCHEMA public TO {}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {}",
    "REVOKE INSERT, UPDATE, DELETE ON alembic_version FROM {}",
    "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {}",
)


def upgrade(url: str, script_location: Path, service_role: str | None = None) -> None:
    """Run all migrations that are missing. Safe to run twice, and by several processes at once (they queue).

    `service_role` is granted the use of the tables. Raises: `StorageUnavailable` if the database cannot be reached.
    """
    config = _config(script_location)
    engine = _engine(url)
    try:
        with _one_at_a_time, engine.connect() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            if service_role is not None:
                name = connection.dialect.identifier_preparer.quote(service_role)
                with connection.begin():
                    # One at a time: two that grant the same at once would collide in the catalogue.
                    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": GRANT_LOCK})
                    for grant in GRANTS:
                        connection.execute(text(grant.format(name)))
    except DBAPIError as error:
        raise StorageUnavailable(" ".join(str(error.orig).split())) from error
    finally:
        engine.dispose()


def is_current(url: str, script_location: Path) -> bool:
    """Whether the database stands at the newest migration.

    Raises: `StorageUnavailable` if the database cannot be reached.
    """
    heads = set(ScriptDirectory.from_config(_config(script_location)).get_heads())
    engine = _engine(url)
    try:
        with engine.connect() as connection:
            return set(MigrationContext.configure(connection).get_current_heads()) == heads
    except DBAPIError as error:
        raise StorageUnavailable(" ".join(str(error.orig).split())) from error
    finally:
        engine.dispose()


def isolation_fault(url: str) -> str | None:
    """Why row-level security does not bind the role that this URL connects as; None if it does.

    Raises: `StorageUnavailable` if the database cannot be reached.
    """
    engine = _engine(url)
    try:
        with engine.connect() as connection:
            above = connection.execute(ABOVE_ALL_ROWS).scalar()
            bare = list(connection.execute(UNPROTECTED).scalars())
    except DBAPIError as error:
        raise StorageUnavailable(" ".join(str(error.orig).split())) from error
    finally:
        engine.dispose()
    if above is not None:
        return f"role {above} is a superuser or has BYPASSRLS"
    return f"no row-level security on: {', '.join(bare)}" if bare else None


def _engine(url: str) -> Engine:
    return create_engine(
        normalise_url(url), poolclass=NullPool, connect_args={"connect_timeout": CONNECT_TIMEOUT_S}
    )


def _config(script_location: Path) -> Config:
    config = Config()
    config.set_main_option("script_location", str(script_location).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
