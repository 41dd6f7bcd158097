"""WAV files of µ-law, paths, and texts cut for embedding."""

import itertools
import wave
from io import BytesIO

import pytest

from memory.audio_store import audio_path, ulaw_to_wav, wav_to_ulaw
from memory.embed import CHUNK_WORDS, chunks, find_model, has_words
from memory.model import Exchange


@pytest.mark.parametrize("ulaw", [b"", b"\xff", bytes(range(256)), b"\x7f" * 161])
def test_a_wav_gives_its_samples_back(ulaw: bytes) -> None:
    wav = ulaw_to_wav(ulaw)
    assert wav_to_ulaw(wav) == ulaw
    assert int.from_bytes(wav[4:8], "little") == len(wav) - 8
    assert len(wav) % 2 == 0


def test_the_header_says_mulaw_mono_8_khz() -> None:
    """RFC 2361 and the WAVE format: tag 7, one channel, 8,000 samples and bytes a second, 8 bits."""
    wav = ulaw_to_wav(b"\xff" * 160)
    tag, channels, rate, bytes_a_second, align, bits = (
        int.from_bytes(wav[start:end], "little")
        for start, end in ((20, 22), (22, 24), (24, 28), (28, 32), (32, 34), (34, 36))
    )
    assert (tag, channels, rate, bytes_a_second, align, bits) == (7, 1, 8_000, 8_000, 1, 8)


def test_other_files_are_refused() -> None:
    pcm = BytesIO()
    with wave.open(pcm, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8_000)
        out.writeframes(b"\x00" * 320)
    for data in (b"", b"RIFF", pcm.getvalue()):
        with pytest.raises(ValueError, match="WAV"):
            wav_to_ulaw(data)


def test_names_from_outside_stay_in_their_folder() -> None:
    path = audio_path("../b", Exchange("../../etc/x", 3, "", ""), "user")
    assert path == "%2E%2E%2Fb/%2E%2E%2F%2E%2E%2Fetc%2Fx/00003-user.wav"


def test_b075_texts_without_words_are_not_embedded() -> None:
    assert [chunks(text) for text in ("", " ", "...", "?!")] == [[], [], [], []]
    assert has_words("明日") and not has_words("…")


def test_b078_a_long_text_is_cut_into_pieces_that_overlap() -> None:
    words = [f"w{number}" for number in range(900)]
    parts = [part.split() for part in chunks(" ".join(words))]
    assert all(len(part) <= CHUNK_WORDS for part in parts)
    assert {word for part in parts for word in part} == set(words)
    assert all(left[-20:] == right[:20] for left, right in itertools.pairwise(parts))


def test_a_short_text_is_one_piece() -> None:
    assert chunks("no nuts") == ["no nuts"]
    assert len(chunks("w " * CHUNK_WORDS)) == 1


def test_a_named_model_is_a_hub_model_unless_it_is_a_folder(tmp_path: object) -> None:
    hub = find_model("BAAI/bge-small-en-v1.5")
    assert hub is not None and hub.hub and hub.name == "BAAI/bge-small-en-v1.5"
    folder = find_model(str(tmp_path))
    assert folder is not None and not folder.hub and folder.source == str(tmp_path)
