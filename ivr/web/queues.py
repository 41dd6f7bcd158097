"""The webhooks for who waits in a line: what they hear meanwhile, and the music."""

import asyncio

import structlog
from starlette.requests import Request
from starlette.responses import Response

from ivr.observe import call_context
from ivr.web.deps import LeaveLine, MusicPiece, PlaceInLine, WaitOn, WebDeps
from ivr.web.forms import Webhook
from ivr.web.voice import WAITING_PATH, signed, xml
from ivr.wire import twiml

HOLD_PATH = "/twilio/hold"
BLIND_S = 20
"""So long somebody waits before we are asked again, when we do not know what they are to hear."""
MAX_HOLD_S = 120
_CALL_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")

log = structlog.get_logger(__name__)


class QueueRoutes:
    """Whatever is broken behind them, who waits goes on waiting: somebody may take them out of the line."""

    def __init__(self, deps: WebDeps) -> None:
        self._deps = deps

    async def waiting(self, request: Request) -> Response:
        """What somebody who waits hears next; also when they have pressed a key."""
        hook = await signed(request, "waiting", self._deps)
        if isinstance(hook, Response):
            return hook
        again = f"{hook.origin.http_base}{WAITING_PATH}?leg={hook.leg}"
        with call_context(hook.call_sid, ""):
            told = await self._told(hook)
            match told:
                case LeaveLine(reason):
                    log.info("leaves_line", reason=reason, waited_s=hook.queue_s)
                    return xml(twiml.leave_line())
                case WaitOn(text, language, has_music, leave, for_s):
                    sound = self._music_url(hook, for_s) if has_music else ""
                    return xml(
                        twiml.wait_in_line(
                            text, again, for_s, sound_url=sound, has_key=bool(leave), language=language
                        )
                    )

    async def hold(self, request: Request) -> Response:
        """Some seconds of the line's music. No signature: the address is told to nobody but the network."""
        query = request.query_params
        call_sid, from_s, for_s = query.get("call", ""), query.get("from", ""), query.get("for", "")
        is_right = from_s.isdecimal() and for_s.isdecimal() and len(from_s) < 6 and len(for_s) < 4
        if not is_right or not 0 < len(call_sid) <= 64 or not set(call_sid) <= _CALL_CHARS:
            return Response(status_code=404)
        try:
            async with asyncio.timeout(self._deps.limits.answer_s):
                piece = MusicPiece(call_sid, int(from_s), min(int(for_s), MAX_HOLD_S))
                wav = await self._deps.calls.hold_music(piece)
        except Exception:  # the request's border: who waits hears nothing for a while
            self._deps.metrics.webhook_failed.labels("hold").inc()
            log.exception("hold_music_failed")
            wav = None
        return Response(status_code=404) if wav is None else Response(wav, media_type="audio/wav")

    async def _told(self, hook: Webhook) -> WaitOn | LeaveLine:
        place = PlaceInLine(hook.call_sid, hook.leg, hook.queue_position, hook.queue_s, hook.digits)
        try:
            async with asyncio.timeout(self._deps.limits.answer_s):
                return await self._deps.calls.waiting(place)
        except Exception:  # the request's border: see the class
            self._deps.metrics.webhook_failed.labels("waiting").inc()
            log.exception("waiting_failed")
            return WaitOn(for_s=BLIND_S)

    def _music_url(self, hook: Webhook, for_s: int) -> str:
        query = f"call={hook.call_sid}&from={hook.queue_s}&for={for_s}"
        return f"{hook.origin.http_base}{HOLD_PATH}?{query}"
