"""The media socket: signature, then `start`, then a token for this call and unspent; only then a call runs."""

import asyncio

import structlog
from starlette.websockets import WebSocket

from ivr.adapters.twilio_socket import GONE, TwilioCallerLink, WaitingRoom, close_quietly, read_start
from ivr.errors import StorageUnavailable
from ivr.observe import call_context
from ivr.web.deps import WebDeps
from ivr.web.forms import target_of
from ivr.web.slots import SpentNonces
from ivr.wire.tokens import Grant, RefusalReason, TokenRefused
from ivr.wire.twilio import StartInfo

POLICY_VIOLATION = 1008

log = structlog.get_logger(__name__)


class MediaRoute:
    """Accepts streams that Twilio opened for a call of ours, one token each."""

    def __init__(self, deps: WebDeps) -> None:
        self._deps = deps
        self._room = WaitingRoom(deps.limits.waiting_sockets)
        self._spent = SpentNonces()

    async def media(self, ws: WebSocket) -> None:
        """One connection, from handshake to close."""
        refusal = self._refusal(ws)
        if refusal is not None:
            self._refused(refusal)
            await close_quietly(ws, POLICY_VIOLATION)  # before accepting: becomes HTTP 403
            return
        try:
            admitted = await self._opening(ws)
        finally:
            self._room.leave()
        if admitted is not None:
            start, grant = admitted
            with call_context(start.call_sid, grant.business_id):
                await self._run(ws, start, grant)

    async def _opening(self, ws: WebSocket) -> tuple[StartInfo, Grant] | None:
        """Everything before the call: accept, `start`, token. `None`: the socket is closed."""
        try:
            await ws.accept()
        except GONE:
            return None
        start = await read_start(ws, self._deps.metrics, self._deps.limits.start_s)
        if start is None:
            self._refused("start")
            return None
        with call_context(start.call_sid, ""):
            grant = await self._admit(start)
        if grant is None:
            await close_quietly(ws, POLICY_VIOLATION)
            return None
        return start, grant

    def _refusal(self, ws: WebSocket) -> str | None:
        """Why this handshake is refused; `None` takes a place in the waiting room."""
        host = ws.headers.get("host", "")
        signature = ws.headers.get("x-twilio-signature", "")
        if not self._deps.checker.check_handshake(target_of(ws), host, signature):
            return "signature"
        if self._deps.draining():
            return "draining"
        return None if self._room.enter() else "waiting"

    def _refused(self, reason: str) -> None:
        self._deps.metrics.webhook_rejected.labels("media", reason).inc()
        log.warning("stream_refused", reason=reason)

    async def _admit(self, start: StartInfo) -> Grant | None:
        now = self._deps.now()
        grant = self._deps.tokens.verify(start.parameters.get("token", ""), start.call_sid, now)
        if isinstance(grant, TokenRefused):
            self._refused(grant.reason)
            return None
        if grant.account_sid and grant.account_sid != start.account_sid:
            self._refused(RefusalReason.ACCOUNT)
            return None
        if not self._spent.spend(grant.nonce, grant.expires_at, now) or not await self._spend(start, grant):
            self._refused(RefusalReason.SPENT)
            return None
        return grant

    async def _spend(self, start: StartInfo, grant: Grant) -> bool:
        try:
            async with asyncio.timeout(self._deps.limits.registry_s):
                return await self._deps.calls.spend_token(grant.nonce, start.call_sid, grant.expires_at)
        except (StorageUnavailable, TimeoutError) as error:
            # The token itself is proof of our webhook; that it is used once is then known to this process only.
            log.warning("token_spent_in_memory", error=error)
            return True

    async def _run(self, ws: WebSocket, start: StartInfo, grant: Grant) -> None:
        deps = self._deps
        deps.slots.occupy(start.call_sid)
        deps.metrics.calls_started.inc()
        deps.metrics.calls_active.inc()
        link = TwilioCallerLink(ws, start, deps.metrics)
        try:
            await deps.run_call(link, start, grant)
        except Exception:  # the call's border: the others go on; Twilio comes back at the continue URL
            log.exception("call_failed")
        finally:
            deps.metrics.calls_active.dec()
            deps.slots.vacate(start.call_sid)
            await link.close()
