"""Voices' tables: what ships, what an operator may give, and what is said of a faulty file."""

from pathlib import Path

import pytest

from ivr.core.speaking import VoiceProfile
from ivr.errors import CallthreadError
from ivr.settings import ModelSource
from ivr.voicebook import as_toml, parse, voices_of

PAPER = "points = [[0.8, 142.4], [1.5, 267.0]]"


def test_openai_s_voices_have_the_paper_s_ends_and_are_corrected_at_once() -> None:
    voice = voices_of(ModelSource.OPENAI).of("marin")
    assert voice is not None
    assert voice.points == ((0.8, 142.4), (1.5, 267.0))
    assert (voice.language, voice.measured_units) == ("en", 0)


def test_the_sandbox_s_usual_voice_was_measured() -> None:
    voices = voices_of(ModelSource.SANDBOX)
    marin, any_voice = voices.of("marin"), voices.of("a voice nobody measured")
    assert marin is not None
    assert marin.measured_units > 400
    assert (marin.points[0][0], marin.points[-1][0]) == (0.5, 1.5)
    assert any_voice is not None


def test_of_a_compatible_server_nothing_is_known() -> None:
    assert voices_of(ModelSource.COMPATIBLE).of("marin") is None


def test_the_operator_s_file_goes_before_what_ships(tmp_path: Path) -> None:
    file = tmp_path / "voices.toml"
    file.write_text(f'[anna]\nlanguage = "de"\nmeasured_units = 300\n{PAPER}\n')
    voices = voices_of(ModelSource.OPENAI, file)
    anna = voices.of("anna")
    assert anna is not None
    assert (anna.language, anna.measured_units) == ("de", 300)
    assert voices.of("marin") is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("points = ", "v.toml"),
        (f"[a]\n{PAPER}\nspeed = 1", "[a]"),
        ("[a]\npoints = [[0.8, 142.4]]", "[a]"),
        ('[a]\npoints = [[0.8, "fast"], [1.5, 267.0]]', "[a]"),
        ("[a]\npoints = [[1.5, 142.4], [0.8, 267.0]]", "rising"),
        ("[a]", "[a]"),
        ("a = 1", "[a]"),
    ],
)
def test_a_faulty_file_is_one_error_that_names_it(text: str, told: str) -> None:
    with pytest.raises(CallthreadError, match=r"v\.toml") as caught:
        parse(text, "v.toml")
    assert told in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CallthreadError, match=r"gone\.toml"):
        voices_of(ModelSource.SANDBOX, tmp_path / "gone.toml")


def test_what_is_written_is_read_back() -> None:
    profiles = {
        "marin": VoiceProfile(((0.5, 99.5), (1.0, 201.0)), "en-US", 466),
        "*": VoiceProfile(((1, 2), (3, 4))),
    }
    text = as_toml(profiles, "measured\nby hand")
    assert text.startswith("# measured\n# by hand\n")
    book = parse(text, "v.toml")
    assert (book.of("marin"), book.of("other")) == (profiles["marin"], profiles["*"])
