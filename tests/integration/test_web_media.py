"""The media socket over real sockets: who gets in, what is survived."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx2
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from ivr.core.commands import SendClear, SendMark, SendMedia
from ivr.core.events import LineClosed, LineFrame, LineMark, LineStopped
from ivr.errors import StorageUnavailable
from ivr.ports import CallerLink
from ivr.server import Server
from ivr.web.deps import WebDeps, WebLimits
from ivr.web.routes import create_app
from tests.integration.web_kit import (
    CONNECTED,
    SID,
    STOP,
    World,
    closed_with,
    dial_stream,
    form,
    media_message,
    parameters,
    parse_twiml,
    serving,
    sign,
    signed_post,
    start_message,
    until,
    verbs,
)


@asynccontextmanager
async def worker(world: World) -> AsyncIterator[tuple[Server, WebDeps]]:
    deps = world.deps()
    async with serving(create_app(deps)) as server:
        yield server, deps


async def webhook(port: int, path: str = "/twilio/voice", **fields: str) -> str:
    body, headers = signed_post(path, form(**fields))
    async with httpx2.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"http://127.0.0.1:{port}{path}", content=body, headers=headers)
    assert answer.status_code in (200, 204)
    return answer.text


async def token_for(port: int, call_sid: str = SID) -> dict[str, str]:
    return parameters(parse_twiml(await webhook(port, call_sid=call_sid)))


@asynccontextmanager
async def stream(port: int, given: dict[str, str], call_sid: str = SID) -> AsyncIterator[ClientConnection]:
    async with dial_stream(port) as ws:
        await ws.send(CONNECTED)
        await ws.send(start_message(call_sid, given))
        yield ws


async def refused_with(port: int, *messages: str) -> int:
    async with dial_stream(port) as ws:
        with suppress(ConnectionClosed):
            for message in messages:
                await ws.send(message)
        return await closed_with(ws)


async def test_a_call_streams_both_ways_and_ends() -> None:
    world = World()

    async def speak(link: CallerLink) -> None:
        link.send(SendMedia(b"\xff" * 160))
        link.send(SendMark("r1.1"))
        link.send(SendClear())

    world.calls.behave = speak
    async with worker(world) as (server, deps):
        given = await token_for(server.port)
        async with stream(server.port, given) as ws:
            said = [await ws.recv() for _ in range(3)]
            await ws.send('{"event":"mark","sequenceNumber":"4","streamSid":"MZ1","mark":{"name":"r1.1"}}')
            await ws.send(media_message(1, b"\x01" * 160))
            await ws.send(STOP)
        await until(lambda: world.calls.ended == [SID])
        await deps.slots.empty()
    assert [str(message)[:16] for message in said] == [
        '{"event":"media"',
        '{"event":"mark",',
        '{"event":"clear"',
    ]
    assert all('"streamSid":"MZ1"' in str(message) for message in said)
    assert world.calls.heard[SID] == [
        LineMark("r1.1"),
        LineFrame(2, 1, 20, b"\x01" * 160),
        LineStopped(),
        LineClosed(1000),
    ]
    assert world.calls.grants[0].business_id == "bloom"
    assert world.count("calls_started_total") == 1
    assert world.count("calls_active") == 0
    assert world.count("frames_in_total") == 1


async def test_b010_bad_messages_are_counted_and_the_call_stays_up() -> None:
    world = World()
    bad: list[str | bytes] = [
        "not json",
        "[]",
        "{}",
        '{"event":"media","sequenceNumber":"3","streamSid":"MZ1"}',
        media_message(1, b"x").replace('"payload": "eA=="', '"payload": "!!!"'),
        media_message(1, b"x").replace('"payload": "eA=="', '"payload": "//8"'),
        '{"event":"foo"}',
        b"\x00\x01\x02",
    ]
    good = [media_message(n, bytes([n]) * 160) for n in range(1, 21)]
    async with worker(world) as (server, _):
        async with stream(server.port, await token_for(server.port)) as ws:
            for message in (*good[:10], *bad, *good[10:]):
                await ws.send(message)
            await ws.send(STOP)
        await until(lambda: world.calls.ended == [SID])
    frames = [event.ulaw for event in world.calls.heard[SID] if isinstance(event, LineFrame)]
    assert frames == [bytes([n]) * 160 for n in range(1, 21)]
    assert sum(world.count("bad_frames_total", reason=reason) for reason in ("malformed", "binary")) == len(
        bad
    )


async def test_start_twice_is_ignored() -> None:
    world = World()
    async with worker(world) as (server, _):
        given = await token_for(server.port)
        async with stream(server.port, given) as ws:
            await ws.send(start_message("CA2", given))
            await ws.send(media_message(1, b"\x01"))
        await until(lambda: world.calls.ended == [SID])
    assert list(world.calls.heard) == [SID]
    assert world.calls.heard[SID][0] == LineFrame(2, 1, 20, b"\x01")
    assert world.count("bad_frames_total", reason="order") == 1


@pytest.mark.parametrize(
    "messages",
    [
        (CONNECTED, STOP),
        (STOP,),
        (CONNECTED, *["not json"] * 25),
        (CONNECTED, *[media_message(1, b"x")] * 25),
    ],
)
async def test_without_a_start_the_socket_is_closed(messages: tuple[str, ...]) -> None:
    world = World()
    async with worker(world) as (server, _):
        assert await refused_with(server.port, *messages) == 1008
    assert not world.calls.grants
    assert world.count("webhook_rejected_total", route="media", reason="start") == 1


async def test_a_stream_of_another_account_does_not_get_in() -> None:
    world = World()
    async with worker(world) as (server, _):
        webhook_account, other_account = ("AC" + digit * 32 for digit in "ab")
        given = parameters(parse_twiml(await webhook(server.port, AccountSid=webhook_account)))
        started = start_message(SID, given)
        assert await refused_with(server.port, CONNECTED, started.replace("AC1", other_account)) == 1008
        assert world.calls.grants == []
        async with dial_stream(server.port) as ws:  # the token was not spent by that
            await ws.send(CONNECTED)
            await ws.send(started.replace("AC1", webhook_account))
            await until(lambda: world.calls.grants != [])
    assert world.count("webhook_rejected_total", route="media", reason="account") == 1


async def test_b093_only_a_token_for_this_call_gets_in() -> None:
    world = World()
    async with worker(world) as (server, _):
        port = server.port
        live, other = await token_for(port), await token_for(port, "CA2")
        async with stream(port, live) as ws:
            await until(lambda: world.calls.grants != [])
            for call_sid, given in [
                ("CA_made_up", {}),  # (a)
                (SID, {}),  # (b)
                (SID, {"token": "wrong"}),  # (c)
                (SID, {"token": other["token"]}),  # (d)
                (SID, live),  # spent
            ]:
                assert await refused_with(port, CONNECTED, start_message(call_sid, given)) == 1008
            assert await refused_with(port, CONNECTED, start_message(SID, None)) == 1008
            assert len(world.calls.grants) == 1
            await ws.send(media_message(1, b"\x07"))  # the live call is undisturbed
            await until(lambda: world.calls.heard[SID] != [])
    assert world.calls.heard[SID][0] == LineFrame(2, 1, 20, b"\x07")
    reasons = {
        r: world.count("webhook_rejected_total", route="media", reason=r)
        for r in ("missing", "forged", "spent")
    }
    assert reasons == {"missing": 3, "forged": 1, "spent": 1}
    assert world.count("webhook_rejected_total", route="media", reason="malformed") == 1


async def test_b093_silent_sockets_are_closed_and_limited() -> None:
    world = World(limits=WebLimits(start_s=0.5, waiting_sockets=10))
    async with worker(world) as (server, _):

        async def idle() -> int:
            try:
                async with dial_stream(server.port) as ws:
                    return await closed_with(ws)
            except InvalidStatus as error:
                return error.response.status_code

        codes = await asyncio.gather(*(idle() for _ in range(200)))
        assert set(codes) == {1008, 403}
        assert 10 <= codes.count(1008) < 100
        async with stream(server.port, await token_for(server.port)):  # the room is free again
            await until(lambda: world.calls.grants != [])


async def test_b096_the_handshake_is_checked_over_wss() -> None:
    world = World()
    async with worker(world) as (server, _):
        for signature in (
            "",
            "x",
            sign("https://ivr.example.test/twilio/media"),
            sign("wss://evil.test/twilio/media"),
        ):
            with pytest.raises(InvalidStatus) as refused:
                await dial_stream(server.port, signature)
            assert refused.value.response.status_code == 403
        async with dial_stream(server.port, sign("wss://ivr.example.test:443/twilio/media")):
            pass
    assert world.count("webhook_rejected_total", route="media", reason="signature") == 4
    assert not world.calls.grants


async def test_b097_webhook_and_stream_on_different_workers() -> None:
    first, second = World(), World()
    second.registry = first.registry  # the database they share
    async with worker(first) as (one, _), worker(second) as (two, _):
        for number in range(20):
            call_sid = f"CA{number}"
            here, there = (one.port, two.port) if number % 2 else (two.port, one.port)
            given = await token_for(here, call_sid)
            async with stream(there, given, call_sid) as ws:
                await ws.send(STOP)
            await webhook(here, "/twilio/status", call_sid=call_sid, CallStatus="completed")
            # A token spent at one worker is spent at the other.
            assert await refused_with(here, CONNECTED, start_message(call_sid, given)) == 1008
        await until(lambda: len(first.calls.ended) + len(second.calls.ended) == 20)
    assert len(first.registry.reports) == 20
    assert (len(first.calls.ended), len(second.calls.ended)) == (10, 10)


async def test_a_token_is_taken_and_spent_without_the_database() -> None:
    world = World()
    async with worker(world) as (server, _):
        given = await token_for(server.port)
        world.registry.fault = StorageUnavailable("down")
        async with stream(server.port, given):
            await until(lambda: world.calls.grants != [])
            assert await refused_with(server.port, CONNECTED, start_message(SID, given)) == 1008
    assert len(world.calls.grants) == 1


async def test_b100_each_way_to_end_frees_the_place() -> None:
    world = World(max_calls=1)
    failing = False

    async def fail_if_told(_link: CallerLink) -> None:
        if failing:
            raise ConnectionError("the provider is gone")

    world.calls.behave = fail_if_told
    async with worker(world) as (server, deps):
        port = server.port

        async def taken(call_sid: str) -> dict[str, str]:
            root = parse_twiml(await webhook(port, call_sid=call_sid))
            assert "Connect" in verbs(root), call_sid
            return parameters(root)

        async with stream(port, await taken("CA1"), "CA1") as ws:
            await until(lambda: deps.slots.streams == 1)
            busy = parse_twiml(await webhook(port, call_sid="CA9"))
            assert verbs(busy) == ["Say", "Hangup"]
            await ws.send(STOP)  # (a)
        await until(lambda: "CA1" in world.calls.ended)
        async with stream(port, await taken("CA2"), "CA2") as ws:
            await until(lambda: deps.slots.streams == 1)
            ws.transport.abort()  # (b)
        await deps.slots.empty()
        async with stream(port, await taken("CA3"), "CA3"):
            await until(lambda: deps.slots.streams == 1)
            await webhook(port, "/twilio/status", call_sid="CA3", CallStatus="completed")  # (c)
            await taken("CA4")
        await deps.slots.empty()
        await webhook(port, "/twilio/status", call_sid="CA4", CallStatus="completed")
        failing = True
        async with stream(port, await taken("CA5"), "CA5") as ws:
            assert await closed_with(ws) == 1000  # (d)
        await deps.slots.empty()
        failing = False
        async with stream(port, await taken("CA6"), "CA6"):
            await until(lambda: deps.slots.streams == 1)
    assert world.calls.ended == ["CA1", "CA2", "CA3", "CA5", "CA6"]


async def test_b104_fifty_resets_at_full_speed() -> None:
    world = World()
    unhandled: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unhandled.append(context))

    async def flood(link: CallerLink) -> None:
        for _ in range(100):
            for _ in range(4):
                link.send(SendMedia(b"\xff" * 160))
            await asyncio.sleep(0)
        await link.close()
        link.send(SendClear())

    world.calls.behave = flood
    async with worker(world) as (server, deps):
        for number in range(50):
            call_sid = f"CA{number}"
            async with stream(server.port, await token_for(server.port, call_sid), call_sid) as ws:
                await ws.recv()
                ws.transport.abort()
        await until(lambda: len(world.calls.ended) == 50)
        await deps.slots.empty()
    gc.collect()
    assert unhandled == []
    assert sorted(world.calls.ended) == sorted(f"CA{number}" for number in range(50))
    assert world.count("calls_active") == 0


async def test_a_message_too_large_ends_only_its_own_call() -> None:
    world = World()
    async with worker(world) as (server, _):
        port = server.port
        async with stream(port, await token_for(port, "CA1"), "CA1") as first:
            async with stream(port, await token_for(port, "CA2"), "CA2") as second:
                await until(lambda: len(world.calls.grants) == 2)
                await second.send("x" * 70_000)
                assert await closed_with(second) == 1009
            await first.send(media_message(1, b"\x07"))
            await until(lambda: world.calls.heard.get("CA1", []) != [])
    assert world.calls.heard["CA2"][-1] == LineClosed(1009)


async def test_streams_are_refused_while_draining_and_running_ones_go_on() -> None:
    world = World()
    async with worker(world) as (server, _):
        given, late = await token_for(server.port), await token_for(server.port, "CA2")
        async with stream(server.port, given) as ws:
            await until(lambda: world.calls.grants != [])
            world.draining = True
            with pytest.raises(InvalidStatus):
                async with stream(server.port, late, "CA2"):
                    pass
            await ws.send(media_message(1, b"\x07"))
            await until(lambda: world.calls.heard[SID] != [])
    assert len(world.calls.grants) == 1
