"""The embedded server: its traps, each made on purpose."""

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from sqlalchemy.engine import make_url

from memory.embedded import (
    SERVICE_ROLE,
    TRUSTING,
    EmbeddedPostgres,
    _cluster_processes,
    conninfo_of,
    normalise_url,
)
from memory.errors import ClusterFault
from tests.pg import FAST, server_folder


@pytest.fixture
def home() -> Iterator[Path]:
    with server_folder() as folder:
        yield folder


def query(url: str, statement: str) -> object:
    with psycopg.connect(conninfo_of(url), autocommit=True) as connection:
        row = connection.execute(statement.encode()).fetchone()
    return row and row[0]


def answers(url: str) -> bool:
    try:
        return query(url, "SELECT 1") == 1
    except psycopg.OperationalError:
        return False


def start_and_die(folder: Path) -> None:
    EmbeddedPostgres(FAST).start(folder)
    os.kill(os.getpid(), signal.SIGKILL)


def test_life_of_a_cluster(home: Path) -> None:
    """Started, shared, stopped by its starter only, restarted over a pid file that names another program."""
    first = EmbeddedPostgres(FAST)
    url = first.start(home)
    assert (
        query(
            url,
            "SELECT datlocprovider::text || datlocale || pg_encoding_to_char(encoding)"
            " FROM pg_database WHERE datname = 'ivr'",
        )
        == "bC.UTF-8UTF8"
    )
    assert query(url, "SELECT to_tsvector('simple', 'ÉCOLE')::text") == "'école':1"
    guest = EmbeddedPostgres()
    assert guest.start(home) == url
    guest.stop()
    assert answers(url)
    first.stop()
    first.stop()
    assert not answers(url)
    stale = f"{os.getpid()}\n{home}\n1700000000\n5432\n{home}\n\n1 1\nready\n"
    (home / "postgres" / "postmaster.pid").write_text(stale)
    assert answers(first.start(home))
    first.stop()


def test_a_server_whose_starter_was_killed_is_inherited(home: Path) -> None:
    child = multiprocessing.get_context("spawn").Process(target=start_and_die, args=(home,))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    heir = EmbeddedPostgres(FAST)
    url = heir.start(home)
    assert answers(url)
    heir.stop()
    assert not answers(url)


def test_a_long_path_gets_a_private_socket_folder(home: Path) -> None:
    folder = home / ("deep" * 25)
    server = EmbeddedPostgres(FAST)
    url = server.start(folder)
    assert answers(url)
    socket_dir = Path(str(conninfo_of(url)).split("host=")[1].replace("%2F", "/"))
    assert socket_dir.stat().st_mode & 0o777 == 0o700
    server.stop()


def test_nobody_comes_in_without_a_password(home: Path) -> None:
    """The service's role owns nothing; the passwords are for the folder's owner only, in a folder of the server's."""
    server = EmbeddedPostgres(FAST)
    url = server.start(home)
    assert query(server.service_url, "SELECT current_user") == SERVICE_ROLE
    special = (
        "SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolbypassrls"
        " FROM pg_roles WHERE rolname = current_user"
    )
    assert query(server.service_url, special) is False
    for name in ("postgres", SERVICE_ROLE):
        for password in ("", "wrong"):
            assert not answers(
                make_url(url).set(username=name, password=password).render_as_string(hide_password=False)
            )
    assert (home / "pg.passwords").stat().st_mode & 0o777 == 0o600
    assert Path(str(make_url(url).query["host"])).stat().st_mode & 0o777 == 0o700
    server.stop()


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize("lost", ["passwords", "rules"])
def test_a_cluster_of_an_older_version_is_taken_over(home: Path, running: bool, lost: str) -> None:
    """One that trusted everybody, or whose passwords were lost, whether or not it runs; what is in it stays."""
    older = EmbeddedPostgres(FAST)
    query(older.start(home), "SELECT 1")
    with psycopg.connect(conninfo_of(older.superuser_url)) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    if lost == "rules":
        older._admit(TRUSTING)
    (home / "pg.passwords").unlink()
    if not running:
        older.stop()
    newer = EmbeddedPostgres(FAST)
    url = newer.start(home)
    assert query(url, "SELECT number FROM kept") == 7
    assert answers(newer.service_url)
    assert not answers(make_url(url).set(password="").render_as_string(hide_password=False))
    older.stop()
    newer.stop()


def test_a_folder_that_is_no_cluster_is_left_alone(home: Path) -> None:
    (home / "postgres").mkdir()
    (home / "postgres" / "letter.txt").write_text("mine")
    with pytest.raises(ClusterFault):
        EmbeddedPostgres(FAST).start(home)
    assert (home / "postgres" / "letter.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("postgresql://u:p%40ss@db:5433/ivr", "postgresql+psycopg://u:p%40ss@db:5433/ivr"),
        ("postgres://db/ivr", "postgresql+psycopg://db/ivr"),
        ("postgresql+asyncpg://db/ivr?sslmode=require", "postgresql+psycopg://db/ivr?sslmode=require"),
        ("postgresql+psycopg://u@/ivr?host=%2Ftmp%2Fx", "postgresql+psycopg://u@/ivr?host=%2Ftmp%2Fx"),
    ],
)
def test_urls_are_normalised(written: str, meant: str) -> None:
    assert normalise_url(written) == meant


def test_another_databases_url_is_refused() -> None:
    with pytest.raises(ValueError, match="not a PostgreSQL URL"):
        normalise_url("mysql://u:secret@db/ivr")


def test_starting_again_is_a_look_that_gives_nothing_away(home: Path) -> None:
    """A service looks every few seconds: its server is started again if it was killed, and stopped at the end."""
    server = EmbeddedPostgres(FAST)
    url = server.start(home)
    assert server.start(home) == url
    for process in _cluster_processes(home.resolve() / "postgres"):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert server.start(home) == url
    assert server.start(home) == url
    assert answers(url)
    server.stop()
    assert _cluster_processes(home.resolve() / "postgres") == []
