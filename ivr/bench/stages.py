"""What each step of a frame's way costs by itself, in µs: where a call's CPU goes that is not sockets and loop."""

import base64
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import process_time

import msgspec
import numpy as np

from callflows import engine
from callflows.model import Business
from ivr.audio.conceal import Concealer
from ivr.audio.g711 import pcm16_to_ulaw, ulaw_to_pcm16
from ivr.audio.inbound import Inbound
from ivr.audio.outbound import Outbound
from ivr.audio.resample import Upsampler
from ivr.core.arrivals import Arrivals
from ivr.core.commands import SendMedia
from ivr.core.events import LineFrame, ModelReady, Tick
from ivr.core.playback import Playback
from ivr.core.session import CallCore
from ivr.core.setup import CallSetup
from ivr.core.tape import InputTape
from ivr.core.units import FRAME_MS
from ivr.wire import realtime_in, twilio
from ivr.wire.realtime_out import encode_append

ROUNDS = 5
FRAMES = 2_000


@dataclass(frozen=True, slots=True)
class Stage:
    """One step: its cost each time, and how often a call does it in a second of a reply being said."""

    name: str
    us: float
    per_s: float

    @property
    def ms_per_call_s(self) -> float:
        """CPU of a call in ms for each second."""
        return self.us * self.per_s / 1_000


def measure_stages(business: Business) -> list[Stage]:
    """Time every step alone: the best of several rounds, so that other work on the machine counts little."""
    frame = LineFrame(1, 1, 0, _ulaw(FRAME_MS))
    pcm24k = np.zeros(24_000 * 200 // 1_000, "<i2").tobytes()
    message = _media_message(frame)
    delta = msgspec.json.encode(
        {
            "type": "response.output_audio.delta",
            "response_id": "r",
            "delta": base64.b64encode(pcm24k).decode(),
        }
    )
    append = Inbound().frame(frame.ulaw)
    encoder = twilio.Encoder("MZ0")
    pcm8k = ulaw_to_pcm16(frame.ulaw)
    return [
        _stage("frame: read message", 50, lambda: _each(twilio.decode, message)),
        _stage("frame: arrivals", 50, lambda: _arrivals(frame)),
        _stage("frame: tape", 50, lambda: _tape(frame.ulaw)),
        _stage("frame: µ-law to PCM16", 50, lambda: _each(ulaw_to_pcm16, frame.ulaw)),
        _stage("frame: concealer (nothing missing)", 50, lambda: _each(Concealer().good, pcm8k)),
        _stage("frame: 8 → 24 kHz", 50, lambda: _each(Upsampler().feed, pcm8k)),
        _stage("frame: write append", 50, lambda: _each(encode_append, append)),
        _stage("frame: all of the core", 50, lambda: _core_frames(business, frame)),
        _stage("tick: all of the core", 50, lambda: _core_ticks(business)),
        _stage("delta of 200 ms: read event", 5, lambda: _each(realtime_in.decode, delta)),
        _stage("delta of 200 ms: 24 → 8 kHz, µ-law", 5, lambda: _each(Outbound().feed, pcm24k)),
        _stage("playback: a frame out", 50, _playback),
        _stage("media: write message", 50, lambda: _each(encoder.encode, SendMedia(frame.ulaw))),
    ]


def _stage(name: str, per_s: float, work: Callable[[], int]) -> Stage:
    best_s = float("inf")
    for _ in range(ROUNDS):
        begin_s = process_time()
        times = work()
        best_s = min(best_s, (process_time() - begin_s) / times)
    return Stage(name, best_s * 1e6, per_s)


def _each(step: Callable[..., object], value: object) -> int:
    for _ in range(FRAMES):
        step(value)
    return FRAMES


def _ulaw(duration_ms: int) -> bytes:
    sound = np.random.default_rng(1).normal(0, 2_000, 8 * duration_ms)
    return pcm16_to_ulaw(np.rint(sound).astype("<i2").tobytes())


def _media_message(frame: LineFrame) -> str:
    payload = base64.b64encode(frame.ulaw).decode()
    media = {"track": "inbound", "chunk": "7", "timestamp": "140", "payload": payload}
    message = {"event": "media", "sequenceNumber": "8", "media": media, "streamSid": "MZ" + "0" * 32}
    return msgspec.json.encode(message).decode()


def _frames(like: LineFrame) -> list[LineFrame]:
    return [replace(like, sequence=no + 2, chunk=no + 1, timestamp_ms=no * FRAME_MS) for no in range(FRAMES)]


def _arrivals(like: LineFrame) -> int:
    arrivals = Arrivals()
    for no, frame in enumerate(_frames(like)):
        arrivals.receive(frame, no * FRAME_MS)
    return FRAMES


def _tape(ulaw: bytes) -> int:
    tape = InputTape()
    for _ in range(FRAMES):
        tape.append(ulaw, 0)
    return FRAMES


def _core(business: Business) -> CallCore:
    core = CallCore(CallSetup("CA0", business, engine.start(business), ""), 0.0)
    core.receive(ModelReady("sess"), 0.0)
    return core


def _core_frames(business: Business, like: LineFrame) -> int:
    core = _core(business)
    for no, frame in enumerate(_frames(like)):
        core.receive(frame, no % 300 * FRAME_MS)
    return FRAMES


def _core_ticks(business: Business) -> int:
    core = _core(business)
    for no in range(FRAMES):
        core.next_deadline(float(no))
        core.receive(Tick(), float(no))
    return FRAMES


def _playback() -> int:
    playback = Playback()
    playback.start(0.0)
    playback.queue("item", _ulaw(FRAME_MS) * FRAMES)
    for no in range(FRAMES):
        playback.next_deadline(no * FRAME_MS)
        playback.tick(no * FRAME_MS)
    return FRAMES
