"""Writes that found no database: kept on disk, in order, until there is one.

A line is *accepted* once it is fsynced: it survives the death of this worker, and the next process with this data
folder replays it. One file a stream; the lock on a file says that its writer lives.
"""

import asyncio
import fcntl
import hashlib
import math
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import msgspec
import structlog

from ivr.core.commands import EndReason
from ivr.errors import StorageUnavailable
from memory.model import CallSnapshot, Charge, EndedBy, Exchange, Trust

LIMIT_BYTES = 1 << 30
"""About 35 hours of calls with their audio. What does not fit waits in memory, as it would without a spool."""
COUNT_EVERY_S = 10.0
"""How long what other workers write and replay in the same folder may go uncounted."""
SUFFIX = ".jsonl"

log = structlog.get_logger()


class StreamHeader(msgspec.Struct, frozen=True):
    """A file's first line: whose writes these are. `epoch` is `None` where the call began without a database."""

    business_id: str
    caller: str | None
    call_sid: str
    stream_sid: str
    to_number: str
    flow_hash: str
    epoch: int | None
    began_at: datetime
    """Of a caller who is erased later, nothing said before is written."""
    trust: Trust = Trust.NUMBER
    account_sid: str = ""


class ExchangeLine(msgspec.Struct, frozen=True, tag="exchange"):
    """A finished exchange, audio and all. `at`: when it was finished."""

    exchange: Exchange
    at: datetime | None = None


class SnapshotLine(msgspec.Struct, frozen=True, tag="snapshot"):
    """The call's state."""

    snapshot: CallSnapshot


class EndLine(msgspec.Struct, frozen=True, tag="end"):
    """How the call ended."""

    reason: EndReason
    by: EndedBy | None = None


class ChargeLine(msgspec.Struct, frozen=True, tag="charge"):
    """Something that was paid for."""

    charge: Charge


Line = ExchangeLine | SnapshotLine | EndLine | ChargeLine

_header_decoder = msgspec.json.Decoder(StreamHeader)
_line_decoder = msgspec.json.Decoder(Line)


class SpoolFile:
    """An open, locked file. Its methods block: call them in a thread."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file = file

    @staticmethod
    def create(folder: Path, header: StreamHeader) -> "SpoolFile":
        """A new file that names its stream, on disk for good. Raises: `OSError`."""
        digest = hashlib.sha256(f"{header.call_sid}/{header.stream_sid}".encode()).hexdigest()[:16]
        path = folder / f"{time.time_ns():020d}-{digest}{SUFFIX}"
        unnamed = path.with_suffix(".new")  # nobody may take it for left behind before it is locked
        descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        made = SpoolFile(path, os.fdopen(descriptor, "r+b", buffering=0))
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        made._write(msgspec.json.encode(header))
        unnamed.rename(path)
        _sync_folder(folder)
        return made

    @staticmethod
    def adopt(path: Path) -> "SpoolFile | None":
        """A file of a writer that is gone; `None` if it lives, or another process was quicker."""
        try:
            file = path.open("r+b", buffering=0)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        return SpoolFile(path, file)

    def append(self, line: Line) -> int:
        """Add a line; on disk when this returns. Returns its bytes. Raises: `OSError`."""
        return self._write(msgspec.json.encode(line))

    def read(self) -> tuple[StreamHeader | None, list[Line]]:
        """What is in it. A last line that was cut off was never accepted, and is left out."""
        self._file.seek(0)
        whole, _, torn = self._file.read().rpartition(b"\n")
        if torn:
            log.warning("spool_line_torn", bytes=len(torn))
        rows = whole.split(b"\n") if whole else []
        if not rows:
            return None, []
        return _header_decoder.decode(rows[0]), [_line_decoder.decode(row) for row in rows[1:]]

    def remove(self) -> None:
        """Everything in it was replayed."""
        self.path.unlink(missing_ok=True)
        self._file.close()
        _sync_folder(self.path.parent)

    def set_aside(self) -> None:
        """It cannot be read or replayed: kept for a person to look at, and not tried again."""
        self.path.rename(self.path.with_suffix(".bad"))
        self._file.close()

    def release(self) -> None:
        """Leave it to whoever comes next."""
        self._file.close()

    def _write(self, row: bytes) -> int:
        view = memoryview(row + b"\n")
        while view:
            view = view[self._file.write(view) :]
        os.fsync(self._file.fileno())
        return len(row) + 1


class SpoolFolder:
    """The files, and how much they may hold together."""

    def __init__(
        self,
        folder: Path,
        limit_bytes: int = LIMIT_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock`: seconds, from any start."""
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._clock = clock
        self._guard = asyncio.Lock()
        self._used_bytes = 0
        self._counted_at = -math.inf

    @asynccontextmanager
    async def room(self) -> AsyncIterator[Path]:
        """The folder, while there is room for one more line. Raises: `StorageUnavailable` when it is full."""
        async with self._guard:
            is_full = self._used_bytes >= self._limit_bytes  # unless something was replayed since
            if is_full or self._clock() - self._counted_at >= COUNT_EVERY_S:
                self._used_bytes = await asyncio.to_thread(self._count_bytes)
                self._counted_at = self._clock()
            if self._used_bytes >= self._limit_bytes:
                raise StorageUnavailable(f"the spool is full ({self._used_bytes} bytes)")
            yield self._folder

    def wrote(self, size_bytes: int) -> None:
        """A line was added by this process."""
        self._used_bytes += size_bytes

    def paths(self) -> list[Path]:
        """The files, oldest first."""
        return sorted(self._folder.glob(f"*{SUFFIX}"))

    def _count_bytes(self) -> int:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        used = 0
        for path in self.paths():
            try:
                used += path.stat().st_size
            except FileNotFoundError:  # replayed and removed just now
                continue
        return used


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
