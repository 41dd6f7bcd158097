"""What is kept of the call as it goes: finished exchanges with what was heard of them, and where the call stands."""

from collections.abc import Sequence

from ivr.core.asking import Asking
from ivr.core.commands import Command, CommitExchange, ForgetItem, SaveSnapshot
from ivr.core.deadlines import Deadline, Deadlines
from ivr.core.heard import Heard
from ivr.core.hearing import Hearing
from ivr.core.pages import Pages
from ivr.core.records import FinishedExchange, ReplyKind, SpokenReply, Turn
from ivr.core.saying import Saying
from ivr.core.setup import CallSetup, snapshot_of

NOTHING_HEARD = Heard("", b"", whole=False)


class Keeping:
    """Closes exchanges. Methods answer the commands that are to be carried out for it."""

    def __init__(
        self, setup: CallSetup, hearing: Hearing, asking: Asking, saying: Saying, deadlines: Deadlines
    ) -> None:
        self._page_wait_ms = setup.tuning.page_wait_ms
        self._hearing = hearing
        self._asking = asking
        self._saying = saying
        self._deadlines = deadlines
        self._pages = Pages(setup.call_id, setup.exchange_no)

    @property
    def recent(self) -> Sequence[FinishedExchange]:
        """The last exchanges, for the context: their pages may not have been seen by a recall yet."""
        return tuple(self._pages.recent)

    def close_exchange(self, turn: Turn | None, now_ms: float) -> list[Command]:
        """What was heard is what was said (B048); a prompt of ours is no exchange."""
        self._deadlines.clear(Deadline.PLAYED)
        self._saying.ended_at_ms = now_ms
        reply = self._saying.reply
        heard = self._saying.end() if reply is not None else NOTHING_HEARD
        orders: list[Command] = []
        if reply is not None and reply.kind is ReplyKind.OPENING:
            self._asking.opening_text = heard.text
            orders.append(self.snapshot())
        if turn is not None:
            orders += self._keep(turn, heard, reply, now_ms)
        return orders

    def keep_rest(self, answering: Turn | None, now_ms: float) -> list[Command]:
        """The heard part of the reply under way, and words that nobody has answered yet."""
        self._hearing.cut_short()
        orders: list[Command] = []
        if answering is not None or self._saying.reply is not None:
            orders += self.close_exchange(answering, now_ms)
        if self._hearing.open.items and not self._hearing.open.is_empty():
            orders += self._keep(self._hearing.take(), NOTHING_HEARD, None, now_ms)
        return orders

    def keep_unanswered(self, turn: Turn, now_ms: float) -> list[Command]:
        """A turn whose answer was never heard, and will not be given again."""
        return self._keep(turn, NOTHING_HEARD, None, now_ms)

    def take_ready(self, *, at_once: bool = False) -> list[CommitExchange]:
        """Pages whose words are known; all of them when there is no more waiting."""
        return self._pages.take_ready(at_once=at_once)

    def is_waiting(self) -> bool:
        """Some page's words are still awaited."""
        return self._pages.is_waiting()

    def snapshot(self) -> SaveSnapshot:
        """The state that another worker needs."""
        asking = self._asking
        return SaveSnapshot(
            snapshot_of(
                asking.flow,
                self._pages.next_no,
                asking.delivery.state(),
                asking.asked_silence_ms,
                resumed=asking.resumed,
            )
        )

    def _keep(self, turn: Turn, heard: Heard, reply: SpokenReply | None, now_ms: float) -> list[Command]:
        latency = turn.latency(reply.first_audio_at_ms if reply else None)
        report = self._pages.add(turn, heard, self._asking.flow.node, self._asking.language, latency)
        orders: list[Command] = [report, *self.take_ready()]
        if self.is_waiting():
            self._deadlines.set(Deadline.PAGE, now_ms + self._page_wait_ms)
        orders += [ForgetItem(item) for item in self._hearing.answered(turn)]
        orders.append(self.snapshot())
        return orders
