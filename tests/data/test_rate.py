"""Recorded callers: how fast they speak, by their words' true times and through the sandbox's ear and our core."""

from pathlib import Path

import pytest

from callflows.parse import load_folder
from ivr.audio.g711 import ulaw_to_pcm16
from ivr.bench.rate import Mode, RateCaller, by_mode, callers_of, measure, spoken_ms
from ivr.bench.turns_data import Recording, load_recordings
from ivr.core.speaking import SpeakingRate
from ivr.core.units import LINE_RATE_HZ
from ivr.places import SHIPPED_FLOWS
from ivr.sandbox.ear import Ear
from ivr.sandbox.voice import Voice
from ivr.settings import ModelSource
from ivr.voicebook import voices_of
from tests.data.recorded import folder

RECORDINGS = {one.name: one for one in load_recordings(Path(folder("speech")))}
CALLERS = ("prompt-conf-usermenu", "prompt-vm-opts", "prompt-vm-msginstruct", "jfk")


def part(recording: Recording, start_ms: float, end_ms: float) -> tuple[str, float]:
    """The words said between two times, and how long they took."""
    words = [word for word in recording.words if start_ms <= word.start_ms and word.end_ms <= end_ms]
    return " ".join(word.text for word in words), words[-1].end_ms - words[0].start_ms


def test_a_speaker_who_slows_down_is_followed() -> None:
    """The corpus's own description: 215 words a minute, then 112."""
    corpus = RECORDINGS["acoustic_corpus"]
    rate = SpeakingRate("en-US")
    rate.add(*part(corpus, 1_000, 8_580))
    fast = rate.estimate()
    rate.add(*part(corpus, 8_590, 25_300))
    slower = rate.estimate()
    assert fast == pytest.approx(215, abs=5)
    assert slower == pytest.approx((215 + 2 * 112) / 3, abs=5)


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_speaking_time_is_within_the_recording(name: str) -> None:
    one = RECORDINGS[name]
    assert 0 < spoken_ms(one) <= one.length_ms


async def test_replies_come_nearer_to_recorded_callers() -> None:
    """Real ear, core and voice; a few callers only: `ivr bench rate` has them all."""
    business = load_folder(SHIPPED_FLOWS).businesses["harbor-dental"]
    table = voices_of(ModelSource.SANDBOX).of(business.voice)
    assert table is not None
    chosen = [RECORDINGS[name] for name in CALLERS]
    async with Ear() as ear, Voice() as voice:

        async def hear(ulaw: bytes) -> str:
            return await ear.hear(ulaw_to_pcm16(ulaw), LINE_RATE_HZ)

        callers: list[RateCaller]
        callers, _ = await callers_of(chosen, hear, lambda: None)
        rows = await measure(callers, business, table, 1, hear, voice.speak, lambda: None)
    by = by_mode(rows)
    assert by[Mode.ON].n == len(callers) >= 3
    assert by[Mode.ON].mae_wpm < by[Mode.OFF].mae_wpm
