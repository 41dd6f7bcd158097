"""The end of a call, or of our part in it: once, with everything that was said kept first."""

from ivr.core.asking import Asking
from ivr.core.commands import Command, EndCall, EndReason, LeaveCall, TransferCall
from ivr.core.deadlines import Deadline, Deadlines
from ivr.core.keeping import Keeping
from ivr.core.records import Ending, SpokenReply, Turn
from memory.model import EndedBy

LAST_WORDS_MS = 1_500
"""How long transcripts are awaited once the line is gone."""


class Leaving:
    """Decides the one farewell of a call. Methods answer the commands that are to be carried out for it."""

    def __init__(self, keeping: Keeping, asking: Asking, deadlines: Deadlines) -> None:
        self._keeping = keeping
        self._asking = asking
        self._deadlines = deadlines
        self._farewell: Command | None = None
        self.is_over = False

    def end(self, ending: Ending, answering: Turn | None, now_ms: float) -> list[Command]:
        """End the call: pages first, then the state, then the line."""
        if self.is_over:
            return []
        self.is_over = True
        orders = self._keeping.keep_rest(answering, now_ms)
        orders += self._keeping.take_ready(at_once=True)
        if ending.flow is not None:
            self._asking.flow = ending.flow
        orders.append(self._keeping.snapshot(is_last=True))
        if ending.reason is EndReason.TRANSFERRED:
            orders.append(TransferCall(ending.target, ending.number, ending.flow))
        say = ending.say if ending.reason is EndReason.FAILED else ""
        by = EndedBy.MODEL if ending.reason is EndReason.FAILED else EndedBy.US
        orders.append(EndCall(ending.reason, say, by))
        return orders

    def line_gone(
        self, reply: SpokenReply | None, answering: Turn | None, now_ms: float, *, by: EndedBy | None
    ) -> list[Command]:
        """The stream is over. `by` whom the call is, too; `None`: it may come back through the continue URL."""
        if self.is_over:
            return []
        self.is_over = True
        self._farewell = LeaveCall() if by is None else EndCall(self._reason_of_hanging_up(reply), by=by)
        orders = self._keeping.keep_rest(answering, now_ms)
        self._deadlines.set(Deadline.LEAVING, now_ms + LAST_WORDS_MS)
        return orders

    def settled(self) -> list[Command]:
        """Once the last words are there, nothing keeps us."""
        return [] if self._farewell is None or self._keeping.is_waiting() else self.leave()

    def leave(self) -> list[Command]:
        """Go, whatever has not come yet."""
        self._deadlines.clear(Deadline.LEAVING)
        farewell, self._farewell = self._farewell, None
        if farewell is None:
            return []
        is_last = isinstance(farewell, EndCall)
        return [*self._keeping.take_ready(at_once=True), self._keeping.snapshot(is_last=is_last), farewell]

    def _reason_of_hanging_up(self, reply: SpokenReply | None) -> EndReason:
        """Who hangs up during our goodbye has finished; before a transfer was made, has not."""
        ending = reply.ending if reply is not None and reply.first_audio_at_ms is not None else None
        if ending is None or ending.reason is not EndReason.FINISHED:
            return EndReason.DROPPED
        if ending.flow is not None:
            self._asking.flow = ending.flow
        return EndReason.FINISHED
