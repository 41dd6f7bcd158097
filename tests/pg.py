"""Fixtures around a real embedded PostgreSQL: one cluster a session, one freshly cloned database a test."""

import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.engine import make_url

from memory.embedded import SERVICE_ROLE, EmbeddedPostgres, conninfo_of
from memory.migrate import upgrade
from memory.store import Store

MIGRATIONS = Path(__file__).parent.parent / "alembic"
TEMPLATE = "callthread_template"
# A test's data need not survive the machine.
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "200"}


def with_database(url: str, name: str) -> str:
    """The same server, another database."""
    return make_url(url).set(database=name).render_as_string(hide_password=False)


def serving(url: str) -> str:
    """The same database of an embedded server for the service's role, which row-level security binds."""
    parsed = make_url(url)
    kept = Path(str(parsed.query["host"])).parent / "pg.passwords"
    password = kept.read_text(encoding="ascii").split()[1]
    return parsed.set(username=SERVICE_ROLE, password=password).render_as_string(hide_password=False)


@contextmanager
def server_folder() -> Iterator[Path]:
    """A temporary folder outside pytest's own: each pytest closes that to all but its user, and run as root the
    server is another user (and dies of it).
    """
    with tempfile.TemporaryDirectory(prefix="callthread-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def cluster() -> Iterator[EmbeddedPostgres]:
    """The session's cluster, running; its databases come from `database_url`."""
    with server_folder() as folder:
        server = EmbeddedPostgres(FAST)
        server.start(folder)
        yield server
        server.stop()


@pytest.fixture(scope="session")
def cluster_url(cluster: EmbeddedPostgres) -> str:
    """A SQLAlchemy URL of its superuser."""
    return cluster.superuser_url


@pytest.fixture(scope="session")
def template_database(cluster_url: str) -> str:
    """The name of a migrated, empty database to clone."""
    execute(cluster_url, "CREATE DATABASE {}", TEMPLATE)
    upgrade(with_database(cluster_url, TEMPLATE), MIGRATIONS, SERVICE_ROLE)
    return TEMPLATE


@pytest.fixture
def empty_database_url(cluster_url: str) -> Iterator[str]:
    """A database in which no migration has run."""
    yield from _database(cluster_url, "template1")


@pytest.fixture
def database_url(cluster_url: str, template_database: str) -> Iterator[str]:
    """A migrated database of the test's own, for its superuser."""
    yield from _database(cluster_url, template_database)


@pytest.fixture
def service_url(database_url: str) -> str:
    """The same database for the service's role, which row-level security binds."""
    return serving(database_url)


@pytest.fixture
async def store(service_url: str) -> AsyncIterator[Store]:
    """A store on a database of the test's own."""
    opened = Store(service_url)
    yield opened
    await opened.close()


def execute(url: str, statement: str, *identifiers: str) -> None:
    """Run one statement outside a transaction; `{}` are identifiers."""
    with psycopg.connect(conninfo_of(url), autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*(sql.Identifier(name) for name in identifiers)))


def _database(cluster_url: str, template: str) -> Iterator[str]:
    name = f"t_{uuid.uuid4().hex}"
    execute(cluster_url, "CREATE DATABASE {} TEMPLATE {}", name, template)
    yield with_database(cluster_url, name)
    execute(cluster_url, "DROP DATABASE {} WITH (FORCE)", name)
