"""How many streams a call had, carried in the query of our own continue URL, which Twilio's signature covers."""

from collections.abc import Mapping
from dataclasses import dataclass

SHORT_S = 5
"""A stream that is back so soon after it was asked for did nobody any good."""
SHORT_IN_A_ROW = 3
"""So many of them, and there is no use in another one."""
_MAX_DIGITS = 12


@dataclass(frozen=True, slots=True)
class StreamCount:
    """`asked_at`: when the last one was asked for, Unix time in s; 0: none was, or somebody only waited."""

    before: int = 0
    short: int = 0
    asked_at: int = 0

    @staticmethod
    def of(query: Mapping[str, str]) -> "StreamCount":
        """What a continue URL says; 0 for whatever cannot be read."""
        return StreamCount(*(_number(query.get(name, "")) for name in ("n", "s", "t")))

    def over(self, now: float) -> "StreamCount":
        """The last stream is over."""
        if not self.asked_at:
            return self
        short = self.short + 1 if now - self.asked_at < SHORT_S else 0
        return StreamCount(self.before, short)

    def next(self, now: float) -> "StreamCount":
        """One more is asked for."""
        return StreamCount(self.before + 1, self.short, int(now))

    def is_hopeless(self, most: int) -> bool:
        """Whether another stream would do no good: too many in all, or too many short ones in a row."""
        return self.before >= most or self.short >= SHORT_IN_A_ROW

    def query(self) -> str:
        """As the continue URL carries it."""
        rest = f"&s={self.short}&t={self.asked_at}" if self.short or self.asked_at else ""
        return f"n={self.before}{rest}"


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and text.isascii() and len(text) <= _MAX_DIGITS else 0
