"""The businesses and the calls, as the web part sees them: in the database, with a memory of its own for the worst."""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from callflows.engine import FlowState, Moment, language
from callflows.model import Business
from ivr import bykeys
from ivr.call import CallEnd
from ivr.core.commands import EndReason
from ivr.core.setup import restore, snapshot_of
from ivr.errors import StorageUnavailable
from ivr.liveness import Liveness
from ivr.ports import Telephony
from ivr.remembering import in_our_terms, trust_of
from ivr.rescue import Rescue
from ivr.secondway import SecondWay
from ivr.shelf import Flows
from ivr.web.deps import (
    AskKeys,
    BusinessInfo,
    ByKeys,
    Ended,
    GoOn,
    OpenResult,
    Outcome,
    StatusReport,
    TransferTo,
)
from memory.calls import CallRow, CallStatus
from memory.model import Owner
from memory.store import Store

KEEP_ENDS = 1_000
KNOWN_END_WAIT_S = 0.3
NOBODY_ANSWERED = "What else can I do for you?"
"""After a transfer that reached nobody; that it did not is said before."""
NOT_REACHED = ("busy", "no-answer", "failed", "canceled")


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
    down = business.on_model_down
    target = business.transfers.get(down.transfer) if down.transfer else None
    return BusinessInfo(
        business.id,
        business.name,
        language=business.language,
        down_say=down.say,
        down_number=target.number if target else None,
    )


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
    ) -> None:
        """`expect` is told whose call is about to come; it comes back at once."""
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
    ) -> OpenResult:
        """See the protocol."""
        async with in_our_terms():
            flow_hash = self._book.hash_of(business_id)
            row = await self._store.open_call(
                call_sid, business_id, caller, to_number, flow_hash, trust_of(caller, is_attested=is_attested)
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
        outcome = GoOn() if row is None else self._outcome_of_row(row)
        if row is not None and isinstance(outcome, GoOn):
            await self._renew(call_sid)
        return outcome

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
            self.liveness.expect_back(report.call_sid)

    async def give_up(self, call_sid: str) -> Outcome:
        """See the protocol."""
        async with in_our_terms():
            await self._store.end_call(call_sid, CallStatus.FAILED)
            row = await self._store.get_call(call_sid)
        return Ended() if row is None else self._outcome_of_row(row)

    async def keys(self, call_sid: str, digits: str | None) -> Outcome:
        """See the protocol. The state is kept with the call, whose end is written already."""
        async with in_our_terms():
            row = await self._store.get_call(call_sid)
            business = self._book.businesses.get(row.business_id) if row is not None else None
            if row is None or business is None or row.status is not CallStatus.FAILED:
                return Ended()
            restored = restore(row.snapshot)
            state = FlowState.from_json(restored.flow_json, business)
            moment = Moment(datetime.now(ZoneInfo(business.timezone)), row.caller)
            if digits is None:
                state, turn = bykeys.begin(business, state, moment)
            else:
                state, turn = bykeys.take(business, state, digits, moment)
            kept = snapshot_of(
                state,
                restored.exchange_no,
                restored.speed,
                restored.silence_ms,
                resumed=restored.resumed,
                standing=restored.standing,
            )
            await self._store.save_after_end(call_sid, kept)
        match turn:
            case bykeys.Asked(say, silence_s, most):
                return AskKeys(say, math.ceil(silence_s), most, language(business, state))
            case bykeys.Left(say, number) if number:
                return TransferTo(number, say)
            case bykeys.Left(say, is_done=True):
                return Ended(say)
            case _:
                return self._down(business, say="")

    async def transfer_result(self, call_sid: str, dial_status: str) -> Outcome:
        """A dial that reached nobody gives the caller back to the conversation (B061)."""
        if dial_status not in NOT_REACHED:
            return Ended()
        self._ends.pop(call_sid, None)
        async with in_our_terms():
            row = await self._store.get_call(call_sid)
            if row is None or row.status is not CallStatus.TRANSFERRED:
                return Ended()
            restored = restore(row.snapshot)
            business = self._book.businesses.get(row.business_id)
            if business is None:
                return Ended()
            flow = replace(FlowState.from_json(restored.flow_json, business), ended="", target="")
            snapshot = snapshot_of(
                flow,
                restored.exchange_no,
                restored.speed,
                restored.silence_ms,
                resumed=restored.resumed,
                standing=restored.standing,
                opening=NOBODY_ANSWERED,
            )
            await self._store.reopen_call(call_sid, snapshot)
        return GoOn()

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
        outcome = self._outcome(business_id, CallStatus(end.reason.value), end.target)
        self._ends[call_sid] = KnownEnd(outcome, epoch)
        if len(self._ends) > KEEP_ENDS:
            self._ends.popitem(last=False)

    def _outcome_of_row(self, row: CallRow) -> Outcome:
        business, target = self._book.businesses.get(row.business_id), ""
        if business is not None and row.status is CallStatus.TRANSFERRED:
            target = FlowState.from_json(restore(row.snapshot).flow_json, business).target
        return self._outcome(row.business_id, row.status, target)

    def _outcome(self, business_id: str, status: CallStatus, target: str) -> Outcome:
        if status is CallStatus.ACTIVE:
            return GoOn()
        business = self._book.businesses.get(business_id)
        if business is None:
            return Ended()
        if status is CallStatus.TRANSFERRED and target in business.transfers:
            return TransferTo(business.transfers[target].number)
        if status is CallStatus.FAILED:
            say = business.on_model_down.say
            return ByKeys(say) if business.on_model_down.keys else self._down(business, say)
        return Ended()

    def _down(self, business: Business, say: str) -> Outcome:
        """The last that is left without a model."""
        target = business.on_model_down.transfer
        return TransferTo(business.transfers[target].number, say) if target else Ended(say)
