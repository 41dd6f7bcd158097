"""How many calls this process carries, and which stream tokens it has seen. In memory, bounded, no I/O."""

import asyncio
from collections import Counter

RESERVE_S = 15.0
"""Between the voice webhook's answer and `start` lies about a second; a caller who hung up frees the place then."""


class CallSlots:
    """Places for calls: reserved by the webhook, occupied by streams, free when the stream or the call is over."""

    def __init__(self, limit: int, reserve_s: float = RESERVE_S) -> None:
        self.limit = limit
        self._reserve_s = reserve_s
        self._reserved: dict[str, float] = {}
        self._streams: Counter[str] = Counter()
        self._over: set[str] = set()
        self._empty = asyncio.Event()
        self._empty.set()

    def reserve(self, call_sid: str, now: float) -> bool:
        """A place for this call until its stream comes; `False` when all are taken. Again for one call: same place."""
        self._reserved = {sid: until for sid, until in self._reserved.items() if until > now}
        taken = (self._reserved.keys() | self._streams.keys()) - self._over
        if call_sid not in taken and len(taken) >= self.limit:
            return False
        self._reserved[call_sid] = now + self._reserve_s
        return True

    def occupy(self, call_sid: str) -> None:
        """A stream of this call began; it was promised a place, so the limit is not asked."""
        self._reserved.pop(call_sid, None)
        self._streams[call_sid] += 1
        self._empty.clear()

    def vacate(self, call_sid: str) -> None:
        """A stream of this call is over; an older one of the same call may still be closing."""
        self._streams[call_sid] -= 1
        if self._streams[call_sid] <= 0:
            del self._streams[call_sid]
            self._over.discard(call_sid)
        if not self._streams:
            self._empty.set()

    def call_over(self, call_sid: str) -> None:
        """Twilio says the call is over: its place is free, even if its socket is still open."""
        self._reserved.pop(call_sid, None)
        if call_sid in self._streams:
            self._over.add(call_sid)

    @property
    def streams(self) -> int:
        """Streams running now."""
        return self._streams.total()

    async def empty(self) -> None:
        """Returns when no stream runs: what a drain waits for."""
        await self._empty.wait()


class SpentNonces:
    """Nonces of tokens this process took, kept until they expire: what holds while the database is down."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def spend(self, nonce: str, expires_at: float, now: float) -> bool:
        """`False` if it was spent here before."""
        self._until = {kept: until for kept, until in self._until.items() if until > now}
        if nonce in self._until:
            return False
        self._until[nonce] = expires_at
        return True
