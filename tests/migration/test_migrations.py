"""The migrations add up to the metadata, can be run twice, and say whether they have been run."""

import multiprocessing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, NullPool, create_engine, text

from memory.errors import StorageUnavailable
from memory.migrate import is_current, upgrade
from memory.schema import metadata
from tests.pg import MIGRATIONS


def differences(connection: Connection) -> list[object]:
    """What autogenerate would still do, procrastinate's own tables left out."""

    def ours(name: str | None, kind: str, _parents: object) -> bool:
        return not (kind == "table" and (name or "").startswith("procrastinate"))

    options = {"include_name": ours, "compare_server_default": True}
    context = MigrationContext.configure(connection, opts=options)
    return list(compare_metadata(context, metadata))


def test_their_sum_is_the_schema(empty_database_url: str) -> None:
    assert not is_current(empty_database_url, MIGRATIONS)
    upgrade(empty_database_url, MIGRATIONS)
    assert is_current(empty_database_url, MIGRATIONS)
    with create_engine(empty_database_url, poolclass=NullPool).connect() as connection:
        assert differences(connection) == []
        storage = connection.execute(
            text(
                "SELECT attstorage FROM pg_attribute WHERE attrelid = 'page_vectors'::regclass"
                " AND attname = 'embedding'"
            )
        ).scalar_one()
        assert storage == "p"


def test_a_missing_column_would_be_noticed(database_url: str) -> None:
    with create_engine(database_url, poolclass=NullPool).begin() as connection:
        connection.execute(text("ALTER TABLE pages DROP COLUMN summary"))
        assert len(differences(connection)) == 1


def test_several_processes_may_upgrade_at_once(empty_database_url: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=upgrade, args=(empty_database_url, MIGRATIONS)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    upgrade(empty_database_url, MIGRATIONS)
    assert is_current(empty_database_url, MIGRATIONS)


def test_an_unreachable_database_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable):
        is_current(f"postgresql://postgres@/ivr?host={tmp_path}", MIGRATIONS)
    with pytest.raises(StorageUnavailable):
        upgrade(f"postgresql://postgres@/ivr?host={tmp_path}", MIGRATIONS)
