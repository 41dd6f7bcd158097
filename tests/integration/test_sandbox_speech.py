"""The sandbox's real ear and voice, in their processes: Whisper tiny.en and hibari from their wheels."""

import base64
import json
import os
import signal
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from ivr.sandbox.ear import Ear
from ivr.sandbox.faults import SandboxMissing
from ivr.sandbox.language import stems
from ivr.sandbox.server import running
from ivr.sandbox.voice import SpeakResult, Voice
from ivr.sandbox.worker import Worker

PAUSE = bytes(48 * 700)
INSTRUCTIONS = """You answer for a restaurant.
# Facts
- We are open from Tuesday to Sunday in the evening.
- Parking behind the building is free for our guests.
"""


async def _until(socket: ClientConnection, kind: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    async for message in socket:
        events.append(json.loads(message))
        assert events[-1]["type"] != "error", events[-1]
        if events[-1]["type"] == kind:
            return events
    raise AssertionError(f"closed before {kind}")


def _settings() -> str:
    detection = {"type": "server_vad", "create_response": False, "interrupt_response": False}
    audio = {"input": {"transcription": {"model": "whisper-1"}, "turn_detection": detection}}
    session = {"type": "realtime", "instructions": INSTRUCTIONS, "audio": audio}
    return json.dumps({"type": "session.update", "session": session})


async def _say(socket: ClientConnection, pcm: bytes) -> dict[str, Any]:
    """Say it and wait for its words."""
    audio = base64.b64encode(pcm + PAUSE).decode()
    await socket.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
    return (await _until(socket, "conversation.item.input_audio_transcription.completed"))[-1]


async def test_speech_becomes_words_and_the_answer_becomes_speech_with_the_same_words() -> None:
    headers = {"Authorization": "Bearer any"}
    async with Voice() as caller, running("127.0.0.1", 0) as port:
        question = await caller.speak("Is parking free for your guests?", voice="caller")
        async with connect(f"ws://127.0.0.1:{port}/v1/realtime", additional_headers=headers) as socket:
            await socket.send(_settings())
            await _until(socket, "session.updated")
            asked = await _say(socket, question)
            reference = {"type": "item_reference", "id": asked["item_id"]}
            response = {"conversation": "none", "input": [reference], "metadata": {"n": "1"}}
            await socket.send(json.dumps({"type": "response.create", "response": response}))
            events = await _until(socket, "response.done")
            deltas = [event["delta"] for event in events if event["type"] == "response.output_audio.delta"]
            heard_again = await _say(socket, b"".join(base64.b64decode(delta) for delta in deltas))
    assert {"park", "fre", "guest"} <= stems(asked["transcript"])
    answer = events[-1]["response"]["output"][0]["content"][0]["transcript"]
    assert answer == "Parking behind the building is free for our guests."
    assert {"park", "build", "fre", "guest"} <= stems(heard_again["transcript"])


async def test_a_voice_that_dies_comes_back_and_speed_and_pitch_are_honoured() -> None:
    async with Voice() as voice:
        text = "One moment please, I will look for it."
        usual = await voice.speak(text)
        pid = voice.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        slow = await voice.speak(text, speed=0.7)
        assert voice.pid not in (None, pid)
        deep = await voice.speak(text, voice="caller")
        assert await voice.speak(" ") == b""
        last = voice.pid
    assert len(slow) > 1.15 * len(usual)
    assert deep != usual and 0.8 < len(deep) / len(usual) < 1.25
    assert await _is_gone(last)


async def test_noise_and_silence_have_no_words() -> None:
    async with Ear() as ear:
        assert await ear.hear(bytes(48_000)) == ""
        assert await ear.hear(b"\0\0" * 10) == ""


async def test_a_missing_package_is_one_line_that_names_the_extra() -> None:
    worker: Worker[Any, Any] = Worker("ivr.sandbox.voice_process", SpeakResult, ("no_such_package_here",))
    with pytest.raises(SandboxMissing, match=r"pip install 'callthread\[sandbox\]'"):
        await worker.start()


async def _is_gone(pid: int | None) -> bool:
    assert pid is not None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
