"""Opening a session: what is sent and believed, and how each refusal is named."""

import asyncio
import base64
from typing import Any

import pytest

from ivr.adapters.openai_realtime import RealtimeServer
from ivr.core.events import ModelReady
from ivr.errors import InternalError, ModelUnavailable, ModelUnsuitable
from tests.fake_realtime import SESSION_ID, FakeRealtime, Json, Script, black_hole, response
from tests.integration.openai_link import CONFIG, KEY, fake_and_server, model_server, open_line

PCM = bytes(960)


async def refusal(script: Script, *, kind: type[Exception], **kwargs: Any) -> str:
    """Open against the script; the error's text, after its manners are checked."""
    async with fake_and_server(script, **kwargs) as (fake, server):
        link = server.link()
        with pytest.raises(kind) as caught:
            await link.open(CONFIG)
        for session in fake.sessions:
            await session.ended.wait()
        text = str(caught.value)
        assert text.startswith(fake.url)
        assert "\n" not in text
        assert KEY not in text
        return text


async def test_b040_the_handshake_and_the_settings_are_ga() -> None:
    async with open_line() as line:
        headers = line.session.headers
        assert "openai-beta" not in headers
        assert headers["authorization"] == f"Bearer {KEY}"
        assert line.session.socket.request is not None
        assert line.session.socket.request.path == "/v1/realtime?model=gpt-realtime-2.1"
        settings = line.session.received[0]
        assert settings["type"] == "session.update"
        assert settings["session"]["type"] == "realtime"
        assert settings["session"]["output_modalities"] == ["audio"]
        assert line.session.binary_frames == 0


async def test_compression_is_not_negotiated() -> None:
    async with open_line() as line:
        assert "sec-websocket-extensions" not in line.session.headers


async def test_b008_and_b041_audio_waits_for_confirmed_settings_and_comes_in_order() -> None:
    may_update = asyncio.Event()
    async with fake_and_server(Script(may_update=may_update)) as (fake, server):
        link = server.link()
        opening = asyncio.create_task(link.open(CONFIG))
        session = await fake.session()
        frames = [number.to_bytes(2, "little") * 480 for number in range(75)]
        for frame in frames:
            link.hear(frame)
        await session.settling.wait()
        assert session.types() == ["session.update"]
        may_update.set()
        await opening
        appended = [await session.expect("input_audio_buffer.append") for _ in frames]
        await link.close()
    assert [message["audio"] for message in appended] == [
        base64.b64encode(frame).decode() for frame in frames
    ]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("input", {"format": {"type": "audio/pcmu"}}, "input audio"),
        ("output", {"format": {"type": "audio/pcm", "rate": 16000}}, "output audio"),
    ],
)
async def test_b041_settings_that_are_not_echoed_are_not_believed(path: str, value: Json, words: str) -> None:
    def echo(session: Json) -> Json:
        return {**session, "audio": {**session["audio"], path: value}}

    assert words in await refusal(Script(echo=echo), kind=ModelUnsuitable)


async def test_b041_a_refused_update_is_named() -> None:
    error = {"code": "invalid_value", "message": "Bad\n  'voice'."}
    text = await refusal(Script(update_error=error), kind=ModelUnsuitable)
    assert text.endswith("settings refused, invalid_value: Bad 'voice'.")


async def test_a_passing_fault_while_opening_may_be_tried_again() -> None:
    error = {"code": "rate_limit_exceeded"}
    assert "rate_limit_exceeded" in await refusal(Script(update_error=error), kind=ModelUnavailable)


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (401, ModelUnsuitable, "check OPENAI_API_KEY"),
        (403, ModelUnsuitable, "check OPENAI_API_KEY"),
        (404, ModelUnsuitable, "check the address and IVR_REALTIME_MODEL"),
        (400, ModelUnsuitable, "HTTP 400"),
        (429, ModelUnavailable, "HTTP 429"),
        (500, ModelUnavailable, "HTTP 500"),
        (503, ModelUnavailable, "HTTP 503"),
    ],
)
async def test_refused_handshakes(status: int, kind: type[Exception], words: str) -> None:
    assert words in await refusal(Script(statuses=[status]), kind=kind)


@pytest.mark.parametrize(
    ("code", "kind"),
    [(4000, ModelUnsuitable), (3000, ModelUnsuitable), (1011, ModelUnavailable), (1001, ModelUnavailable)],
)
async def test_closed_while_opening(code: int, kind: type[Exception]) -> None:
    text = await refusal(Script(close_on_update=(code, "beta_api_shape_disabled")), kind=kind)
    assert f"({code} beta_api_shape_disabled) while opening" in text


async def test_nobody_listens() -> None:
    async with FakeRealtime() as fake:
        url = fake.url
    server = model_server(url)
    with pytest.raises(ModelUnavailable, match="cannot connect"):
        await server.link().open(CONFIG)
    await server.close()


async def test_a_server_that_never_answers_the_handshake() -> None:
    async with black_hole() as url:
        server = model_server(url, open_timeout_s=0.2)
        with pytest.raises(ModelUnavailable, match=r"no session within 0\.2 s"):
            await server.link().open(CONFIG)
        await server.close()


async def test_a_server_that_never_makes_a_session() -> None:
    text = await refusal(Script(greets=False), kind=ModelUnavailable, open_timeout_s=0.3)
    assert "no session within 0.3 s" in text


async def test_a_server_that_speaks_no_websocket() -> None:
    async def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    plain = await asyncio.start_server(speak, "127.0.0.1", 0)
    server = model_server(f"ws://127.0.0.1:{plain.sockets[0].getsockname()[1]}/v1")
    with pytest.raises(ModelUnsuitable, match="HTTP 200"):
        await server.link().open(CONFIG)
    plain.close()
    await plain.wait_closed()
    await server.close()


async def test_addresses_are_shown_without_secrets() -> None:
    server = model_server("wss://user:hunter2@models.example:8443/v1/?key=abc")
    assert server.shown == "wss://models.example:8443/v1"
    await server.close()
    own = RealtimeServer(None, KEY, None, "gpt-realtime-2.1", "")
    assert own.shown == "wss://api.openai.com/v1"
    await own.close()


async def test_closing_while_opening_leaves_nothing() -> None:
    may_update = asyncio.Event()
    async with fake_and_server(Script(may_update=may_update)) as (fake, server):
        link = server.link()
        opening = asyncio.create_task(link.open(CONFIG))
        session = await fake.session()
        await session.settling.wait()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        may_update.set()
        await session.ended.wait()
        await link.close()


async def test_events_before_open_are_our_own_bug() -> None:
    server = model_server("ws://127.0.0.1:9/v1")
    with pytest.raises(InternalError):
        await anext(server.link().events())
    await server.close()


# -- the probe -----------------------------------------------------------------------------------------------


async def test_the_probe_runs_once_per_server_and_is_cancelled() -> None:
    async with open_line() as line:
        assert (await line.session.expect("response.cancel"))["response_id"] == "resp_probe"
        again = line.server.link()
        await again.open(CONFIG)
        second = await line.fake.session()
        again.hear(PCM)
        await second.expect("input_audio_buffer.append")
        await again.close()
        assert second.types() == ["session.update", "input_audio_buffer.append"]


def refuses(code: str) -> Any:
    """A probe answered by an error."""
    return lambda create: {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "code": code,
            "message": "",
            "event_id": create["event_id"],
        },
    }


def answers(**fields: Any) -> Any:
    """A probe answered by a response with these fields."""
    return lambda create: {"type": "response.created", "response": response("r1", create, **fields)}


@pytest.mark.parametrize(
    ("probe", "words"),
    [
        (refuses("unknown_parameter"), "no out-of-band replies with their own input (unknown_parameter)"),
        (answers(metadata=None), "replies do not carry our metadata"),
        (answers(conversation_id="conv_1"), "kept out of its conversation"),
    ],
)
async def test_a_server_without_out_of_band_replies_is_named_and_refused(probe: Any, words: str) -> None:
    assert words in await refusal(Script(probe=probe), kind=ModelUnsuitable)


async def test_a_passing_fault_at_the_probe_is_not_held_against_the_server() -> None:
    script = Script(probe=refuses("rate_limit_exceeded"))
    async with fake_and_server(script) as (_, server):
        with pytest.raises(ModelUnavailable, match="rate_limit_exceeded"):
            await server.link().open(CONFIG)
        script.probe = None
        link = server.link()
        await link.open(CONFIG)
        assert await anext(link.events()) == ModelReady(SESSION_ID)
        await link.close()


async def test_a_session_may_have_models_of_its_own() -> None:
    async with fake_and_server(Script()) as (fake, server):
        link = server.link("gpt-realtime-2.1-mini", "whisper-1")
        await link.open(CONFIG)
        session = await fake.session()
        assert session.socket.request is not None
        assert session.socket.request.path == "/v1/realtime?model=gpt-realtime-2.1-mini"
        audio = session.received[0]["session"]["audio"]["input"]
        assert audio["transcription"]["model"] == "whisper-1"
        await link.close()
