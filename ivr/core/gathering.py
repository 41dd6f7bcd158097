"""Between a turn and the question to the model: its words are awaited, then its window; both early, if they come.

Where partial words come while the caller still speaks, the recall begins on them. At the turn's end only what they
lacked is recalled, and only as long as words may be waited for; then the window of the last query serves.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ivr.core.commands import Recall
from ivr.core.deadlines import Deadline, Deadlines
from ivr.core.hearing import Hearing
from ivr.core.records import Turn
from ivr.core.setup import Tuning
from memory.model import Access, Window

EARLY_CHARS = 12
"""With so much more than the last query had, about three words, another one may find something else."""


@dataclass(slots=True)
class _Early:
    """What was asked, and found, for turn `turn_no` so far."""

    turn_no: int = 0
    asked: str | None = None
    """The query whose window is awaited."""
    query: str = ""
    window: Window | None = None
    """Found by `query`."""


class Gathering:
    """Gathers for the open turn. Both waits have an end: late words, or a late window, are done without."""

    def __init__(
        self, hearing: Hearing, deadlines: Deadlines, tuning: Tuning, access: Callable[[], Access]
    ) -> None:
        """`access`: what the caller's past may be recalled of, now."""
        self._hearing = hearing
        self._deadlines = deadlines
        self._tuning = tuning
        self._access = access
        self._early = _Early()

    def early(self, now_ms: float) -> list[Recall]:
        """While the open turn is still being spoken: recall with the words there are, one query at a time."""
        turn = self._hearing.open
        known, text = self._of(turn), turn.text()
        if turn.closed or known.asked is not None or len(text) < len(known.query) + EARLY_CHARS:
            return []
        return [self._query(turn, text)]

    def go_on(self, now_ms: float) -> list[Recall]:
        """The turn is closed: recall once the words are known."""
        turn = self._hearing.open
        if turn.window is not None:
            return []
        if turn.has_all_words():
            return self.recall(now_ms)
        if not self._deadlines.has(Deadline.WINDOW):
            self._deadlines.set(Deadline.WORDS, self._latest_ms(turn))
        return []

    def recall(self, now_ms: float) -> list[Recall]:
        """Recall with the best words there are, unless just that is known or awaited already."""
        self._deadlines.clear(Deadline.WORDS)
        if self._deadlines.has(Deadline.WINDOW):
            return []
        turn = self._hearing.open
        known, text = self._of(turn), turn.text()
        turn.words_at_ms = now_ms
        if known.window is not None and known.query == text:
            turn.window, turn.window_at_ms = known.window, now_ms
            return []
        if known.window is None:
            self._deadlines.set(Deadline.WINDOW, now_ms + self._tuning.window_wait_ms)
        else:
            self._deadlines.set(Deadline.WINDOW, max(now_ms, self._latest_ms(turn)))
        return [] if known.asked == text else [self._query(turn, text)]

    def take_window(self, turn_no: int, query: str | None, window: Window, now_ms: float) -> None:
        """A window came, found by `query` (`None`: the last). One for a turn that went on is out of date."""
        turn = self._hearing.open
        if turn.no != turn_no:
            return
        known = self._of(turn)
        is_last = query is None or query == known.asked
        if is_last:
            query, known.asked = known.asked, None
        if known.window is None or is_last:
            known.query, known.window = query or "", window
        if not self._deadlines.has(Deadline.WINDOW):
            return
        if is_last:
            self._settle(turn, now_ms)
        else:  # the window of fewer words: it will do if that of all of them is late
            self._deadlines.set(Deadline.WINDOW, max(now_ms, self._latest_ms(turn)))

    def give_up(self, now_ms: float) -> None:
        """The window is late: that of the last query serves, or none."""
        self._settle(self._hearing.open, now_ms)

    def stop(self) -> None:
        """There is nothing to wait for any more."""
        self._deadlines.clear(Deadline.WORDS, Deadline.WINDOW)
        self._early = _Early()

    def _settle(self, turn: Turn, now_ms: float) -> None:
        self._deadlines.clear(Deadline.WINDOW)
        turn.window, turn.window_at_ms = self._of(turn).window or Window(), now_ms

    def _query(self, turn: Turn, text: str) -> Recall:
        self._of(turn).asked = text
        return Recall(turn.no, text, tuple(sorted(self._hearing.live_items)), self._access())

    def _of(self, turn: Turn) -> _Early:
        if self._early.turn_no != turn.no:
            self._early = _Early(turn.no)
        return self._early

    def _latest_ms(self, turn: Turn) -> float:
        """Until then a reply may be late because of words."""
        return turn.closed_at_ms + self._tuning.transcript_wait_ms
