"""A plain model of Twilio's playout: plays what it is sent in real time, one byte an eighth of a millisecond."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from ivr.core.commands import SendClear, SendMark, SendMedia


@dataclass
class LineModel:
    """`there_ms` is the way to Twilio, `back_ms` the way back, each up to `jitter_ms` longer; both keep the order.

    One mark in `lost_marks`, if any, never comes back. Time only moves by `advance`.
    """

    there_ms: int = 0
    back_ms: int = 0
    jitter_ms: int = 0
    lost_marks: int = 0
    seed: int = 0
    now_ms: int = 0
    played: bytearray = field(default_factory=bytearray)
    sent: bytearray = field(default_factory=bytearray)
    clears: int = 0
    payload_sizes: list[int] = field(default_factory=list)
    _under_way: list[tuple[int, SendMedia | SendMark | SendClear]] = field(default_factory=list)
    _buffer: list[bytes | SendMark] = field(default_factory=list)
    _echoes: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def send(self, commands: Sequence[SendMedia | SendMark | SendClear]) -> None:
        for command in commands:
            latest_ms = self._under_way[-1][0] if self._under_way else 0
            self._under_way.append((max(latest_ms, self.now_ms + self._way(self.there_ms)), command))
            if isinstance(command, SendMedia):
                self.sent += command.ulaw
                self.payload_sizes.append(len(command.ulaw))
            if isinstance(command, SendClear):
                self.clears += 1

    def advance(self, duration_ms: int) -> list[str]:
        """Move time; returns the names of the marks that arrived back."""
        for _ in range(duration_ms):
            self._take_in()
            self._play_one_ms()
            self.now_ms += 1
        arrived = [name for at, name in self._echoes if at <= self.now_ms]
        self._echoes = [(at, name) for at, name in self._echoes if at > self.now_ms]
        return arrived

    def buffered_bytes(self) -> int:
        return sum(len(entry) for entry in self._buffer if isinstance(entry, bytes))

    def _take_in(self) -> None:
        while self._under_way and self._under_way[0][0] <= self.now_ms:
            command = self._under_way.pop(0)[1]
            if isinstance(command, SendMedia):
                self._buffer.append(command.ulaw)
            elif isinstance(command, SendMark):
                self._buffer.append(command)
            else:
                self._echo(*(entry for entry in self._buffer if isinstance(entry, SendMark)))
                self._buffer = []
        self._echo_played()

    def _play_one_ms(self) -> None:
        want = 8
        while want and self._buffer:
            head = self._buffer.pop(0)
            if isinstance(head, SendMark):
                self._echo(head)
                continue
            self.played += head[:want]
            if head[want:]:
                self._buffer.insert(0, head[want:])
            want -= len(head[:want])
        self._echo_played()

    def _echo_played(self) -> None:
        while self._buffer and isinstance(self._buffer[0], SendMark):
            head = self._buffer.pop(0)
            assert isinstance(head, SendMark)
            self._echo(head)

    def _echo(self, *marks: SendMark) -> None:
        for mark in marks:
            latest_ms = self._echoes[-1][0] if self._echoes else 0
            if not self.lost_marks or self._chance.randrange(self.lost_marks):
                at_ms = max(latest_ms, self.now_ms + 1 + self._way(self.back_ms))
                self._echoes.append((at_ms, mark.name))

    def _way(self, way_ms: int) -> int:
        return way_ms + self._chance.randint(0, self.jitter_ms)
