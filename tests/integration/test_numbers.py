"""`ivr numbers` against a server that answers as Twilio's IncomingPhoneNumbers resource does."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl

import pytest
from rich.console import Console
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ivr.errors import CallthreadError, ConfigError, TelephonyError
from ivr.numbers import connect_number, list_numbers
from ivr.settings import Settings
from tests.integration.web_kit import serving

ACCOUNT = "AC00000000000000000000000000000001"
DENTAL, PLUMBING, OTHER = "+16175550140", "+13125550160", "+16175550199"
PUBLIC = "https://ivr.test"
HERE = f"{PUBLIC}/twilio/voice"


def a_number(number: str, **fields: str | None) -> dict[str, str | None]:
    return {
        "sid": "PN" + number[1:].zfill(32),
        "phone_number": number,
        "friendly_name": f"line {number[-2:]}",
        "voice_url": "",
        "voice_method": "POST",
        "status_callback": "",
        "voice_application_sid": "",
        "trunk_sid": None,
    } | fields


class Twilio:
    """An account with numbers. `keeps`: fields that an update does not change."""

    def __init__(self, *numbers: dict[str, str | None]) -> None:
        self.numbers = {number["sid"]: number for number in numbers}
        self.keeps: set[str] = set()
        self.status = 200

    async def listed(self, _: Request) -> Response:
        if self.status != 200:
            return JSONResponse({"code": 20003, "message": "no", "status": self.status}, self.status)
        return JSONResponse({"incoming_phone_numbers": list(self.numbers.values()), "next_page_uri": None})

    async def updated(self, request: Request) -> Response:
        number = self.numbers[request.path_params["sid"]]
        given = dict(parse_qsl((await request.body()).decode(), keep_blank_values=True))
        names = {"VoiceUrl": "voice_url", "VoiceMethod": "voice_method", "StatusCallback": "status_callback"}
        names |= {"VoiceApplicationSid": "voice_application_sid", "TrunkSid": "trunk_sid"}
        number |= {names[n]: v for n, v in given.items() if n in names and names[n] not in self.keeps}
        return JSONResponse(number)


@asynccontextmanager
async def account(*numbers: dict[str, str | None]) -> AsyncIterator[tuple[Twilio, Settings]]:
    twilio = Twilio(*numbers)
    path = f"/2010-04-01/Accounts/{ACCOUNT}/IncomingPhoneNumbers"
    routes = [
        Route(path + ".json", twilio.listed),
        Route(path + "/{sid}.json", twilio.updated, methods=["POST"]),
    ]
    async with serving(Starlette(routes=routes)) as server:
        yield (
            twilio,
            Settings.load(
                {
                    "TWILIO_ACCOUNT_SID": ACCOUNT,
                    "TWILIO_AUTH_TOKEN": "tok",
                    "TWILIO_API_BASE_URL": f"http://127.0.0.1:{server.port}",
                    "IVR_PUBLIC_URL": PUBLIC,
                }
            ),
        )


async def printed(work: Callable[[Console], None]) -> str:
    out = Console(file=io.StringIO(), width=200)
    await asyncio.to_thread(work, out)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


async def test_the_list_says_where_calls_go_and_what_is_missing() -> None:
    numbers = (
        a_number(DENTAL, voice_url=HERE),
        a_number(PLUMBING, voice_url="https://demo.twilio.com/welcome"),
        a_number(OTHER, voice_url=HERE, trunk_sid="TK1"),
    )
    async with account(*numbers) as (_, settings):
        text = await printed(lambda out: list_numbers(settings, out, as_json=False))
        rows = json.loads(await printed(lambda out: list_numbers(settings, out, as_json=True)))
    dental, plumbing, other = (
        next(row for row in text.splitlines() if n in row) for n in (DENTAL, PLUMBING, OTHER)
    )
    assert "harbor-dental" in dental and "this service" in dental
    assert "northside-plumbing" in plumbing and "demo.twilio.com" in plumbing
    assert "none" in other and "SIP trunk TK1" in other
    assert [row["connected"] for row in rows["numbers"]] == [True, False, False]
    assert rows["numbers"][0]["business"] == "harbor-dental"


async def test_a_number_of_a_business_that_the_account_lacks_is_named() -> None:
    async with account(a_number(DENTAL)) as (_, settings):
        text = await printed(lambda out: list_numbers(settings, out, as_json=False))
        rows = json.loads(await printed(lambda out: list_numbers(settings, out, as_json=True)))
    assert f"{PLUMBING} of northside-plumbing is not a number of this account" in text
    assert rows["not_in_account"][PLUMBING] == "northside-plumbing"
    assert "nowhere" in text


async def test_a_number_is_connected_and_what_it_was_is_said() -> None:
    async with account(a_number(DENTAL, voice_url="https://old.test/voice", voice_method="GET")) as (
        twilio,
        settings,
    ):
        text = await printed(lambda out: connect_number(settings, out, DENTAL))
        (number,) = twilio.numbers.values()
    assert (number["voice_url"], number["voice_method"]) == (HERE, "POST")
    assert number["status_callback"] == f"{PUBLIC}/twilio/status"
    assert "https://old.test/voice" in text and HERE in text


async def test_a_trunk_or_application_that_would_go_before_is_taken_off() -> None:
    busy = a_number(DENTAL, voice_url=HERE, voice_application_sid="AP1", trunk_sid="TK1")
    async with account(busy) as (twilio, settings):
        assert "TK1" in await printed(lambda out: connect_number(settings, out, DENTAL))
        (number,) = twilio.numbers.values()
        assert (number["voice_application_sid"], number["trunk_sid"]) == ("", "")
    async with account(busy | {"trunk_sid": "TK1"}) as (twilio, settings):
        twilio.keeps.add("trunk_sid")
        with pytest.raises(CallthreadError, match="TK1"):
            await printed(lambda out: connect_number(settings, out, DENTAL))


async def test_what_cannot_be_connected_says_what_to_do() -> None:
    async with account(a_number(DENTAL), a_number(OTHER)) as (twilio, settings):
        with pytest.raises(CallthreadError, match=r"\+13125550160 is not a number of this account"):
            await printed(lambda out: connect_number(settings, out, PLUMBING))
        with pytest.raises(CallthreadError, match="no business has the number"):
            await printed(lambda out: connect_number(settings, out, OTHER))
        assert all(number["voice_url"] == "" for number in twilio.numbers.values())
        twilio.status = 401
        with pytest.raises(TelephonyError, match="TWILIO_AUTH_TOKEN"):
            await printed(lambda out: list_numbers(settings, out, as_json=False))


@pytest.mark.parametrize("missing", ["TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN", "IVR_PUBLIC_URL"])
def test_a_missing_setting_is_named(missing: str) -> None:
    env = {"TWILIO_ACCOUNT_SID": ACCOUNT, "TWILIO_AUTH_TOKEN": "tok", "IVR_PUBLIC_URL": PUBLIC}
    del env[missing]
    with pytest.raises(ConfigError, match=missing):
        connect_number(Settings.load(env), Console(file=io.StringIO()), DENTAL)
