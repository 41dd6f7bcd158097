"""Bringing a database to the newest schema. The caller says where they lie (repository or wheel)."""

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, NullPool, create_engine
from sqlalchemy.exc import DBAPIError

from memory.embedded import normalise_url
from memory.errors import StorageUnavailable

CONNECT_TIMEOUT_S = 5

# Alembic keeps its context in module globals: two upgrades in threads of one process would share it.
_one_at_a_time = threading.Lock()


def upgrade(url: str, script_location: Path) -> None:
    """Run all migrations that are missing. Safe to run twice, and by several processes at once (they queue).

    Raises: `StorageUnavailable` if the database cannot be reached.
    """
    config = _config(script_location)
    engine = _engine(url)
    try:
        with _one_at_a_time, engine.connect() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
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


def _engine(url: str) -> Engine:
    return create_engine(
        normalise_url(url), poolclass=NullPool, connect_args={"connect_timeout": CONNECT_TIMEOUT_S}
    )


def _config(script_location: Path) -> Config:
    config = Config()
    config.set_main_option("script_location", str(script_location).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
