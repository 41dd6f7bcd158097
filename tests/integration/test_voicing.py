"""Exact words by a text-to-speech endpoint: a double of it on a real socket, and files on a real disk."""

import asyncio
from pathlib import Path

import pytest

from ivr.adapters.openai_speech import SpeechEndpoint
from ivr.audio.kept import KeptSounds
from ivr.core.commands import ExactWords
from ivr.errors import SpeechUnavailable
from ivr.voicing import REST_S, Prepared, Voicing
from tests.integration.web_kit import until
from tests.speech_double import SpeechDouble, speech_double
from tests.unit.core.call_rig import converted

KEY = "sk-secret-0123456789"
HELLO = ExactWords(("Hello, this is the shop.",), "marin", "en-US")
MIXED = ExactWords(("Hello, this is the shop.", "Your table is at 7."), "marin", "en-US")


class Clock:
    """Seconds, set by hand."""

    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def voicing(endpoint: SpeechEndpoint, folder: Path, clock: Clock | None = None) -> Voicing:
    return Voicing(endpoint, KeptSounds(folder / "prompts"), clock or Clock())


async def heard(voice: Voicing, words: ExactWords) -> tuple[bytes, list[float]]:
    """What is heard, and what of it was made for this, in ms."""
    sounds = [sound async for sound in voice.speak(words)]
    return b"".join(sound.ulaw for sound in sounds), [s.made_ms for s in sounds if s.made_ms]


def expected(double: SpeechDouble, words: ExactWords) -> bytes:
    return b"".join(converted(double.sound_of(text)) for text in words.texts)


async def test_the_text_is_asked_for_as_documented_and_spoken() -> None:
    async with speech_double() as double, SpeechEndpoint(KEY, double.url, "gpt-4o-mini-tts") as endpoint:
        sound = b"".join([chunk async for chunk in endpoint.speak("Hello there.", "marin")])
        assert sound == double.sound_of("Hello there.")
        assert double.asked == [
            {
                "model": "gpt-4o-mini-tts",
                "voice": "marin",
                "input": "Hello there.",
                "response_format": "pcm",
            }
        ]
        assert double.keys == [f"Bearer {KEY}"]
        async with SpeechEndpoint(None, f"{double.url}/", "tts-1") as keyless:
            assert [chunk async for chunk in keyless.speak("Hello.", "marin")]
        assert double.keys[1] == ""


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("401", "status 401"),
        ("500", "status 500"),
        ("json", "not raw PCM"),
        ("wav", "not raw PCM"),
        ("empty", "empty"),
        ("stall", "nothing came for 0.2 s"),
        ("break", "Error"),
    ],
)
async def test_whatever_is_no_sound_is_a_fault_that_tells_nothing_of_the_text(
    fault: str, reason: str
) -> None:
    async with speech_double() as double:
        double.faults = [fault]
        async with SpeechEndpoint(KEY, double.url, "m", chunk_s=0.2) as endpoint:
            with pytest.raises(SpeechUnavailable, match=reason) as raised:
                async for _ in endpoint.speak("Ana Kovač, 12 Mill Street", "marin"):
                    pass
    assert "Ana" not in str(raised.value)
    assert KEY not in str(raised.value)


async def test_nobody_there_is_a_fault() -> None:
    async with SpeechEndpoint(KEY, "http://127.0.0.1:9/v1", "m") as endpoint:
        with pytest.raises(SpeechUnavailable, match="ClientConnectorError"):
            async for _ in endpoint.speak("Hello.", "marin"):
                pass


async def test_a_text_of_the_files_is_made_once_and_by_everybody(tmp_path: Path) -> None:
    async with speech_double() as double, SpeechEndpoint(None, double.url, "m") as endpoint:
        voice = voicing(endpoint, tmp_path)
        assert await voice.prepare([HELLO])
        for each in (voice, voicing(endpoint, tmp_path)):  # another worker
            assert await each.prepare([HELLO])
            assert await heard(each, HELLO) == (expected(double, HELLO), [])
        assert double.said() == [*HELLO.texts]


async def test_what_a_caller_said_is_made_each_time_and_left_nowhere(tmp_path: Path) -> None:
    async with speech_double() as double, SpeechEndpoint(None, double.url, "m") as endpoint:
        voice = voicing(endpoint, tmp_path)
        await voice.prepare([HELLO])
        for _ in range(2):  # five words at 150 words a minute
            assert await heard(voice, MIXED) == (expected(double, MIXED), [2_000.0])
        assert double.said() == [HELLO.texts[0], MIXED.texts[1], MIXED.texts[1]]
        assert len([*(tmp_path / "prompts").iterdir()]) == 1


async def test_another_model_voice_or_language_is_another_sound(tmp_path: Path) -> None:
    others = [
        HELLO,
        ExactWords(HELLO.texts, "cedar", "en-US"),
        ExactWords(HELLO.texts, "marin", "es-US"),
    ]
    async with speech_double() as double, SpeechEndpoint(None, double.url, "m") as endpoint:
        await voicing(endpoint, tmp_path).prepare(others)
        async with SpeechEndpoint(None, double.url, "n") as newer:
            await voicing(newer, tmp_path).prepare([HELLO])
        made = sorted((each["model"], each["voice"]) for each in double.asked)
    assert made == [("m", "cedar"), ("m", "marin"), ("m", "marin"), ("n", "marin")]


async def test_after_a_failure_it_is_left_alone_for_a_minute(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    async with speech_double() as double, SpeechEndpoint(KEY, double.url, "m") as endpoint:
        voice = voicing(endpoint, tmp_path, clock)
        double.faults = ["503"]
        for _ in range(3):
            with pytest.raises(SpeechUnavailable):
                await heard(voice, HELLO)
        assert (len(double.asked), voice.rests) == (1, True)
        clock.now_s += REST_S
        assert await heard(voice, HELLO) == (expected(double, HELLO), [2_000.0])
        assert not voice.rests
    assert KEY not in caplog.text


async def test_a_text_that_is_refused_keeps_no_other_from_being_spoken(tmp_path: Path) -> None:
    async with speech_double() as double, SpeechEndpoint(None, double.url, "m") as endpoint:
        voice = voicing(endpoint, tmp_path)
        double.faults = ["400"]
        with pytest.raises(SpeechUnavailable):
            await heard(voice, HELLO)
        assert not voice.rests
        assert (await heard(voice, MIXED))[0] == expected(double, MIXED)


async def test_half_a_sound_is_not_kept(tmp_path: Path) -> None:
    clock = Clock()
    async with speech_double() as double, SpeechEndpoint(None, double.url, "m") as endpoint:
        voice = voicing(endpoint, tmp_path, clock)
        double.faults = ["break"]
        assert not await voice.prepare([HELLO])
        clock.now_s += REST_S
        assert await voice.prepare([HELLO])
        assert await heard(voice, HELLO) == (expected(double, HELLO), [])


async def test_changed_files_are_prepared_too_and_a_start_waits_for_the_first(tmp_path: Path) -> None:
    wanted = [HELLO]
    async with speech_double() as double, SpeechEndpoint(None, double.url, "m") as endpoint:
        prepared = Prepared(voicing(endpoint, tmp_path), lambda: wanted)
        running = asyncio.create_task(prepared.run())
        await prepared.first()
        assert double.said() == [*HELLO.texts]
        wanted.append(ExactWords(("We are closed.",), "marin", "en-US"))
        prepared.look_again()
        await until(lambda: len(double.asked) == 2)
        running.cancel()


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    kept = KeptSounds(tmp_path / "prompts", max_bytes=250)
    for name in ("a", "b"):
        kept.put([name], name.encode() * 100)
    assert kept.get(["a"]) == b"a" * 100
    kept.put(["c"], b"c" * 100)
    assert [kept.has([name]) for name in ("a", "b", "c")] == [True, False, True]


async def test_a_disk_that_takes_nothing_costs_no_words(tmp_path: Path) -> None:
    (tmp_path / "prompts").write_text("a file where the folder should be")
    async with speech_double() as double, SpeechEndpoint(None, double.url, "m") as endpoint:
        voice = voicing(endpoint, tmp_path)
        await voice.prepare([HELLO])
        assert (await heard(voice, HELLO))[0] == expected(double, HELLO)
