"""Messages that are not Twilio's, or not what Twilio sends, at the real service."""

import asyncio
import base64
import json
from contextlib import suppress
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from ivr.phone.record import CallEvent, EndReason, EventKind
from tests.acceptance.businesses import BEN, DENTAL
from tests.acceptance.line import arrival, say, speech, stream_of, webhook
from tests.acceptance.model import GREETING, calls, turn
from tests.acceptance.world import Act, Place, World, until

GREETING_BYTES = 8 * int(GREETING["audio_ms"])

GARBAGE = (
    "not json",
    "[]",
    "{}",
    '{"event":"media"}',
    '{"event":"media","media":{"payload":"!!!"}}',
    '{"event":"media","media":{"payload":"//8"}}',
    '{"event":"foo"}',
    b"\x00\x01\x02",
    b"\xff" * 160,
)


def dial(world: World, url: str, signature: str | None = None) -> connect:
    """A handshake as Twilio makes it."""
    headers = {"X-Twilio-Signature": world.line.sign(url) if signature is None else signature}
    return connect(url, additional_headers=headers, compression=None, proxy=None)


def start(call_sid: str, parameters: dict[str, str]) -> str:
    """Twilio's `start`."""
    body = {
        "accountSid": "AC1",
        "callSid": call_sid,
        "streamSid": "MZ1",
        "tracks": ["inbound"],
        "customParameters": parameters,
        "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
    }
    return json.dumps({"event": "start", "sequenceNumber": "1", "streamSid": "MZ1", "start": body})


def media(number: int, ulaw: bytes) -> str:
    """Twilio's `media`."""
    payload = base64.b64encode(ulaw).decode()
    body = {"track": "inbound", "chunk": str(number), "timestamp": str(number * 20), "payload": payload}
    return json.dumps(
        {"event": "media", "sequenceNumber": str(number + 1), "streamSid": "MZ1", "media": body}
    )


async def close_code(socket: ClientConnection) -> int | None:
    """Read to the end."""
    with suppress(ConnectionClosed):
        async for _ in socket:
            pass
    return socket.close_code


async def a_stranger_gets_no_model(place: Place) -> None:
    script = [GREETING, turn("hello", "Good morning"), turn("goodbye", "Goodbye", **calls("hang_up"))]
    async with place.world(script) as world:
        streaming: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def on_event(event: CallEvent) -> None:
            if event.kind is EventKind.STREAM_STARTED:
                streaming.set_result(event.text)

        running = asyncio.create_task(world.call(say(), say(), on_event=on_event))
        await streaming
        await until(lambda: world.model.sessions == 1)
        ((live_sid,),) = world.rows("SELECT call_sid FROM calls")
        _, twiml = await webhook(world.line, "/twilio/voice", arrival("CA7", BEN.number))
        url, other = stream_of(twiml)
        for call_sid, parameters in (
            ("CAmadeup", {}),
            (live_sid, {}),
            (live_sid, {"token": "x" + other["token"][1:]}),
            (live_sid, other),
            ("CA7", {"token": other["token"] + "x"}),
        ):
            async with dial(world, url) as socket:
                for message in (*GARBAGE[:3], '{"event":"connected"}', start(call_sid, parameters)):
                    await socket.send(message)
                assert await close_code(socket) == 1008
        with pytest.raises(InvalidStatus, match="403"):
            async with dial(world, url, signature="forged"):
                pass
        for path in ("/twilio/voice", "/twilio/continue?n=1", "/twilio/status", "/twilio/transferred"):
            forged = type(world.line)(world.line.url, "another token")
            assert (await webhook(forged, path, arrival(live_sid)))[0] == 403

        record = await running
        assert (record.violations, record.end) == ((), EndReason.SERVICE_HUNG_UP)
        assert world.model.sessions == 1
        assert [said for _, said in await world.words(record.call_sid)] == ["Good morning", "Goodbye"]


async def garbage_in_a_stream_is_ignored(place: Place) -> None:
    """Between the frames of an utterance, which is heard all the same; the token works once."""
    async with place.world([GREETING, turn("hello", "Good morning", 300)]) as world:
        _, twiml = await webhook(world.line, "/twilio/voice", arrival("CA7"))
        url, parameters = stream_of(twiml)
        async with dial(world, url) as socket:
            await socket.send('{"event":"connected","protocol":"Call","version":"1.0.0"}')
            await socket.send(start("CA7", parameters))
            heard: list[dict[str, Any]] = []
            reading = asyncio.create_task(_read(socket, heard))
            await until(lambda: any(message["event"] == "mark" for message in heard))
            await asyncio.sleep(0.5)
            tone = speech(480)
            frames = [tone[at : at + 160] for at in range(0, len(tone), 160)] + [b"\xff" * 160] * 90
            for number, frame in enumerate(frames, start=1):
                await socket.send(media(number, frame))
                if number <= len(GARBAGE):
                    await socket.send(GARBAGE[number - 1])
                await asyncio.sleep(0.018)
            await socket.send(json.dumps({"event": "stop", "streamSid": "MZ1", "sequenceNumber": "99"}))
            await reading
        await world.ended("CA7")
        ((text, _),) = await world.words("CA7")
        assert text == "hello"
        assert {message["event"] for message in heard} <= {"media", "mark", "clear"}
        async with dial(world, url) as again:
            await again.send(start("CA7", parameters))
            assert await close_code(again) == 1008
        assert world.model.sessions == 1


async def _read(socket: ClientConnection, heard: list[dict[str, Any]]) -> None:
    with suppress(ConnectionClosed):
        async for message in socket:
            heard.append(json.loads(message))


async def the_greeting_waits_for_start(place: Place) -> None:
    """Nothing of ours goes out before `start`; after it the whole greeting does, once, with the right streamSid."""
    async with place.world([GREETING]) as world:
        _, twiml = await webhook(world.line, "/twilio/voice", arrival("CA7"))
        url, parameters = stream_of(twiml)
        async with dial(world, url) as socket:
            await socket.send('{"event":"connected","protocol":"Call","version":"1.0.0"}')
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.8):
                    await socket.recv()
            assert world.model.sessions == 0
            await socket.send(start("CA7", parameters))
            heard: list[dict[str, Any]] = []
            reading = asyncio.create_task(_read(socket, heard))
            await until(lambda: len(_audio(heard)) >= GREETING_BYTES)
            await socket.send(json.dumps({"event": "stop", "streamSid": "MZ1", "sequenceNumber": "2"}))
            await reading
        assert {message["streamSid"] for message in heard} == {"MZ1"}
        # One greeting, and less than a frame of the filter's tail and padding.
        assert GREETING_BYTES <= len(_audio(heard)) <= GREETING_BYTES + 2 * 160
        assert world.model.own_words() == ["Alpha Dental, how can I help you?"]


def _audio(heard: list[dict[str, Any]]) -> bytes:
    return b"".join(base64.b64decode(m["media"]["payload"]) for m in heard if m["event"] == "media")


async def strange_webhooks_get_twiml(place: Place) -> None:
    async with place.world([GREETING]) as world:
        world.watch.expected.add("webhook_failed")  # a signed webhook without a CallSid
        for fields in (
            arrival("CA1", to="+19995550100"),
            arrival("CA1", to=""),
            arrival("../../etc", to=DENTAL),
            arrival("", to=DENTAL),
        ):
            status, twiml = await webhook(world.line, "/twilio/voice", fields)
            assert status == 200
            assert "<Say" in twiml
            assert "<Connect" not in twiml
        odd = arrival("CA9", caller="sip:ann@example.com") | {
            "CallerName": "O'Neil & Co <x>\x07",
            "X": "\x00",
        }
        status, twiml = await webhook(world.line, "/twilio/voice", odd)
        assert (status, stream_of(twiml)[0]) == (200, world.line.url.replace("http", "ws") + "/twilio/media")
        assert world.rows("SELECT call_sid, caller FROM calls") == [("CA9", "sip:ann@example.com")]


async def test_b010_b093_b102_what_is_not_twilios(act: Act) -> None:
    await act(a_stranger_gets_no_model, garbage_in_a_stream_is_ignored, strange_webhooks_get_twiml)


async def test_b007_the_greeting_waits_for_start(act: Act) -> None:
    await act(the_greeting_waits_for_start)
