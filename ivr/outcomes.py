"""What comes next in a call, in the web part's terms: from where its flow stands, and from what Twilio reports."""

from collections.abc import Mapping

from callflows import engine
from callflows.engine import Came, FlowState
from callflows.model import Business
from callflows.texts import text_in
from ivr.web.deps import (
    ByKeys,
    DialReport,
    Ended,
    GoOn,
    LineReport,
    Outcome,
    PutInLine,
    RecordMessage,
    TakeFromLine,
    TransferTo,
)
from memory.calls import CallStatus

MESSAGE_S, SILENCE_S = 120, 5
"""As a `voicemail` node has it."""

NOBODY_THERE = frozenset({Came.BUSY, Came.NO_ANSWER, Came.FAILED, Came.CANCELED, Came.DECLINED})
"""A dial that connected nobody."""
_DIALS: Mapping[str, Came] = {
    "completed": Came.REACHED,
    "answered": Came.REACHED,
    "busy": Came.BUSY,
    "no-answer": Came.NO_ANSWER,
    "canceled": Came.CANCELED,
}


def came_of(report: DialReport) -> Came:
    """What came of a dial. A status that is not known counts as failed: the caller is kept."""
    if report.call_over:
        return Came.HUNG_UP
    came = _DIALS.get(report.status, Came.FAILED)
    return Came.DECLINED if came is Came.REACHED and report.bridged == "false" else came


_LINES: Mapping[str, Came] = {
    "bridged": Came.REACHED,
    "bridging-in-process": Came.REACHED,
    "redirected-from-bridged": Came.REACHED,
    "hangup": Came.HUNG_UP,
    "queue-full": Came.FULL,
}


def out_of_line(business: Business, flow: FlowState, report: LineReport) -> Came | None:
    """What came of waiting in a line; None: somebody has taken the call elsewhere by REST, and it is not ours now."""
    if report.result == "redirected":
        return None
    if report.call_over and report.result != "bridged":
        return Came.HUNG_UP
    if report.result == "leave":
        return engine.came_out(business, flow, report.waited_s)
    return _LINES.get(report.result, Came.FAILED)


def outcome_of(business: Business | None, status: CallStatus, flow: FlowState) -> Outcome:
    """What to answer for a call that stands so. The same state is answered alike however often it is asked for."""
    if status is CallStatus.ACTIVE:
        return GoOn()
    if business is None:
        return Ended()
    if status is CallStatus.TRANSFERRED:
        return away_of(business, flow)
    if status is CallStatus.FAILED:
        language = engine.language(business, flow)
        say = business.on_model_down.say_in(language)
        return ByKeys(say, language) if business.on_model_down.keys else down_of(business, say, language)
    return Ended()


def down_of(business: Business, say: str, language: str) -> Outcome:
    """The last that is left without a model; `language`: the call's."""
    target = business.on_model_down.transfer
    if target is None:
        return message_of(business, say, language)
    return TransferTo(business.transfers[target].number, say, language=language)


def message_of(business: Business, say: str, language: str) -> Outcome:
    """A message, if the business wants one left; else goodbye."""
    tone = text_in(business.on_model_down.voicemail, language)
    if not tone:
        return Ended(say, language)
    return RecordMessage(f"{say} {tone}".strip(), MESSAGE_S, SILENCE_S, "#", False, 0, language)


def away_of(business: Business, flow: FlowState) -> Outcome:
    """What to answer for a call that has left our stream."""
    say, leg, language = flow.trip.say, flow.trip.no, engine.language(business, flow)
    match engine.away(business, flow):
        case engine.Dial((first, *others), timeout_s, whispers):
            return TransferTo(first, say, timeout_s, tuple(others), whispers, leg, language)
        case engine.Wait(line):
            return PutInLine(line, say, leg, language)
        case engine.Take(line, wait_s):
            return TakeFromLine(line, wait_s, say, leg, language)
        case engine.Record(max_s, silence_s, finish, transcribe):
            return RecordMessage(say, max_s, silence_s, finish, transcribe, leg, language)
        case _:
            return Ended()
