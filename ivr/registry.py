"""The businesses and the calls, as the web part sees them: in the database, with a memory of its own for the worst."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from callflows import engine
from callflows.engine import Came, FlowState
from callflows.model import Business
from callflows.state import STATE_VERSION
from callflows.stock import NOT_REACHED, phrase
from ivr import lines
from ivr.begun import as_begun
from ivr.call import CallEnd
from ivr.core.commands import EndReason
from ivr.core.setup import moved
from ivr.errors import StorageUnavailable
from ivr.keyed import KeyedCalls
from ivr.lines import flow_of
from ivr.liveness import Liveness
from ivr.moments import moment_of
from ivr.outcomes import came_of, out_of_line, outcome_of
from ivr.ports import Telephony
from ivr.recorded import no_prompts
from ivr.remembering import in_our_terms, trust_of
from ivr.rescue import Rescue
from ivr.secondway import SecondWay
from ivr.shelf import Flows
from ivr.web.deps import (
    BusinessInfo,
    DialReport,
    Ended,
    GoOn,
    LeaveLine,
    LineReport,
    MusicPiece,
    OpenResult,
    Outcome,
    PlaceInLine,
    RecordingReport,
    StatusReport,
    WaitOn,
    Whispered,
)
from memory.calls import CallRow, CallStatus
from memory.model import CallSnapshot, EndedBy, Owner
from memory.store import Store

log = structlog.get_logger()

KEEP_ENDS = 1_000
KNOWN_END_WAIT_S = 0.3


class Businesses:
    """`FlowLookup` on a flow book."""

    def __init__(self, book: Flows) -> None:
        self._book = book

    def business_for(self, to_number: str) -> BusinessInfo | None:
        """See the protocol."""
        business = self._book.by_number(to_number)
        return None if business is None else info_of(business)


def info_of(business: Business) -> BusinessInfo:
    """What the web part says in this business's name."""
    down, busy = business.on_model_down, business.on_busy

    def number_of(name: str | None) -> str | None:
        return business.transfers[name].number if name else None

    return BusinessInfo(
        business.id,
        business.name,
        language=business.language,
        busy_say=busy.say_in(business.language),
        busy_number=number_of(busy.transfer),
        blocked=frozenset(business.callers.blocked),
        down_say=down.say_in(business.language),
        not_reached_say=phrase(NOT_REACHED, business.language),
        down_number=number_of(down.transfer),
    )


async def nobody_verified(_: Owner, pin: str) -> bool:
    """Nobody has a PIN."""
    return False


@dataclass(frozen=True, slots=True)
class KnownEnd:
    """How a call of this process ended, known before it is written. `epoch`: of the stream it ended with."""

    outcome: Outcome
    epoch: int | None

    def holds_for(self, row: CallRow | None) -> bool:
        """Whether the row does not know it yet. A later stream has its own end."""
        return row is None or (row.status is CallStatus.ACTIVE and self.epoch in (None, row.epoch))


class Registry:
    """`CallRegistry` on the store. Ends of this process's own calls are remembered, should the database be down."""

    def __init__(
        self,
        store: Store,
        book: Flows,
        telephony: Telephony,
        public_url: str | None = None,
        *,
        expect: Callable[[Owner], None] = lambda _: None,
        sound: Callable[[str], bytes] = no_prompts,
        check_pin: Callable[[Owner, str], Awaitable[bool]] = nobody_verified,
    ) -> None:
        """`expect` is told whose call is about to come; it comes back at once. `sound` reads a sound file; `check_pin`
        never raises.
        """
        self._keyed = KeyedCalls(store, check_pin)
        self._sound = sound
        self._expect = expect
        self._store = store
        self._book = book
        self._ends: OrderedDict[str, KnownEnd] = OrderedDict()
        way = SecondWay(telephony, public_url)
        self.liveness = Liveness(store, way)
        self.rescue = Rescue(store, way, self.liveness.is_live)

    # -- for the web part -----------------------------------------------------------------------------------------

    async def open_call(
        self,
        call_sid: str,
        business_id: str,
        caller: str | None,
        to_number: str,
        *,
        is_attested: bool = False,
        account_sid: str = "",
    ) -> OpenResult:
        """See the protocol."""
        async with in_our_terms():
            flow_hash = self._book.hash_of(business_id)
            trust = trust_of(caller, is_attested=is_attested)
            row = await self._store.open_call(
                call_sid, business_id, caller, to_number, flow_hash, trust, account_sid
            )
        if row.status is not CallStatus.ACTIVE:
            return OpenResult.OVER
        self._expect(row.owner)
        return OpenResult.NEW if row.epoch == 0 else OpenResult.KNOWN

    async def outcome(self, call_sid: str) -> Outcome:
        """What comes after a stream: from the database, else from what this process remembers."""
        self.liveness.came_back(call_sid)
        self.rescue.came_back(call_sid)
        end = self._ends.get(call_sid)
        try:
            # Whoever knows the answer does not wait as long for the database as the webhook would.
            async with asyncio.timeout(None if end is None else KNOWN_END_WAIT_S), in_our_terms():
                row = await self._store.get_call(call_sid)
        except (StorageUnavailable, TimeoutError):
            if end is None:
                raise
            return end.outcome
        if end is not None and end.holds_for(row):
            return end.outcome
        if row is not None and row.status is CallStatus.DROPPED and await self._revived(call_sid):
            return GoOn()
        outcome = GoOn() if row is None else self._outcome_of_row(row)
        if row is not None and isinstance(outcome, GoOn):
            await self._renew(call_sid)
        return outcome

    async def _revived(self, call_sid: str) -> bool:
        """A call that counted as dropped because nobody had heard of it: Twilio asks about it, so it lives."""
        async with in_our_terms():
            is_back = await self._store.revive(call_sid)
        if is_back:
            log.warning("call_was_not_dropped", call_sid=call_sid)
        return is_back

    async def _renew(self, call_sid: str) -> None:
        """Somebody is about to carry the call: the lease of who did does not lapse meanwhile."""
        async with in_our_terms():
            await self._store.renew(call_sid)

    async def status(self, report: StatusReport) -> None:
        """Note that a call is over; the stream, if it still runs, knows better how it ended."""
        if report.stream_event == "stream-error":
            self.rescue.stream_broke(report.call_sid)
        if report.call_over and not report.stream_event:
            self.rescue.came_back(report.call_sid)
        if report.call_over and not report.stream_event and not self.liveness.is_live(report.call_sid):
            self.liveness.told_over(report.call_sid)

    async def give_up(self, call_sid: str) -> Outcome:
        """See the protocol."""
        async with in_our_terms():
            await self._store.end_call(call_sid, CallStatus.FAILED, by=EndedBy.TWILIO)
            row = await self._store.get_call(call_sid)
        return Ended() if row is None else self._outcome_of_row(row)

    async def keys(self, call_sid: str, digits: str | None) -> Outcome:
        """See the protocol. The state is kept with the call, whose end is written already."""
        async with in_our_terms():
            row = await self._store.get_call(call_sid)
            business = self._book.businesses.get(row.business_id) if row is not None else None
            if row is None or business is None or row.status is not CallStatus.FAILED:
                return Ended()
            return await self._keyed.go_on(row, business, digits)

    async def transfer_result(self, report: DialReport) -> Outcome:
        """A dial that reached nobody: the next number, or the caller is given back to the flow (B061)."""
        self._ends.pop(report.call_sid, None)
        async with in_our_terms():
            row = await self._store.get_call(report.call_sid)
            return Ended() if row is None else await self._after(row, report.leg, came_of(report))

    async def message_left(self, call_sid: str, leg: int, *, is_empty: bool, call_over: bool) -> Outcome:
        """See the protocol."""
        self._ends.pop(call_sid, None)
        came = Came.HUNG_UP if call_over else Came.EMPTY if is_empty else Came.RECORDED
        async with in_our_terms():
            row = await self._store.get_call(call_sid)
            return Ended() if row is None else await self._after(row, leg, came)

    async def waiting(self, place: PlaceInLine) -> WaitOn | LeaveLine:
        """See the protocol."""
        self._ends.pop(place.call_sid, None)
        async with in_our_terms():
            return await lines.waiting(self._store, self._book, place)

    async def hold_music(self, piece: MusicPiece) -> bytes | None:
        """See the protocol."""
        async with in_our_terms():
            return await lines.hold_music(self._store, self._book, piece, self._sound)

    async def out_of_line(self, report: LineReport) -> Outcome:
        """See the protocol."""
        self._ends.pop(report.call_sid, None)
        async with in_our_terms():
            row = await self._store.get_call(report.call_sid)
            business = None if row is None else await as_begun(self._book, self._store, row)
            if row is None or business is None:
                return Ended()
            came = out_of_line(business, flow_of(row, business), report)
            return Ended() if came is None else await self._after(row, report.leg, came)

    async def recording(self, report: RecordingReport) -> None:
        """See the protocol."""
        async with in_our_terms():
            is_known = await self._store.note_voicemail(
                report.call_sid,
                report.recording_sid,
                duration_s=report.duration_s,
                transcript=report.transcript,
                wants_text=report.wants_text,
            )
        if not is_known:
            log.warning("message_of_unknown_call", recording_sid=report.recording_sid)

    async def whisper(self, call_sid: str) -> Whispered | None:
        """See the protocol."""
        async with in_our_terms():
            row = await self._store.get_call(call_sid)
            business = None if row is None else await as_begun(self._book, self._store, row)
        if row is None or business is None:
            return None
        told = engine.whisper(business, flow_of(row, business))
        return None if told is None else Whispered(told.text, told.accept, told.language)

    async def _after(self, row: CallRow, leg: int, came: Came) -> Outcome:
        """Let the flow go on with what came of the call's time away, once: who asks again is told the same."""
        business = await as_begun(self._book, self._store, row)
        if business is None:
            return Ended()
        flow = flow_of(row, business)
        if row.status is CallStatus.FAILED:  # without a model
            return await self._keyed.back(row, business, leg, came)
        if row.status is not CallStatus.TRANSFERRED or leg not in (0, flow.trip.no):
            return outcome_of(business, row.status, flow)
        moment = await moment_of(self._store, business, row.caller, row.call_sid)
        step = engine.returned(business, flow, came, moment)
        if step.state == flow:
            return Ended()
        if not await self._store.return_call(row.call_sid, row.snapshot, *_written(business, row, step)):
            later = await self._store.get_call(row.call_sid)  # somebody was faster
            return self._outcome_of_row(later or row)
        status = _status_of(step.state)
        if status is CallStatus.FINISHED:
            return Ended(engine.farewell(step), step.state.language)
        return outcome_of(business, status, step.state)

    async def spend_token(self, nonce: str, call_sid: str, expires_at: int) -> bool:
        """See the protocol."""
        async with in_our_terms():
            return await self._store.spend_token(nonce, call_sid, datetime.fromtimestamp(expires_at, UTC))

    # -- for the calls of this process ------------------------------------------------------------------------

    def knows_end(self, call_sid: str, business_id: str, end: CallEnd, epoch: int | None) -> None:
        """This call has ended here: that will be written, and is the answer from now on."""
        if end.reason is None:
            return
        if end.reason is EndReason.FINISHED:
            self.rescue.finished(call_sid)
        business = self._book.businesses.get(business_id)
        flow = (end.left and end.left.flow) or FlowState(STATE_VERSION, "")
        self._ends[call_sid] = KnownEnd(outcome_of(business, CallStatus(end.reason.value), flow), epoch)
        if len(self._ends) > KEEP_ENDS:
            self._ends.popitem(last=False)

    def _outcome_of_row(self, row: CallRow) -> Outcome:
        business = self._book.businesses.get(row.business_id)
        if business is None:
            return outcome_of(None, row.status, FlowState(STATE_VERSION, ""))
        return outcome_of(business, row.status, flow_of(row, business))


def _status_of(flow: FlowState) -> CallStatus:
    if flow.is_away():
        return CallStatus.TRANSFERRED
    return CallStatus.FINISHED if flow.ended else CallStatus.ACTIVE


def _written(business: Business, row: CallRow, step: engine.Step) -> tuple[CallSnapshot, CallStatus]:
    """What is journalled of a call that is back, or has left again, and what it counts as."""
    status = _status_of(step.state)
    opening = engine.opening(business, step) if status is CallStatus.ACTIVE else None
    return moved(row.snapshot, step.state, opening), status
