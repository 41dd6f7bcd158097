"""The call's `Recall` and `Journal`, on the memory package. Its errors are told in our terms here."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from ivr.core.commands import EndReason
from ivr.core.events import Usage
from ivr.core.setup import restore
from ivr.core.standing import Keeps, Standing, Wish
from ivr.core.units import ulaw_ms
from ivr.errors import CallTakenOver, StorageUnavailable
from memory import errors as faults
from memory.calls import CallRow, CallStatus
from memory.costs import estimate_usd, prompt_usd, transcription_usd
from memory.model import Access, CallSnapshot, Charge, EndedBy, Exchange, Owner, Trust, Window
from memory.service import CallMemory
from memory.store import Store
from memory.store_notices import CALL_ENDED

FORGET_AFTER = timedelta(hours=24)
"""So long a business may undo it that a caller asked, by voice, to be forgotten."""


@contextlib.asynccontextmanager
async def in_our_terms() -> AsyncIterator[None]:
    """Memory's errors as ours: what can be tried again, and what a newer stream has made void."""
    try:
        yield
    except faults.StorageUnavailable as error:
        raise StorageUnavailable(str(error)) from error
    except (faults.StaleEpoch, faults.CallOver, faults.UnknownCall) as error:  # the last: erased meanwhile
        raise CallTakenOver(str(error)) from error


def trust_of(caller: str | None, *, is_attested: bool) -> Trust:
    """What the first webhook says of who calls."""
    if not caller:
        return Trust.NONE
    return Trust.ATTESTED if is_attested else Trust.NUMBER


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
        trust: Trust = Trust.NUMBER,
        account_sid: str = "",
    ) -> None:
        self._store = store
        self._epoch: int | None = None
        self.owner = owner
        self.call_sid = call_sid
        self.stream_sid = stream_sid
        self.to_number = to
        self.flow_hash = flow
        self.trust = trust
        self.account_sid = account_sid
        self.began_at = began_at or datetime.now(UTC)

    @property
    def held_epoch(self) -> int | None:
        """The epoch, if the claim was made."""
        return self._epoch

    @property
    def call(self) -> tuple[str, str, str | None, str, str, Trust, str]:
        """The arguments of `Store.open_call`."""
        return (
            self.call_sid,
            self.owner.business_id,
            self.owner.caller,
            self.to_number,
            self.flow_hash,
            self.trust,
            self.account_sid,
        )

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
    prompt_model: str = ""
    """Of the text-to-speech endpoint; empty where there is none."""

    def priced(self, exchange: Exchange) -> Exchange:
        """The exchange with its model and its price: answer and transcription, not what was cancelled before them."""
        usage = Usage(**{name: exchange.usage[name] for name in Usage.__slots__ if name in exchange.usage})
        usd = self.speech_usd(usage) + self.transcription_usd(ulaw_ms(exchange.user_ulaw))
        return replace(exchange, usage={**exchange.usage, "model": self.model, "usd": usd})

    def speech_usd(self, usage: Usage) -> float:
        """One response of the speech model."""
        return estimate_usd(usage, self.model)

    def prompt_usd(self, audio_ms: float) -> float:
        """So much sound of our own words."""
        return prompt_usd(audio_ms, self.prompt_model)

    def transcription_usd(self, audio_ms: float) -> float:
        """So much of the caller's audio."""
        return transcription_usd(audio_ms, self.transcribe_model)


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
        self._noted = Standing()
        """What was carried out already of what the caller's standing asks for."""

    async def commit_exchange(self, exchange: Exchange) -> None:
        """See the port."""
        epoch = await self._claim.epoch()
        async with in_our_terms():
            await self._memory.commit(self._prices.priced(exchange), epoch=epoch)

    async def charge(self, charge: Charge) -> None:
        """See the port. It needs no epoch: whoever has the call now, this was paid."""
        with contextlib.suppress(CallTakenOver):
            await self._claim.epoch()  # a call that began without a database has no row yet
        async with in_our_terms():
            await self._store.add_charge(self._claim.owner.business_id, self._claim.call_sid, charge)

    async def save_snapshot(self, snapshot: CallSnapshot) -> None:
        """See the port."""
        epoch = await self._claim.epoch()
        async with in_our_terms():
            await self._store.save_snapshot(self._claim.call_sid, epoch, snapshot)
            standing = restore(snapshot).standing
            if standing is not None:
                await self._note(standing)

    async def _note(self, standing: Standing) -> None:
        """Carry out, once, what the caller's standing asks for beyond this call, or of what is kept of it already."""
        owner, was = self._claim.owner, self._noted
        if standing.is_other and not was.is_other and owner.caller:
            await self._store.set_shared(owner, is_shared=True)
        if standing.wish is Wish.CONFIRMED and was.wish is not Wish.CONFIRMED and owner.caller:
            await self._store.ask_to_forget(owner, FORGET_AFTER)
        if standing.keeps is not Keeps.ALL and was.keeps is Keeps.ALL:
            await self._store.strip(owner, self._claim.call_sid, words=standing.keeps is Keeps.NOTHING)
        self._noted = standing

    async def end(self, reason: EndReason, by: EndedBy | None) -> None:
        """See the port."""
        epoch = await self._claim.epoch()
        async with in_our_terms():
            await self._store.end_call(self._claim.call_sid, CallStatus(reason.value), epoch, by=by)
            if self._tells_end:
                business_id = self._claim.owner.business_id
                await self._store.add_notice(business_id, self._claim.call_sid, CALL_ENDED, str(epoch))


class StoreRecall:
    """`ivr.ports.Recall`: this caller's memory at this business; what the call itself said when it is down."""

    def __init__(self, memory: CallMemory) -> None:
        self._memory = memory

    async def recall(self, query: str, live_items: tuple[str, ...], access: Access) -> Window:
        """See the port."""
        return await self._memory.recall(query, live_items, access)
