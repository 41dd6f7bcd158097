"""The way out to the caller: paces µ-law to the line and knows, item by item, what was heard.

Positions are bytes of µ-law since the call began, padding included; 8 bytes are 1 ms. Twilio plays in real time
what it is sent, so our own clock bounds from above what can have been played; returned marks prove it from below.
"""

from collections import deque
from dataclasses import dataclass, field
from math import ceil

from ivr.core.commands import SendClear, SendMark, SendMedia
from ivr.core.units import FRAME_BYTES, FRAME_MS, LINE_RATE_HZ, ULAW_SILENCE, ulaw_ms

AHEAD_MS = 320
"""How far sending runs ahead of the caller's ear: survives a stall of ours of 300 ms."""
MARK_BYTES = 1_600
"""A mark after each 200 ms of audio."""
UNPROVEN_MS = 1_000
"""Sound whose mark has not come back this long after its time is taken for played (or for lost)."""
_BYTES_A_MS = LINE_RATE_HZ // 1_000
_FORGOTTEN = 64


@dataclass(slots=True)
class _Item:
    """One reply's audio. `start` is where its first byte was sent; `frozen` how much was heard at a clear."""

    item_id: str
    audio: bytearray = field(default_factory=bytearray)
    sent: int = 0
    start: int = 0
    finished: bool = False
    ended: bool = False
    frozen: int | None = None

    def next_bytes(self) -> int:
        """How much may be sent: whole frames, and the rest too once no more will come."""
        waiting = len(self.audio) - self.sent
        return waiting if self.finished else waiting - waiting % FRAME_BYTES

    def take(self, count: int) -> bytes:
        """The next `count` bytes, filled up with silence to a whole frame."""
        payload = bytes(memoryview(self.audio)[self.sent : self.sent + count])
        self.sent += len(payload)
        return payload + ULAW_SILENCE * (-len(payload) % FRAME_BYTES)


@dataclass(frozen=True, slots=True)
class _Mark:
    """A mark that is out: when it returns, all up to `position` was played, at `due_ms` at the earliest.

    `ends` is the item that ends there.
    """

    name: str
    position: int
    due_ms: float
    ends: _Item | None = None


class Playback:
    """The caller's side of a call's replies. All times are the call's monotonic `now_ms`."""

    def __init__(self) -> None:
        self._items: dict[str, _Item] = {}
        self._dropped: deque[str] = deque(maxlen=_FORGOTTEN)
        self._queue: deque[_Item] = deque()
        self._marks: deque[_Mark] = deque()
        self._started = False
        self._now_ms = 0.0
        self._epoch = 0
        self._mark_no = 0
        self._sent = 0
        self._marked = 0
        self._proven = 0
        self._heard = 0
        self._ends_ms = 0.0
        """When, at the earliest, all that was sent has been played."""
        self._run = 0
        """Where the line last began to sound after it had run dry."""
        self._echo_ms = 0.0
        """How long after its time a mark came back at the latest: the way there and back at its longest."""

    # -- audio in ------------------------------------------------------------------------------------------

    def queue(self, item_id: str, ulaw: bytes) -> None:
        """More of an item's audio. After a clear it is kept as unheard; of a finished or dropped item, ignored."""
        item = self._item(item_id)
        if item is None or item.finished or not ulaw:
            return
        item.audio += ulaw

    def finish(self, item_id: str) -> None:
        """The item has no more audio: its tail may go, and a mark behind it. Idempotent."""
        item = self._item(item_id)
        if item is None or item.finished:
            return
        item.finished = True
        if not item.audio and item.frozen is None:
            item.ended = True

    def start(self, now_ms: float) -> None:
        """The stream is open: from now on `tick` sends."""
        self._see(now_ms)
        self._started = True

    # -- to and from the line ------------------------------------------------------------------------------

    def tick(self, now_ms: float) -> list[SendMedia | SendMark]:
        """What is due: whole frames, up to `AHEAD_MS` ahead of the ear, and marks."""
        self._see(now_ms)
        out: list[SendMedia | SendMark] = []
        if not (self._started and self._queue):
            return out
        room = self._room()
        while self._queue:
            item = self._queue[0]
            count = min(item.next_bytes(), room, self._marked + MARK_BYTES - self._sent)
            if count > 0:
                room -= self._emit(item, count, out)
            if item.finished and item.sent == len(item.audio):
                self._queue.popleft()
                if not item.ended:
                    self._mark(out, item)
            elif self._sent - self._marked >= MARK_BYTES:
                self._mark(out)
            elif count <= 0:
                break
        return out

    def mark(self, name: str, now_ms: float) -> None:
        """A mark came back. One that is not out now (unknown, repeated, of before a clear) proves nothing."""
        self._see(now_ms)
        if not any(mark.name == name for mark in self._marks):
            return
        while True:
            mark = self._marks.popleft()
            if mark.ends is not None:
                mark.ends.ended = True
            if mark.name == name:
                break
        self._prove(mark)

    def clear(self, now_ms: float) -> list[SendClear]:
        """Drop what is queued and stop what is playing. No order to Twilio if nothing can be audible."""
        self._see(now_ms)
        audible = self.is_audible(now_ms)
        for item in self._items.values():
            if item.frozen is None and not self._is_over(item):
                item.frozen = self._heard_of(item)
        self._queue.clear()
        self._marks.clear()
        self._epoch += 1
        self._marked = self._proven = self._heard = self._sent
        self._ends_ms = self._now_ms
        self._run = self._sent
        return [SendClear()] if audible else []

    def drop(self, item_id: str) -> None:
        """Forget an item and its audio. Audio of it that still comes is ignored."""
        item = self._items.pop(item_id, None)
        if item is None:
            return
        self._dropped.append(item_id)
        if item in self._queue:
            self._queue.remove(item)

    # -- what is known -------------------------------------------------------------------------------------

    def heard_ms(self, item_id: str) -> float:
        """How much of the item was played, as of the latest `now_ms` seen: a lower bound, exact to a mark interval.

        At Twilio's playout, not at the ear. Never more than was sent, nor than the clock allows; what is played
        after a clear is not counted. 0 for an unknown item.
        """
        return ulaw_ms(self.heard_bytes(item_id))

    def queued_ms(self, item_id: str) -> float:
        """All audio received of the item so far, heard or not."""
        item = self._items.get(item_id)
        return ulaw_ms(item.audio) if item else 0.0

    def heard_bytes(self, item_id: str) -> bytes:
        """The part of the item that was heard, µ-law, without padding."""
        item = self._items.get(item_id)
        return bytes(memoryview(item.audio)[: self._heard_of(item)]) if item else b""

    def unheard(self, item_id: str) -> bytes:
        """The rest of the item: what a clear cut off, what came after it, what is not played yet."""
        item = self._items.get(item_id)
        return bytes(memoryview(item.audio)[self._heard_of(item) :]) if item else b""

    def played_to_end(self, item_id: str) -> bool:
        """The item is finished and was heard to its last byte: its end mark came back, and not by a clear."""
        item = self._items.get(item_id)
        return item is not None and self._is_over(item)

    def is_audible(self, now_ms: float) -> bool:
        """Something of ours may be sounding at the caller's end."""
        self._see(now_ms)
        return self._now_ms < self._silent_ms()

    def is_idle(self, now_ms: float) -> bool:
        """Nothing waits to be sent and nothing is audible."""
        waiting = any(item.sent < len(item.audio) for item in self._queue)
        return not waiting and not self.is_audible(now_ms)

    def has_more(self) -> bool:
        """There is sound that may be sent, now or later."""
        return bool(self._queue) and self._queue[0].next_bytes() > 0

    def next_deadline(self, now_ms: float) -> float | None:
        """When `tick` next has something to send, or else when silence falls; `None` if neither will be."""
        self._see(now_ms)
        if not self._started:
            return None
        if self._queue and (self._queue[0].next_bytes() or self._queue[0].finished):
            return max(self._now_ms, self._ends_ms - AHEAD_MS + FRAME_MS)
        silent_ms = self._silent_ms()
        return silent_ms if silent_ms > self._now_ms else None

    # -- within --------------------------------------------------------------------------------------------

    def _item(self, item_id: str) -> _Item | None:
        """The item, new at the end of the queue if unknown; `None` once dropped."""
        item = self._items.get(item_id)
        if item is None and item_id not in self._dropped:
            item = self._items[item_id] = _Item(item_id)
            self._queue.append(item)
        return item

    def _room(self) -> int:
        """Bytes that may be sent now, in whole frames."""
        ahead_ms = max(0.0, self._ends_ms - self._now_ms)
        return int((AHEAD_MS - ahead_ms) / FRAME_MS + 1e-6) * FRAME_BYTES

    def _emit(self, item: _Item, count: int, out: list[SendMedia | SendMark]) -> int:
        """Send the item's next `count` bytes; returns how many went with the padding."""
        if self._ends_ms <= self._now_ms:  # the line had run dry: this starts sounding when it gets there
            self._ends_ms = self._now_ms
            self._run = self._sent
        if item.sent == 0:
            item.start = self._sent
        payload = item.take(count)
        self._sent += len(payload)
        self._ends_ms += ulaw_ms(payload)
        out.append(SendMedia(payload))
        return len(payload)

    def _mark(self, out: list[SendMedia | SendMark], ends: _Item | None = None) -> None:
        self._mark_no += 1
        mark = _Mark(f"{self._epoch}.{self._mark_no}", self._sent, self._ends_ms, ends)
        self._marks.append(mark)
        self._marked = self._sent
        out.append(SendMark(mark.name))

    def _prove(self, mark: _Mark) -> None:
        self._proven = max(self._proven, mark.position)
        self._echo_ms = max(self._echo_ms, self._now_ms - mark.due_ms)
        self._see(self._now_ms)

    def _see(self, now_ms: float) -> None:
        """Move the clock (never back) and with it the position heard."""
        if now_ms > self._now_ms:
            self._now_ms = now_ms
        if self._heard == self._sent:  # most of the time
            return
        position = self._proven
        # Between marks the clock goes on, once a mark has shown that this run sounds: as late as marks ever came.
        if position > self._run:
            unplayed = ceil(max(0.0, self._ends_ms + self._echo_ms - self._now_ms) * _BYTES_A_MS)
            # A mark that is still out says that its place has not been reached.
            reached = self._marks[0].position if self._marks else self._sent
            position = max(position, min(reached, self._sent - unplayed))
        unplayed = ceil(max(0.0, self._ends_ms - self._now_ms) * _BYTES_A_MS)
        self._heard = max(self._heard, min(position, self._sent - unplayed))

    def _silent_ms(self) -> float:
        """When at the latest all that was sent is over."""
        return self._ends_ms + (UNPROVEN_MS if self._proven < self._sent else 0)

    def _heard_of(self, item: _Item) -> int:
        if item.frozen is not None:
            return item.frozen
        return max(0, min(self._heard - item.start, item.sent))

    def _is_over(self, item: _Item) -> bool:
        return item.ended and item.frozen is None and self._heard_of(item) == len(item.audio)
