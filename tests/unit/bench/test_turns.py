"""The bench of turn-taking: its pairs, its simulated calls, its figures."""

import csv
import json
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import pytest
from rich.console import Console

from callflows.parse import load_folder
from ivr.bench import turns_report
from ivr.bench.turns import BUSINESS, Group, Plan, Row, has_burst, measure, pairs
from ivr.bench.turns_data import Recording, Trace, Word, recording
from ivr.bench.turns_ear import Ear
from ivr.bench.turns_figures import by_set, figures, upper_bound
from ivr.bench.turns_model import decision_ms
from ivr.bench.turns_policies import MANNERS, Policy
from ivr.bench.turns_world import Caller, Outcome, Said, Way, call, without_loss
from ivr.phone.network import Network
from ivr.places import SHIPPED_FLOWS
from tests.unit.audio.signals import to_pcm16, voice

CLINIC = load_folder(SHIPPED_FLOWS).businesses[BUSINESS]
LOSSLESS_MS = 1_286.0
"""500 ms of silence, and 786 to the first audio."""
WORD_MS = 200


def said(*parts_ms: int) -> Recording:
    """Speech and silence by turns, with a word each 200 ms of speech."""
    sound, words, at_ms = b"", [], 0
    for no, part_ms in enumerate(parts_ms):
        if no % 2:
            sound += bytes(16 * part_ms)
        else:
            sound += to_pcm16(voice(part_ms))
            ends = range(at_ms + WORD_MS, at_ms + part_ms + 1, WORD_MS)
            words += [Word(f"word{end}", end - WORD_MS, end) for end in ends]
        at_ms += part_ms
    found = recording("made", sound, words)
    assert found is not None
    return found


def losing(*frames: range) -> Trace:
    lost = {no for hole in frames for no in hole}
    return Trace("made", Network(lost=tuple(no in lost for no in range(2_000))), 2_000)


def run(one: Recording, policy: Policy, trace: Trace | None = None) -> Outcome:
    way = Way.of(one, trace, 0) if trace else without_loss(one)
    return call(Caller(one, Ear(one.frames)), way, CLINIC, MANNERS[policy], Random(1))


# -- calls ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "silence_ms"), [(Policy.FIXED, 500), (Policy.STATIC, 3_200)])
def test_without_loss_the_delay_is_the_silence_and_the_replys_own(policy: Policy, silence_ms: int) -> None:
    outcome = run(said(1_000), policy)
    assert outcome.delay_ms == pytest.approx(silence_ms + 786, abs=20)
    assert (outcome.false, outcome.discarded_usd, outcome.decisions) == ((), 0, 0)


def test_a_natural_pause_is_a_false_interruption_that_the_network_did_not_make() -> None:
    one = said(1_000, 1_600, 1_000)
    outcome = run(one, Policy.FIXED)
    assert [said.boundary_ms for said in outcome.false] == [pytest.approx(1_000, abs=20)]
    assert outcome.false[0].audible_ms == pytest.approx(1_000 + LOSSLESS_MS, abs=20)
    assert outcome.has_false
    assert not outcome.network_false(outcome)
    assert outcome.discarded_usd > 0
    assert outcome.delay_ms == pytest.approx(LOSSLESS_MS, abs=20)
    assert not run(one, Policy.STATIC).has_false


def test_a_long_hole_makes_the_fixed_threshold_answer_into_speech() -> None:
    one, trace = said(4_000), losing(range(50, 150))
    clean, lossy = run(one, Policy.FIXED), run(one, Policy.FIXED, trace)
    assert lossy.network_false(clean)
    assert lossy.discarded_usd > 0
    assert not run(one, Policy.STATIC, trace).has_false


def test_a_call_of_ours_does_not_hear_a_long_hole_as_silence() -> None:
    outcome = run(said(4_000), Policy.OFF, losing(range(50, 150)))
    assert not outcome.has_false
    assert outcome.discarded_usd == 0
    assert outcome.delay_ms == pytest.approx(LOSSLESS_MS, abs=20)


def test_the_same_pause_is_the_same_interruption() -> None:
    clean = Outcome((Said(1_000, 2_286),), 1_286, 0, 0)
    late, other = Outcome((Said(900, 2_500),), 1_286, 0, 0), Outcome((Said(2_300, 3_000),), 1_286, 0, 0)
    assert not late.network_false(clean)
    assert other.network_false(clean)


def test_losses_end_with_the_recording_unless_they_go_on() -> None:
    one, trace = said(100), losing(range(4, 9))
    assert Way.of(one, trace, 0).numbers[:6] == (0, 1, 2, 3, 5, 6)
    assert Way.of(one, trace, 0, goes_on=True).numbers[:6] == (0, 1, 2, 3, 9, 10)


def test_late_frames_hold_up_those_behind_them() -> None:
    one = said(100)
    trace = Trace("late", Network(delay_ms=(0, 50, 0, 0, 0, 0)), 6)
    assert Way.of(one, trace, 0).arrive_ms[:5] == (20, 90, 90, 90, 100)
    assert Way.of(one, trace, 1).arrive_ms[:3] == (70, 70, 70)


def test_what_is_late_is_answered_late() -> None:
    one = said(1_000)
    late = Trace("late", Network(delay_ms=(300,)), 1)
    assert run(one, Policy.FIXED, late).delay_ms == pytest.approx(LOSSLESS_MS + 300, abs=20)


@pytest.mark.parametrize("policy", list(Policy))
def test_a_call_comes_out_the_same_each_time(policy: Policy) -> None:
    one = said(1_000, 300, 800, 420, 600)
    trace = losing(range(20, 45), range(70, 90), range(100, 103))
    assert run(one, policy, trace) == run(one, policy, trace)


def test_decision_times_are_the_papers() -> None:
    chance = Random(3)
    times = [decision_ms(chance) for _ in range(100_000)]
    assert np.mean(times) == pytest.approx(790.2, rel=0.02)
    assert np.median(times) == pytest.approx(698.8, rel=0.01)
    assert np.percentile(times, 95) == pytest.approx(1_286.6, rel=0.02)


# -- pairs ----------------------------------------------------------------------------------------------------------


def test_a_burst_is_a_hole_of_440_ms_that_takes_speech() -> None:
    one = said(1_000, 1_000, 1_000)
    assert has_burst(one, losing(range(10, 32)), 0)
    assert not has_burst(one, losing(range(10, 31)), 0)
    assert not has_burst(one, losing(range(60, 95)), 0), "only the pause is lost"
    assert has_burst(one, losing(range(60, 101)), 0)
    assert not has_burst(one, losing(range(210, 260)), 60), "behind the recording's end"
    assert not has_burst(one, Trace("late", Network(delay_ms=(900,)), 1), 0)


def test_bursts_are_drawn_until_there_are_enough() -> None:
    one = said(1_000)
    plan = Plan(offsets=3, bursts=20)
    scattered = Trace("scattered", Network(lost=(False, True) * 50), 100)
    bursty = Trace("bursty", Network(lost=(False,) * 160 + (True,) * 40), 200)
    found = pairs([one, one], [bursty, scattered], plan)
    of_all = [pair for pair in found if Group.ALL in pair.groups]
    bursts = [pair for pair in found if Group.BURSTS in pair.groups]
    assert len(of_all) == 2 * 2 * 3
    assert 20 <= len(bursts) <= 21
    assert {pair.trace for pair in bursts} == {0}
    assert found == pairs([one, one], [bursty, scattered], plan)
    assert found != pairs([one, one], [bursty, scattered], Plan(offsets=3, bursts=20, seed=2))


def test_the_measure_has_a_row_for_each_pair_and_policy() -> None:
    told: list[tuple[int, int]] = []
    plan = Plan(policies=(Policy.FIXED, Policy.JOINT), offsets=2, bursts=0)
    rows = measure([said(600)], [losing(range(10, 12))], plan, 1, lambda done, of: told.append((done, of)))
    assert [row.policy for row in rows] == [Policy.FIXED, Policy.JOINT] * 2
    assert told == [(0, 2), (2, 2)]


# -- figures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hits", "n", "exact"),
    [
        # scipy.stats.beta.ppf(0.95, hits + 1, n - hits)
        (0, 600, 0.004980443380361347),
        (1, 600, 0.007881816463574881),
        (3, 650, 0.011885146117208123),
        (30, 100, 0.3842206127942016),
        (1, 1, 1.0),
    ],
)
def test_the_upper_bound_is_clopper_pearsons(hits: int, n: int, exact: float) -> None:
    assert upper_bound(hits, n) == pytest.approx(exact, abs=1e-9)


def test_nothing_in_600_is_just_under_half_a_percent() -> None:
    assert 0.0049 < upper_bound(0, 600) < 0.005
    assert upper_bound(0, 0) == 1.0


def row(policy: Policy, delay_ms: float | None = 1_300.0, *, network: bool = False, usd: float = 0.0) -> Row:
    return Row("r", "t", 0, (Group.ALL, Group.BURSTS), policy, network, network, delay_ms, usd, 1)


def test_figures_of_rows() -> None:
    found = figures([row(Policy.JOINT, 1_000.0), row(Policy.JOINT, None, network=True, usd=0.002)])
    assert (found.n, found.unanswered, found.network_false_interruptions) == (2, 1, 1)
    assert found.network_false_interruption_rate == found.false_interruption_rate == 0.5
    assert (found.median_delay_ms, found.p95_delay_ms) == (1_000.0, 1_000.0)
    assert found.cost_usd_per_trace == pytest.approx(0.001)
    assert figures([]).median_delay_ms is None


def test_the_report_has_the_contracts_keys_and_says_what_it_is_not(tmp_path: Path) -> None:
    rows = [row(policy, usd=0.001) for policy in Policy for _ in range(3)]
    sets = by_set(rows, tuple(Policy))
    turns_report.write_json(sets, Plan(), tmp_path / "turns.json")
    turns_report.write_csv(rows, tmp_path / "turns.csv")
    turns_report.write_plot(sets, tmp_path / "turns.svg")
    written = json.loads((tmp_path / "turns.json").read_text())
    for group in ("all", "bursts"):
        for policy in ("fixed-500", "static-3200", "model", "local", "joint"):
            assert written["sets"][group]["policies"][policy].keys() >= {
                "n",
                "false_interruption_rate",
                "network_false_interruption_rate",
                "upper_95",
                "median_delay_ms",
                "p95_delay_ms",
                "cost_usd_per_trace",
            }
    with (tmp_path / "turns.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(rows)
    assert (tmp_path / "turns.svg").read_text().startswith("<svg")
    console = Console(record=True, width=160)
    turns_report.show(sets, console)
    shown = " ".join(console.export_text().split())
    assert "No language model ran." in shown
    assert "nothing of a language model's judgement" in shown
    assert "fixed-500 46.0%, 1286, 3.344" in shown
    assert "too few for the goals" in shown
    assert msgspec.json.decode((tmp_path / "turns.json").read_bytes())["plan"]["offsets"] == 10


def test_goals_are_judged_on_bursts() -> None:
    fixed = [row(Policy.FIXED, 1_000.0, usd=0.010, network=True)]
    good = by_set([*fixed, row(Policy.JOINT, 1_100.0, usd=0.001)], (Policy.FIXED, Policy.JOINT))
    bad = by_set([*fixed, row(Policy.JOINT, 1_200.0, usd=0.002, network=True)], (Policy.FIXED, Policy.JOINT))
    assert [line.rsplit(" ", 1)[1] for line in turns_report.verdict(good)] == ["met"] * 3
    assert [line.rsplit(" ", 1)[1] for line in turns_report.verdict(bad)] == ["missed"] * 3
    assert not list(turns_report.verdict(by_set([], ())))
