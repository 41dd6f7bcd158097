"""Between a turn's end and the question to the model: the turn's words are awaited, then its window."""

from ivr.core.commands import Recall
from ivr.core.deadlines import Deadline, Deadlines
from ivr.core.hearing import Hearing
from ivr.core.setup import Tuning
from memory.model import Window


class Gathering:
    """Gathers for the open turn. Both waits have an end: late words, or a late window, are done without."""

    def __init__(self, hearing: Hearing, deadlines: Deadlines, tuning: Tuning) -> None:
        self._hearing = hearing
        self._deadlines = deadlines
        self._tuning = tuning

    def go_on(self, now_ms: float) -> list[Recall]:
        """Recall once the words are known; one recall a turn."""
        turn = self._hearing.open
        if turn.has_all_words():
            return self.recall(now_ms)
        if not self._deadlines.has(Deadline.WINDOW):
            self._deadlines.set(Deadline.WORDS, turn.closed_at_ms + self._tuning.transcript_wait_ms)
        return []

    def recall(self, now_ms: float) -> list[Recall]:
        """Recall with the best words there are."""
        self._deadlines.clear(Deadline.WORDS)
        if self._deadlines.has(Deadline.WINDOW):
            return []
        self._deadlines.set(Deadline.WINDOW, now_ms + self._tuning.window_wait_ms)
        turn, live = self._hearing.open, tuple(sorted(self._hearing.live_items))
        turn.words_at_ms = now_ms
        return [Recall(turn.no, turn.text(), live)]

    def take_window(self, turn_no: int, window: Window, now_ms: float) -> bool:
        """Whether this is the window waited for; one for a turn that went on is out of date."""
        turn = self._hearing.open
        if turn.no != turn_no or not self._deadlines.has(Deadline.WINDOW):
            return False
        turn.window, turn.window_at_ms = window, now_ms
        self._deadlines.clear(Deadline.WINDOW)
        return True

    def stop(self) -> None:
        """There is nothing to wait for any more."""
        self._deadlines.clear(Deadline.WORDS, Deadline.WINDOW)
