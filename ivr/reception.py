"""Receives an accepted stream: who calls, what was before, what is said first; then runs the call."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import structlog
from pydantic import SecretStr

from callflows import engine
from callflows.model import Business
from callflows.stock import LINE_BROKE, phrase
from callflows.survivors import taken_up
from ivr.begun import as_begun
from ivr.billing import Bill
from ivr.call import Call, CallEnd, NoTools, Surroundings
from ivr.core.commands import ReportTurn
from ivr.core.events import CeilingReached
from ivr.core.records import UNHEARD_WORDS
from ivr.core.session import CallCore
from ivr.core.setup import CallSetup, Tuning, restore
from ivr.core.standing import Standing
from ivr.errors import CallTakenOver, StorageUnavailable
from ivr.moments import moment_of
from ivr.observe import Metrics
from ivr.override import HoursBoard, apply_override
from ivr.pacing import MonotonicClock, Pacer
from ivr.pins import Pins
from ivr.ports import CallerLink, ModelLink, Speech, Tools
from ivr.preloading import Preloading
from ivr.recorded import no_prompts
from ivr.registry import Registry
from ivr.remembering import Claim, Prices, StoreJournal, StoreRecall, in_our_terms, trust_of
from ivr.shelf import Flows
from ivr.spending import Budgets, Meter
from ivr.spooling import Spool
from ivr.telemetry import LineFigures
from ivr.voicebook import VoiceBook
from ivr.wire.tokens import Grant
from ivr.wire.twilio import StartInfo
from memory.calls import CallRow
from memory.model import LATE_NO, Charge, Owner, Trust
from memory.service import CallMemory, Memory
from memory.store import Store
from memory.strategies import Policy, StrategyName

PREPARE_TIMEOUT_S = 1.5
"""A caller who hears nothing hangs up: with a database this slow the call begins as a new one."""
OFFERS_BACK_MAX = 5
"""So many calls in a row may break off before their caller has answered the offer."""
OLDER_STREAM_TIMEOUT_S = 3.0
"""How long a stream waits for the last words of the one that broke before it; it may wait for transcripts."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Parts:
    """What every call of this process shares."""

    book: Flows
    store: Store
    memory: Memory
    registry: Registry
    preloading: Preloading
    metrics: Metrics
    clock: MonotonicClock
    pacer: Pacer
    new_model: Callable[[Business], ModelLink]
    prices: Callable[[Business], Prices]
    spool: Spool
    tuning: Tuning
    voices: VoiceBook = field(default_factory=VoiceBook)
    prompt: Callable[[str], bytes] = no_prompts
    speech: Speech | None = None
    tools: Tools = field(default_factory=NoTools)
    pepper: SecretStr | None = None
    """What the hashes of PINs are made with, beside what the database has."""

    @property
    def pins(self) -> Pins:
        """Checks PINs."""
        return Pins(self.store, self.pepper)


@dataclass(frozen=True, slots=True)
class Beginning:
    """How a call begins here, and the dropped call that it goes on with, if any."""

    setup: CallSetup
    resumed_from: str | None = None


@dataclass(frozen=True, slots=True)
class LiveCall:
    """A call that runs here. `over` is set when everything of it is written."""

    call: Call
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def count(self, charge: Charge, meter: Meter) -> None:
        """Hold it against the ceiling. Not within the event that told us: its other commands come first."""
        if meter.add(charge):
            log.info("ceiling_reached")
            asyncio.get_running_loop().call_soon(self.call.receive, CeilingReached())


def _moment(setup: CallSetup) -> engine.Moment:
    """What the flow may know of the world as the call begins here."""
    return engine.Moment(setup.started_at, setup.caller, setup.overrides, setup.call_id, setup.called_back)


def _journal(
    memory: CallMemory, parts: Parts, claim: Claim, business: Business, prices: Prices
) -> StoreJournal:
    tells_end = bool(business.tells("call_ended"))
    return StoreJournal(memory, parts.store, claim, prices, tells_end=tells_end)


def _taken_back(fresh: CallSetup, broken: engine.FlowState, heard_at: datetime) -> CallSetup:
    """A call that goes on with a broken one, or asks first whether it is to. `heard_at`: its last sign of life."""
    business, policy = fresh.business, fresh.business.resume
    is_old = datetime.now(UTC) - heard_at > policy.confirm_after
    state = engine.offered(business, broken, asks=policy.greeting == "offer", is_old=is_old)
    again = engine.again(business, state, _moment(fresh))
    is_asked_already = state.offered is not None and policy.greeting == "offer"
    return replace(
        fresh,
        flow=again.state,
        first=() if is_asked_already else again.actions,
        opening=engine.resume_offer(business, state),
    )


def policy_of(business: Business) -> Policy:
    """The business's choice of memory, in memory's terms."""
    chosen = business.memory
    languages = (business.language, *business.languages)
    return Policy(
        StrategyName(chosen.strategy),
        chosen.budget_tokens,
        chosen.audio_turns,
        languages,
        bool(business.documents),
    )


class Reception:
    """Runs the calls of this process; the newest stream of a call wins."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._budgets = Budgets(parts.store)
        self.hours = HoursBoard(parts.store)
        """Has to `run`."""
        self._live: dict[str, LiveCall] = {}
        self._handing_over = False

    async def run_call(self, line: CallerLink, start: StartInfo, grant: Grant) -> None:
        """One whole call on one accepted stream (`ivr.web.deps.RunCall`)."""
        parts = self._parts
        business = parts.book.businesses.get(grant.business_id)
        if business is None:
            log.error("business_gone", business=grant.business_id)
            return
        owner = Owner(business.id, grant.caller)
        claim = Claim(
            parts.store,
            owner,
            start.call_sid,
            start.stream_sid,
            grant.to_number,
            parts.book.hash_of(business.id),
            trust=trust_of(grant.caller, is_attested=grant.is_attested),
            account_sid=grant.account_sid,
        )
        await self._older_is_over(start.call_sid)
        with parts.preloading.live(owner):
            await self._run_of(line, business, claim)

    async def _run_of(self, line: CallerLink, business: Business, claim: Claim) -> None:
        try:
            beginning = await self._prepare(business, claim)
        except CallTakenOver:
            log.info("call_is_over_already")
            return
        meter = Meter(await self._budgets.left_usd(business, claim.call_sid))
        beginning = replace(beginning, setup=replace(beginning.setup, is_spent=meter.is_spent))
        await self._run(line, claim, beginning, meter)

    def hand_over(self) -> None:
        """This worker stops: every call leaves at its next quiet moment, those that begin just now too."""
        self._handing_over = True
        for live in tuple(self._live.values()):
            live.call.hand_over()

    async def _older_is_over(self, call_sid: str) -> None:
        """A stream that broke may still be writing its last exchange: claiming the call now would void it."""
        older = self._live.get(call_sid)
        if older is None:
            return
        older.call.leave()
        try:
            async with asyncio.timeout(OLDER_STREAM_TIMEOUT_S):
                await older.over.wait()
        except TimeoutError:
            log.warning("older_stream_lingers")

    async def _run(self, line: CallerLink, claim: Claim, beginning: Beginning, meter: Meter) -> None:
        parts, sid, business = self._parts, claim.call_sid, beginning.setup.business
        core = CallCore(beginning.setup, parts.clock.now_ms())
        figures = LineFigures(parts.metrics, core.reception)
        memory = parts.memory.of_call(
            claim.owner,
            sid,
            resumed_from=beginning.resumed_from,
            policy=policy_of(business),
        )
        prices = parts.prices(business)
        journal = parts.spool.journal(_journal(memory, parts, claim, business, prices), claim, prices)
        call = Call(
            core,
            Surroundings(
                line=line,
                new_model=partial(parts.new_model, business),
                recall=StoreRecall(memory),
                journal=journal,
                clock=parts.clock,
                subscribe=parts.pacer.subscribe,
                on_turn=lambda turn: self._report(turn, figures),
                bill=Bill(prices),
                on_charge=lambda charge: live.count(charge, meter),
                prompt=parts.prompt,
                speech=parts.speech,
                tools=parts.tools,
                check_pin=lambda pin: parts.pins.check(claim.owner, pin),
                set_hours=lambda order: apply_override(parts.store, business.id, order),
                on_end=lambda end: parts.registry.knows_end(sid, business.id, end, claim.held_epoch),
            ),
        )
        live = self._began(call, claim, beginning.setup)
        end = CallEnd(None)
        try:
            end = await call.run()
        finally:
            parts.spool.over(journal)
            self._stream_over(live, claim, end)
            figures.add()
            log.info(
                "stream_over", reason=end.reason or "left", last=core.transitions[-3:], **figures.summary()
            )

    def _began(self, call: Call, claim: Claim, setup: CallSetup) -> LiveCall:
        live = self._live[claim.call_sid] = LiveCall(call)
        self._parts.registry.liveness.began(claim.call_sid, lambda: claim.held_epoch, call.leave)
        self.hours.joined(claim.call_sid, setup, call.hours_by_hand)
        if self._handing_over:
            call.hand_over()
        return live

    def _stream_over(self, live: LiveCall, claim: Claim, end: CallEnd) -> None:
        live.over.set()
        liveness = self._parts.registry.liveness
        if self._live.get(claim.call_sid) is live:  # and not a newer stream of the call
            del self._live[claim.call_sid]
            self.hours.left(claim.call_sid)
            if end.reason is None:
                liveness.left(claim.call_sid, claim.held_epoch)
            else:
                liveness.over(claim.call_sid)
        self._parts.metrics.calls_ended.labels(end.reason or "left").inc()

    async def _prepare(self, business: Business, claim: Claim) -> Beginning:
        """Where this call begins. Without a database it begins as a new one."""
        try:
            async with asyncio.timeout(PREPARE_TIMEOUT_S), in_our_terms():
                await claim.epoch()
                row = await self._parts.store.get_call(claim.call_sid)
                return await self._beginning(business, row)
        except (StorageUnavailable, TimeoutError) as error:
            log.warning("call_without_memory", error=type(error).__name__)
            # Nobody can say now whether others use this number: nothing of the past, whatever comes back meanwhile.
            now = datetime.now(ZoneInfo(business.timezone))
            moment = engine.Moment(now, claim.owner.caller, call_id=claim.call_sid)
            return Beginning(self._fresh(business, Standing(claim.trust, is_shared=True), moment))

    async def _beginning(self, business: Business, row: CallRow | None) -> Beginning:
        if row is None:
            raise CallTakenOver("the call was forgotten")
        business = await as_begun(self._parts.book, self._parts.store, row) or business
        moment = await moment_of(self._parts.store, business, row.caller, row.call_sid)
        if row.snapshot is None:
            await self._parts.registry.liveness.settle(business.id, row.caller)
            standing = await self._standing(business, row)
            fresh = self._fresh(business, standing, moment)
            return await self._resumed(row, fresh) or Beginning(fresh)
        restored = restore(row.snapshot)
        standing = restored.standing or await self._standing(business, row)
        fresh = self._fresh(business, standing, moment)
        flow = engine.FlowState.from_json(restored.flow_json, business)
        again = engine.again(business, flow, _moment(fresh))
        broke = phrase(LINE_BROKE, engine.language(business, flow))
        setup = replace(
            fresh,
            flow=again.state,
            first=again.actions,
            opening=broke if restored.opening is None else restored.opening,
            was_transferred=flow.trip.no > 0,
            resumed=restored.resumed,
            exchange_no=max(
                restored.exchange_no, await self._parts.store.next_exchange_no(row.call_sid, LATE_NO)
            ),
            speed=restored.speed,
            silence_ms=restored.silence_ms,
        )
        return Beginning(setup, row.resumed_from)

    async def _standing(self, business: Business, row: CallRow) -> Standing:
        """Who this caller seems to be, before they have said a word."""
        facts = await self._parts.store.caller_facts(row.owner, row.call_sid)
        silence = timedelta(days=business.memory.silent_days)
        since = await self._parts.store.new_since(row.owner, silence)
        return Standing(
            row.trust,
            is_shared=facts.is_shared or facts.is_beside,
            is_silent=facts.heard_at is not None and row.started_at - facts.heard_at > silence,
            new_since_s=0.0 if since is None else since.timestamp(),
        )

    async def _resumed(self, row: CallRow, fresh: CallSetup) -> Beginning | None:
        """The dropped call that this caller is offered to go on with, if there is one and they may."""
        business, standing = fresh.business, fresh.standing
        if business.resume.greeting == "never" or engine.is_blocked(business, row.caller):
            return None
        dropped = await self._broken_off(business, row)
        if dropped is None:
            return None
        if standing.is_shared:  # nobody knows whose call that was
            return Beginning(replace(fresh, opening=engine.generic_offer(business)))
        restored = restore(dropped.snapshot)
        was = restored.standing or Standing(dropped.trust)
        if not standing.may_resume(business.memory) or was.trust is Trust.VERIFIED or was.is_other:
            return None
        if not await self._parts.store.mark_resumed(row.call_sid, dropped.call_sid):
            return None
        before = await as_begun(self._parts.book, self._parts.store, dropped) or business
        flow = engine.FlowState.from_json(taken_up(restored.flow_json, before, business), business)
        log.info("call_offered", from_call=dropped.call_sid, node=flow.node)
        setup = _taken_back(fresh, flow, dropped.last_activity_at)
        setup = replace(setup, speed=restored.speed, silence_ms=restored.silence_ms)
        return Beginning(setup, dropped.call_sid)

    async def _broken_off(self, business: Business, row: CallRow) -> CallRow | None:
        """The caller's call that broke off last, and in which something was said.

        One that broke off before its caller had answered our offer leads to the call that was offered.
        """
        store, within = self._parts.store, business.resume.within
        dropped = await store.find_dropped(business.id, row.caller, within, datetime.now(UTC))
        for _ in range(OFFERS_BACK_MAX):
            if dropped is None:
                return None
            brief = await self._parts.memory.resume_brief(dropped)
            if any(page.user_text not in ("", UNHEARD_WORDS) for page in brief.exchanges):
                return dropped
            dropped = await store.get_call(dropped.resumed_from) if dropped.resumed_from else None
        return None

    def _fresh(self, business: Business, standing: Standing, moment: engine.Moment) -> CallSetup:
        first = engine.begin(business, moment)
        return CallSetup(
            call_id=moment.call_id,
            business=business,
            flow=first.state,
            first=first.actions,
            opening="" if engine.is_blocked(business, moment.caller) else engine.greeting(business),
            caller=moment.caller,
            overrides=moment.overrides,
            called_back=moment.called_back,
            standing=standing,
            started_at=moment.now,
            voice=self._parts.voices.of(business.voice),
            tuning=self._parts.tuning,
        )

    def _report(self, turn: ReportTurn, figures: LineFigures) -> None:
        figures.add()
        self._parts.metrics.turns.inc()
        stages = {stage: ms for stage, ms in asdict(turn.latency).items() if ms is not None}
        if turn.latency.total is not None:
            self._parts.metrics.first_audio_ms.observe(turn.latency.total)
        for stage, ms in stages.items():
            self._parts.metrics.turn_stage_ms.labels(stage).observe(ms)
        spent = {f"{stage}_ms": ms for stage, ms in stages.items()}
        log.info("turn", turn_no=turn.turn_no, **spent, **figures.summary())
