"""The webhooks: a call arrives, comes back after a stream or a transfer, reports its status."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import structlog
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from ivr.errors import BadMessage, StorageUnavailable
from ivr.observe import call_context
from ivr.web.deps import (
    AskKeys,
    BusinessInfo,
    ByKeys,
    DialReport,
    Ended,
    GoOn,
    LineReport,
    OpenResult,
    Outcome,
    PutInLine,
    RecordingReport,
    RecordMessage,
    StatusReport,
    TakeFromLine,
    TransferTo,
    WebDeps,
)
from ivr.web.forms import Refused, Webhook, read_webhook
from ivr.web.streams import StreamCount
from ivr.wire import twiml
from ivr.wire.callers import caller_of, is_attested

CONTINUE_PATH = "/twilio/continue"
STATUS_PATH = "/twilio/status"
KEYS_PATH = "/twilio/keys"
TRANSFERRED_PATH = "/twilio/transferred"
WHISPER_PATH = "/twilio/whisper"
QUEUED_PATH = "/twilio/queued"
WAITING_PATH = "/twilio/waiting"
SERVED_PATH = "/twilio/served"
RECORDED_PATH = "/twilio/recorded"
RECORDING_PATH = "/twilio/recording"
MEDIA_PATH = "/twilio/media"

NO_SUCH_NUMBER = "This number is not in service. Please check the number and call again. Goodbye."
NOBODY_KNOWS = "We are sorry, we cannot take your call right now. Please call again later."

T = TypeVar("T")
log = structlog.get_logger(__name__)


class VoiceRoutes:
    """Answers every signed webhook with a 200 and valid TwiML, whatever is broken behind it."""

    def __init__(self, deps: WebDeps) -> None:
        self._deps = deps
        self._given_up: set[asyncio.Future[Any]] = set()

    async def voice(self, request: Request) -> Response:
        """A call arrives."""
        return await self._twiml(request, "voice", self._arrived)

    async def continue_(self, request: Request) -> Response:
        """A stream is over: is the call?"""
        return await self._twiml(request, "continue", self._came_back)

    async def keys(self, request: Request) -> Response:
        """Keys of a call that goes on without a speech model."""
        return await self._twiml(request, "keys", self._pressed)

    async def transferred(self, request: Request) -> Response:
        """A dial is over."""
        return await self._twiml(request, "transferred", self._after_dial)

    async def recorded(self, request: Request) -> Response:
        """A message was left, or none."""
        return await self._twiml(request, "recorded", self._after_message)

    async def queued(self, request: Request) -> Response:
        """Somebody has left a line."""
        return await self._twiml(request, "queued", self._after_line)

    async def served(self, request: Request) -> Response:
        """Somebody of the business has talked to who waited, or nobody did."""
        return await self._twiml(request, "served", self._after_serving)

    async def recording(self, request: Request) -> Response:
        """A recording can be fetched, or its words are there: noted, never answered with anything to do."""
        hook = await signed(request, "recording", self._deps)
        if isinstance(hook, Response):
            return hook
        report = _recording_of(hook)
        is_of_use = hook.call_sid and hook.recording_sid and hook.recording_status in ("", "completed")
        return await self._noted("recording", hook, self._deps.calls.recording(report) if is_of_use else None)

    async def status(self, request: Request) -> Response:
        """A status callback: noted, never answered with anything to do."""
        hook = await signed(request, "status", self._deps)
        if isinstance(hook, Response):
            return hook
        report = StatusReport(
            hook.call_sid, hook.call_status, hook.stream_sid, hook.stream_event, hook.stream_error
        )
        if report.call_over and not report.stream_event:
            self._deps.slots.call_over(hook.call_sid)
        return await self._noted("status", hook, self._deps.calls.status(report))

    # -- the border --------------------------------------------------------------------------------------------

    async def _noted(self, route: str, hook: Webhook, noting: Awaitable[None] | None) -> Response:
        """204 whatever becomes of it: Twilio has no use for our errors."""
        with call_context(hook.call_sid, ""):
            try:
                if noting is not None:
                    async with asyncio.timeout(self._deps.limits.answer_s):
                        await noting
            except (StorageUnavailable, TimeoutError) as error:
                log.warning(f"{route}_not_noted", error=error)
            except Exception:  # the request's border
                self._deps.metrics.webhook_failed.labels(route).inc()
                log.exception(f"{route}_failed")
        return Response(status_code=204)

    async def _twiml(
        self, request: Request, route: str, answer: Callable[[Webhook, BusinessInfo], Awaitable[str]]
    ) -> Response:
        hook = await signed(request, route, self._deps)
        if isinstance(hook, Response):
            return hook
        business: BusinessInfo | None = None
        try:
            business = self._deps.flows.business_for(hook.to)
            if business is None:
                return self._unknown_number()
            if not hook.call_sid:
                raise BadMessage("webhook without a CallSid")
            with call_context(hook.call_sid, business.id):
                async with asyncio.timeout(self._deps.limits.answer_s):
                    return xml(await answer(hook, business))
        except Exception:  # the request's border: the caller hears a sentence, not an error page
            self._deps.metrics.webhook_failed.labels(route).inc()
            log.exception("webhook_failed", route=route, call_sid=hook.call_sid)
            self._deps.slots.call_over(hook.call_sid)
            return xml(self._apology(hook, business))

    def _unknown_number(self) -> Response:
        self._deps.metrics.calls_refused.labels("unknown_number").inc()
        log.warning("unknown_number")
        return xml(twiml.say_and_hang_up(NO_SUCH_NUMBER))

    def _apology(self, hook: Webhook, business: BusinessInfo | None) -> str:
        if business is None:
            return twiml.say_and_hang_up(NOBODY_KNOWS)
        # A dial that was itself the answer to a failed dial would ring the same telephone for ever.
        number = None if hook.dial_status else business.down_number
        return self._out_of_here(hook, business, business.down_say, number)

    # -- the answers -------------------------------------------------------------------------------------------

    async def _arrived(self, hook: Webhook, business: BusinessInfo) -> str:
        deps = self._deps
        if hook.is_machine:
            log.info("machine_answered")
            return twiml.hang_up()
        if deps.draining():
            return self._busy("draining", hook, business)
        if not deps.slots.reserve(hook.call_sid, deps.now()):
            return self._busy("limit", hook, business)
        caller = caller_of(hook.from_, hook.stir, hook.to)
        opened: OpenResult | None = await self._ask(
            deps.calls.open_call(
                hook.call_sid,
                business.id,
                caller,
                hook.to,
                is_attested=is_attested(hook.stir, caller),
                account_sid=hook.account_sid,
            ),
            None,
        )
        if opened is OpenResult.OVER:
            deps.slots.call_over(hook.call_sid)
            return twiml.hang_up()
        log.info("call_arrived", opened=opened or "unrecorded", withheld=caller is None)
        return self._stream(hook, business)

    async def _came_back(self, hook: Webhook, business: BusinessInfo) -> str:
        outcome = await self._ask(self._deps.calls.outcome(hook.call_sid), GoOn())
        log.info("call_came_back", outcome=type(outcome).__name__, streams_before=hook.streams.before)
        if isinstance(outcome, GoOn) and not self._deps.draining():
            count = hook.streams.over(self._deps.now())
            if count.is_hopeless(self._deps.limits.streams_per_call):
                return await self._give_up(hook, business)
        return self._next(hook, business, outcome)

    async def _give_up(self, hook: Webhook, business: BusinessInfo) -> str:
        """Streams come and go, and another one would do so too."""
        log.error("streams_in_vain", streams_before=hook.streams.before, short=hook.streams.short)
        outcome = await self._ask(self._deps.calls.give_up(hook.call_sid), None)
        return self._apology(hook, business) if outcome is None else self._next(hook, business, outcome)

    async def _pressed(self, hook: Webhook, business: BusinessInfo) -> str:
        digits = None if hook.begins else hook.digits
        outcome = await self._ask(self._deps.calls.keys(hook.call_sid, digits), None)
        return self._apology(hook, business) if outcome is None else self._next(hook, business, outcome)

    async def _after_dial(self, hook: Webhook, business: BusinessInfo) -> str:
        report = DialReport(hook.call_sid, hook.leg, hook.dial_status, hook.dial_bridged, hook.call_over)
        lost = GoOn(business.not_reached_say)
        outcome = await self._ask(self._deps.calls.transfer_result(report), lost)
        log.info("dial_over", dial_status=hook.dial_status, outcome=type(outcome).__name__)
        was_taken = hook.dial_status in ("completed", "answered") and hook.dial_bridged != "false"
        if was_taken or hook.call_over:
            return twiml.hang_up()
        if isinstance(outcome, Ended):
            outcome = Ended(outcome.say or business.not_reached_say)
        return self._next(hook, business, outcome)

    async def _after_message(self, hook: Webhook, business: BusinessInfo) -> str:
        calls = self._deps.calls
        if hook.recording_sid:  # the recording's own callback may be late, or lost
            await self._ask(calls.recording(_recording_of(hook)), None)
        next_ = calls.message_left(
            hook.call_sid,
            hook.leg,
            is_empty=hook.is_empty or not hook.recording_sid,
            call_over=hook.call_over,
        )
        outcome = await self._ask(next_, GoOn())
        log.info("message_over", is_empty=hook.is_empty, outcome=type(outcome).__name__)
        return twiml.hang_up() if hook.call_over else self._next(hook, business, outcome)

    async def _after_line(self, hook: Webhook, business: BusinessInfo) -> str:
        report = LineReport(hook.call_sid, hook.leg, hook.queue_result, hook.queue_s, hook.call_over)
        outcome = await self._ask(self._deps.calls.out_of_line(report), GoOn(business.not_reached_say))
        log.info("line_left", result=hook.queue_result, outcome=type(outcome).__name__)
        return twiml.hang_up() if hook.call_over else self._next(hook, business, outcome)

    async def _after_serving(self, hook: Webhook, business: BusinessInfo) -> str:
        report = DialReport(hook.call_sid, hook.leg, hook.dial_status, hook.dial_bridged, hook.call_over)
        outcome = await self._ask(self._deps.calls.transfer_result(report), GoOn())
        log.info("serving_over", dial_status=hook.dial_status, outcome=type(outcome).__name__)
        return twiml.hang_up() if hook.call_over else self._next(hook, business, outcome)

    def _next(self, hook: Webhook, business: BusinessInfo, outcome: Outcome) -> str:
        match outcome:
            case Ended(say, language):
                return twiml.say_and_hang_up(say, language or business.language)
            case TransferTo():
                return self._dial(hook, business, outcome)
            case RecordMessage():
                return _record(hook, outcome)
            case PutInLine(line, say, leg, language):
                base = hook.origin.http_base
                left, waits = f"{base}{QUEUED_PATH}?leg={leg}", f"{base}{WAITING_PATH}?leg={leg}"
                return twiml.enqueue(line, left, waits, say=say, language=language)
            case TakeFromLine(line, wait_s, say, leg, language):
                served = f"{hook.origin.http_base}{SERVED_PATH}?leg={leg}"
                return twiml.dial_line(line, served, wait_s=wait_s, say=say, language=language)
            case GoOn(say):
                return self._go_on(hook, business, say)
            case ByKeys(say, language):
                begin = f"{hook.origin.http_base}{KEYS_PATH}?begin=1"
                return twiml.say_and_redirect(say, begin, language or business.language)
            case AskKeys(say, silence_s, most, language):
                action = hook.origin.http_base + KEYS_PATH
                language = language or business.language
                return twiml.gather(say, action, timeout_s=silence_s, most=most, language=language)

    def _dial(self, hook: Webhook, business: BusinessInfo, to: TransferTo) -> str:
        base, leg = hook.origin.http_base, f"?leg={to.leg}" if to.leg else ""
        return twiml.dial(
            to.number,
            f"{base}{TRANSFERRED_PATH}{leg}",
            others=to.others,
            whisper_url=f"{base}{WHISPER_PATH}?call={hook.call_sid}" if to.whispers else "",
            say=to.say,
            language=to.language or business.language,
            timeout_s=to.timeout_s,
        )

    def _go_on(self, hook: Webhook, business: BusinessInfo, say: str) -> str:
        if self._deps.draining():
            # Another worker, or this one started anew, takes the call; the count of streams stays.
            waiting = StreamCount(hook.streams.before, hook.streams.short)
            return twiml.wait_and_redirect(self._deps.pause_s(), self._continue_url(hook, waiting))
        return self._stream(hook, business, say)

    def _busy(self, reason: str, hook: Webhook, business: BusinessInfo) -> str:
        self._deps.metrics.calls_refused.labels(reason).inc()
        number = None if hook.from_ in business.blocked else business.busy_number
        log.warning("call_refused", reason=reason, is_connected=number is not None)
        return self._out_of_here(hook, business, business.busy_say, number)

    def _out_of_here(self, hook: Webhook, business: BusinessInfo, say: str, number: str | None) -> str:
        """To a person, if there is a number; without a stream of ours in either case."""
        if number is None:
            return twiml.say_and_hang_up(say, business.language)
        action = hook.origin.http_base + TRANSFERRED_PATH
        return twiml.dial(number, action, say=say, language=business.language)

    def _stream(self, hook: Webhook, business: BusinessInfo, say: str = "") -> str:
        deps = self._deps
        caller = caller_of(hook.from_, hook.stir, hook.to)
        token = deps.tokens.mint(
            hook.call_sid,
            business.id,
            nonce=deps.new_nonce(),
            now=deps.now(),
            caller=caller,
            to_number=hook.to,
            account_sid=hook.account_sid,
            is_attested=is_attested(hook.stir, caller),
        )
        return twiml.connect_stream(
            hook.origin.ws_base + MEDIA_PATH,
            token,
            self._continue_url(hook, hook.streams.over(deps.now()).next(deps.now())),
            status_callback_url=hook.origin.http_base + STATUS_PATH,
            say=say,
            language=business.language,
        )

    def _continue_url(self, hook: Webhook, streams: StreamCount) -> str:
        return f"{hook.origin.http_base}{CONTINUE_PATH}?{streams.query()}"

    async def _ask(self, question: Awaitable[T], otherwise: T) -> T:
        """The registry's answer, or `otherwise` when the storage is down or slow: the call goes on without it."""
        asked = asyncio.ensure_future(question)
        try:
            # Not `asyncio.timeout`: a connection that is cut off takes its time to be given up, and Twilio waits.
            await asyncio.wait({asked}, timeout=self._deps.limits.registry_s)
            if asked.done():
                return asked.result()
            log.warning("registry_late")
        except StorageUnavailable as error:
            log.warning("registry_unavailable", error=error)
        finally:
            if not asked.done():
                self._given_up.add(asked)
                asked.add_done_callback(self._forget)
                asked.cancel()
        return otherwise

    def _forget(self, asked: asyncio.Future[Any]) -> None:
        """A question that nobody waits for any more."""
        self._given_up.discard(asked)
        if not asked.cancelled() and (fault := asked.exception()) is not None:
            log.info("registry_gave_up", error=type(fault).__name__)


def _recording_of(hook: Webhook) -> RecordingReport:
    return RecordingReport(
        hook.call_sid, hook.recording_sid, hook.recording_s, hook.transcript, hook.wants_text
    )


def _record(hook: Webhook, to: RecordMessage) -> str:
    base = hook.origin.http_base
    told = f"{base}{RECORDING_PATH}{'?text=1' if to.transcribe else ''}"
    action = f"{base}{RECORDED_PATH}?leg={to.leg}{'&text=1' if to.transcribe else ''}"
    return twiml.record(
        action,
        f"{base}{RECORDED_PATH}?leg={to.leg}&empty=1",
        told,
        say=to.say,
        language=to.language,
        max_s=to.max_s,
        silence_s=to.silence_s,
        finish=to.finish,
    )


async def signed(request: Request, route: str, deps: WebDeps) -> Webhook | Response:
    """The webhook, if it is Twilio's; else the refusal."""
    hook = await read_webhook(request, deps)
    if isinstance(hook, Refused):
        deps.metrics.webhook_rejected.labels(route, hook.reason).inc()
        log.warning("webhook_refused", route=route, reason=hook.reason)
        return PlainTextResponse("refused", status_code=hook.status)
    deps.metrics.webhooks.labels(route).inc()
    return hook


def xml(body: str) -> Response:
    """A TwiML answer."""
    return Response(body, media_type=twiml.CONTENT_TYPE)
