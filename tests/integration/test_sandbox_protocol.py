"""The OpenAI SDK's typed client against the scripted sandbox, over real sockets."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from openai.types.realtime import RealtimeServerEvent
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError, InvalidMessage, InvalidStatus

from ivr.sandbox.pcm import Tone
from ivr.sandbox.script import ScriptError
from ivr.sandbox.server import running

SILENCE_MS = bytes(48)
KNOWN = {
    kind.model_fields["type"].annotation.__args__[0]: kind
    for kind in get_args(get_args(RealtimeServerEvent)[0])
}


@asynccontextmanager
async def sandbox(tmp_path: Path, script: str) -> AsyncIterator[str]:
    """A scripted sandbox; yields its WebSocket base."""
    path = tmp_path / "script.yaml"
    path.write_text(script)
    async with running("127.0.0.1", 0, script=path) as port:
        yield f"ws://127.0.0.1:{port}/v1"


@asynccontextmanager
async def client(base: str, model: str = "gpt-realtime-2.1") -> AsyncIterator[AsyncRealtimeConnection]:
    """The SDK's typed connection."""
    async with (
        AsyncOpenAI(api_key="any", websocket_base_url=base) as sdk,
        sdk.realtime.connect(model=model) as connection,
    ):
        yield connection


async def receive(connection: AsyncRealtimeConnection) -> Any:
    """The next event; every one must be of the class the SDK knows for its type, with nothing missing."""
    async with asyncio.timeout(10):
        event = await connection.recv()
    assert type(event) is KNOWN[event.type]
    KNOWN[event.type].model_validate_json(event.model_dump_json(), strict=False)
    return event


async def until(connection: AsyncRealtimeConnection, kind: str) -> list[Any]:
    """Events up to the first of a type."""
    events = [await receive(connection)]
    while events[-1].type != kind:
        assert kind == "error" or events[-1].type != "error", events[-1]
        events.append(await receive(connection))
    return events


def kinds(events: list[Any]) -> list[str]:
    """Types in order, a run of the same one once, rate limits left out."""
    names = [event.type for event in events if event.type != "rate_limits.updated"]
    return [name for number, name in enumerate(names) if number == 0 or names[number - 1] != name]


def speech(duration_ms: int = 800) -> bytes:
    """A tone as the user's voice, then silence that ends the turn."""
    return Tone(300, duration_ms).pcm24k() + SILENCE_MS * 600


async def ready(connection: AsyncRealtimeConnection, **audio_input: Any) -> Any:
    """Set the session up as callers of out-of-band replies do; returns the confirmed session."""
    await until(connection, "session.created")
    detection = {"type": "server_vad", "create_response": False, "interrupt_response": False}
    await connection.session.update(
        session={
            "type": "realtime",
            "instructions": "Answer calls.",
            "output_modalities": ["audio"],
            "audio": {
                "input": {
                    "format": {"type": "audio/pcm", "rate": 24000},
                    "transcription": {"model": "whisper-1", "language": "en"},
                    "turn_detection": detection,  # type: ignore[typeddict-item]
                },
                "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "marin", "speed": 1.1},
            },
        }
    )
    return (await until(connection, "session.updated"))[-1].session


async def say(connection: AsyncRealtimeConnection, pcm: bytes) -> None:
    """Append audio in pieces of 100 ms."""
    for at in range(0, len(pcm), 4_800):
        await connection.input_audio_buffer.append(audio=base64.b64encode(pcm[at : at + 4_800]).decode())


async def test_a_whole_turn_out_of_band_is_typed_from_hello_to_done(tmp_path: Path) -> None:
    script = """
    turns:
      - {hear: book table, transcript: I want to book a table, say: Which day suits you, audio_ms: 600,
         call: {name: note, arguments: {topic: table}}}
    """
    async with sandbox(tmp_path, script) as base, client(base) as connection:
        session = await ready(connection)
        assert session.model == "sandbox/gpt-realtime-2.1"
        assert (session.audio.output.voice, session.audio.output.speed) == ("marin", 1.1)
        assert session.audio.input.turn_detection.silence_duration_ms == 500
        await say(connection, speech())
        turn = await until(connection, "conversation.item.input_audio_transcription.completed")
        assert kinds(turn) == [
            "input_audio_buffer.speech_started",
            "input_audio_buffer.speech_stopped",
            "input_audio_buffer.committed",
            "conversation.item.added",
            "conversation.item.done",
            "conversation.item.input_audio_transcription.delta",
            "conversation.item.input_audio_transcription.completed",
        ]
        item_id = turn[0].item_id
        assert {event.item_id for event in turn if hasattr(event, "item_id")} == {item_id}
        assert turn[-1].transcript == "I want to book a table"
        assert turn[-1].usage.type == "duration"
        await connection.send(
            {
                "type": "response.create",
                "response": {
                    "conversation": "none",
                    "metadata": {"reply": "r1"},
                    "input": [{"type": "item_reference", "id": item_id}],
                },
            }
        )
        reply = await until(connection, "response.done")
    assert kinds(reply) == [
        "response.created",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.done",
    ]
    assert "rate_limits.updated" in {event.type for event in reply}
    done = reply[-1].response
    assert (done.status, done.metadata, done.conversation_id) == ("completed", {"reply": "r1"}, None)
    assert [item.type for item in done.output] == ["message", "function_call"]
    assert json.loads(done.output[1].arguments) == {"topic": "table"}
    assert done.usage.output_token_details.audio_tokens == 12
    assert done.usage.input_token_details.audio_tokens == 13
    pcm = b"".join(base64.b64decode(e.delta) for e in reply if e.type == "response.output_audio.delta")
    assert pcm == Tone(400, 600).pcm24k()


async def test_a_reply_in_the_conversation_can_be_cut_deleted_and_retrieved(tmp_path: Path) -> None:
    script = "[{any: true, transcript: hello, say: one two three, audio_ms: 1000}]"
    async with sandbox(tmp_path, script) as base, client(base) as connection:
        await ready(connection)
        await connection.conversation.item.create(
            item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
        )
        await until(connection, "conversation.item.done")
        await connection.response.create()
        reply = await until(connection, "response.done")
        assert kinds(reply).count("conversation.item.added") == 1
        item_id = reply[-1].response.output[0].id
        await connection.conversation.item.truncate(item_id=item_id, content_index=0, audio_end_ms=400)
        cut = (await until(connection, "conversation.item.truncated"))[-1]
        assert cut.audio_end_ms == 400
        await connection.conversation.item.retrieve(item_id=item_id)
        kept = (await until(connection, "conversation.item.retrieved"))[-1].item
        assert len(base64.b64decode(kept.content[0].audio)) == 400 * 48
        await connection.conversation.item.delete(item_id=item_id)
        await until(connection, "conversation.item.deleted")
        await connection.conversation.item.retrieve(item_id=item_id)
        error = (await until(connection, "error"))[-1].error
        assert error.code == "item_retrieve_invalid_item_id"


async def test_a_cancelled_reply_ends_between_chunks_and_the_next_is_heard(tmp_path: Path) -> None:
    script = """
    - {any: true, say: a long story, audio_ms: 60000, pace_ms: 10}
    - {any: true, say: short, audio_ms: 200}
    """
    create: Any = {"conversation": "none", "input": [_user("go")], "metadata": {"n": "1"}}
    async with sandbox(tmp_path, script) as base, client(base) as connection:
        await ready(connection)
        await connection.response.create(response=create)
        begun = await until(connection, "response.output_audio.delta")
        await connection.response.cancel(response_id=begun[0].response.id)
        done = (await until(connection, "response.done"))[-1].response
        assert (done.status, done.status_details.reason) == ("cancelled", "client_cancelled")
        assert done.output[0].status == "incomplete"
        await connection.response.cancel(response_id=begun[0].response.id)
        assert (await until(connection, "error"))[-1].error.code == "response_cancel_not_active"
        await connection.response.create(response=create)
        assert (await until(connection, "response.done"))[-1].response.status == "completed"


async def test_vad_replies_by_itself_and_is_interrupted_by_speech(tmp_path: Path) -> None:
    script = """
    - {any: true, transcript: first, say: a long answer, audio_ms: 60000, pace_ms: 10}
    - {any: true, transcript: second, say: fine, audio_ms: 200}
    """
    async with sandbox(tmp_path, script) as base, client(base) as connection:
        await until(connection, "session.created")
        await say(connection, speech())
        await until(connection, "response.output_audio.delta")
        await say(connection, speech())
        cut = (await until(connection, "response.done"))[-1].response
        assert (cut.status, cut.status_details.reason) == ("cancelled", "turn_detected")
        assert (await until(connection, "response.done"))[-1].response.status == "completed"


async def test_b040_the_beta_header_closes_with_4000(tmp_path: Path) -> None:
    async with sandbox(tmp_path, "[]") as base:
        headers = {"Authorization": "Bearer any", "OpenAI-Beta": "realtime=v1"}
        async with connect(f"{base}/realtime?model=x", additional_headers=headers) as socket:
            with pytest.raises(ConnectionClosedError) as closed:
                await socket.recv()
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4000, "beta_api_shape_disabled")


async def test_a_handshake_without_key_or_on_another_path_is_refused(tmp_path: Path) -> None:
    async with sandbox(tmp_path, "[]") as base:
        with pytest.raises(InvalidStatus) as no_key:
            await connect(f"{base}/realtime?model=x")
        with pytest.raises(InvalidStatus) as no_path:
            await connect(f"{base}/audio", additional_headers={"Authorization": "Bearer any"})
    assert no_key.value.response.status_code == 401
    assert no_path.value.response.status_code == 404


async def test_b050_events_no_client_knows_are_sent_as_they_are(tmp_path: Path) -> None:
    script = """
    - {any: true, say: fine, audio_ms: 200, raw: [{type: foo.bar}, '{"no": "type"}']}
    """
    headers = {"Authorization": "Bearer any"}
    texts: list[str | bytes] = []
    async with (
        sandbox(tmp_path, script) as base,
        connect(f"{base}/realtime", additional_headers=headers) as socket,
    ):
        await socket.send(json.dumps({"type": "response.create", "response": {"input": [_user("hi")]}}))
        async for message in socket:
            texts.append(message)
            if json.loads(message).get("type") == "response.done":
                break
    assert '{"type":"foo.bar"}' in texts
    assert '{"no": "type"}' in texts


async def test_b035_an_abort_breaks_the_reply_without_a_close_frame_and_reconnects_are_refused(
    tmp_path: Path,
) -> None:
    script = """
    connections: [accept, refuse, abort, accept]
    carry_over: true
    turns:
      - {any: true, say: a long answer, audio_ms: 2000, abort: true, after_ms: 600}
      - {any: true, say: back again, audio_ms: 200}
    """
    headers = {"Authorization": "Bearer any"}
    request = json.dumps({"type": "response.create", "response": {"input": [_user("hi")]}})
    async with sandbox(tmp_path, script) as base:
        url = f"{base}/realtime"
        async with connect(url, additional_headers=headers) as socket:
            await socket.send(request)
            with pytest.raises(ConnectionClosedError) as broken:
                async for _ in socket:
                    pass
            assert broken.value.rcvd is None
        with pytest.raises(InvalidStatus):
            await connect(url, additional_headers=headers)
        with pytest.raises((InvalidMessage, ConnectionResetError, EOFError)):
            await connect(url, additional_headers=headers)
        async with connect(url, additional_headers=headers) as socket:
            await socket.send(request)
            async for message in socket:
                event = json.loads(message)
                if event["type"] == "response.output_audio_transcript.done":
                    break
    assert event["transcript"] == "back again"


async def test_a_script_with_a_fault_is_refused_before_listening(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"script\.yaml:3: turns\[1\]\.sya: unknown key"):
        async with sandbox(tmp_path, "turns:\n  - {any: true}\n  - {any: true, sya: x}\n"):
            pass


def _user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
