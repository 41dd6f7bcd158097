"""Tools over real sockets: where they may go, what is sent, and that an answer is bounded in time and size."""

import hashlib
import hmac
import ipaddress
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import SecretStr
from structlog.testing import capture_logs

from callflows.tools import Tool
from ivr.adapters.outgoing_http import MAX_BYTES, OutgoingHttp, is_public
from ivr.core.commands import UseTool
from ivr.core.events import ToolAnswered
from ivr.toolbox import FlowSecrets, Toolbox

KEY = "0123456789abcdef"
SECRETS = {"SHOP_KEY": SecretStr("k3y-of-the-shop"), "SHOP_SECRET": SecretStr("hush")}


@dataclass
class System:
    """A business's system: keeps what it was asked, answers as it is told."""

    url: str = ""
    asked: list[tuple[web.Request, bytes]] = field(default_factory=list)
    answer: Callable[[], Awaitable[web.StreamResponse]] = field(default=lambda: ok({"left": 3}))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request, await request.read()))
        return await self.answer()


async def ok(body: object, status: int = 200) -> web.Response:
    return web.json_response(body, status=status)


@pytest_asyncio.fixture
async def system() -> AsyncIterator[System]:
    made = System()
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", made.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


def order(system: System, path: str = "/stock/{item}", **more: object) -> UseTool:
    parts: dict[str, object] = {"description": "x", "url": system.url + path, "retries": 0, **more}
    return UseTool(KEY, "stock", Tool.model_validate(parts).request({"item": "a lamp/7", "party": 4}))


async def use(what: UseTool, *, private: tuple[str, ...] = ("127.0.0.1", "localhost")) -> ToolAnswered:
    async with OutgoingHttp(private) as http:
        return await Toolbox(http, FlowSecrets(SECRETS), now_s=lambda: 1_700_000_000.9).use(what)


FAILED = ToolAnswered(KEY, None, is_failed=True)


async def test_a_request_arrives_as_the_file_says_signed_and_with_its_key(system: System) -> None:
    answered = await use(
        order(
            system,
            headers={"Authorization": "Bearer ${SHOP_KEY}"},
            secret="${SHOP_SECRET}",
            body={"item": "{item}", "people": "{party}"},
        )
    )
    assert answered == ToolAnswered(KEY, {"left": 3})
    ((request, body),) = system.asked
    assert (request.method, request.raw_path) == ("POST", "/stock/a%20lamp%2F7")
    assert json.loads(body) == {"item": "a lamp/7", "people": 4}
    assert request.headers["Authorization"] == "Bearer k3y-of-the-shop"
    assert request.headers["Idempotency-Key"] == KEY
    signed = f"1700000000.{KEY}.POST.{system.url}/stock/a%20lamp%2F7.".encode() + body
    mac = hmac.new(b"hush", signed, hashlib.sha256).hexdigest()
    assert request.headers["Callthread-Signature"] == f"t=1700000000,v1={mac}"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
async def test_a_private_address_is_not_connected_to(system: System, host: str) -> None:
    port = system.url.rpartition(":")[2]
    what = order(system)
    assert what.request is not None
    request = what.request.__class__("GET", f"http://{host}:{port}/", (), None, "", 2, 0)
    with capture_logs() as logs:
        assert await use(UseTool(KEY, "stock", request), private=()) == FAILED
    assert system.asked == []
    assert [entry["outcome"] for entry in logs] == ["private address"]


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("10.0.0.1", False),
        ("172.16.9.9", False),
        ("192.168.1.1", False),
        ("127.0.0.1", False),
        ("0.0.0.0", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fc00::1", False),
        ("ff02::1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::a00:1", False),
        ("64:ff9b::808:808", True),
        ("2002:a00:1::", False),
    ],
)
def test_public_addresses(address: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is public


async def test_a_redirect_is_not_followed(system: System) -> None:
    async def away() -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": f"{system.url}/elsewhere"})

    system.answer = away
    assert await use(order(system)) == FAILED
    assert len(system.asked) == 1


async def test_an_answer_that_is_too_large_is_none(system: System) -> None:
    system.answer = lambda: ok({"left": "x" * MAX_BYTES})
    assert await use(order(system)) == FAILED


@pytest.mark.parametrize("body", [b"<html>", b"\xff\xfe", b"[" * 60_000, b'{"a": 1'])
async def test_an_answer_that_is_no_json_is_none(system: System, body: bytes) -> None:
    async def odd() -> web.StreamResponse:
        return web.Response(body=body)

    system.answer = odd
    assert await use(order(system)) == FAILED


async def test_an_empty_answer_is_an_empty_one(system: System) -> None:
    async def nothing() -> web.StreamResponse:
        return web.Response(status=204)

    system.answer = nothing
    assert await use(order(system)) == ToolAnswered(KEY, {})


async def test_a_failure_of_the_moment_is_tried_again_with_the_same_key(system: System) -> None:
    statuses = iter([503, 429, 200])
    system.answer = lambda: ok({"left": 1}, status=next(statuses))
    assert await use(order(system, retries=2)) == ToolAnswered(KEY, {"left": 1})
    assert [request.headers["Idempotency-Key"] for request, _ in system.asked] == [KEY] * 3


async def test_a_refusal_is_not_tried_again(system: System) -> None:
    system.answer = lambda: ok({}, status=404)
    assert await use(order(system, retries=2)) == FAILED
    assert len(system.asked) == 1


async def test_who_does_not_answer_is_not_waited_for(system: System) -> None:
    slow = web.StreamResponse()

    async def never() -> web.StreamResponse:
        await slow.prepare(system.asked[-1][0])
        await slow.write(b'{"left":')
        return slow

    system.answer = never
    with capture_logs() as logs:
        assert await use(order(system, timeout_s=0.5)) == FAILED
    assert logs[0]["outcome"] in ("timeout", "ClientPayloadError", "JSONDecodeError")


async def test_a_secret_that_is_not_there_sends_nothing_and_no_log_tells_one(system: System) -> None:
    with capture_logs() as logs:
        assert await use(order(system, headers={"X-Key": "${NOT_THERE}"})) == FAILED
        assert await use(order(system, headers={"X-Key": "${SHOP_KEY}"})) == ToolAnswered(KEY, {"left": 3})
    assert len(system.asked) == 1
    assert [entry["outcome"] for entry in logs] == ["MissingSecret", "answered"]
    assert "k3y" not in repr(logs)
    assert "lamp" not in repr(logs)


async def test_a_value_that_does_not_fit_the_url_sends_nothing(system: System) -> None:
    assert await use(UseTool(KEY, "stock", None)) == FAILED
    assert system.asked == []


async def test_a_name_that_is_nobody_s_fails(system: System) -> None:
    tool = Tool.model_validate({"description": "x", "url": "https://nobody.invalid/", "retries": 0})
    assert await use(UseTool(KEY, "stock", tool.request({}))) == FAILED
