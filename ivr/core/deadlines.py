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
    ROLLOVER = "rollover"
    """The provider will end the session: it is changed at the next quiet moment."""
    OUTAGE = "outage"
    """A session; then there is none to be had."""
    AGAIN = "again"
    """Speech in what a new session was told again; then the caller is asked to say it again."""
    LIMIT = "limit"
    """The longest call the business allows."""


_NEVER = float("inf")


class Deadlines:
    """At most one time per name."""

    def __init__(self) -> None:
        self._at_ms: dict[Deadline, float] = {}
        self._next_ms = _NEVER

    def set(self, name: Deadline, at_ms: float) -> None:
        """Set or move a deadline."""
        self._at_ms[name] = at_ms
        self._look()

    def clear(self, *names: Deadline) -> None:
        """Forget deadlines; not having one is fine."""
        for name in names:
            if self._at_ms.pop(name, None) is not None:
                self._look()

    def has(self, name: Deadline) -> bool:
        """Whether it is set."""
        return name in self._at_ms

    def take_due(self, now_ms: float) -> Deadline | None:
        """The earliest that has passed, which is forgotten. One at a time: it may clear the next."""
        if now_ms < self._next_ms or not self._at_ms:
            return None
        _, name = min((at_ms, name) for name, at_ms in self._at_ms.items())
        self.clear(name)
        return name

    def at_ms(self, name: Deadline) -> float | None:
        """When it is, or `None` if it is not set."""
        return self._at_ms.get(name)

    def next_ms(self) -> float | None:
        """The earliest, or `None`."""
        return self._next_ms if self._at_ms else None

    def _look(self) -> None:
        # Kept, because it is asked for with every frame and changes with few.
        self._next_ms = min(self._at_ms.values(), default=_NEVER)
