"""The way from the caller's handset to the telephone company: frames get lost or late, in recorded patterns.

Pure. Behaviour marked *(inferred)* is not documented by Twilio.
"""

import random
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from ivr.phone.line import FRAME_MS


@dataclass(frozen=True)
class Network:
    """How the caller's frames fare. Traces have one entry per 20 ms frame and repeat for ever.

    lost: True where a frame never arrives; the timestamps of the stream jump over it *(inferred)*.
    delay_ms: how late each frame is; the hop to the service is TCP, so a late frame holds up those behind it.
    numbered_gaps: whether the telephone company counts frames it never got in `chunk` and `sequenceNumber`
        *(inferred; both ways are seen as possible, so both can be simulated)*.
    first_timestamp_ms: of a stream's first frame; recorded streams begin between 135 and 171, not at 0.
    """

    lost: tuple[bool, ...] = ()
    delay_ms: tuple[int, ...] = ()
    numbered_gaps: bool = False
    first_timestamp_ms: int = 135

    def loses(self, index: int) -> bool:
        """Whether the call's frame `index` is lost."""
        return bool(self.lost) and self.lost[index % len(self.lost)]

    def delay_of(self, index: int) -> int:
        """How late the call's frame `index` is, in ms."""
        return self.delay_ms[index % len(self.delay_ms)] if self.delay_ms else 0


def load_trace(path: Path, *, numbered_gaps: bool = False) -> Network:
    """A network from a trace file, one number a line: delays in ms if the name ends in `.delay_ms.txt`,
    else 0 (arrives) or 1 (lost).

    Raises ValueError naming the file and line where something else stands, or if the file is empty.
    """
    values = _read_numbers(path)
    if path.name.endswith(".delay_ms.txt"):
        return Network(delay_ms=tuple(value for _, value in values), numbered_gaps=numbered_gaps)
    for line, value in values:
        if value not in (0, 1):
            raise ValueError(f"{path}:{line}: {value} is neither 0 (arrives) nor 1 (lost)")
    return Network(lost=tuple(value == 1 for _, value in values), numbered_gaps=numbered_gaps)


def _read_numbers(path: Path) -> list[tuple[int, int]]:
    """(line number, value) of each line that is not blank."""
    numbers: list[tuple[int, int]] = []
    for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not text.strip():
            continue
        if not text.strip().isdecimal():
            raise ValueError(f"{path}:{line}: not a whole number of at least 0")
        numbers.append((line, int(text)))
    if not numbers:
        raise ValueError(f"{path}: an empty trace")
    return numbers


def gilbert_trace(to_bad: float, to_good: float, frames: int, seed: int) -> tuple[bool, ...]:
    """A loss trace of Gilbert's two-state channel: P(good→bad), P(bad→good) per frame, lost while bad."""
    chance = random.Random(seed)  # noqa: S311  (a channel's model, nothing secret)
    bad = False
    trace: list[bool] = []
    for _ in range(frames):
        bad = chance.random() >= to_good if bad else chance.random() < to_bad
        trace.append(bad)
    return tuple(trace)


@dataclass(frozen=True)
class Packet:
    """One frame of the caller. `index` counts the stream's frames from 0; `digit` is "" or one key."""

    index: int
    ulaw: bytes
    digit: str = ""
    lost: bool = False


class Uplink:
    """Takes a frame every 20 ms and gives each out when the network would have delivered it, in order."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._waiting: deque[tuple[int, Packet]] = deque()
        self._last_due_ms = 0
        self._next_index = 0

    def offer(self, call_index: int, ulaw: bytes, digit: str, now_ms: int) -> None:
        """The frame said at `now_ms`; `call_index` is its place in the call, and so in the traces."""
        lost = self._network.loses(call_index)
        packet = Packet(self._next_index, ulaw, digit, lost)
        self._next_index += 1
        # What is lost never arrives, so it holds nothing up.
        due_ms = (
            self._last_due_ms if lost else max(self._last_due_ms, now_ms + self._network.delay_of(call_index))
        )
        self._last_due_ms = due_ms
        self._waiting.append((due_ms, packet))

    def due(self, now_ms: int) -> list[Packet]:
        """Everything that has arrived by `now_ms`, oldest first, the lost ones in their places."""
        arrived: list[Packet] = []
        while self._waiting and self._waiting[0][0] <= now_ms:
            arrived.append(self._waiting.popleft()[1])
        return arrived

    def timestamp_ms(self, packet: Packet) -> int:
        """The packet's `media.timestamp`: ms since the stream began, lost frames counted."""
        return self._network.first_timestamp_ms + packet.index * FRAME_MS
