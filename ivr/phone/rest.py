"""The part of Twilio's REST API that changes live calls, served on a loopback port.

The service's `twilio.rest.Client` talks to it once its requests go to `base_url` instead of Twilio's host.
"""

import asyncio
import base64
import contextlib
import hmac
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType, TracebackType
from typing import Protocol, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ivr.phone.machine import RestUpdate
from ivr.phone.service import DEFAULT_ACCOUNT_SID

MAX_TWIML_CHARS = 4_000
_RECORDING_PATH = "/2010-04-01/Accounts/{account}/Recordings/{file}"
_CALLS_PATH = "/2010-04-01/Accounts/{account}/Calls.json"
_MESSAGES_PATH = "/2010-04-01/Accounts/{account}/Messages.json"
_CALL_PATH = "/2010-04-01/Accounts/{account}/Calls/{call}.json"


class LiveCall(Protocol):
    """A call as this API sees it."""

    @property
    def call_sid(self) -> str: ...

    @property
    def status(self) -> str: ...

    def update(self, update: RestUpdate) -> bool:
        """Change the call; False if it is over."""


class _Refusal(Exception):
    """An error as Twilio's API words it: HTTP status, Twilio's code, text."""

    def __init__(self, status: int, code: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.text = text


class FakeTwilioRest:
    """`async with FakeTwilioRest(auth_token=…) as rest`: serves until the block ends.

    `subaccounts`: auth tokens by AccountSid. Each account is reached with its own credentials or the main one's, and
    knows its own calls and recordings only, as Twilio's does.
    """

    def __init__(
        self,
        *,
        auth_token: str,
        account_sid: str = DEFAULT_ACCOUNT_SID,
        host: str = "127.0.0.1",
        port: int = 0,
        subaccounts: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.account_sid = account_sid
        self._tokens = {account_sid: auth_token, **subaccounts}
        self._calls: dict[tuple[str, str], LiveCall] = {}
        self._host = host
        self._port = port
        self._socket: socket.socket | None = None
        routes = [
            Route(_CALL_PATH, self._show, methods=["GET"]),
            Route(_CALL_PATH, self._update, methods=["POST"]),
            Route(_CALLS_PATH, self._make("CA"), methods=["POST"]),
            Route(_MESSAGES_PATH, self._make("SM"), methods=["POST"]),
            Route(_RECORDING_PATH, self._recording, methods=["GET", "DELETE"]),
        ]
        self._app = Starlette(routes=routes, exception_handlers={_Refusal: _refuse})
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self.requests: list[tuple[str, RestUpdate]] = []
        self.made: list[dict[str, str]] = []
        """The forms by which calls and messages were made, in order."""
        self.made_in: list[str] = []
        """The accounts that they were made in."""
        self.refusals: list[tuple[int, int]] = []
        """Statuses, with Twilio's codes, that the next attempts to make something are answered with."""
        self.recordings: dict[str, bytes] = {}
        """What can be fetched, as WAV files, by RecordingSid; deleted ones are gone from here."""
        self.recorded_in: dict[str, str] = {}
        """The accounts, by RecordingSid, of recordings that are not in the main one."""

    @property
    def base_url(self) -> str:
        """The address to give the service as `TWILIO_API_BASE_URL`."""
        if self._socket is None:
            raise RuntimeError("not serving: enter the block first")
        return f"http://{self._host}:{self._socket.getsockname()[1]}"

    @property
    def recordings_url(self) -> str:
        """Where recordings are."""
        return f"{self.base_url}/2010-04-01/Accounts/{self.account_sid}/Recordings"

    def register(self, call: LiveCall, account_sid: str = "") -> None:
        """Make a call of an account known; it stays known, as ended, once it is over."""
        self._calls[account_sid or self.account_sid, call.call_sid] = call

    async def __aenter__(self) -> Self:
        self._socket = socket.create_server((self._host, self._port))
        config = uvicorn.Config(self._app, lifespan="off", ws="none", log_config=None, access_log=False)
        self._server = _Server(config)
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await self._serving

    async def _show(self, request: Request) -> Response:
        return JSONResponse(_describe(request, self._call(request)))

    async def _update(self, request: Request) -> Response:
        call = self._call(request)
        form = await request.form()
        update = RestUpdate(
            status=str(form.get("Status", "")),
            twiml=str(form.get("Twiml", "")),
            url=str(form.get("Url", "")),
            method=str(form.get("Method", "POST")),
        )
        _check(update)
        self.requests.append((call.call_sid, update))
        if not call.update(update):
            raise _Refusal(404, 20_404, "The requested call is over")
        return JSONResponse(_describe(request, call))

    def _make(self, prefix: str) -> Callable[[Request], Awaitable[Response]]:
        async def make(request: Request) -> Response:
            self._authenticate(request)
            if self.refusals:
                status, code = self.refusals.pop(0)
                raise _Refusal(status, code, "refused")
            form = await request.form()
            self.made.append({name: str(value) for name, value in form.items()})
            self.made_in.append(_account(request))
            return JSONResponse(
                {"sid": f"{prefix}{len(self.made):032x}", "status": "queued"}, status_code=201
            )

        return make

    async def _recording(self, request: Request) -> Response:
        self._authenticate(request)
        sid, _, kind = request.path_params["file"].partition(".")
        if sid not in self.recordings or _account(request) != self.recorded_in.get(sid, self.account_sid):
            raise _Refusal(404, 20_404, "The requested resource was not found")
        if request.method == "DELETE":
            del self.recordings[sid]
            return Response(status_code=204)
        is_wav = kind == "wav"
        return (
            Response(self.recordings[sid], media_type="audio/x-wav") if is_wav else JSONResponse({"sid": sid})
        )

    def _call(self, request: Request) -> LiveCall:
        """The call a request is about. Raises _Refusal: wrong credentials, no such call."""
        self._authenticate(request)
        call = self._calls.get((_account(request), request.path_params["call"]))
        if call is None:
            raise _Refusal(404, 20_404, "The requested resource was not found")
        return call

    def _authenticate(self, request: Request) -> None:
        account, given = _account(request), request.headers.get("Authorization", "").encode()
        may = [
            _basic(sid, self._tokens[sid]) for sid in (self.account_sid, account) if account in self._tokens
        ]
        if not any(hmac.compare_digest(given, each) for each in may):
            raise _Refusal(401, 20_003, "Authenticate")


def _account(request: Request) -> str:
    """The AccountSid that a request names in its path."""
    return str(request.path_params["account"])


def _basic(user: str, password: str) -> bytes:
    return b"Basic " + base64.b64encode(f"{user}:{password}".encode())


def _describe(request: Request, call: LiveCall) -> dict[str, str]:
    account = _account(request)
    return {
        "sid": call.call_sid,
        "account_sid": account,
        "status": call.status,
        "direction": "inbound",
        "api_version": "2010-04-01",
        "uri": f"/2010-04-01/Accounts/{account}/Calls/{call.call_sid}.json",
    }


def _check(update: RestUpdate) -> None:
    given = [value for value in (update.status, update.twiml, update.url) if value]
    if len(given) != 1:
        raise _Refusal(400, 21_218, "Exactly one of Status, Twiml and Url is needed")
    if update.status not in {"", "completed", "canceled"}:
        raise _Refusal(400, 21_218, "Status must be completed or canceled")
    if len(update.twiml) > MAX_TWIML_CHARS:
        raise _Refusal(400, 21_218, f"Twiml is longer than {MAX_TWIML_CHARS} characters")


async def _refuse(request: Request, refusal: Exception) -> Response:
    if not isinstance(refusal, _Refusal):
        raise refusal
    body = {"code": refusal.code, "message": refusal.text, "status": refusal.status, "more_info": ""}
    return JSONResponse(body, status_code=refusal.status)


class _Server(uvicorn.Server):
    """A server that leaves the process's signals alone: it is a guest in somebody's event loop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
