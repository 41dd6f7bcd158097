"""Who writes down a message: the operator's model, the sandbox's real Whisper, or nobody."""

from pathlib import Path

import pytest

from ivr.audio.files import write_wav
from ivr.sandbox.voice import Voice
from ivr.settings import Settings
from ivr.transcribing import EarTranscriber, NeverWritten, NotWritten, ServerTranscriber, transcriber_of

VOICE_HZ = 24_000


async def test_the_sandboxes_ear_writes_down_a_message(tmp_path: Path) -> None:
    async with Voice() as caller:
        pcm = await caller.speak("The kitchen is under water. Please call me back.", voice="caller")
    write_wav(tmp_path / "m.wav", [pcm], VOICE_HZ)
    wav = (tmp_path / "m.wav").read_bytes()
    text = await EarTranscriber().text(wav, "en-US")
    assert "water" in text and "call me back" in text
    with pytest.raises(NeverWritten, match="English only"):
        await EarTranscriber().text(wav, "de-DE")
    with pytest.raises(NeverWritten):
        await EarTranscriber().text(b"RIFF no sound", "en-US")


async def test_a_server_that_cannot_be_reached_is_tried_again() -> None:
    with pytest.raises(NotWritten):
        await ServerTranscriber("m", "k", "http://127.0.0.1:9/v1").text(b"RIFF", "en-US")


@pytest.mark.parametrize(
    ("env", "kind", "model"),
    [
        ({"OPENAI_API_KEY": "k"}, ServerTranscriber, "gpt-transcribe"),
        (
            {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "IVR_VOICEMAIL_MODEL": "m"},
            ServerTranscriber,
            "m",
        ),
        ({"OPENAI_API_KEY": "k", "IVR_REALTIME_URL": "sandbox"}, ServerTranscriber, "gpt-transcribe"),
        ({"IVR_REALTIME_URL": "sandbox"}, EarTranscriber, ""),
        ({"IVR_REALTIME_URL": "ws://127.0.0.1:9/v1"}, type(None), None),
        ({}, type(None), None),
    ],
)
def test_which_one_writes(env: dict[str, str], kind: type, model: str | None) -> None:
    chosen = transcriber_of(Settings.load(env))
    assert isinstance(chosen, kind)
    assert getattr(chosen, "model", None) == model
