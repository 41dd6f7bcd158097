"""What the calls of `ivr bench chaos` stand on: workers that can be killed, a balancer, a database behind a proxy."""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec

from ivr.errors import CallthreadError
from ivr.processes import free_port

START_S = 120.0
UPSTREAM_S = 2.0
"""A worker that says nothing for so long is passed over, as any balancer's health check does."""
NOBODY_S = 20.0
_CHUNK = 65_536

Log = dict[str, Any]


class WorkerProcess:
    """One worker: a process that is started again after each death."""

    def __init__(self, env: Mapping[str, str], on_log: Callable[[Log], None]) -> None:
        self.port = free_port()
        self.is_up = False
        self._env = env
        self._on_log = on_log
        self._process: Process | None = None
        self._readers: list[asyncio.Task[None]] = []
        self._said: asyncio.Queue[str] = asyncio.Queue()
        self.tasks_at_start = 0
        self.sockets_at_start = 0

    @property
    def process(self) -> Process:
        """The present process. Raises: `CallthreadError` before the first start."""
        if self._process is None:
            raise CallthreadError("the worker was never started")
        return self._process

    async def start(self) -> None:
        """Start, and wait until it listens. Raises: `CallthreadError`."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "ivr.child",
            "ivr.bench.chaos_worker",
            str(self.port),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={**os.environ, **self._env},
            start_new_session=True,
            limit=1 << 22,
        )
        self._readers = [asyncio.create_task(self._hear()), asyncio.create_task(self._read_log())]
        if await self._word() != "ready":
            raise CallthreadError("a worker did not start")
        self.is_up = True
        self.tasks_at_start, self.sockets_at_start = await self.tasks(), self.sockets()

    async def die(self) -> None:
        """kill -9."""
        self.is_up = False
        self.process.kill()
        await self._gone()

    async def drain(self) -> int:
        """Taken out of the balancer, then SIGTERM, as a deploy does; its exit code."""
        self.is_up = False
        self.process.terminate()
        code = await self.process.wait()
        await self._gone()
        return code

    async def sleep(self, seconds: float) -> None:
        """SIGSTOP for a while: it knows nothing of it."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(min(1.0, seconds))
            self.is_up = False  # what a health check finds
            await asyncio.sleep(seconds - min(1.0, seconds))
        finally:
            self.process.send_signal(signal.SIGCONT)
        self.is_up = True

    async def stop(self) -> None:
        """The bench is over."""
        self.is_up = False
        if self._process is None:
            return
        if self.process.returncode is None:
            self.process.terminate()
            try:
                async with asyncio.timeout(30):
                    await self.process.wait()
            except TimeoutError:
                self.process.kill()
        await self._gone()

    async def tasks(self) -> int:
        """How many asyncio tasks it has."""
        self.process.send_signal(signal.SIGUSR1)
        return int((await self._word()).removeprefix("tasks "))

    def sockets(self) -> int:
        """How many sockets it has open."""
        folder = Path(f"/proc/{self.process.pid}/fd")
        return sum(_is_socket(link) for link in folder.iterdir()) if folder.is_dir() else 0

    def memory_mb(self) -> float:
        """What it holds in memory."""
        statm = Path(f"/proc/{self.process.pid}/statm")
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6 if statm.exists() else 0.0

    async def _word(self) -> str:
        try:
            async with asyncio.timeout(START_S):
                return await self._said.get()
        except TimeoutError:
            raise CallthreadError(f"a worker said nothing for {START_S:g} s") from None

    async def _hear(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self._said.put_nowait(line.decode().strip())

    async def _read_log(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            try:
                self._on_log(msgspec.json.decode(line, type=Log))
            except msgspec.MsgspecError:
                self._on_log({"event": "unreadable", "level": "error", "text": line.decode(errors="replace")})

    async def _gone(self) -> None:
        await self.process.wait()
        await asyncio.gather(*self._readers)  # everything it wrote


def _is_socket(link: Path) -> bool:
    try:
        return str(link.readlink()).startswith("socket:")
    except OSError:
        return False


class Balancer:
    """One address before the workers. A request that nobody answers in time goes to the next."""

    def __init__(self, workers: Iterable[WorkerProcess]) -> None:
        self._workers = list(workers)
        self._turn = 0
        self.url = ""

    @contextlib.asynccontextmanager
    async def serving(self, port: int) -> AsyncIterator["Balancer"]:
        """While the block runs."""
        self.url = f"http://127.0.0.1:{port}"
        async with await asyncio.start_server(self._connection, "127.0.0.1", port):
            yield self

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _request(reader)
            async with asyncio.timeout(NOBODY_S):
                first, up_reader, up_writer = await self._answered(request)
            writer.write(first)
            try:
                await asyncio.gather(_pump(reader, up_writer), _pump(up_reader, writer))
            finally:
                up_writer.close()
        except (OSError, EOFError, ValueError):
            pass
        finally:
            writer.close()

    async def _answered(self, request: bytes) -> tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]:
        """The first bytes of an answer, and the connection they came from."""
        while True:
            self._turn += 1
            up = [worker for worker in self._workers if worker.is_up]
            if not up:
                await asyncio.sleep(0.1)
                continue
            try:
                async with asyncio.timeout(UPSTREAM_S):
                    answered = await _ask("127.0.0.1", up[self._turn % len(up)].port, request)
                if answered is not None:
                    return answered
            except OSError:  # TimeoutError is one
                await asyncio.sleep(0.05)


async def _ask(
    host: str, port: int, request: bytes
) -> tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter] | None:
    """See `Balancer._answered`; nothing stays open without an answer."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(request)
        first = await reader.read(_CHUNK)
    except (OSError, asyncio.CancelledError):
        writer.close()
        raise
    if not first:
        writer.close()
        return None
    return first, reader, writer


async def _request(reader: asyncio.StreamReader) -> bytes:
    """A whole request, told to be the only one on its connection. A WebSocket's handshake stays as it is."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head[:-4].split(b"\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines[1:])}
    if fields.get(b"upgrade", b"").lower() == b"websocket":
        return head
    kept = [line for line in lines if not line.lower().startswith(b"connection:")]
    body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
    return b"\r\n".join([*kept, b"Connection: close", b"", b""]) + body


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_CHUNK):
            if writer.transport.is_closing():
                break
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


class DatabaseProxy:
    """The database's socket, which can be cut."""

    def __init__(self, url: str, folder: Path) -> None:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        name = f".s.PGSQL.{parts.port or 5432}"
        self._behind = Path(query["host"][0]) / name
        self._path = folder / name
        self._is_cut = False
        self._open: set[asyncio.StreamWriter] = set()
        proxied = urlencode(query | {"host": [str(folder)]}, doseq=True)
        self.url = parts._replace(scheme="postgresql", query=proxied).geturl()

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator["DatabaseProxy"]:
        """While the block runs."""
        async with await asyncio.start_unix_server(self._connection, self._path):
            yield self

    async def cut(self, seconds: float) -> None:
        """Nobody reaches the database for a while; what was under way is cut off."""
        self._is_cut = True
        for writer in tuple(self._open):
            writer.transport.abort()
        await asyncio.sleep(seconds)
        self._is_cut = False

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        self._open.add(writer)
        try:
            up_reader, up_writer = await asyncio.open_unix_connection(self._behind)
            self._open.add(up_writer)
            await asyncio.gather(_pump(reader, up_writer), _pump(up_reader, writer))
            self._open.discard(up_writer)
        except OSError:
            pass
        finally:
            self._open.discard(writer)
            writer.close()
