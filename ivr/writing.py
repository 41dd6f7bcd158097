"""What a call writes, in order and each until it is accepted: nobody who speaks or listens waits for it."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

import structlog

from ivr.core.commands import EndReason
from ivr.errors import CallTakenOver, StorageUnavailable
from ivr.ports import Clock, Journal
from memory.model import CallSnapshot, Charge, EndedBy, Exchange

JOURNAL_TIMEOUT_S = 120.0
"""How long after the end of a call its last writes are tried."""
JOURNAL_RETRY_S = 0.5
WAITING_AUDIO_BYTES = 8 * 1024 * 1024
"""A quarter of an hour of both sides. What is said after that, while nothing can be written, is kept as text only."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Write:
    """`what`: an exchange, a snapshot or a charge, of which it depends what may be left out."""

    do: Callable[[], Coroutine[Any, Any, None]]
    what: object = None


class JournalWriter:
    """One call's writes. While storage is away only the newest snapshot waits, and a bounded amount of audio.

    Exchanges are never left out: there are no more than the longest call can hold.
    """

    def __init__(self, journal: Journal, clock: Clock, taken_over: Callable[[], None]) -> None:
        """`taken_over` is told once that another stream holds the call; then nothing is written but charges."""
        self._journal = journal
        self._clock = clock
        self._taken_over = taken_over
        self._waiting: deque[_Write] = deque()
        self._changed = asyncio.Event()
        self._audio_bytes = 0
        self._ended_ms: float | None = None
        self._is_closed = False

    def exchange(self, exchange: Exchange) -> None:
        """Keep what was said."""
        size = _audio(exchange)
        if self._audio_bytes + size > WAITING_AUDIO_BYTES:
            log.warning("audio_not_kept", exchange_no=exchange.exchange_no)
            exchange = replace(exchange, user_ulaw=b"", reply_ulaw=b"")
        self._audio_bytes += _audio(exchange)
        self._put(_Write(lambda: self._accept(exchange), exchange))

    def snapshot(self, snapshot: CallSnapshot) -> None:
        """Keep how things stand: what waits of before is out of date."""
        stale = [write for write in self._waiting if isinstance(write.what, CallSnapshot)]
        for write in stale:
            self._waiting.remove(write)
        self._put(_Write(lambda: self._journal.save_snapshot(snapshot), snapshot))

    def charge(self, charge: Charge) -> None:
        """Keep what was paid for."""
        self._put(_Write(lambda: self._journal.charge(charge), charge))

    def end(self, reason: EndReason, by: EndedBy | None) -> None:
        """Keep how the call ended."""
        self._put(_Write(lambda: self._journal.end(reason, by)))

    def other(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Something else that has its place in the order."""
        self._put(_Write(work))

    def ended(self) -> None:
        """The call is over: from now on time is short."""
        self._ended_ms = self._clock.now_ms()

    def close(self) -> None:
        """Nothing follows: `run` returns once everything is written or too late."""
        self._is_closed = True
        self._changed.set()

    async def run(self) -> None:
        """Write until closed: for as long as the call lasts there is time. Raises what is a bug of ours."""
        is_ours = True
        while (write := await self._next()) is not None:
            if not is_ours and not isinstance(write.what, Charge):
                continue
            try:
                await self._until_accepted(write)
            except CallTakenOver:
                log.info("call_taken_over")
                is_ours = False
                self._taken_over()

    def _put(self, write: _Write) -> None:
        self._waiting.append(write)
        self._changed.set()

    async def _next(self) -> _Write | None:
        while not self._waiting and not self._is_closed:
            self._changed.clear()
            await self._changed.wait()
        return self._waiting.popleft() if self._waiting else None

    async def _until_accepted(self, write: _Write) -> None:
        is_new = True
        try:
            while True:
                try:
                    return await write.do()
                except StorageUnavailable:
                    if self._is_too_late():
                        log.exception("journal_lost")
                        return
                    if is_new:
                        log.warning("journal_waits")
                    is_new = False
                    await asyncio.sleep(JOURNAL_RETRY_S)
        finally:
            self._audio_bytes -= _audio(write.what)

    async def _accept(self, exchange: Exchange) -> None:
        await self._journal.commit_exchange(exchange)
        log.info("exchange_accepted", exchange_no=exchange.exchange_no)

    def _is_too_late(self) -> bool:
        ended_ms = self._ended_ms
        return ended_ms is not None and self._clock.now_ms() - ended_ms > JOURNAL_TIMEOUT_S * 1_000


def _audio(what: object) -> int:
    """Bytes of audio that it holds."""
    return len(what.user_ulaw) + len(what.reply_ulaw) if isinstance(what, Exchange) else 0
