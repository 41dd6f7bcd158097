"""A process that does heavy work for an event loop, and the client that feeds it, one job at a time.

Frames on the pipes: 4 bytes of length, big-endian, then msgpack. The first frame from the process says that it is
ready. It ends when its stdin does, so it never outlives its owner.
"""

import asyncio
import contextlib
import importlib.util
import os
import struct
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from typing import BinaryIO, Generic, TypeVar

import msgspec
import structlog

from ivr.errors import CallthreadError
from ivr.sandbox.faults import SandboxMissing

_HEADER = struct.Struct(">I")
_MAX_FRAME_BYTES = 64 * 1024 * 1024
_QUEUE_JOBS = 64
_JOB_TIMEOUT_S = 120.0
_CLOSE_TIMEOUT_S = 2.0

JobT = TypeVar("JobT", bound=msgspec.Struct)
ResultT = TypeVar("ResultT", bound=msgspec.Struct)

log = structlog.get_logger()


class WorkerFailed(CallthreadError):
    """The process could not do a job, not even after a restart; or too many jobs wait."""


# -- in the process ----------------------------------------------------------------------------------------


class Ready(msgspec.Struct):
    """The process has loaded what it needs."""


def own_stdout() -> BinaryIO:
    """The pipe to the owner, out of reach of libraries that print: their output goes to stderr."""
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return pipe


def serve_jobs(job_type: type[JobT], work: Callable[[JobT], ResultT], out: BinaryIO) -> None:
    """Say that we are ready; then answer jobs from stdin until it ends."""
    decoder = msgspec.msgpack.Decoder(job_type)
    _write(out, Ready())
    while header := sys.stdin.buffer.read(_HEADER.size):
        (length,) = _HEADER.unpack(header)
        _write(out, work(decoder.decode(sys.stdin.buffer.read(length))))


def _write(out: BinaryIO, message: msgspec.Struct) -> None:
    payload = msgspec.msgpack.encode(message)
    out.write(_HEADER.pack(len(payload)) + payload)
    out.flush()


# -- in the owner ------------------------------------------------------------------------------------------


def require(package: str) -> None:
    """Raise `SandboxMissing` in one line, rather than let the process die with a traceback."""
    if importlib.util.find_spec(package) is None:
        raise SandboxMissing(package)


class Worker(Generic[JobT, ResultT]):
    """Owner's side: `async with`, then `do(job)`. A process that dies is started again, and the job tried again."""

    def __init__(self, module: str, result_type: type[ResultT], needs: tuple[str, ...]) -> None:
        self._module = module
        self._needs = needs
        self._decoder = msgspec.msgpack.Decoder(result_type)
        self._jobs: asyncio.Queue[tuple[JobT, asyncio.Future[ResultT]]] = asyncio.Queue(_QUEUE_JOBS)
        self._process: Process | None = None
        self._runner: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the process and wait until it is warm. Raises: `SandboxMissing`, `WorkerFailed`."""
        for package in self._needs:
            require(package)
        await self._spawn()
        self._runner = asyncio.create_task(self._run(), name=self._module)

    async def do(self, job: JobT) -> ResultT:
        """One job's result. Raises: `WorkerFailed`. A cancelled wait drops a job that has not begun."""
        future: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()
        try:
            self._jobs.put_nowait((job, future))
        except asyncio.QueueFull:
            raise WorkerFailed(f"{self._module}: {_QUEUE_JOBS} jobs are waiting already") from None
        return await future

    async def close(self) -> None:
        """End the process; jobs that wait fail. Idempotent."""
        if self._runner is not None:
            self._runner.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._runner
            self._runner = None
        while not self._jobs.empty():
            _, future = self._jobs.get_nowait()
            _fail(future, f"{self._module}: closed")
        await self._end_process()

    @property
    def pid(self) -> int | None:
        """The process's id while it runs."""
        return self._process.pid if self._process is not None else None

    async def _run(self) -> None:
        while True:
            job, future = await self._jobs.get()
            if future.cancelled():
                continue
            try:
                await self._answer(job, future)
            except asyncio.CancelledError:
                _fail(future, f"{self._module}: closed")
                raise

    async def _answer(self, job: JobT, future: "asyncio.Future[ResultT]") -> None:
        for attempt in (1, 2):
            try:
                if self._process is None:
                    await self._spawn()
                async with asyncio.timeout(_JOB_TIMEOUT_S):
                    result = await self._exchange(job)
            except (
                OSError,
                asyncio.IncompleteReadError,
                TimeoutError,
                msgspec.DecodeError,
                WorkerFailed,
            ) as error:
                log.warning("sandbox_worker_died", worker=self._module, attempt=attempt, fault=repr(error))
                await self._end_process()
                continue
            if not future.done():
                future.set_result(result)
            return
        _fail(future, f"{self._module}: the process died twice over one job")

    async def _exchange(self, job: JobT) -> ResultT:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None  # all piped
        payload = msgspec.msgpack.encode(job)
        process.stdin.write(_HEADER.pack(len(payload)) + payload)
        await process.stdin.drain()
        return self._decoder.decode(await _read_frame(process.stdout))

    async def _spawn(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", self._module, stdin=PIPE, stdout=PIPE
        )
        assert self._process.stdout is not None  # piped
        try:
            async with asyncio.timeout(_JOB_TIMEOUT_S):
                await _read_frame(self._process.stdout)
        except (asyncio.IncompleteReadError, TimeoutError) as error:
            await self._end_process()
            raise WorkerFailed(f"{self._module}: did not start (its own words are above)") from error
        except asyncio.CancelledError:
            await self._end_process()
            raise

    async def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _read_frame(stream: asyncio.StreamReader) -> bytes:
    (length,) = _HEADER.unpack(await stream.readexactly(_HEADER.size))
    if length > _MAX_FRAME_BYTES:
        raise WorkerFailed(f"a frame of {length} bytes")
    return await stream.readexactly(length)


def _fail(future: "asyncio.Future[ResultT]", reason: str) -> None:
    if not future.done():
        future.set_exception(WorkerFailed(reason))
        future.exception()  # whoever waited may be gone: then it is no news
