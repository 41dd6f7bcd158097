"""Tells businesses' systems what happened: `memory.notices.Notifier` over signed HTTP, as their flow files say."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence

import structlog

from callflows.model import Webhook
from ivr.adapters.outgoing_http import Outgoing, OutgoingHttp, SendFailed
from ivr.shelf import FlowShelf
from ivr.toolbox import FlowSecrets, MissingSecret
from ivr.wire.outgoing import KEY_HEADER, SIGNATURE_HEADER, signature
from memory.notices import Message, NotSent

TIMEOUT_S = 10.0

log = structlog.get_logger()


class WebhookSender:
    """Sends each message to every webhook that wants its event. The receiver may get it more than once."""

    def __init__(
        self,
        shelf: FlowShelf,
        http: OutgoingHttp,
        secrets: FlowSecrets,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._shelf = shelf
        self._http = http
        self._secrets = secrets
        self._now_s = now_s

    def businesses(self, event: str) -> Sequence[str]:
        """See `Notifier`."""
        return [name for name, business in self._shelf.businesses.items() if business.tells(event)]

    async def send(self, message: Message) -> None:
        """See `Notifier`: all of the webhooks took it, or it is sent to all of them again."""
        await asyncio.to_thread(self._shelf.look)
        business = self._shelf.businesses.get(message.business_id)
        hooks = business.tells(message.event) if business is not None else ()
        body = json.dumps(message.content, ensure_ascii=False).encode()
        failed = ""
        for hook in hooks:
            try:
                await self._http.send(self._request(hook, message.message_id, body))
            except SendFailed as error:
                failed = error.reason
            except MissingSecret as missing:
                failed = f"{missing} is not set"
        if failed:
            raise NotSent(failed)
        log.info("notice_sent", business=message.business_id, notice_event=message.event, count=len(hooks))

    def _request(self, hook: Webhook, key: str, body: bytes) -> Outgoing:
        secret = self._secrets.filled(hook.secret)
        headers = {
            "Content-Type": "application/json",
            KEY_HEADER: key,
            SIGNATURE_HEADER: signature(secret, int(self._now_s()), key, "POST", hook.url, body),
        }
        return Outgoing("POST", hook.url, headers, body, TIMEOUT_S)
