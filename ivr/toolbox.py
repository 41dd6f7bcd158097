"""Uses tools: fills in the secrets, signs, sends, and reads the answer as data."""

import json
import time
from collections.abc import Callable, Mapping

import structlog
from pydantic import SecretStr

from callflows.tools import fill_env
from ivr.adapters.outgoing_http import Outgoing, OutgoingHttp, SendFailed
from ivr.core.commands import UseTool
from ivr.core.events import ToolAnswered
from ivr.wire.outgoing import KEY_HEADER, SIGNATURE_HEADER, signature

log = structlog.get_logger()


class MissingSecret(Exception):
    """The environment lacks a variable that a flow file names."""


class FlowSecrets:
    """Values of the environment that flow files refer to by name. They are shown to nobody."""

    def __init__(self, environment: Mapping[str, SecretStr]) -> None:
        self._environment = environment

    def value(self, name: str) -> str:
        """Raises: `MissingSecret`."""
        secret = self._environment.get(name)
        if secret is None:
            raise MissingSecret(name)
        return secret.get_secret_value()

    def filled(self, text: str) -> str:
        """`text` with each `${NAME}` replaced. Raises: `MissingSecret`."""
        return fill_env(text, self.value)

    def missing(self, names: list[str]) -> list[str]:
        """Those of the names that the environment lacks."""
        return [name for name in dict.fromkeys(names) if name not in self._environment]


class Toolbox:
    """`ivr.ports.Tools` over HTTP."""

    def __init__(
        self, http: OutgoingHttp, secrets: FlowSecrets, now_s: Callable[[], float] = time.time
    ) -> None:
        self._http = http
        self._secrets = secrets
        self._now_s = now_s

    async def use(self, order: UseTool) -> ToolAnswered:
        """See the port. Never raises for what the other side, or a file, does."""
        started_s = time.monotonic()
        try:
            answer = ToolAnswered(order.key, await self._answer(order))
            outcome = "answered"
        except (SendFailed, MissingSecret, ValueError, RecursionError) as error:
            answer = ToolAnswered(order.key, None, is_failed=True)
            outcome = error.reason if isinstance(error, SendFailed) else type(error).__name__
        took_ms = round((time.monotonic() - started_s) * 1_000)
        log.info("tool_used", tool=order.tool, outcome=outcome, took_ms=took_ms)
        return answer

    async def _answer(self, order: UseTool) -> object:
        request = order.request
        if request is None:
            raise SendFailed("a value does not fit the URL")
        body = (request.body or "").encode()
        headers = {name: self._secrets.filled(text) for name, text in request.headers}
        headers[KEY_HEADER] = order.key
        if body:
            headers["Content-Type"] = "application/json"
        if request.secret:
            secret = self._secrets.value(request.secret)
            signed = signature(secret, int(self._now_s()), order.key, request.method, request.url, body)
            headers[SIGNATURE_HEADER] = signed
        outgoing = Outgoing(request.method, request.url, headers, body, request.timeout_s)
        answer = await self._http.send(outgoing, request.retries)
        return json.loads(answer) if answer.strip() else {}
