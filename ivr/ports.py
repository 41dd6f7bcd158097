"""What a call needs of the world, and nothing more. Adapters implement these; tests have their own."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

from ivr.core.commands import (
    Command,
    EndReason,
    ExactWords,
    LineCommand,
    ModelCommand,
    SessionConfig,
    UseTool,
)
from ivr.core.events import Event, LineEvent, ModelEvent, ReplyPcm, ToolAnswered
from memory.model import Access, CallSnapshot, Charge, EndedBy, Exchange, Window


class Clock(Protocol):
    """Monotonic time."""

    def now_ms(self) -> float:
        """Milliseconds since an arbitrary start."""
        ...


class CallerLink(Protocol):
    """The caller's media stream, after `start` and token were accepted."""

    async def listen(self, receive: Callable[[LineEvent], None]) -> None:
        """Give `receive` everything the line says, each as it comes; return after `LineClosed`.

        Bad messages are counted and left out. `receive` is quick and does not raise.
        """
        ...

    def send(self, command: LineCommand) -> None:
        """Write; never blocks, never raises because the peer is gone or does not read."""
        ...

    async def close(self) -> None:
        """Close the socket behind what was written. Idempotent."""
        ...


class ModelLink(Protocol):
    """One session with a speech model. A new object for each session."""

    async def open(self, config: SessionConfig) -> None:
        """Connect and send the settings; `ModelReady` follows among the events.

        Raises: `ModelUnavailable` (try again), `ModelUnsuitable` (no use trying: named server lacks what we need).
        """
        ...

    def events(self) -> AsyncIterator[ModelEvent | ReplyPcm]:
        """Everything the model says; ends after `ModelLost`, or silently after `close()`."""
        ...

    def hear(self, pcm24k: bytes) -> None:
        """Append PCM16 24 kHz to the input buffer; queued, never blocks."""
        ...

    def send(self, command: ModelCommand) -> None:
        """Queue a command (all but `Hear`); never blocks."""
        ...

    async def close(self) -> None:
        """End the session within 2 s. Idempotent."""
        ...


class Tools(Protocol):
    """The business's own systems."""

    async def use(self, order: UseTool) -> ToolAnswered:
        """Send the request, and read its answer; one that fails is an answer too."""
        ...


@dataclass(frozen=True, slots=True)
class Sound:
    """Some of a text's sound, as µ-law 8 kHz of any length.

    `made_ms`: with the first of a text that is made for this call, and paid: how long all of it is, by estimate.
    """

    ulaw: bytes
    made_ms: float = 0.0


class Speech(Protocol):
    """A voice for exact words that is not the speech model's: a text-to-speech endpoint, and what it made before."""

    def speak(self, words: ExactWords) -> AsyncGenerator[Sound]:
        """The texts' sound, as it comes. Raises: `SpeechUnavailable`, at once or in the midst of it."""
        ...


class Telephony(Protocol):
    """Control of live calls beside the media stream. A call that is already gone is no error."""

    async def hang_up(self, call_sid: str) -> None:
        """End the call."""
        ...

    async def update(self, call_sid: str, twiml: str) -> None:
        """Replace what the call is doing by this TwiML (at most 4,000 characters)."""
        ...

    async def is_over(self, call_sid: str) -> bool:
        """Whether the call has ended, for whatever reason; one that is not known (any more) has."""
        ...


class Recall(Protocol):
    """The memory of this call's caller, bound to owner and call when made."""

    async def recall(self, query: str, live_items: tuple[str, ...], access: Access) -> Window:
        """`access`: what may be looked at. Never raises for a memory that is down: then the window holds what the call
        itself knows.
        """
        ...


class Bill(Protocol):
    """What the call pays for. It is shown every event before the core is, and every command before it is done."""

    def event(self, event: Event) -> tuple[Event, tuple[Charge, ...]]:
        """The event, with tokens estimated where they were not told, and what has thereby become due."""
        ...

    def command(self, command: Command) -> None:
        """See what the call asks for."""
        ...

    def spoken(self, audio_ms: float) -> tuple[Charge, ...]:
        """So much of our own words was made by the text-to-speech endpoint."""
        ...

    def close(self) -> tuple[Charge, ...]:
        """The stream is over: what of it is still to be paid."""
        ...


class FreeOfCharge:
    """A `Bill` with nothing on it."""

    def event(self, event: Event) -> tuple[Event, tuple[Charge, ...]]:
        """The event as it is."""
        return event, ()

    def command(self, _: Command) -> None:
        """Nothing is asked for."""

    def spoken(self, _: float) -> tuple[Charge, ...]:
        """Nothing is due."""
        return ()

    def close(self) -> tuple[Charge, ...]:
        """Nothing is due."""
        return ()


class Journal(Protocol):
    """Durable record of this call, bound to call and epoch when made. Writes happen in order.

    All raise `StorageUnavailable` (try again) and `CallTakenOver` (never again).
    """

    async def commit_exchange(self, exchange: Exchange) -> None:
        """Returns once the page's commit has returned (*accepted*)."""
        ...

    async def charge(self, charge: Charge) -> None:
        """Something was paid for; written once, however often it is told. Never void: it was paid."""
        ...

    async def save_snapshot(self, snapshot: CallSnapshot) -> None:
        """Replace the call's journalled state."""
        ...

    async def end(self, reason: EndReason, by: EndedBy | None) -> None:
        """Write the end of the call, and whose doing it was, once: later ends are ignored."""
        ...
