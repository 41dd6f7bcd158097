"""How near the replies' rate is to the caller's: orchestration off and on, over recordings of real speech.

Each recording is a caller who says it in every turn of a call of their own. The caller's rate is the recording's:
its words over the time they took, pauses that end an utterance left out. The reply's is its words over the audio that
went to the line. What the core believes the caller's rate to be is its own matter, by the sandbox's ear.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from callflows.model import Business, Orchestration
from ivr.bench.rate_profile import units_of
from ivr.bench.rate_texts import REPLIES
from ivr.bench.rate_world import Hear, RateCall, Speak
from ivr.bench.turns_data import UNKNOWN_WORD, Recording
from ivr.core.speaking import ENGLISH, VoiceProfile, count_units
from ivr.core.units import FRAME_MS

PAUSE_MS = 500
"""The default D_VAD: a pause of this length ends an utterance, so it is not part of any utterance's duration."""


class Mode(StrEnum):
    """The two sides of the comparison."""

    OFF = "off"
    ON = "on"


ORCHESTRATION = {Mode.OFF: Orchestration.OFF, Mode.ON: Orchestration.JOINT}


@dataclass(frozen=True, slots=True)
class RateCaller:
    """A recording and the rate at which it is spoken, words a minute. `text_known`: not only by our ear."""

    recording: Recording
    wpm: float
    text_known: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One reply. `estimate_wpm`: the caller's rate as the core knew it."""

    mode: Mode
    caller: str
    turn: int
    caller_wpm: float
    estimate_wpm: float | None
    speed: float
    words: int
    reply_wpm: float

    @property
    def error_wpm(self) -> float:
        """Reply less caller."""
        return self.reply_wpm - self.caller_wpm


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one mode. `bias_wpm`: the mean error with its sign; `estimate_mae_wpm`: how well the caller was measured."""

    n: int
    mae_wpm: float
    median_wpm: float
    p95_wpm: float
    bias_wpm: float
    estimate_mae_wpm: float | None


# -- callers ------------------------------------------------------------------------------------------------------


def spoken_ms(recording: Recording) -> float:
    """How long its words took: from word times if there are any, else from the frames above −50 dBFS."""
    if recording.is_timed:
        spans: Iterator[tuple[float, float]] = ((w.start_ms, w.end_ms) for w in recording.words)
    else:
        voiced = (no for no, on in enumerate(recording.voiced) if on)
        spans = ((no * FRAME_MS, (no + 1) * FRAME_MS) for no in voiced)
    total_ms, end_ms = 0.0, None
    for start_ms, stop_ms in spans:
        pause_ms = 0.0 if end_ms is None else start_ms - end_ms
        total_ms += stop_ms - start_ms + (pause_ms if pause_ms < PAUSE_MS else 0.0)
        end_ms = stop_ms
    return total_ms


async def caller_of(recording: Recording, hear: Hear) -> RateCaller | None:
    """Who speaks it how fast; `None` where its words cannot be counted: digits, or no words at all."""
    texts = [word.text for word in recording.words]
    known = bool(texts) and set(texts) != {UNKNOWN_WORD}
    text = " ".join(texts) if known else await hear(b"".join(recording.frames))
    units = count_units(text, ENGLISH)
    return RateCaller(recording, units * 60_000 / spoken_ms(recording), known) if units else None


async def callers_of(
    recordings: Sequence[Recording], hear: Hear, step: Callable[[], None]
) -> tuple[list[RateCaller], list[str]]:
    """The callers, and the names of recordings whose rate is unknown or beyond the band for English."""
    callers, left_out = [], []
    for recording in recordings:
        caller = await caller_of(recording, hear)
        if caller is not None and ENGLISH.low <= caller.wpm <= ENGLISH.high:
            callers.append(caller)
        else:
            left_out.append(recording.name)
        step()
    return callers, left_out


# -- calls --------------------------------------------------------------------------------------------------------


async def measure(
    callers: Sequence[RateCaller],
    business: Business,
    voice: VoiceProfile,
    turns: int,
    hear: Hear,
    speak: Speak,
    step: Callable[[], None],
) -> list[Row]:
    """Every caller's call, in both modes, with the same replies in the same turns."""
    rows = []
    for no, caller in enumerate(callers):
        for mode in Mode:
            its_business = business.model_copy(update={"orchestration": ORCHESTRATION[mode]})
            call = RateCall(its_business, voice, hear, speak)
            for turn in range(turns):
                text = REPLIES[(no + turn) % len(REPLIES)]
                spoken = await call.turn(caller.recording.frames, text)
                if spoken is not None:
                    words = units_of(text)
                    reply_wpm = words * 60_000 / spoken.audio_ms
                    rows.append(
                        Row(
                            mode,
                            caller.recording.name,
                            turn + 1,
                            caller.wpm,
                            spoken.estimate,
                            spoken.speed,
                            words,
                            reply_wpm,
                        )
                    )
                step()
    return rows


def figures(rows: Sequence[Row]) -> Figures:
    """Of the rows of one mode. Raises: `ValueError` without any."""
    if not rows:
        raise ValueError("no replies")
    errors = np.array([row.error_wpm for row in rows])
    known = [abs(row.estimate_wpm - row.caller_wpm) for row in rows if row.estimate_wpm is not None]
    return Figures(
        len(rows),
        round(float(np.mean(np.abs(errors))), 2),
        round(float(np.median(np.abs(errors))), 2),
        round(float(np.percentile(np.abs(errors), 95)), 2),
        round(float(np.mean(errors)), 2),
        round(float(np.mean(known)), 2) if known else None,
    )


def by_mode(rows: Sequence[Row]) -> Mapping[Mode, Figures]:
    """Both sides."""
    return {mode: figures([row for row in rows if row.mode is mode]) for mode in Mode}
