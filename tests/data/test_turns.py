"""The bench of turn-taking on recorded speech over recorded networks, a sample of it."""

import pytest

from ivr.audio.g711 import ulaw_to_pcm16
from ivr.bench.turns import Plan, measure
from ivr.bench.turns_data import Recording, load_recordings, load_traces
from ivr.bench.turns_policies import Policy
from ivr.sandbox.vad import level_dbfs
from tests.data.recorded import files, folder

RECORDINGS = {one.name: one for one in load_recordings(folder("speech"))}
TRACES = load_traces(folder("loss"))


def test_all_recordings_and_traces_are_read() -> None:
    assert len(RECORDINGS) == len(files("speech", "*.wav"))
    assert len(TRACES) == len(files("loss", "*.txt"))


@pytest.mark.parametrize("name", sorted(name for name, one in RECORDINGS.items() if one.is_timed))
def test_word_times_lie_on_the_sound(name: str) -> None:
    """Nearly all of the louder half of the frames are in a word, and no word ends behind the sound."""
    one = RECORDINGS[name]
    assert len(one.words) >= 8
    levels = [level_dbfs(ulaw_to_pcm16(frame)) for frame in one.frames]
    loud = [no for no, level in enumerate(levels) if level >= sorted(levels)[len(levels) // 2]]
    assert sum(one.word_of_frame[no] >= 0 for no in loud) >= 0.85 * len(loud)
    assert one.speech_end_ms <= one.length_ms


def chosen(*parts: str) -> list[Recording]:
    return [one for name, one in RECORDINGS.items() if any(part in name for part in parts)]


def test_each_policy_answers_over_each_network() -> None:
    traces = [trace for trace in TRACES if trace.name in ("teams-2307", "lossgen-40pct-1")]
    late = [trace for trace in TRACES if trace.name.startswith("Verizon")]
    rows = measure(chosen("0880", "LJ002"), traces + late, Plan(offsets=2, bursts=4, seed=3), 1)
    assert {row.policy for row in rows} == set(Policy)
    static = [row for row in rows if row.policy is Policy.STATIC]
    assert not any(row.is_network_false for row in static)
    assert sum(row.delay_ms is not None for row in rows) >= 0.9 * len(rows)
