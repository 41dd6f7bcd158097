"""Recordings, word times, traces; and that what is heard of a lossy line is what a call gives to the model."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivr.audio.conceal import Concealer
from ivr.audio.files import write_wav
from ivr.audio.g711 import ulaw_to_pcm16
from ivr.audio.inbound import Inbound
from ivr.audio.resample import Upsampler
from ivr.bench.turns_data import (
    UNKNOWN_WORD,
    Word,
    load_recordings,
    load_traces,
    recording,
    timed_words,
)
from ivr.bench.turns_ear import Ear
from ivr.bench.turns_model import OURS, Model
from ivr.core.commands import SessionConfig
from ivr.errors import CallthreadError
from ivr.sandbox.vad import level_dbfs
from tests.unit.audio.signals import to_pcm16, voice

VOICE = to_pcm16(voice(600))
LONG = recording("long", VOICE + bytes(3_200) + VOICE)
assert LONG is not None
EAR = Ear(LONG.frames)

SHORT_GRID = """File type = "ooTextFile"
Object class = "TextGrid"

0
1.5
<exists>
1
"IntervalTier"
"words"
0
1.5
3
0
0.25
""
0.25
0.7
"good ""day"" yes"
0.7
1.5
"bye"
"""
LONG_GRID = """File type = "ooTextFile"
Object class = "TextGrid"
xmin = 0
xmax = 1.5
tiers? <exists>
size = 1
item []:
    item [1]:
        class = "IntervalTier"
        name = "words"
        xmin = 0
        xmax = 1.5
        intervals: size = 3
        intervals [1]:
            xmin = 0
            xmax = 0.25
            text = ""
        intervals [2]:
            xmin = 0.25
            xmax = 0.7
            text = "good ""day"" yes"
        intervals [3]:
            xmin = 0.7
            xmax = 1.5
            text = "bye"
"""


@pytest.mark.parametrize("grid", [SHORT_GRID, LONG_GRID])
def test_words_of_a_textgrid(grid: str, tmp_path: Path) -> None:
    (tmp_path / "a.TextGrid").write_text(grid)
    first, last = timed_words(tmp_path / "a.wav")
    assert (first.start_ms, first.end_ms) == (250, 700)
    assert last == Word("bye", 700, 1_500)


def test_words_of_an_aligner(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(
        '{"w":[{"b":0,"d":0.2,"t":"<sil>"},{"b":0.2,"d":0.17,"t":"was(2)"},{"b":0.4,"d":0.1,"t":"so"}]}'
    )
    words = timed_words(tmp_path / "a.wav")
    assert [word.text for word in words] == ["was", "so"]
    assert words[0].end_ms == pytest.approx(370)


def test_a_file_of_word_times_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"words": []}')
    with pytest.raises(CallthreadError, match=r"beside .*a\.wav"):
        timed_words(tmp_path / "a.wav")


def test_words_without_times_lie_on_the_voiced_frames() -> None:
    one = recording("a", bytes(1_600) + VOICE + bytes(16_000), text=["hello", "to", "you"])
    assert one is not None
    assert not one.is_timed
    assert one.words[0].start_ms == 100
    assert one.words[-1].end_ms == one.speech_end_ms == 700
    assert [word.text for word in one.words] == ["hello", "to", "you"]
    assert recording("silent", bytes(16_000)) is None
    unknown = recording("a", VOICE)
    assert unknown is not None
    assert {word.text for word in unknown.words} == {UNKNOWN_WORD}


def test_recordings_and_traces_of_folders(tmp_path: Path) -> None:
    with pytest.raises(CallthreadError, match="no WAV files"):
        load_recordings(tmp_path)
    with pytest.raises(CallthreadError, match="no traces"):
        load_traces(tmp_path)
    (tmp_path / "deep").mkdir()
    write_wav(tmp_path / "deep" / "a.wav", [VOICE], 8_000)
    write_wav(tmp_path / "silent.wav", [bytes(3_200)], 8_000)
    (tmp_path / "deep" / "a.txt").write_text("Good day to you.")
    (one,) = load_recordings(tmp_path)
    assert one.name == "deep/a"
    assert [word.text for word in one.words] == ["Good", "day", "to", "you."]
    (tmp_path / "x.delay_ms.txt").write_text("10\n20\n")
    (tmp_path / "y.txt").write_text("0\n1\n0\n")
    late, lossy = load_traces(tmp_path)
    assert (late.name, late.frames, late.network.delay_ms) == ("x.delay_ms", 2, (10, 20))
    assert (lossy.name, lossy.frames, lossy.network.lost) == ("y", 3, (False, True, False))
    (tmp_path / "z.txt").write_text("maybe\n")
    with pytest.raises(CallthreadError, match=r"z\.txt:1"):
        load_traces(tmp_path)


def windows(pcm24k: bytes) -> tuple[float, ...]:
    return tuple(level_dbfs(pcm24k[at : at + 960]) for at in range(0, len(pcm24k), 960))


losses = st.lists(st.booleans(), min_size=1, max_size=75)


@given(losses, st.sampled_from([400, 3_100]))
def test_the_ear_hears_what_the_model_is_given(lost: list[bool], longest_ms: int) -> None:
    listener, inbound, hole_ms = EAR.listen(), Inbound(), 0
    for number, gone in enumerate(lost):
        if gone and number:
            hole_ms += 20
            continue
        missing_ms, hole_ms = min(hole_ms, longest_ms), 0
        given_pcm = inbound.frame(EAR.frame(number), missing_ms)
        assert listener.hear(number, missing_ms) == windows(given_pcm)


@given(losses)
def test_a_usual_receiver_conceals_frame_by_frame(lost: list[bool]) -> None:
    lost = [False, *lost, False]
    concealer, upsampler = Concealer(), Upsampler()
    expected = []
    for number, gone in enumerate(lost):
        pcm8k = concealer.missing(20) if gone else concealer.good(ulaw_to_pcm16(EAR.frame(number)))
        expected.append(windows(upsampler.feed(pcm8k)))
    assert EAR.received(lost) == expected


def test_words_of_which_half_is_lost_are_not_understood() -> None:
    one = recording("a", VOICE + bytes(16_000), words=[Word("good", 0, 300), Word("day", 300, 600)])
    assert one is not None
    model = Model(one, SessionConfig("", (), "marin", "en-US"), OURS, Random(1), lambda after_ms, event: None)
    ear = Ear(one.frames)
    for number in range(80):
        model.hear(number, ear.clean(number), is_lost=20 <= number < 28)
    assert [item.words for item in model.items.values()] == ["good"]
