"""Twilio's REST API, as a server of our own: what is asked of it and what its answers mean."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ivr.adapters.twilio_accounts import TwilioAccounts
from ivr.adapters.twilio_rest import MAX_AT_ONCE, TwilioTelephony
from ivr.errors import TelephonyError
from ivr.wire import twiml
from tests.integration.web_kit import serving

ACCOUNT = "AC00000000000000000000000000000001"


class Api:
    """Answers as told and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.users: set[str] = set()
        self.status, self.code = 200, 0
        self.hold: asyncio.Event | None = None
        self.at_once = self.most_at_once = 0

    async def call(self, request: Request) -> Response:
        self.asked.append((request.url.path, dict(parse_qsl((await request.body()).decode()))))
        self.users.add(request.headers["authorization"])
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        if self.hold:
            await self.hold.wait()
        self.at_once -= 1
        sid = request.path_params["sid"]
        if self.status != 200:
            return JSONResponse({"code": self.code, "message": "no", "status": self.status}, self.status)
        return JSONResponse({"sid": sid, "account_sid": ACCOUNT, "status": "completed"})


@asynccontextmanager
async def api() -> AsyncIterator[tuple[Api, str]]:
    server_side = Api()
    path = "/base/2010-04-01/Accounts/{account}/Calls/{sid}.json"
    async with serving(Starlette(routes=[Route(path, server_side.call, methods=["POST"])])) as server:
        yield server_side, f"http://127.0.0.1:{server.port}/base"


async def test_calls_are_ended_and_updated() -> None:
    async with api() as (server, url):
        telephony = TwilioTelephony(TwilioAccounts(ACCOUNT, "tok", url))
        await telephony.hang_up("CA1")
        await telephony.update("CA2", twiml.say_and_redirect("Bye", "https://a.test/c"))
    path = f"/base/2010-04-01/Accounts/{ACCOUNT}/Calls/"
    assert server.asked[0] == (path + "CA1.json", {"Status": "completed"})
    assert server.asked[1][0] == path + "CA2.json"
    assert server.asked[1][1]["Twiml"].startswith("<Response><Say")
    assert server.users == {"Basic " + base64.b64encode(f"{ACCOUNT}:tok".encode()).decode()}


@pytest.mark.parametrize(("status", "code"), [(404, 20404), (400, 21220)])
async def test_a_call_that_is_gone_is_no_error(status: int, code: int) -> None:
    async with api() as (server, url):
        server.status, server.code = status, code
        await TwilioTelephony(TwilioAccounts(ACCOUNT, "tok", url)).hang_up("CA1")
    assert len(server.asked) == 1


@pytest.mark.parametrize(("status", "code"), [(401, 20003), (429, 20429), (500, 20500), (400, 21218)])
async def test_every_other_refusal_is_a_telephony_error(status: int, code: int) -> None:
    async with api() as (server, url):
        server.status, server.code = status, code
        with pytest.raises(TelephonyError, match=str(status)):
            await TwilioTelephony(TwilioAccounts(ACCOUNT, "tok", url)).hang_up("CA1")


async def test_an_api_that_is_not_there_is_a_telephony_error() -> None:
    async with api() as (_, url):
        pass
    with pytest.raises(TelephonyError) as caught:
        await TwilioTelephony(TwilioAccounts(ACCOUNT, "hush", url)).hang_up("CA1")
    assert "hush" not in str(caught.value)


async def test_an_api_that_does_not_answer_is_not_waited_for_and_does_not_stop_the_loop() -> None:
    async with api() as (server, url):
        server.hold = asyncio.Event()
        with pytest.raises(TelephonyError):  # the server answers on this same loop
            await TwilioTelephony(TwilioAccounts(ACCOUNT, "tok", url, timeout_s=0.1)).hang_up("CA1")
        server.hold.set()


async def test_requests_at_once_are_bounded() -> None:
    async with api() as (server, url):
        telephony = TwilioTelephony(TwilioAccounts(ACCOUNT, "tok", url))
        await asyncio.gather(*(telephony.hang_up(f"CA{n}") for n in range(3 * MAX_AT_ONCE)))
    assert len(server.asked) == 3 * MAX_AT_ONCE
    assert server.most_at_once <= MAX_AT_ONCE


@pytest.mark.parametrize(("sid", "token"), [(None, "tok"), (ACCOUNT, None), ("", "")])
async def test_without_an_account_it_says_what_is_missing(
    sid: str | None, token: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWILIO_ACCOUNT_SID", "ACx")  # settings decide, not what the library finds
    monkeypatch.setenv("TWILIO_AUTH_TOKEN", "x")
    with pytest.raises(TelephonyError, match="TWILIO_ACCOUNT_SID"):
        await TwilioTelephony(TwilioAccounts(sid, token)).hang_up("CA1")


async def test_b063_twiml_too_long_for_an_update_is_not_sent() -> None:
    async with api() as (server, url):
        with pytest.raises(TelephonyError, match="too long"):
            await TwilioTelephony(TwilioAccounts(ACCOUNT, "tok", url)).update(
                "CA1", twiml.say_and_hang_up("x" * 4000)
            )
    assert server.asked == []
