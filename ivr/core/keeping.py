"""What is kept of the call as it goes: finished exchanges with what was heard of them, and where the call stands."""

from collections.abc import Sequence
from dataclasses import replace

from ivr.core.asking import Asking
from ivr.core.begun import begun, joined
from ivr.core.commands import Command, CommitExchange, ForgetItem, SaveSnapshot
from ivr.core.deadlines import Deadline, Deadlines
from ivr.core.heard import Heard
from ivr.core.hearing import Hearing
from ivr.core.pages import RECENT, UNKEPT, Pages
from ivr.core.records import FinishedExchange, ReplyKind, SpokenReply, Turn
from ivr.core.saying import Saying
from ivr.core.setup import CallSetup, snapshot_of
from ivr.core.standing import Keeps
from memory.model import Exchange

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
        count = UNKEPT if self._asking.standing.keeps is Keeps.NOTHING else RECENT
        return tuple(self._pages.recent)[-count:]

    def close_exchange(self, turn: Turn | None, now_ms: float) -> list[Command]:
        """What was heard is what was said (B048); a prompt of ours is no exchange."""
        self._deadlines.clear(Deadline.PLAYED)
        self._saying.ended_at_ms = now_ms
        reply = self._saying.reply
        heard = self._saying.end() if reply is not None else NOTHING_HEARD
        orders: list[Command] = []
        if reply is not None and reply.kind is ReplyKind.OPENING:
            self._opening_heard(heard.text)
            orders.append(self.snapshot())
        if turn is not None:
            orders += self._keep(turn, heard, reply, now_ms)
        return orders

    def keep_part(self, turn: Turn | None, now_ms: float) -> str:
        """The reply has broken off, and its rest is still to come. Returns what was heard of it."""
        self._deadlines.clear(Deadline.PLAYED)
        self._saying.ended_at_ms = now_ms
        reply = self._saying.reply
        heard = self._saying.end()
        if reply is not None and reply.kind is ReplyKind.OPENING:
            self._opening_heard(heard.text)
        if turn is not None:
            turn.begun = begun(turn.begun, heard, reply.first_audio_at_ms if reply else None)
            turn.may_defer = False
        return heard.text

    def _opening_heard(self, text: str) -> None:
        asking = self._asking
        asking.opening_text = f"{asking.opening_text} {text}".strip()

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
        keeps = self._asking.standing.keeps
        return [
            CommitExchange(discreet(order.exchange, keeps))
            for order in self._pages.take_ready(at_once=at_once)
        ]

    def is_waiting(self) -> bool:
        """Some page's words are still awaited."""
        return self._pages.is_waiting()

    def snapshot(self, *, is_last: bool = False) -> SaveSnapshot:
        """The state that another worker needs. The last one of a call of which nothing is kept tells only its end."""
        asking = self._asking
        flow = asking.flow
        if is_last and asking.standing.keeps is Keeps.NOTHING:
            flow = replace(flow, slots={}, offered=None)
        return SaveSnapshot(
            snapshot_of(
                flow,
                self._pages.next_no,
                asking.delivery.state(),
                asking.asked_silence_ms,
                resumed=asking.resumed,
                standing=asking.standing,
                may_return=asking.may_return(),
            )
        )

    def _keep(self, turn: Turn, heard: Heard, reply: SpokenReply | None, now_ms: float) -> list[Command]:
        audio_at_ms = reply.first_audio_at_ms if reply else None
        latency = turn.latency(turn.begun.audio_at_ms if turn.begun else audio_at_ms)
        heard = joined(turn.begun, heard)
        asking = self._asking
        report = self._pages.add(
            turn, heard, asking.flow.node, asking.language, latency, asking.standing.trust
        )
        asking.next_no = self._pages.next_no
        orders: list[Command] = [report, *self.take_ready()]
        if self.is_waiting():
            self._deadlines.set(Deadline.PAGE, now_ms + self._page_wait_ms)
        orders += [ForgetItem(item) for item in self._hearing.answered(turn)]
        orders.append(self.snapshot())
        return orders


def discreet(exchange: Exchange, keeps: Keeps) -> Exchange:
    """The exchange as far as it may be kept: what it cost always is."""
    if keeps is Keeps.ALL:
        return exchange
    silent = replace(exchange, user_ulaw=b"", reply_ulaw=b"")
    if keeps is Keeps.WORDS:
        return silent
    return replace(silent, user_text="", reply_text="", user_item_id="", flow_node="", states={})
