"""The businesses and the calls, as the web part sees them: in the database, with a memory of its own for the worst."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import structlog

from callflows.engine import FlowState
from callflows.model import Business
from callflows.parse import FlowBook
from ivr.call import CallEnd
from ivr.core.setup import restore, snapshot_of
from ivr.errors import StorageUnavailable
from ivr.remembering import in_our_terms
from ivr.web.deps import BusinessInfo, Ended, GoOn, OpenResult, Outcome, StatusReport, TransferTo
from memory import errors as faults
from memory.calls import CallRow, CallStatus
from memory.store import Store

KEEP_ENDS = 1_000
GONE_AFTER_S = 10.0
"""A stream that broke has this long to come back before its call counts as dropped."""
NOBODY_ANSWERED = "What else can I do for you?"
"""After a transfer that reached nobody; that it did not is said before."""
NOT_REACHED = ("busy", "no-answer", "failed", "canceled")

log = structlog.get_logger()


class Businesses:
    """`FlowLookup` on a flow book."""

    def __init__(self, book: FlowBook) -> None:
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

    def __init__(self, store: Store, book: FlowBook) -> None:
        self._store = store
        self._book = book
        self._ends: OrderedDict[str, KnownEnd] = OrderedDict()
        self._live: set[str] = set()
        self._checks: dict[str, asyncio.Task[None]] = {}

    # -- for the web part -----------------------------------------------------------------------------------------

    async def open_call(
        self, call_sid: str, business_id: str, caller: str | None, to_number: str
    ) -> OpenResult:
        """See the protocol."""
        async with in_our_terms():
            flow_hash = self._book.hash_of(business_id)
            row = await self._store.open_call(call_sid, business_id, caller, to_number, flow_hash)
        if row.status is not CallStatus.ACTIVE:
            return OpenResult.OVER
        return OpenResult.NEW if row.epoch == 0 else OpenResult.KNOWN

    async def outcome(self, call_sid: str) -> Outcome:
        """What comes after a stream: from the database, else from what this process remembers."""
        self._cancel_check(call_sid)
        end = self._ends.get(call_sid)
        try:
            async with in_our_terms():
                row = await self._store.get_call(call_sid)
        except StorageUnavailable:
            if end is None:
                raise
            return end.outcome
        if end is not None and end.holds_for(row):
            return end.outcome
        return GoOn() if row is None else self._outcome_of_row(row)

    async def status(self, report: StatusReport) -> None:
        """Note that a call is over; the stream, if it still runs, knows better how it ended."""
        if report.call_over and not report.stream_event and report.call_sid not in self._live:
            self.expect_back(report.call_sid, after_s=1.0)

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
            business = self._book.businesses[row.business_id]
            flow = replace(FlowState.from_json(restored.flow_json, business), ended="", target="")
            snapshot = snapshot_of(
                flow, restored.exchange_no, restored.speed, resumed=restored.resumed, opening=NOBODY_ANSWERED
            )
            await self._store.reopen_call(call_sid, snapshot)
        return GoOn()

    async def spend_token(self, nonce: str, call_sid: str, expires_at: int) -> bool:
        """See the protocol."""
        async with in_our_terms():
            return await self._store.spend_token(nonce, call_sid, datetime.fromtimestamp(expires_at, UTC))

    # -- for the calls of this process ------------------------------------------------------------------------

    def began(self, call_sid: str) -> None:
        """A stream of this call runs here."""
        self._live.add(call_sid)
        self._cancel_check(call_sid)

    def ended(self, call_sid: str, business_id: str, end: CallEnd, epoch: int | None) -> None:
        """The stream of this call is over here. One that only broke has a while to come back."""
        self._live.discard(call_sid)
        if end.reason is None:
            self.expect_back(call_sid, GONE_AFTER_S)
            return
        outcome = self._outcome(business_id, CallStatus(end.reason.value), end.target)
        self._ends[call_sid] = KnownEnd(outcome, epoch)
        if len(self._ends) > KEEP_ENDS:
            self._ends.popitem(last=False)

    def expect_back(self, call_sid: str, after_s: float) -> None:
        """Unless a stream of this call comes, it counts as dropped after `after_s`."""
        self._cancel_check(call_sid)
        self._checks[call_sid] = asyncio.create_task(self._drop_later(call_sid, after_s))

    async def settle(self, business_id: str, caller: str | None) -> None:
        """This caller calls anew: their calls whose stream broke will not come back, so they are dropped now."""
        if not caller or not self._checks:
            return
        async with in_our_terms():
            rows = await self._store.list_calls(business_id, caller=caller, limit=10)
        for row in rows:
            if row.call_sid in self._checks:
                self._cancel_check(row.call_sid)
                await self._drop(row.call_sid)

    async def close(self) -> None:
        """Stop waiting; calls still waited for are dropped now."""
        waiting, self._checks = list(self._checks.items()), {}
        for _, task in waiting:
            task.cancel()
        for call_sid, _ in waiting:
            await self._drop(call_sid)

    async def _drop_later(self, call_sid: str, after_s: float) -> None:
        await asyncio.sleep(after_s)
        self._checks.pop(call_sid, None)
        await self._drop(call_sid)

    async def _drop(self, call_sid: str) -> None:
        if call_sid in self._live:
            return
        try:
            if await self._store.end_call(call_sid, CallStatus.DROPPED):
                log.info("call_dropped", call_sid=call_sid)
        except faults.MemoryFault:
            log.exception("drop_not_noted", call_sid=call_sid)

    def _cancel_check(self, call_sid: str) -> None:
        task = self._checks.pop(call_sid, None)
        if task is not None:
            task.cancel()

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
            down = business.on_model_down
            if down.transfer:
                return TransferTo(business.transfers[down.transfer].number, down.say)
            return Ended(down.say)
        return Ended()
