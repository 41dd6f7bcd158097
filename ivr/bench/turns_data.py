"""What `ivr bench turns` runs on: recordings with what is known of their words, and traces of networks.

Words come, in this order, from an aligner's JSON beside the WAV (`{"w": [{"b", "d", "t"}]}`, seconds), from a Praat
TextGrid with a tier `words`, from a text (`.txt`, `.lab`) spread over the voiced frames by length of word, or are
unknown: then each 200 ms of voice stand for a word that says nothing.
"""

import json
import re
import wave
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ivr.audio.files import BadAudioFile, read_wav
from ivr.audio.g711 import pcm16_to_ulaw, ulaw_to_pcm16
from ivr.core.units import FRAME_BYTES, FRAME_MS, LINE_RATE_HZ, ULAW_SILENCE
from ivr.errors import CallthreadError
from ivr.phone.network import Network, load_trace
from ivr.sandbox.vad import level_dbfs

VOICED_DBFS = -50.0
"""A frame above this level is voiced; without word times the last word ends at the last such frame."""
UNKNOWN_WORD = "something"
_UNKNOWN_WORD_MS = 200
_VARIANT = re.compile(r"\(\d+\)$")
"""An aligner's mark of the pronunciation it chose: `was(2)`."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word and when it was said, in ms of the recording."""

    text: str
    start_ms: float
    end_ms: float


@dataclass(frozen=True)
class Recording:
    """One turn of a caller. `frames`: µ-law of 20 ms each, as the telephone carries it."""

    name: str
    frames: tuple[bytes, ...]
    words: tuple[Word, ...]
    is_timed: bool
    """The times of the words were measured, not spread over the sound."""

    @property
    def length_ms(self) -> int:
        """How long the recording is, in whole frames."""
        return len(self.frames) * FRAME_MS

    @cached_property
    def voiced(self) -> tuple[bool, ...]:
        """By frame: above `VOICED_DBFS`."""
        return tuple(voiced_frames(self.frames))

    @cached_property
    def speech_end_ms(self) -> float:
        """The true end of the last word."""
        if self.is_timed:
            return self.words[-1].end_ms
        return _last(self.voiced) * FRAME_MS

    @cached_property
    def word_of_frame(self) -> tuple[int, ...]:
        """By frame: which word is being said, −1 for none."""
        found = [-1] * len(self.frames)
        for no, word in enumerate(self.words):
            for frame in range(int(word.start_ms // FRAME_MS), int(-(-word.end_ms // FRAME_MS))):
                if frame < len(found):
                    found[frame] = no
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Trace:
    """A network's record, repeated for ever. `frames`: after how many it repeats."""

    name: str
    network: Network
    frames: int


def voiced_frames(frames: Sequence[bytes]) -> Iterator[bool]:
    """Whether each µ-law frame is above `VOICED_DBFS`."""
    return (level_dbfs(ulaw_to_pcm16(frame)) > VOICED_DBFS for frame in frames)


def recording(
    name: str, pcm16: bytes, words: Sequence[Word] = (), text: Sequence[str] = ()
) -> Recording | None:
    """A recording of PCM16 8 kHz; `None` without a voiced frame. `words` are timed, `text` is not."""
    ulaw = pcm16_to_ulaw(pcm16)
    ulaw += ULAW_SILENCE * (-len(ulaw) % FRAME_BYTES)
    frames = tuple(ulaw[at : at + FRAME_BYTES] for at in range(0, len(ulaw), FRAME_BYTES))
    voiced = list(voiced_frames(frames))
    if not any(voiced):
        return None
    return Recording(name, frames, tuple(words) or tuple(_spread(text, voiced)), bool(words))


def _spread(text: Sequence[str], voiced: Sequence[bool]) -> Iterator[Word]:
    """Words over the voiced frames, each as long as its letters are many."""
    sound = [no * FRAME_MS for no, on in enumerate(voiced) if on]
    names = list(text) or [UNKNOWN_WORD] * max(1, len(sound) * FRAME_MS // _UNKNOWN_WORD_MS)
    letters, done = sum(map(len, names)), 0
    for word in names:
        first = done * len(sound) // letters
        done += len(word)
        last = max(first, done * len(sound) // letters - 1)
        yield Word(word, sound[min(first, len(sound) - 1)], sound[min(last, len(sound) - 1)] + FRAME_MS)


def _last(voiced: Sequence[bool]) -> int:
    return max(no for no, on in enumerate(voiced) if on) + 1


# -- files -------------------------------------------------------------------------------------------------------


def load_recordings(folder: Path) -> list[Recording]:
    """All WAV files below `folder` that hold sound. Raises: `CallthreadError` if there are none."""
    found = []
    for path in sorted(folder.rglob("*.wav")):
        try:
            pcm16 = read_wav(path, LINE_RATE_HZ)
        except (BadAudioFile, wave.Error) as error:
            raise CallthreadError(f"{path}: {error}") from error
        name = str(path.relative_to(folder).with_suffix(""))
        one = recording(name, pcm16, timed_words(path), plain_words(path))
        if one is not None:
            found.append(one)
    if not found:
        raise CallthreadError(f"{folder}: no WAV files with speech in them")
    return found


def timed_words(wav: Path) -> tuple[Word, ...]:
    """Words with times from the file beside a WAV; none if there is no such file.

    Raises: `CallthreadError` for a file that cannot be read as what its name says.
    """
    aligned, grid = wav.with_suffix(".json"), wav.with_suffix(".TextGrid")
    try:
        if aligned.exists():
            return _aligned(json.loads(aligned.read_text(encoding="utf-8")))
        if grid.exists():
            return _textgrid(grid.read_text(encoding="utf-8"))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise CallthreadError(f"no word times in the file beside {wav}: {error!r}") from error
    return ()


def _aligned(found: dict[str, list[dict[str, float | str]]]) -> tuple[Word, ...]:
    words = []
    for one in found["w"]:
        text, start_ms = str(one["t"]), float(one["b"]) * 1_000
        if not text.startswith(("<", "[", "+")):  # silence and noise
            words.append(Word(_VARIANT.sub("", text), start_ms, start_ms + float(one["d"]) * 1_000))
    return tuple(words)


def _textgrid(text: str) -> tuple[Word, ...]:
    """The tier `words`, of a TextGrid in Praat's short or long form."""
    tokens = re.findall(r'"(?:[^"]|"")*"|(?<![\w\[])-?\d+(?:\.\d+)?(?![\w\]])', text)
    at = tokens.index('"words"') + 3
    count = int(tokens[at])
    words = []
    for no in range(count):
        start, end, label = tokens[at + 1 + 3 * no : at + 4 + 3 * no]
        if label.strip('" '):
            words.append(Word(label.strip('" '), float(start) * 1_000, float(end) * 1_000))
    return tuple(words)


def plain_words(wav: Path) -> list[str]:
    """The words of the text beside a WAV; none if there is no text."""
    for suffix in (".txt", ".lab"):
        path = wav.with_suffix(suffix)
        if path.exists():
            return path.read_text(encoding="utf-8").split()
    return []


def load_traces(folder: Path) -> list[Trace]:
    """All traces (`*.txt`: 0/1 lines; `*.delay_ms.txt`: delays) in `folder`.

    Raises: `CallthreadError` if there are none, or for one with anything else in it.
    """
    found = []
    for path in sorted(folder.glob("*.txt")):
        try:
            network = load_trace(path)
        except ValueError as error:
            raise CallthreadError(str(error)) from error
        name = path.name.removesuffix(".txt")
        found.append(Trace(name, network, max(len(network.lost), len(network.delay_ms))))
    if not found:
        raise CallthreadError(f"{folder}: no traces (*.txt)")
    return found
