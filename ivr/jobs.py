"""`ivr worker`: the background jobs in a process of their own."""

import asyncio
import signal

from ivr.app import database
from ivr.settings import Settings
from memory.jobs import run_worker
from memory.summarise import ChatModel


async def run_jobs(settings: Settings) -> None:
    """Work until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with database(settings) as url:
        await run_worker(url, stop=stop)
