"""A worker of `ivr bench chaos`: the service as `ivr serve` makes it, without embeddings and jobs.

`python -m ivr.bench.chaos_worker PORT`, settings in the environment; `ready` on stdout, then, for each SIGUSR1,
how many tasks there are; the log on stderr.
"""

import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from ivr import observe
from ivr.app import ServeOptions, Service, bind, worker_name
from ivr.foundations import audio_store, database, speech_model
from ivr.server import run
from ivr.settings import Settings
from ivr.shelf import FlowShelf
from memory.service import Memory
from memory.store import Store


async def main(port: int) -> None:
    """Serve until a signal."""
    settings = Settings.load()
    observe.configure(settings.log_level, settings.log_format, settings.secrets())
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(bind("127.0.0.1", port))
        url = await stack.enter_async_context(database(settings))
        model = await stack.enter_async_context(speech_model(settings))
        store = Store(url, name=worker_name())
        stack.push_async_callback(store.close)
        memory = Memory(store, audio_store(settings), None)
        shelf = FlowShelf(settings.callflows or Path())
        count = asyncio.get_running_loop()
        count.add_signal_handler(signal.SIGUSR1, lambda: say(f"tasks {len(asyncio.all_tasks())}"))
        service = Service(settings, ServeOptions(port=port), shelf, store, memory, model)
        await service.run(stack, listening, lambda _: say("ready"))


def say(word: str) -> None:
    """To whoever started us."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    run(main(int(sys.argv[1])))
