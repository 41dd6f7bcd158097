"""A session on a bench: messages in, events out, time by hand."""

import base64
import json
from typing import Any

import msgspec

from ivr.sandbox.brain import Brain
from ivr.sandbox.events import RawEvent
from ivr.sandbox.outbox import Abort, Close, Effect, Listen, Send, Speak
from ivr.sandbox.pcm import Tone
from ivr.sandbox.script import parse_script
from ivr.sandbox.scripted import Stage
from ivr.sandbox.session import Session

MS = 48  # bytes of PCM16 24 kHz
VOICED = Tone(300, 600).pcm24k() + bytes(MS * 700)


class Bench:
    """Events are plain JSON here, as a client reads them. `others`: effects that are no events."""

    def __init__(self, brain: Brain) -> None:
        self.now_ms = 0.0
        self.others: list[Listen | Speak | Close | Abort] = []
        self._session = Session(brain, model="sandbox", salt="t", now_ms=0.0, epoch_s=1_000.0)
        self.hello = self._events(self._session.start())

    @classmethod
    def scripted(cls, script: str) -> "Bench":
        """A session that follows a script."""
        return cls(Stage(parse_script(script, "test.yaml")).brain())

    def send(self, kind: str, **fields: Any) -> list[dict[str, Any]]:
        """A client event, and what comes at once."""
        return self.raw(json.dumps({"type": kind, "event_id": "e1", **fields}))

    def raw(self, text: str | bytes) -> list[dict[str, Any]]:
        """Any text, and what comes at once."""
        return self._events(self._session.receive(text, self.now_ms))

    def say(self, pcm: bytes) -> list[dict[str, Any]]:
        """Append audio."""
        return self.send("input_audio_buffer.append", audio=base64.b64encode(pcm).decode())

    def respond(self, **response: Any) -> list[dict[str, Any]]:
        """Ask for a response and let it run to its end (or 60 s)."""
        return [*self.send("response.create", response=response), *self.run(60_000)]

    def heard(self, key: str, text: str | None) -> list[dict[str, Any]]:
        """The ear's answer."""
        return self._events(self._session.heard(key, text, self.now_ms))

    def spoken(self, response_id: str, pcm: bytes | None) -> list[dict[str, Any]]:
        """The voice's answer."""
        return self._events(self._session.spoken(response_id, pcm, self.now_ms))

    def run(self, duration_ms: float) -> list[dict[str, Any]]:
        """Let time pass, stopping at each due moment."""
        end_ms = self.now_ms + duration_ms
        events: list[dict[str, Any]] = []
        while (due_ms := self._session.next_due_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            events += self._events(self._session.tick(self.now_ms))
        self.now_ms = end_ms
        return events

    def _events(self, effects: list[Effect]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for effect in effects:
            if not isinstance(effect, Send):
                self.others.append(effect)
                continue
            event = effect.event
            found.append(
                json.loads(event.text if isinstance(event, RawEvent) else msgspec.json.encode(event))
            )
        return found


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """Types in order, without rate limits."""
    return [event.get("type", "") for event in events if event.get("type") != "rate_limits.updated"]


def only(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The one event of a type."""
    (found,) = [event for event in events if event.get("type") == kind]
    return found


def error(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The detail of the one error."""
    detail: dict[str, Any] = only(events, "error")["error"]
    return detail


def user(text: str) -> dict[str, Any]:
    """A user message."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
