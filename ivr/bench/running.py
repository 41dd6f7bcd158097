"""Runs a bench so that what it started ends with it, also when it is told to stop."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
TERMINATED = 128 + signal.SIGTERM
"""The exit code of a program that SIGTERM ended."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`; SIGTERM cancels the work as Ctrl-C does, so that its own clean-up is done.

    Raises: `SystemExit` after SIGTERM; `KeyboardInterrupt`.
    """
    try:
        return asyncio.run(_until_told(work))
    except _ToldToStop:
        raise SystemExit(TERMINATED) from None


class _ToldToStop(Exception):
    """By SIGTERM."""


async def _until_told(work: Coroutine[Any, Any, T]) -> T:
    task, is_told = asyncio.ensure_future(work), asyncio.Event()

    def stop() -> None:
        is_told.set()
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    try:
        return await task
    except asyncio.CancelledError:
        if is_told.is_set():
            raise _ToldToStop from None
        raise
