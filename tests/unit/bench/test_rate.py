"""The rate bench: what a caller's rate is, that the core matches it, and what is made of the replies."""

import asyncio
from collections.abc import Awaitable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from callflows.model import Business
from callflows.parse import load_folder
from ivr.bench import rate_report
from ivr.bench.rate import Mode, RateCaller, Row, by_mode, caller_of, callers_of, measure, spoken_ms
from ivr.bench.rate_profile import COARSE, measure_voice, units_of
from ivr.bench.rate_texts import PASSAGES, REPLIES
from ivr.bench.turns_data import Recording, Word, recording
from ivr.core.speaking import VoiceProfile
from ivr.places import SHIPPED_FLOWS

VOICE = VoiceProfile(((0.5, 100.0), (1.5, 300.0)), measured_units=466)
SENTENCE = "one two three four five six seven eight nine ten"
SILENT = 0


def sound(*parts_ms: tuple[int, int]) -> bytes:
    """PCM16 8 kHz: (level, ms) after one another."""
    noise = np.random.default_rng(1)
    return b"".join(
        (noise.standard_normal(ms * 8) * level).clip(-32_768, 32_767).astype("<i2").tobytes()
        for level, ms in parts_ms
    )


def said(*parts_ms: tuple[int, int], words: Sequence[Word] = (), text: str = "") -> Recording:
    found = recording("r", sound(*parts_ms), words, text.split())
    assert found is not None
    return found


async def hear_sentence(_: bytes) -> str:
    return SENTENCE


def speaker(words_a_minute: float = 200.0) -> "Speaker":
    return Speaker(words_a_minute)


class Speaker:
    """A voice that speaks exactly `words_a_minute` × speed."""

    def __init__(self, words_a_minute: float) -> None:
        self.words_a_minute = words_a_minute
        self.speeds: list[float] = []

    def __call__(self, text: str, voice: str, speed: float) -> Awaitable[bytes]:
        self.speeds.append(speed)
        seconds = units_of(text) * 60 / (self.words_a_minute * speed)
        return asyncio.sleep(0, bytes(2 * round(seconds * 24_000)))


def business() -> Business:
    return load_folder(SHIPPED_FLOWS).businesses["harbor-dental"]


# -- callers ------------------------------------------------------------------------------------------------------


def test_pauses_that_end_an_utterance_are_no_speaking_time() -> None:
    short, long = (SILENT, 480), (SILENT, 500)
    loud = (3_000, 1_000)
    assert spoken_ms(said(loud)) == 1_000
    assert spoken_ms(said((SILENT, 700), loud, short, loud, (SILENT, 900))) == 2_480
    assert spoken_ms(said(loud, long, loud)) == 2_000


def test_word_times_go_before_the_sound() -> None:
    words = [Word("a", 100, 400), Word("b", 400, 700), Word("c", 1_100, 1_500), Word("d", 2_000, 2_300)]
    assert spoken_ms(said((3_000, 5_000), words=words)) == 300 + 300 + 400 + 400 + 300


async def test_a_caller_s_rate_is_of_its_text_else_of_what_is_heard() -> None:
    told = await caller_of(said((3_000, 2_000), text="just six words of this text"), hear_sentence)
    heard = await caller_of(said((3_000, 4_000)), hear_sentence)
    assert told is not None
    assert heard is not None
    assert (told.wpm, told.text_known) == (180, True)
    assert (heard.wpm, heard.text_known) == (150, False)


async def test_what_cannot_be_counted_is_left_out_and_named() -> None:
    async def digits(_: bytes) -> str:
        return "10001, 90210, 01803."

    steps: list[None] = []
    callers, left_out = await callers_of(
        [said((3_000, 4_000)), said((3_000, 2_000), text="much too slow")], digits, lambda: steps.append(None)
    )
    assert (callers, left_out, len(steps)) == ([], ["r", "r"], 2)


# -- calls --------------------------------------------------------------------------------------------------------


async def rows_of(speak: Speaker, *recordings: Recording, turns: int = 2) -> list[Row]:
    callers = [RateCaller(one, 150.0, True) for one in recordings]
    return await measure(callers, business(), VOICE, turns, hear_sentence, speak, lambda: None)


async def test_on_matches_the_caller_and_off_does_not() -> None:
    speak = speaker()
    rows = await rows_of(speak, said((3_000, 4_000)))  # ten words: 150 a minute
    assert [(row.mode, row.turn) for row in rows] == [("off", 1), ("off", 2), ("on", 1), ("on", 2)]
    off, on = (by_mode(rows)[mode] for mode in Mode)
    assert off.mae_wpm == pytest.approx(50, abs=1)
    assert on.mae_wpm == pytest.approx(0, abs=2)
    assert on.estimate_mae_wpm == pytest.approx(0, abs=2)
    assert speak.speeds[:2] == [1.0, 1.0]
    assert speak.speeds[2:] == [pytest.approx(0.75, abs=0.01)] * 2


async def test_a_voice_other_than_its_table_is_corrected_in_the_call() -> None:
    rows = await rows_of(speaker(260.0), said((3_000, 4_000)), turns=12)
    on = [row for row in rows if row.mode is Mode.ON]
    errors = [row.error_wpm for row in on]
    assert errors[0] == pytest.approx(45, abs=3)
    assert errors[-1] < errors[4] - 5 < errors[1] - 10
    assert abs(errors[-1]) < 15


async def test_a_caller_who_pauses_is_answered_once_to_the_whole() -> None:
    rows = await rows_of(speaker(), said((3_000, 4_000), (SILENT, 900), (3_000, 4_000)), turns=1)
    assert [row.mode for row in rows] == ["off", "on"]
    assert rows[1].estimate_wpm == pytest.approx(150, abs=2)


async def test_a_recording_in_which_nothing_is_heard_gets_no_reply() -> None:
    async def nothing(_: bytes) -> str:
        return ""

    caller = RateCaller(said((3_000, 4_000)), 150.0, True)
    assert await measure([caller], business(), VOICE, 2, nothing, speaker(), lambda: None) == []


# -- the voice ----------------------------------------------------------------------------------------------------


def test_no_text_both_measures_a_voice_and_is_measured() -> None:
    assert not set(PASSAGES) & set(REPLIES)
    assert min(units_of(text) for text in (*PASSAGES, *REPLIES)) >= 50


async def test_a_voice_s_table_is_measured_finely_where_it_jumps() -> None:
    async def jumping(text: str, voice: str, speed: float) -> bytes:
        rate = 200 * speed * (1.5 if speed >= 1.235 else 1.0)
        return bytes(2 * round(units_of(text) * 60 / rate * 24_000))

    table = await measure_voice(jumping, "v", PASSAGES[:2])
    speeds = [speed for speed, _ in table.points]
    assert set(COARSE) <= set(speeds)
    assert {1.21, 1.22, 1.23, 1.24} <= set(speeds)
    assert 1.31 not in speeds
    assert table.rate_at(1.23) == pytest.approx(246, abs=1)
    assert table.rate_at(1.24) == pytest.approx(372, abs=1)
    assert table.measured_units == sum(units_of(text) for text in PASSAGES[:2])


async def test_settings_that_make_a_voice_no_faster_are_left_out() -> None:
    async def lazy(text: str, voice: str, speed: float) -> bytes:
        return bytes(2 * round(units_of(text) * 60 / (200 * min(speed, 1.0)) * 24_000))

    table = await measure_voice(lazy, "v", PASSAGES[:1])
    assert table.points[-1][0] == 1.0


# -- the report ---------------------------------------------------------------------------------------------------


def test_the_contract_s_keys_are_written(tmp_path: Path) -> None:
    rows = [
        Row(Mode.OFF, "a", 1, 150, 152, 1.0, 56, 190),
        Row(Mode.OFF, "a", 2, 150, None, 1.0, 56, 180),
        Row(Mode.ON, "a", 1, 150, 152, 0.8, 56, 155),
        Row(Mode.ON, "a", 2, 150, 152, 0.8, 56, 141),
    ]
    rate_report.write_json(rows, ["digits"], {"voice": "marin"}, tmp_path / "r.json")
    rate_report.write_csv(rows, tmp_path / "r.csv")
    rate_report.write_plot(rows, tmp_path / "r.svg")
    report = msgspec.json.decode((tmp_path / "r.json").read_bytes())
    assert (report["off"]["mae_wpm"], report["on"]["mae_wpm"], report["n"]) == (35.0, 7.0, 2)
    assert (report["cut"], report["left_out"]) == (0.8, ["digits"])
    assert report["on"]["bias_wpm"] == -2.0
    lines = (tmp_path / "r.csv").read_text().splitlines()
    assert (len(lines), lines[0].split(",")[0], lines[-1].split(",")[-1]) == (5, "mode", "-9")
    assert "<svg" in (tmp_path / "r.svg").read_text()
