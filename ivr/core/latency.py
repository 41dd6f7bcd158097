"""Where the time between the caller's last word and our first sound went, stage by stage."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Latency:
    """A turn's latency budget, ms. The stages add up to `total`; one of which nothing is known is `None`."""

    vad: float | None = None
    """From the caller's last word to the boundary: the silence that it waits for, and the way to us."""
    transcript: float | None = None
    """Until the words that the recall asks with were there, or were no longer waited for."""
    recall: float | None = None
    decision: float | None = None
    """Until the reply that was heard was asked for: function calls, deferrals and failures come before it."""
    first_audio: float | None = None
    """From asking for that reply to its first audio."""
    total: float | None = None


STAGES = tuple(field.name for field in fields(Latency))


def latency_of(
    speech_ended_ms: float | None,
    closed_ms: float | None,
    words_ms: float | None,
    window_ms: float | None,
    asked_ms: float | None,
    audio_ms: float | None,
) -> Latency:
    """The budget of a turn from when it reached each stage, on the call's clock; `None`: it did not."""
    return Latency(
        _between(speech_ended_ms, closed_ms),
        _between(closed_ms, words_ms),
        _between(words_ms, window_ms),
        _between(window_ms, asked_ms),
        _between(asked_ms, audio_ms),
        _between(speech_ended_ms, audio_ms),
    )


def _between(start_ms: float | None, end_ms: float | None) -> float | None:
    return None if start_ms is None or end_ms is None else round(end_ms - start_ms, 1)
