"""What a session wants done, collected while it decides: the socket carries it out afterwards."""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass

from ivr.sandbox.events import ErrorDetail, ErrorEvent, Event, RawEvent
from ivr.sandbox.faults import Fault


@dataclass(frozen=True)
class Send:
    """Send this event."""

    event: Event | RawEvent


@dataclass(frozen=True)
class Listen:
    """Find the words in PCM16 audio; answered by `Session.heard(key, …)`."""

    key: str
    pcm: bytes
    rate_hz: int


@dataclass(frozen=True)
class Speak:
    """Say the text; answered by `Session.spoken(response_id, PCM16 24 kHz)`."""

    response_id: str
    text: str
    voice: str
    speed: float


@dataclass(frozen=True)
class Close:
    """Close the socket, after what was sent before."""

    code: int
    reason: str


@dataclass(frozen=True)
class Abort:
    """Break the connection without a close frame, after what was sent before."""


Effect = Send | Listen | Speak | Close | Abort


class Outbox:
    """Effects in order, timers by due time, ids by counting (with the session's own salt)."""

    def __init__(self, salt: str) -> None:
        self.now_ms = 0.0
        self._salt = salt
        self._effects: list[Effect] = []
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._counter = itertools.count(1)

    def new_id(self, prefix: str) -> str:
        """An id no other session has, e.g. `item_<salt>_7`."""
        return f"{prefix}_{self._salt}{next(self._counter):06d}"

    def send(self, *events: Event | RawEvent) -> None:
        """Send events, in order; each gets its id here."""
        for event in events:
            if isinstance(event, Event):
                event.event_id = self.new_id("event")
            self._effects.append(Send(event))

    def fault(self, fault: Fault, event_id: str | None = None) -> None:
        """Tell the client what it did wrong."""
        detail = ErrorDetail(
            type=fault.kind,
            code=fault.code,
            message=fault.message,
            param=fault.param,
            event_id=fault.event_id or event_id,
        )
        self.send(ErrorEvent(error=detail))

    def do(self, effect: Effect) -> None:
        """Have something else done."""
        self._effects.append(effect)

    def later(self, delay_ms: float, action: Callable[[], None]) -> None:
        """Do something at `now + delay_ms`. The action itself checks whether it still matters then."""
        heapq.heappush(self._timers, (self.now_ms + delay_ms, next(self._counter), action))

    def next_due_ms(self) -> float | None:
        """When the next timer is due."""
        return self._timers[0][0] if self._timers else None

    def run_due(self) -> None:
        """Run one round of due timers. What they put off by 0 ms waits for the next: others get a turn."""
        due: list[Callable[[], None]] = []
        while self._timers and self._timers[0][0] <= self.now_ms:
            due.append(heapq.heappop(self._timers)[2])
        for action in due:
            action()

    def take(self) -> list[Effect]:
        """Everything to be done; empty afterwards."""
        effects, self._effects = self._effects, []
        return effects
