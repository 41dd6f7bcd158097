"""The webhooks for who is called: they hear who calls, and take the call by a key or do not."""

import asyncio

import structlog
from starlette.requests import Request
from starlette.responses import Response

from ivr.observe import call_context
from ivr.web.deps import WebDeps
from ivr.web.voice import signed, xml
from ivr.wire import twiml

ACCEPT_PATH = "/twilio/accept"

log = structlog.get_logger(__name__)


class CalledRoutes:
    """Whatever is broken behind them, who answered is connected: a caller is waiting."""

    def __init__(self, deps: WebDeps) -> None:
        self._deps = deps

    async def whisper(self, request: Request) -> Response:
        """Somebody who was called has answered."""
        hook = await signed(request, "whisper", self._deps)
        if isinstance(hook, Response):
            return hook
        with call_context(hook.for_call, ""):
            try:
                async with asyncio.timeout(self._deps.limits.answer_s):
                    told = await self._deps.calls.whisper(hook.for_call)
            except Exception:  # the request's border: see the class
                self._deps.metrics.webhook_failed.labels("whisper").inc()
                log.exception("whisper_failed")
                told = None
            if told is None:
                return xml(twiml.connect_called())
            url = f"{hook.origin.http_base}{ACCEPT_PATH}?key={_named(told.accept)}"
            return xml(twiml.ask_to_accept(told.text, url, told.language))

    async def accept(self, request: Request) -> Response:
        """They pressed a key."""
        hook = await signed(request, "accept", self._deps)
        if isinstance(hook, Response):
            return hook
        is_taken = _named(hook.digits) == request.query_params.get("key", "")
        log.info("transfer_answered", is_taken=is_taken)
        return xml(twiml.connect_called() if is_taken else twiml.hang_up())


def _named(key: str) -> str:
    """A key as it may stand in a URL."""
    return {"*": "star", "#": "hash"}.get(key, key)
