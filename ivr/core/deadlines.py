"""Named deadlines of one call, in simulated or real ms: the core says when to wake it, and never sleeps."""

from enum import StrEnum


class Deadline(StrEnum):
    """What is waited for."""

    WORDS = "words"
    """The turn's transcript; then the best partial serves."""
    WINDOW = "window"
    """The recall; then the reply is asked for without one."""
    ANSWER = "answer"
    """A sign of life of the reply that was asked for; then it counts as failed."""
    HELD = "held"
    """Whether speech over our reply was speech."""
    RETRY = "retry"
    """Asking again after a failed reply."""
    RECONSIDER = "reconsider"
    """A boundary that is held for provisional: soft."""
    OVERDUE = "overdue"
    """The same: hard."""
    RESTORE = "restore"
    """A raised D_VAD may be normal again, if the line has been healthy."""
    PAGE = "page"
    """Transcripts of finished exchanges; then they are kept with a placeholder."""
    PLAYED = "played"
    """A reply's last mark; a hang-up or transfer waits for it, but not for ever."""
    LEAVING = "leaving"
    """The line is gone: the last transcripts."""
    KEYS = "keys"
    """The next key of an entry."""
    SILENCE = "silence"
    """The caller says nothing."""
    LIMIT = "limit"
    """The longest call the business allows."""


class Deadlines:
    """At most one time per name."""

    def __init__(self) -> None:
        self._at_ms: dict[Deadline, float] = {}

    def set(self, name: Deadline, at_ms: float) -> None:
        """Set or move a deadline."""
        self._at_ms[name] = at_ms

    def clear(self, *names: Deadline) -> None:
        """Forget deadlines; not having one is fine."""
        for name in names:
            self._at_ms.pop(name, None)

    def has(self, name: Deadline) -> bool:
        """Whether it is set."""
        return name in self._at_ms

    def take_due(self, now_ms: float) -> Deadline | None:
        """The earliest that has passed, which is forgotten. One at a time: it may clear the next."""
        at_ms, name = min(((at, name) for name, at in self._at_ms.items()), default=(now_ms + 1, None))
        if name is None or at_ms > now_ms:
            return None
        del self._at_ms[name]
        return name

    def at_ms(self, name: Deadline) -> float | None:
        """When it is, or `None` if it is not set."""
        return self._at_ms.get(name)

    def next_ms(self) -> float | None:
        """The earliest, or `None`."""
        return min(self._at_ms.values(), default=None)
