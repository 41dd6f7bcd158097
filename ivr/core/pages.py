"""Finished exchanges on their way to becoming pages: each waits for its words, but not for ever."""

from collections import deque
from dataclasses import asdict

from ivr.core.commands import CommitExchange, ReportTurn
from ivr.core.heard import Heard
from ivr.core.latency import Latency
from ivr.core.records import FinishedExchange, Turn
from ivr.core.units import ulaw_ms
from memory.model import Exchange, Form, Trust, Window

RECENT = 2
UNKEPT = 12
"""So many exchanges are remembered within a call of which nothing is kept."""


class Pages:
    """Numbers exchanges, keeps the last few for the context, and commits each once its words are known."""

    def __init__(self, call_id: str, first_no: int) -> None:
        self._call_id = call_id
        self.next_no = first_no
        self.recent: deque[FinishedExchange] = deque(maxlen=UNKEPT)
        self._waiting: list[FinishedExchange] = []

    def add(
        self, turn: Turn, heard: Heard, flow_node: str, language: str, latency: Latency, trust: Trust
    ) -> ReportTurn:
        """An exchange is over; `take_ready` will hand it out."""
        exchange = FinishedExchange(self.next_no, turn, heard, flow_node, language, latency, trust)
        self.next_no += 1
        self.recent.append(exchange)
        self._waiting.append(exchange)
        return ReportTurn(turn.no, latency)

    def take_ready(self, *, at_once: bool = False) -> list[CommitExchange]:
        """Exchanges whose words are known, in order; all of them when there is no more waiting."""
        ready = [e for e in self._waiting if at_once or e.turn.has_all_words()]
        self._waiting = [e for e in self._waiting if e not in ready]
        orders = [CommitExchange(self._exchange(e)) for e in ready if not _is_nothing(e)]
        for exchange in ready:
            exchange.release()
        return orders

    def is_waiting(self) -> bool:
        """Some exchange's words are still awaited."""
        return bool(self._waiting)

    def _exchange(self, finished: FinishedExchange) -> Exchange:
        turn = finished.turn
        return Exchange(
            call_id=self._call_id,
            exchange_no=finished.exchange_no,
            user_text=turn.text_or_placeholder(),
            reply_text=finished.heard.text,
            user_ulaw=bytes(turn.ulaw),
            reply_ulaw=finished.heard.ulaw,
            interrupted=not finished.heard.whole,
            # A turn of several items has no one item that could be referenced as its audio.
            user_item_id=turn.items[0] if len(turn.items) == 1 else "",
            flow_node=finished.flow_node,
            language=finished.language,
            trust=finished.trust,
            usage=asdict(turn.usage),
            states={
                "window": window_figures(turn.window),
                "first_audio_ms": finished.latency.total,
                "latency_ms": asdict(finished.latency),
                "snapshot": turn.state,
                "heard": heard_figures(finished.heard),
            },
        )


def window_figures(window: Window | None) -> dict[str, object]:
    """Pages by form, tokens and budget: what `ivr calls show` prints of a window."""
    if window is None:
        return {"pages": 0, "tokens": 0, "forms": {}}
    used = [e for e in window.entries if e.form is not Form.OMITTED]
    forms = {form.value: sum(e.form is form for e in used) for form in Form if form is not Form.OMITTED}
    return {
        "pages": len(used),
        "tokens": window.tokens,
        "budget_tokens": window.budget_tokens,
        "omitted": window.omitted,
        "threads": len(window.threads),
        "forms": {form: n for form, n in forms.items() if n},
        "page_ids": [e.page.page_id for e in used],
        "page_forms": [e.form.value for e in used],
    }


def heard_figures(heard: Heard) -> dict[str, object]:
    """How much of the reply was heard; where it was not all, its text is an estimate."""
    return {
        "heard_ms": round(ulaw_ms(heard.ulaw)),
        "received_ms": round(heard.received_ms),
        "estimated": not heard.whole,
    }


def _is_nothing(exchange: FinishedExchange) -> bool:
    """Noise that nobody answered: no row for it."""
    return not exchange.turn.text_or_placeholder() and not exchange.heard.text
