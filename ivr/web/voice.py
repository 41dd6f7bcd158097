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
    Ended,
    GoOn,
    OpenResult,
    Outcome,
    StatusReport,
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

    async def status(self, request: Request) -> Response:
        """A status callback: noted, never answered with anything to do."""
        hook = await self._signed(request, "status")
        if isinstance(hook, Response):
            return hook
        report = StatusReport(
            hook.call_sid, hook.call_status, hook.stream_sid, hook.stream_event, hook.stream_error
        )
        if report.call_over and not report.stream_event:
            self._deps.slots.call_over(hook.call_sid)
        with call_context(hook.call_sid, ""):
            try:
                async with asyncio.timeout(self._deps.limits.answer_s):
                    await self._deps.calls.status(report)
            except (StorageUnavailable, TimeoutError) as error:
                log.warning("status_not_noted", error=error)
            except Exception:  # the request's border: Twilio has no use for our errors
                self._deps.metrics.webhook_failed.labels("status").inc()
                log.exception("status_failed")
        return Response(status_code=204)

    # -- the border --------------------------------------------------------------------------------------------

    async def _signed(self, request: Request, route: str) -> Webhook | Response:
        hook = await read_webhook(request, self._deps)
        if isinstance(hook, Refused):
            self._deps.metrics.webhook_rejected.labels(route, hook.reason).inc()
            log.warning("webhook_refused", route=route, reason=hook.reason)
            return PlainTextResponse("refused", status_code=hook.status)
        self._deps.metrics.webhooks.labels(route).inc()
        return hook

    async def _twiml(
        self, request: Request, route: str, answer: Callable[[Webhook, BusinessInfo], Awaitable[str]]
    ) -> Response:
        hook = await self._signed(request, route)
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
                    return _xml(await answer(hook, business))
        except Exception:  # the request's border: the caller hears a sentence, not an error page
            self._deps.metrics.webhook_failed.labels(route).inc()
            log.exception("webhook_failed", route=route, call_sid=hook.call_sid)
            self._deps.slots.call_over(hook.call_sid)
            return _xml(self._apology(hook, business))

    def _unknown_number(self) -> Response:
        self._deps.metrics.calls_refused.labels("unknown_number").inc()
        log.warning("unknown_number")
        return _xml(twiml.say_and_hang_up(NO_SUCH_NUMBER))

    def _apology(self, hook: Webhook, business: BusinessInfo | None) -> str:
        if business is None:
            return twiml.say_and_hang_up(NOBODY_KNOWS)
        # A dial that was itself the answer to a failed dial would ring the same telephone for ever.
        if business.down_number and not hook.dial_status:
            return twiml.dial(
                business.down_number,
                hook.origin.http_base + TRANSFERRED_PATH,
                say=business.down_say,
                language=business.language,
            )
        return twiml.say_and_hang_up(business.down_say, business.language)

    # -- the answers -------------------------------------------------------------------------------------------

    async def _arrived(self, hook: Webhook, business: BusinessInfo) -> str:
        deps = self._deps
        if deps.draining():
            return self._busy("draining", business)
        if not deps.slots.reserve(hook.call_sid, deps.now()):
            return self._busy("limit", business)
        caller = caller_of(hook.from_, hook.stir)
        opened: OpenResult | None = await self._ask(
            deps.calls.open_call(
                hook.call_sid, business.id, caller, hook.to, is_attested=is_attested(hook.stir)
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
        outcome = await self._ask(self._deps.calls.transfer_result(hook.call_sid, hook.dial_status), GoOn())
        log.info("dial_over", dial_status=hook.dial_status, outcome=type(outcome).__name__)
        if hook.dial_status in ("completed", "answered"):
            return twiml.hang_up()
        match outcome:
            case GoOn(say):
                outcome = GoOn(say or business.not_reached_say)
            case Ended(say):
                outcome = Ended(say or business.not_reached_say)
            case TransferTo(number, say, timeout_s):
                outcome = TransferTo(number, say or business.not_reached_say, timeout_s)
        return self._next(hook, business, outcome)

    def _next(self, hook: Webhook, business: BusinessInfo, outcome: Outcome) -> str:
        match outcome:
            case Ended(say):
                return twiml.say_and_hang_up(say, business.language)
            case TransferTo(number, say, timeout_s):
                action = hook.origin.http_base + TRANSFERRED_PATH
                return twiml.dial(number, action, say=say, language=business.language, timeout_s=timeout_s)
            case GoOn(say):
                return self._go_on(hook, business, say)
            case ByKeys(say):
                begin = f"{hook.origin.http_base}{KEYS_PATH}?begin=1"
                return twiml.say_and_redirect(say, begin, business.language)
            case AskKeys(say, silence_s, most, language):
                action = hook.origin.http_base + KEYS_PATH
                language = language or business.language
                return twiml.gather(say, action, timeout_s=silence_s, most=most, language=language)

    def _go_on(self, hook: Webhook, business: BusinessInfo, say: str) -> str:
        if self._deps.draining():
            # Another worker, or this one started anew, takes the call; the count of streams stays.
            waiting = StreamCount(hook.streams.before, hook.streams.short)
            return twiml.wait_and_redirect(self._deps.pause_s(), self._continue_url(hook, waiting))
        return self._stream(hook, business, say)

    def _busy(self, reason: str, business: BusinessInfo) -> str:
        self._deps.metrics.calls_refused.labels(reason).inc()
        log.warning("call_refused", reason=reason)
        return twiml.say_and_hang_up(business.busy_say, business.language)

    def _stream(self, hook: Webhook, business: BusinessInfo, say: str = "") -> str:
        deps = self._deps
        token = deps.tokens.mint(
            hook.call_sid,
            business.id,
            nonce=deps.new_nonce(),
            now=deps.now(),
            caller=caller_of(hook.from_, hook.stir),
            to_number=hook.to,
            account_sid=hook.account_sid,
            is_attested=is_attested(hook.stir),
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


def _xml(body: str) -> Response:
    return Response(body, media_type=twiml.CONTENT_TYPE)
