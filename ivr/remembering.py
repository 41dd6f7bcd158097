"""The call's `Recall` and `Journal`, on the memory package. Its errors are told in our terms here."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ivr.core.commands import EndReason
from ivr.core.events import Usage
from ivr.core.units import ulaw_ms
from ivr.errors import CallTakenOver, StorageUnavailable
from memory import errors as faults
from memory.calls import CallRow, CallStatus
from memory.costs import estimate_usd, transcription_usd
from memory.model import CallSnapshot, Exchange, Owner, Window
from memory.service import CallMemory
from memory.store import Store
from memory.store_notices import CALL_ENDED


@contextlib.asynccontextmanager
async def in_our_terms() -> AsyncIterator[None]:
    """Memory's errors as ours: what can be tried again, and what a newer stream has made void."""
    try:
        yield
    except faults.StorageUnavailable as error:
        raise StorageUnavailable(str(error)) from error
    except (faults.StaleEpoch, faults.CallOver, faults.UnknownCall) as error:  # the last: erased meanwhile
        raise CallTakenOver(str(error)) from error


class Claim:
    """This stream's hold on its call: made when first needed, so that a call can begin without a database."""

    def __init__(
        self,
        store: Store,
        owner: Owner,
        call_sid: str,
        stream_sid: str,
        to: str,
        flow: str,
        began_at: datetime | None = None,
    ) -> None:
        self._store = store
        self._epoch: int | None = None
        self.owner = owner
        self.call_sid = call_sid
        self.stream_sid = stream_sid
        self.to_number = to
        self.flow_hash = flow
        self.began_at = began_at or datetime.now(UTC)

    @property
    def held_epoch(self) -> int | None:
        """The epoch, if the claim was made."""
        return self._epoch

    @property
    def call(self) -> tuple[str, str, str | None, str, str]:
        """The arguments of `Store.open_call`."""
        return (self.call_sid, self.owner.business_id, self.owner.caller, self.to_number, self.flow_hash)

    async def open(self) -> CallRow:
        """The call's row, made if the webhook could not. Raises: `memory.errors`, `UnknownCall` if it was erased."""
        if await self._store.was_erased_since(self.owner, self.began_at):
            raise faults.UnknownCall(f"call {self.call_sid} was erased")
        return await self._store.open_call(*self.call)

    def take_over(self, epoch: int) -> None:
        """Write with the epoch that a stream of the past had."""
        self._epoch = epoch

    async def epoch(self) -> int:
        """The epoch all writes carry. Raises: `StorageUnavailable`, `CallTakenOver` (also: over, or erased)."""
        if self._epoch is None:
            async with in_our_terms():
                await self.open()
                self._epoch = await self._store.claim_stream(self.call_sid, self.stream_sid)
        return self._epoch


@dataclass(frozen=True, slots=True)
class Prices:
    """What a turn costs with these models: an estimate by memory/prices.toml."""

    model: str
    transcribe_model: str

    def usd(self, exchange: Exchange) -> float:
        """Reply and transcription. Summaries are made later, and are not in it."""
        usage = Usage(**{name: int(exchange.usage.get(name, 0)) for name in Usage.__slots__})
        return self.turn_usd(usage, ulaw_ms(exchange.user_ulaw))

    def priced(self, exchange: Exchange) -> Exchange:
        """The exchange with its model and its price."""
        return replace(exchange, usage={**exchange.usage, "model": self.model, "usd": self.usd(exchange)})

    def turn_usd(self, usage: Usage, heard_ms: float) -> float:
        """The same of a turn that is not a page yet."""
        return estimate_usd(usage, self.model) + transcription_usd(heard_ms, self.transcribe_model)


class StoreJournal:
    """`ivr.ports.Journal` on the store; adds the cost estimate, which needs the model's price."""

    def __init__(
        self, memory: CallMemory, store: Store, claim: Claim, prices: Prices, *, tells_end: bool = False
    ) -> None:
        """`tells_end`: the business's systems want to be told when a call is over."""
        self._memory = memory
        self._tells_end = tells_end
        self._store = store
        self._claim = claim
        self._prices = prices

    async def commit_exchange(self, exchange: Exchange) -> None:
        """See the port."""
        epoch = await self._claim.epoch()
        async with in_our_terms():
            await self._memory.commit(self._prices.priced(exchange), epoch=epoch)

    async def save_snapshot(self, snapshot: CallSnapshot) -> None:
        """See the port."""
        epoch = await self._claim.epoch()
        async with in_our_terms():
            await self._store.save_snapshot(self._claim.call_sid, epoch, snapshot)

    async def end(self, reason: EndReason) -> None:
        """See the port."""
        epoch = await self._claim.epoch()
        async with in_our_terms():
            await self._store.end_call(self._claim.call_sid, CallStatus(reason.value), epoch)
            if self._tells_end:
                business_id = self._claim.owner.business_id
                await self._store.add_notice(business_id, self._claim.call_sid, CALL_ENDED, str(epoch))


class StoreRecall:
    """`ivr.ports.Recall`: this caller's memory at this business; what the call itself said when it is down."""

    def __init__(self, memory: CallMemory) -> None:
        self._memory = memory

    async def recall(self, query: str, live_items: tuple[str, ...]) -> Window:
        """See the port."""
        return await self._memory.recall(query, live_items)
