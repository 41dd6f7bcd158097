"""A process that commits an exchange and does its jobs, and dies (kill -9) at a step it is told.

`python -m tests.integration.killed_process URL AUDIO_FOLDER`, then a line `CALLSID STEP` for each life: answers
`accepted|lost finished|killed`. A life is a fork, so that a hundred deaths cost one start.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from memory.audio_store import AudioStore
from memory.database import Database
from memory.jobs import JobTools, run_pending
from memory.model import Exchange, Owner
from memory.service import Memory
from memory.store import Store
from memory.summarise import ExtractiveSummariser

ANA = Owner("bakery", "+12025550111")
SAID = "Two loaves of rye for Friday, and no walnuts."


def exchange(call_sid: str) -> Exchange:
    return Exchange(call_sid, 1, SAID, "Two loaves, without walnuts.", b"\x55" * 800, b"\xd5" * 800)


class Death:
    """Counts what could be the last step, and makes the one it is told the last."""

    def __init__(self, at: int) -> None:
        self._left = at

    def near(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    def lurk(self) -> None:
        """Before and after every transaction, before its end, and around what makes a file durable."""
        self._around(os, "fsync")
        self._around(Path, "rename")
        self._around(Path, "mkdir")
        begin, near = Database._transaction, self.near

        @asynccontextmanager
        async def transaction(store: Any, *entry: Any) -> AsyncIterator[Any]:
            near()
            async with begin(store, *entry) as connection:
                yield connection
                near()
            near()

        Database._transaction = transaction  # type: ignore[assignment, method-assign]

    def _around(self, place: Any, name: str) -> None:
        work: Callable[..., Any] = getattr(place, name)

        def dangerous(*arguments: Any, **options: Any) -> Any:
            self.near()
            done = work(*arguments, **options)
            self.near()
            return done

        setattr(place, name, dangerous)


async def live(url: str, audio: AudioStore, call_sid: str, say: Callable[[bytes], object]) -> None:
    """Commit, then do all jobs. Says `accepted` as soon as the commit has returned."""
    store = Store(url)
    await Memory(store, audio, None).commit(ANA, exchange(call_sid))
    say(b"accepted ")
    await run_pending(url, JobTools(store, ExtractiveSummariser()))
    await store.close()


def one_life(url: str, folder: str, call_sid: str, step: int) -> str:
    heard, said = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(heard)
        Death(step).lurk()
        asyncio.run(live(url, AudioStore(f"file://{folder}"), call_sid, lambda words: os.write(said, words)))
        os._exit(0)
    os.close(said)
    with os.fdopen(heard, "rb") as pipe:
        accepted = pipe.read() == b"accepted "
    _, status = os.waitpid(pid, 0)
    killed = os.WIFSIGNALED(status)
    return f"{'accepted' if accepted else 'lost'} {'killed' if killed else 'finished'}"


def main() -> None:
    """Live and die as told."""
    url, folder = sys.argv[1:]
    for line in sys.stdin:
        call_sid, step = line.split()
        print(one_life(url, folder, call_sid, int(step)), flush=True)  # noqa: T201 - what it is for


if __name__ == "__main__":
    main()
