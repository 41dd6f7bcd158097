"""Many phones at once: frames as Twilio sends them, on absolute deadlines; marks come back when they were played."""

import asyncio
import base64
import bisect
import json
from array import array
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import monotonic

import msgspec
import numpy as np

from ivr.audio.g711 import pcm16_to_ulaw
from ivr.bench.websocket import WebSocketEnd, open_socket

FRAME_S = 0.02
SLOT_S = 0.001
"""Calls begin their frames on this grid: the event loop's clock is no finer."""
_FRAME_BYTES = 160


@dataclass(frozen=True, slots=True)
class Address:
    """Where a phone's stream goes, and what its `start` carries."""

    url: str
    headers: dict[str, str]
    parameters: dict[str, str]
    account_sid: str = "AC" + "0" * 32


Dial = Callable[[str], Awaitable[Address]]
"""Place a call by CallSid: what the webhook's TwiML says, or simply the bridge's address."""


class _Media(msgspec.Struct):
    payload: str = ""


class _Mark(msgspec.Struct):
    name: str = ""


class _Message(msgspec.Struct):
    event: str
    media: _Media = msgspec.field(default_factory=_Media)
    mark: _Mark = msgspec.field(default_factory=_Mark)


_decode = msgspec.json.Decoder(_Message).decode


def _payloads() -> list[str]:
    """A second of speech-like sound in frames: harmonics with a syllable's rise and fall, never pure silence."""
    at = np.arange(8_000) / 8_000
    voice = sum(np.sin(2 * np.pi * 140 * no * at) / no for no in range(1, 12))
    noise = np.random.default_rng(1).normal(0, 60, 8_000)
    sound = 2_500 * voice * np.sin(np.pi * 4 * at) ** 2 + noise
    ulaw = pcm16_to_ulaw(np.rint(sound).astype("<i2").tobytes())
    frames = (ulaw[at : at + _FRAME_BYTES] for at in range(0, len(ulaw), _FRAME_BYTES))
    return [base64.b64encode(frame).decode() for frame in frames]


_PAYLOADS = _payloads()


class Phone:
    """One call. `sent_s[k]` is when frame k went out, `came_s` when each media message came (monotonic seconds)."""

    def __init__(self, no: int, call_sid: str) -> None:
        self.call_sid = call_sid
        self.sent_s = array("d")
        self.came_s = array("d")
        self.starts_s = 0.0
        self._no = no
        self._end: WebSocketEnd | None = None
        self._stream_sid = f"MZ{no:032x}"
        self._head = f'","streamSid":"{self._stream_sid}","media":{{"track":"inbound","chunk":"'
        self._playing_until_s = 0.0
        self._marks: dict[str, asyncio.TimerHandle] = {}
        self._sequence = 1
        self._account_sid = ""

    async def open(self, address: Address) -> None:
        """Connect and start the stream. Raises: `OSError`, `PeerError`."""
        self._account_sid = address.account_sid
        self._end = await open_socket(address.url, self._receive, address.headers)
        self._end.send(b'{"event":"connected","protocol":"Call","version":"1.0.0"}')
        start = {
            "streamSid": self._stream_sid,
            "accountSid": self._account_sid,
            "callSid": self.call_sid,
            "tracks": ["inbound"],
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8_000, "channels": 1},
            "customParameters": address.parameters,
        }
        message = {
            "event": "start",
            "sequenceNumber": "1",
            "streamSid": self._stream_sid,
            "start": start,
        }
        self._end.send(json.dumps(message).encode())

    @property
    def is_up(self) -> bool:
        """The stream is open."""
        return self._end is not None and self._end.is_open

    def send_frame(self) -> None:
        """The next 20 ms."""
        if self._end is None:
            return
        no = len(self.sent_s)
        self._sequence += 1
        message = (
            f'{{"event":"media","sequenceNumber":"{self._sequence}{self._head}{no + 1}","timestamp":"{no * 20}",'
            f'"payload":"{_PAYLOADS[no % len(_PAYLOADS)]}"}}}}'
        ).encode()
        self.sent_s.append(monotonic())
        self._end.send(message)

    async def hang_up(self) -> None:
        """Stop the stream and wait until the socket is closed."""
        if self._end is None:
            return
        stop = {"accountSid": self._account_sid, "callSid": self.call_sid}
        message = {"event": "stop", "sequenceNumber": "0", "streamSid": self._stream_sid, "stop": stop}
        self._end.send(json.dumps(message).encode())
        for timer in self._marks.values():
            timer.cancel()
        try:
            async with asyncio.timeout(5):
                await asyncio.shield(self._end.closed)
        except TimeoutError:
            self._end.close()

    def _receive(self, _: WebSocketEnd, payload: bytes) -> None:
        message = _decode(payload)
        now_s = monotonic()
        if message.event == "media":
            self.came_s.append(now_s)
            played_s = len(message.media.payload) * 3 / 4 / 8_000
            self._playing_until_s = max(self._playing_until_s, now_s) + played_s
        elif message.event == "mark":
            wait_s = max(0.0, self._playing_until_s - now_s)
            loop = asyncio.get_running_loop()
            self._marks[message.mark.name] = loop.call_later(wait_s, self._echo, message.mark.name)
        elif message.event == "clear":
            self._playing_until_s = now_s
            for name, timer in tuple(self._marks.items()):
                timer.cancel()
                self._echo(name)

    def _echo(self, name: str) -> None:
        self._marks.pop(name, None)
        if self._end is not None:
            self._sequence += 1
            mark = {"event": "mark", "sequenceNumber": str(self._sequence), "streamSid": self._stream_sid}
            self._end.send(json.dumps({**mark, "mark": {"name": name}}).encode())


class Exchange:
    """Places calls one after another and keeps all of them talking from one loop."""

    def __init__(self, dial: Dial, stagger_s: float, calls: int) -> None:
        self.phones: list[Phone] = []
        self._dial = dial
        self._stagger_s = stagger_s
        self._calls = calls
        self.late_s = array("d")
        """How late each frame was sent: the phones' own fault, or the machine's."""
        self._due: list[tuple[float, int]] = []
        self._talking: asyncio.Task[None] | None = None

    async def start(self, tag: str) -> None:
        """Place all calls, `stagger_s` apart, so that the turns of different calls do not coincide.

        Frames of different calls are spread evenly over the 20 ms. Raises: `OSError`, `PeerError`.
        """
        began_s = monotonic()
        self._talking = asyncio.create_task(self._talk())
        for no in range(self._calls):
            await asyncio.sleep(max(0.0, began_s + no * self._stagger_s - monotonic()))
            phone = Phone(no, f"CA{tag}{no:0{32 - len(tag)}x}")
            await phone.open(await self._dial(phone.call_sid))
            phone.starts_s = monotonic()
            self.phones.append(phone)
            slot_s = int(no / self._calls * FRAME_S / SLOT_S) * SLOT_S
            first_s = (int(monotonic() / FRAME_S) + 1) * FRAME_S + slot_s
            bisect.insort(self._due, (first_s, no))
            if self._talking.done():
                break
        if self._talking.done():
            self._talking.result()

    async def stop(self) -> None:
        """Hang up everywhere."""
        if self._talking is not None:
            self._talking.cancel()
        await asyncio.gather(*(phone.hang_up() for phone in self.phones))

    def dead(self) -> Sequence[str]:
        """Calls whose stream is gone."""
        return [phone.call_sid for phone in self.phones if not phone.is_up]

    async def _talk(self) -> None:
        """Send each frame at its own absolute time; one that is late does not move the next."""
        while True:
            now_s = monotonic()
            while self._due and self._due[0][0] <= now_s:
                due_s, no = self._due.pop(0)
                self.phones[no].send_frame()
                self.late_s.append(monotonic() - due_s)
                bisect.insort(self._due, (due_s + FRAME_S, no))
            wait_s = self._due[0][0] - monotonic() if self._due else FRAME_S
            await asyncio.sleep(max(SLOT_S, wait_s))  # less, and uvloop would spin
