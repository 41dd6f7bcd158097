"""A service in the test's hands: answers the machine's effects at once, in simulated time."""

import audioop
import base64
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from ivr.phone.board import (
    CloseStream,
    Effect,
    FetchAudio,
    FetchCalled,
    FetchDocument,
    Form,
    Notify,
    OpenStream,
    SendText,
)
from ivr.phone.line import FRAME_MS
from ivr.phone.machine import Caller, CallMachine, CallSetup
from ivr.phone.record import CallRecord
from ivr.phone.script import CallScript

BASE = "https://ivr.example.com"
CONNECT = (
    '<Response><Connect><Stream url="wss://ivr.example.com/twilio/media">'
    '<Parameter name="token" value="t1"/></Stream></Connect>'
    '<Redirect method="POST">/twilio/continue</Redirect></Response>'
)
HANGUP = "<Response><Hangup/></Response>"

Json = dict[str, Any]


def tone(duration_ms: int, frequency_hz: int = 440) -> bytes:
    """A loud tone, µ-law 8 kHz."""
    seconds = np.arange(8 * duration_ms) / 8_000
    pcm = (8_000 * np.sin(2 * np.pi * frequency_hz * seconds)).astype("<i2")
    return audioop.lin2ulaw(pcm.tobytes(), 2)


def setup(script: CallScript, **changes: Any) -> CallSetup:
    return CallSetup(
        caller=Caller("+15550100001"),
        to="+15550100002",
        voice_url=f"{BASE}/twilio/voice",
        status_url=f"{BASE}/twilio/status",
        account_sid="AC" + "0" * 32,
        script=script,
        **changes,
    )


@dataclass
class Bench:
    """Runs a CallMachine against canned documents; everything sent to the service is kept."""

    documents: dict[str, list[str]]
    script: CallScript = field(default_factory=CallScript)
    changes: Json = field(default_factory=dict)
    sent: list[Json] = field(default_factory=list)
    fetched: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    notified: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    closed: list[bool] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    on_message: Callable[["Bench", Json], None] | None = None
    audio: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers = itertools.count(1)
        machine_setup = setup(self.script, **self.changes)
        self.machine = CallMachine(machine_setup, lambda prefix: f"{prefix}{next(numbers):032x}")
        self.serial = 0
        self.machine.dial()
        self.settle()

    @property
    def now_ms(self) -> int:
        return self.machine.board.now_ms

    def run(self, until_ms: int) -> None:
        """Let the time pass, up to `until_ms` since dialling or the call's end."""
        while self.now_ms < until_ms and self.machine.end is None:
            self.machine.tick()
            self.settle()

    def record(self) -> CallRecord:
        return self.machine.record()

    def settle(self) -> None:
        """Carry out every effect, and what follows from it."""
        while effects := self.machine.board.take_effects():
            for effect in effects:
                self._do(effect)

    def say(self, ulaw: bytes) -> None:
        """The service sends audio."""
        self.tell({"event": "media", "media": {"payload": base64.b64encode(ulaw).decode()}})

    def mark(self, name: str) -> None:
        self.tell({"event": "mark", "mark": {"name": name}})

    def clear(self) -> None:
        self.tell({"event": "clear"})

    def tell(self, message: Json) -> None:
        leg = self.machine.stream(self.serial)
        assert leg is not None
        leg.received(json.dumps(message | {"streamSid": leg.stream_sid}))
        self.settle()

    def close(self, code: int) -> None:
        leg = self.machine.stream(self.serial)
        assert leg is not None
        leg.closed(code)
        self.settle()

    def of(self, event: str) -> list[Json]:
        """The messages sent to the service, of one type."""
        return [message for message in self.sent if message["event"] == event]

    def _do(self, effect: Effect) -> None:
        match effect:
            case FetchDocument(serial, url, _, form):
                self._answer(serial, url, form)
            case FetchCalled(serial, url, form):
                self.fetched.append((url, dict(form)))
                text = self.documents[urlsplit(url).path][0]
                self.machine.called_arrived(serial, 200 if text else 500, "text/xml", text)
            case FetchAudio(serial, url):
                self.machine.audio_arrived(serial, self.audio.get(url), "404")
            case Notify(url, form):
                self.notified.append((url, dict(form)))
            case OpenStream(serial, url):
                self.opened.append(url)
                self.serial = serial
                leg = self.machine.stream(serial)
                assert leg is not None
                leg.opened()
            case SendText(_, text):
                self.sent.append(json.loads(text))
                if self.on_message is not None:
                    self.on_message(self, self.sent[-1])
            case CloseStream(_, reset):
                self.closed.append(reset)

    def _answer(self, serial: int, url: str, form: Form) -> None:
        self.fetched.append((url, dict(form)))
        answers = self.documents.get(urlsplit(url).path, [])
        if not answers:
            self.machine.document_arrived(serial, 404, "text/plain", "")
            return
        text = answers.pop(0) if len(answers) > 1 else answers[0]
        self.machine.document_arrived(serial, 200, "text/xml", text)


def media_index(message: Json) -> int:
    """Which of the stream's frames a media message is, from its timestamp (the first is at 135 ms)."""
    return (int(message["media"]["timestamp"]) - 135) // FRAME_MS
