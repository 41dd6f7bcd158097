"""Putting jobs into the queue, inside a transaction of the store's. What they do is in `memory.jobs`.

Arguments and locks are surrogate ids only: a queue is read by operators.
"""

from datetime import datetime
from typing import Any

from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued
from sqlalchemy.ext.asyncio import AsyncConnection

PROCESS_PAGE = "memory.process_page"
REFRESH_THREAD = "memory.refresh_thread"
EMBED_FACTS = "memory.embed_facts"
SEND_NOTICE = "memory.send_notice"
VOICEMAIL = "voicemail.deliver"
ORDER = "orders.carry_out"
QUEUE = "memory"

# Never opened: it only phrases the statement, which runs on the connection that it is given.
_phraser = App(connector=PsycopgConnector())


async def enqueue_page(connection: AsyncConnection, page_id: int) -> None:
    """Summarise, embed and thread this page, once the caller's transaction has committed."""
    raw = (await connection.get_raw_connection()).driver_connection
    task = _phraser.configure_task(PROCESS_PAGE, queue=QUEUE, connection=raw)
    await task.defer_async(page_id=page_id)


async def enqueue_facts(connection: AsyncConnection) -> None:
    """Embed what business facts are not yet embedded; nothing is added while one waits already."""
    await _enqueue_once(connection, EMBED_FACTS, EMBED_FACTS)


async def enqueue_notice(connection: AsyncConnection, notice_id: int) -> None:
    """Tell this notice; nothing is added while a job for it waits already."""
    await _enqueue_once(connection, SEND_NOTICE, f"notice:{notice_id}", notice_id=notice_id)


async def enqueue_thread(connection: AsyncConnection, thread_id: int) -> None:
    """Refresh this thread, one job at a time; nothing is added while one waits already."""
    await _enqueue_once(connection, REFRESH_THREAD, f"thread:{thread_id}", thread_id=thread_id)


async def enqueue_voicemail(connection: AsyncConnection, call_sid: str, recording_sid: str) -> None:
    """Fetch this message's recording and tell the business, one job at a time."""
    lock = f"voicemail:{recording_sid}"
    await _enqueue_once(connection, VOICEMAIL, lock, call_sid=call_sid, recording_sid=recording_sid)


async def enqueue_order(
    connection: AsyncConnection, call_sid: str, key: str, due_at: datetime | None
) -> None:
    """Do what was ordered, once it is due."""
    lock = f"order:{key}"
    await _enqueue_once(connection, ORDER, lock, due_at, call_sid=call_sid, key=key)


async def _enqueue_once(
    connection: AsyncConnection, name: str, lock: str, due_at: datetime | None = None, **arguments: Any
) -> None:
    try:
        # The queue says "already there" by breaking a unique index, which ends a transaction: hence the
        # savepoint.
        async with connection.begin_nested():
            raw = (await connection.get_raw_connection()).driver_connection
            task = _phraser.configure_task(
                name, queue=QUEUE, lock=lock, queueing_lock=lock, schedule_at=due_at, connection=raw
            )
            await task.defer_async(**arguments)
    except AlreadyEnqueued:
        return
