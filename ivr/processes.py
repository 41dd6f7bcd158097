"""Processes beside the service: the sandbox, the job worker. Started, watched, stopped; they never outlive us."""

import asyncio
import contextlib
import os
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

import structlog

from ivr.errors import CallthreadError

STOP_TIMEOUT_S = 10.0
POLL_S = 0.1

log = structlog.get_logger()


class ChildFailed(CallthreadError):
    """A process beside the service ended or did not come up."""


@contextlib.asynccontextmanager
async def child(arguments: Sequence[str], env: Mapping[str, str] | None = None) -> AsyncIterator[Process]:
    """`python -m ARGUMENTS` while the block runs; SIGTERM at its end, SIGKILL if that does not help."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "ivr.child",
        *arguments,
        stdin=PIPE,
        env={**os.environ, **(env or {})},
        # Ctrl-C is for us alone: a model that dies with it could not say goodbye to live calls.
        start_new_session=True,
    )
    try:
        yield process
    finally:
        await _stop(process)


async def _stop(process: Process) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def free_port() -> int:
    """A loopback port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def wait_for_port(process: Process, host: str, port: int, name: str, timeout_s: float = 120.0) -> None:
    """Until `process` listens. Raises: `ChildFailed` if it ends first, or takes too long."""
    try:
        async with asyncio.timeout(timeout_s):
            while not await _listens(host, port):
                if process.returncode is not None:
                    raise ChildFailed(f"{name} ended with code {process.returncode}; its own words are above")
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise ChildFailed(f"{name} was not ready after {timeout_s:g} s") from None


async def _listens(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    return True


async def background(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until the stack unwinds."""
    task = asyncio.ensure_future(work)

    async def stop() -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    stack.push_async_callback(stop)


async def keep_running(
    arguments: Sequence[str], env: Mapping[str, str] | None, name: str, first: Process | None = None
) -> None:
    """Run a process until cancelled; one that dies is started again, ever more slowly.

    `first`: one that runs already, and that somebody else stops.
    """
    pause_s = 1.0
    while True:
        if first is not None:
            code, first = await first.wait(), None
        else:
            async with child(arguments, env) as process:
                code = await process.wait()
        log.error("child_died", name=name, code=code, again_in_s=pause_s)
        await asyncio.sleep(pause_s)
        pause_s = min(60.0, pause_s * 2)
