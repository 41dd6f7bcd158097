"""How a window becomes a reply's `input`: history first, then the turn, then the state snapshot, always last.

Pages of other calls are fenced by the marks that the rules name: what somebody said, never orders (B086).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from callflows import engine
from ivr.core.commands import AssistantText, InputItem, ItemRef, SystemText, UserText
from ivr.core.records import FinishedExchange, Turn
from memory.model import LATE_NO, Form, Window, WindowEntry

LESS_SURE = (
    "Said when it was less sure who called. Where it differs from what stands above, that above holds:"
)


@dataclass(frozen=True, slots=True)
class Opening:
    """What was heard of our greeting, empty once it is old, and the exchange before which it was said."""

    text: str
    before_no: int = 1

    def is_after(self, exchange_no: int) -> bool:
        """An exchange that came late was said on a line before this one."""
        return exchange_no < self.before_no or exchange_no >= LATE_NO


def _record(entry: WindowEntry) -> Iterator[str]:
    """A page as lines of a record, for memory that is fenced."""
    page = entry.page
    if entry.text:  # one side of the page, or one sentence of it, with its label
        yield entry.text
        return
    if entry.form is Form.SUMMARY:
        yield f"summary: {page.summary}"
        return
    if page.user_text:
        yield f"caller: {page.user_text}"
    if page.reply_text:
        yield f"assistant: {page.reply_text}{_cut_off(page.interrupted)}"


def _page_items(entry: WindowEntry, live_items: frozenset[str]) -> Iterator[InputItem]:
    page = entry.page
    if entry.text or entry.form is Form.SUMMARY:
        yield UserText(engine.as_data("\n".join(_record(entry))))
        return
    if entry.form is Form.AUDIO and page.user_item_id in live_items:
        yield ItemRef(page.user_item_id)
    elif page.user_text:
        yield UserText(page.user_text)
    if page.reply_text:
        yield AssistantText(page.reply_text + _cut_off(page.interrupted))


def _by_trust(past: Sequence[WindowEntry]) -> Iterator[str]:
    """Records of earlier calls; what was said when it was less sure who called stands apart, and gives way."""
    surest = max((entry.page.trust for entry in past), default=None)
    for entry in past:
        if entry.page.trust == surest:
            yield from _record(entry)
    less = [line for entry in past if entry.page.trust != surest for line in _record(entry)]
    if less:
        yield LESS_SURE
        yield from less


def _cut_off(interrupted: bool) -> str:
    return " — [interrupted here]" if interrupted else ""


def _history(
    window: Window, call_id: str, opening: Opening, live_items: frozenset[str]
) -> Iterator[InputItem]:
    if window.facts:
        yield UserText(engine.as_documents(window.facts))
    used = [e for e in window.entries if e.form is not Form.OMITTED]
    past = [entry for entry in used if entry.page.call_id != call_id]
    lines = [f"topic: {summary}" for summary in window.threads]
    lines += _by_trust(past)
    if lines:
        yield UserText(engine.as_data("\n".join(["From earlier calls of this number:", *lines])))
    ours = [e for e in used if e.page.call_id == call_id]
    for entry in ours:
        if opening.is_after(entry.page.exchange_no):
            yield from _page_items(entry, live_items)
    if opening.text:
        yield AssistantText(opening.text)
    for entry in ours:
        if not opening.is_after(entry.page.exchange_no):
            yield from _page_items(entry, live_items)


def _not_in(window: Window, call_id: str, recent: Iterable[FinishedExchange]) -> Iterator[InputItem]:
    """Exchanges so fresh that their page's commit may not have been seen by the recall."""
    own = (e.page for e in window.entries if e.page.call_id == call_id)
    known = {page.exchange_no for page in own if page.user_text or page.reply_text}
    for exchange in recent:
        if exchange.exchange_no not in known:
            user_text = exchange.turn.text_or_placeholder()
            if user_text:
                yield UserText(user_text)
            if exchange.heard.text:
                yield AssistantText(exchange.heard.text + _cut_off(not exchange.heard.whole))


def _turn_items(turn: Turn, live_items: frozenset[str]) -> Iterator[InputItem]:
    for item in turn.items:
        if item in live_items:
            yield ItemRef(item)
        else:  # its session is gone; the words are what is left
            text = turn.words.get(item) or turn.partial.get(item, "")
            if text:
                yield UserText(text)
    yield from turn.outputs


def build_input(
    call_id: str,
    window: Window,
    turn: Turn,
    recent: Sequence[FinishedExchange],
    opening: Opening,
    live_items: frozenset[str],
    state: str,
) -> tuple[InputItem, ...]:
    """The whole context of one reply, in the order in which it was said."""
    items: list[InputItem] = list(_history(window, call_id, opening, live_items))
    items += _not_in(window, call_id, recent)
    items += _turn_items(turn, live_items)
    items.append(SystemText(state))
    return tuple(items)
