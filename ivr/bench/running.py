"""Runs a bench so that what it started ends with it, also when it is told to stop."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from rich.progress import Progress

T = TypeVar("T")
TERMINATED = 128 + signal.SIGTERM
"""The exit code of a program that SIGTERM ended."""

TENTHS = 10
"""How often a bench that writes to no terminal says how far it is."""


def stepper(progress: Progress, what: str, total: int) -> Callable[[], None]:
    """What is called once a step: a bar moves, or without a terminal each tenth is a line."""
    task = progress.add_task(what, total=total)
    if progress.console.is_terminal:
        return lambda: progress.advance(task)
    steps = iter(range(1, total + 1))

    def tell() -> None:
        done = next(steps, total)
        if done * TENTHS // total > (done - 1) * TENTHS // total:
            progress.console.print(f"{what}: {done} of {total}")

    return tell


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
