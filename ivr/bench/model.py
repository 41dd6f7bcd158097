"""The bench's speech model: speaks the Realtime protocol by a fixed script and notes when what came and went.

`python -m ivr.bench.model --port PORT --notes FILE`; SIGTERM writes the notes. It understands nothing: every eight
seconds of audio it has "heard" a turn, and every response that is asked for is four seconds of sound.
"""

import argparse
import asyncio
import base64
import signal
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
import numpy as np

from ivr.audio.g711 import pcm16_to_ulaw
from ivr.bench.websocket import WebSocketEnd
from ivr.server import run

CYCLE_MS = 8_000
REPLY_MS = 4_000
DELTA_MS = 200
PACE_S = 0.02
"""A delta of 200 ms each 20 ms: ten times faster than it plays."""
_APPEND = b"input_audio_buffer.append"
_BYTES_A_MS = {"audio/pcm": 48, "audio/pcmu": 8}


class Notes(msgspec.Struct):
    """What one connection saw, in seconds of the machine's monotonic clock.

    `heard_s[i]`: when the audio received came to `heard_ms[i]`. `spoke_s`: when each reply's first delta went out.
    """

    opened_s: float
    heard_s: list[float]
    heard_ms: list[float]
    spoke_s: list[float]


@dataclass(frozen=True, slots=True)
class _Line:
    """One thing the script says when so much of a cycle's audio was heard."""

    at_ms: int
    event: dict[str, Any]


_SCRIPT = (
    _Line(1_000, {"type": "input_audio_buffer.speech_started", "audio_start_ms": 0}),
    _Line(3_000, {"type": "input_audio_buffer.speech_stopped", "audio_end_ms": 0}),
    _Line(3_000, {"type": "input_audio_buffer.committed", "previous_item_id": None}),
    _Line(
        3_100,
        {
            "type": "conversation.item.input_audio_transcription.completed",
            "content_index": 0,
            "transcript": "What does a check-up cost, and where can I park my car?",
        },
    ),
)


def _sound(audio_format: str) -> bytes:
    """A delta's sound as base64: a soft chord, on 24 kHz PCM16 or 8 kHz µ-law."""
    rate_hz = 24_000 if audio_format == "audio/pcm" else 8_000
    at = np.arange(rate_hz * DELTA_MS // 1_000) / rate_hz
    chord = sum(3_000 * np.sin(2 * np.pi * hz * at) for hz in (220, 330, 1_230))
    pcm16 = np.rint(chord).astype("<i2").tobytes()
    return base64.b64encode(pcm16 if audio_format == "audio/pcm" else pcm16_to_ulaw(pcm16))


_SOUND = {name: _sound(name) for name in _BYTES_A_MS}


class Session:
    """One connection of the server under test."""

    def __init__(self, end: WebSocketEnd) -> None:
        self._end = end
        self._opened_s = monotonic()
        self._heard_s = array("d")
        self._heard_ms = array("d")
        self._spoke_s = array("d")
        self._audio_ms = 0.0
        self._turn = 0
        self._due = 0
        self._replies = 0
        self._in_format = self._out_format = "audio/pcm"
        self._answers_itself = True
        self._sayings: set[asyncio.Task[None]] = set()

    def notes(self) -> Notes:
        """What was seen so far."""
        return Notes(self._opened_s, list(self._heard_s), list(self._heard_ms), list(self._spoke_s))

    def begin(self) -> None:
        """The handshake is done."""
        self._say({"type": "session.created", "session": {"id": "sess_bench", "type": "realtime"}})

    def receive(self, message: bytes) -> None:
        """One message of the client."""
        if message.find(_APPEND, 0, 40) > 0:
            self._append(message)
            return
        event = msgspec.json.decode(message)
        if event["type"] == "session.update":
            self._update(event["session"])
        elif event["type"] == "response.create":
            self._reply(event.get("response") or {})

    def _append(self, message: bytes) -> None:
        end = message.rindex(b'"')
        begin = message.rindex(b'"', 0, end) + 1
        size = (end - begin) // 4 * 3 - message.count(b"=", end - 2)
        self._audio_ms += size / _BYTES_A_MS[self._in_format]
        self._heard_s.append(monotonic())
        self._heard_ms.append(self._audio_ms)
        while self._audio_ms >= self._turn * CYCLE_MS + _SCRIPT[self._due].at_ms:
            self._next_line()

    def _next_line(self) -> None:
        line = _SCRIPT[self._due]
        event = {"event_id": "event_bench", "item_id": f"item_{self._turn}", **line.event}
        for name in ("audio_start_ms", "audio_end_ms"):
            if name in event:
                event[name] = int(self._audio_ms)
        self._say(event)
        self._due += 1
        if self._due == len(_SCRIPT):
            self._due, self._turn = 0, self._turn + 1
            if self._answers_itself:
                self._reply({})

    def _update(self, session: dict[str, Any]) -> None:
        audio = session.get("audio", {})
        self._in_format = _format(audio.get("input", {}))
        self._out_format = _format(audio.get("output", {}))
        detection = audio.get("input", {}).get("turn_detection") or {}
        self._answers_itself = detection.get("create_response") is not False
        self._say({"type": "session.updated", "session": {"id": "sess_bench", **session}})

    def _reply(self, asked: dict[str, Any]) -> None:
        self._replies += 1
        response: dict[str, Any] = {
            "id": f"resp_{self._replies}",
            "object": "realtime.response",
            "status": "in_progress",
            "metadata": asked.get("metadata"),
            "output": [],
        }
        spoken = "text" not in asked.get("output_modalities", ())
        saying = asyncio.get_running_loop().create_task(self._speak(response, spoken))
        self._sayings.add(saying)
        saying.add_done_callback(self._sayings.discard)

    async def _speak(self, response: dict[str, Any], spoken: bool) -> None:
        self._say({"type": "response.created", "response": response})
        whose = {"response_id": response["id"], "item_id": f"{response['id']}_item"}
        delta = msgspec.json.encode({"type": "response.output_audio.delta", **whose, "delta": "@"})
        delta = delta.replace(b"@", _SOUND[self._out_format])
        for no in range(REPLY_MS // DELTA_MS if spoken else 0):
            if no == 0:
                self._spoke_s.append(monotonic())
            self._end.send(delta)
            self._say({"type": "response.output_audio_transcript.delta", **whose, "delta": "word "})
            await asyncio.sleep(PACE_S)
        self._say({"type": "response.done", "response": {**response, "status": "completed"}})

    def _say(self, event: dict[str, Any]) -> None:
        self._end.send(msgspec.json.encode(event))


def _format(side: dict[str, Any]) -> str:
    name: str = (side.get("format") or {}).get("type", "audio/pcm")
    return name


class _ServerEnd(WebSocketEnd):
    """A connection with its session."""

    def __init__(self, sessions: list[Session]) -> None:
        super().__init__(lambda _, message: self._session.receive(message))
        self._session = Session(self)
        self._sessions = sessions

    def opened(self) -> None:
        self._sessions.append(self._session)
        self._session.begin()


async def serve(port: int, keep: Callable[[list[Notes]], None]) -> None:
    """Serve until SIGTERM, then give the notes, in the order of the connections."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    sessions: list[Session] = []
    async with await loop.create_server(partial(_ServerEnd, sessions), "127.0.0.1", port):
        await stopped.wait()
        keep([session.notes() for session in sessions])


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--notes", type=Path, required=True)
    arguments = parser.parse_args()
    run(serve(arguments.port, lambda notes: _write(arguments.notes, notes)))


def _write(path: Path, notes: list[Notes]) -> None:
    path.write_bytes(msgspec.json.encode(notes))


if __name__ == "__main__":
    main()
