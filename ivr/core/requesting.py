"""The one reply that is asked for: its id, its signs of life, and how often asking has failed."""

from collections.abc import Sequence

from ivr.core.asking import Asking
from ivr.core.commands import CancelReply, Command
from ivr.core.deadlines import Deadline, Deadlines
from ivr.core.records import FinishedExchange, OwnWords, SpokenReply, Turn
from ivr.core.setup import CallSetup


class Requesting:
    """At most one reply is under way at the provider: `reply_id`, empty when there is none."""

    def __init__(self, setup: CallSetup, asking: Asking, deadlines: Deadlines) -> None:
        self._prefix = f"r{setup.exchange_no}"
        self._tuning = setup.tuning
        self._asking = asking
        self._deadlines = deadlines
        self._count = 0
        self._failures = 0
        self.reply_id = ""

    def ask(
        self, what: OwnWords | Turn | None, recent: Sequence[FinishedExchange], now_ms: float
    ) -> tuple[SpokenReply, list[Command]]:
        """Ask for our own words, or for the answer to a turn. No id was used before in this stream of the call."""
        assert what is not None, "the reply machine asks for an answer only to a turn"
        self._count += 1
        self.reply_id = f"{self._prefix}-{self._count}"
        self._await_more(now_ms)
        if isinstance(what, OwnWords):
            reply, order = self._asking.own_words(self.reply_id, what)
            return reply, [order]
        matched = self._asking.match_speed() if what.rounds == 0 else []
        reply, order = self._asking.answer(self.reply_id, what, recent, now_ms)
        return reply, [*matched, order]

    def is_alive(self, reply_id: str, now_ms: float) -> bool:
        """Whether an event's reply is the one under way; then this is a sign of life."""
        if not self.reply_id or reply_id != self.reply_id:
            return False
        self._await_more(now_ms)
        return True

    def end(self) -> None:
        """Nothing more comes of it."""
        self.reply_id = ""
        self._deadlines.clear(Deadline.ANSWER)

    def cancel(self) -> list[CancelReply]:
        """It is not wanted any more, nor asked for again."""
        orders = [CancelReply(self.reply_id)] if self.reply_id else []
        self._deadlines.clear(Deadline.RETRY)
        self.end()
        return orders

    def succeeded(self) -> None:
        """Failures count in a row."""
        self._failures = 0

    def failed(self, now_ms: float) -> bool:
        """It failed. Returns whether it may be asked for again, later."""
        self._failures += 1
        if self._failures > self._tuning.max_failures:
            return False
        self._deadlines.set(Deadline.RETRY, now_ms + self._tuning.retry_ms * self._failures)
        return True

    def retry_soon(self, now_ms: float) -> None:
        """Ask again after the shortest pause, without counting a failure."""
        self._deadlines.set(Deadline.RETRY, now_ms + self._tuning.retry_ms)

    def hold_back(self) -> None:
        """Something else is said before it is asked for again."""
        self._deadlines.clear(Deadline.RETRY)

    def _await_more(self, now_ms: float) -> None:
        self._deadlines.set(Deadline.ANSWER, now_ms + self._tuning.answer_wait_ms)
