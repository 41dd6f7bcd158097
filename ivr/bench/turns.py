"""`ivr bench turns`: turn-taking policies against each other on recorded speech over recorded networks.

*all*: each recording × trace × so many offsets into the trace, drawn by seed. *bursts*: the pairs in which a hole of
at least 440 ms meets speech; more offsets are drawn for these until there are enough.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing import get_context
from random import Random

from callflows.model import Business
from callflows.parse import load_folder
from ivr.bench.turns_data import Recording, Trace
from ivr.bench.turns_ear import Ear
from ivr.bench.turns_policies import MANNERS, Policy
from ivr.bench.turns_world import Caller, Outcome, Way, call, without_loss
from ivr.core.units import FRAME_MS
from ivr.places import SHIPPED_FLOWS

BURST_MS = 440
BUSINESS = "harbor-dental"
"""Of those shipped: one that begins to talk at once."""
MORE_ROUNDS = 400
"""So many more offsets a pair are looked at for bursts."""


class Group(StrEnum):
    """Which pairs are counted together."""

    ALL = "all"
    BURSTS = "bursts"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run. `bursts`: at least so many pairs with a burst, as far as the traces have them."""

    policies: tuple[Policy, ...] = tuple(Policy)
    offsets: int = 10
    bursts: int = 600
    seed: int = 1
    goes_on: bool = False
    """Losses go on behind the recording's end, while its answer is waited for."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A recording over a trace from one of its frames on."""

    recording: int
    trace: int
    offset: int
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One simulated call. `cost_usd` is network-induced: less what the same policy discards without loss."""

    recording: str
    trace: str
    offset: int
    groups: tuple[Group, ...]
    policy: Policy
    is_false: bool
    is_network_false: bool
    delay_ms: float | None
    cost_usd: float
    decisions: int


def has_burst(recording: Recording, trace: Trace, offset: int) -> bool:
    """A hole of at least `BURST_MS` takes a voiced frame before the last word's end."""
    if not trace.network.lost:
        return False
    hole, meets = 0, False
    for number in range(len(recording.frames)):
        if not trace.network.loses(offset + number):
            hole, meets = 0, False
            continue
        hole += 1
        meets = meets or (recording.voiced[number] and number * FRAME_MS < recording.speech_end_ms)
        if meets and hole * FRAME_MS >= BURST_MS:
            return True
    return False


def pairs(recordings: Sequence[Recording], traces: Sequence[Trace], plan: Plan) -> list[Pair]:
    """All pairs of the plan, the same for the same seed."""
    found, bursts = [], 0
    draws = {
        (r, t): Random(f"{plan.seed}/{r}/{t}")  # noqa: S311
        for r in range(len(recordings))
        for t in range(len(traces))
    }
    bursty = [t for t, trace in enumerate(traces) if _longest_hole(trace) * FRAME_MS >= BURST_MS]
    for round_no in range(plan.offsets + (MORE_ROUNDS if bursty else 0)):
        if round_no >= plan.offsets and bursts >= plan.bursts:
            break
        for (r, t), chance in draws.items():
            if round_no >= plan.offsets and t not in bursty:
                continue
            offset = chance.randrange(traces[t].frames)
            groups = _groups(recordings[r], traces[t], offset, is_extra=round_no >= plan.offsets)
            bursts += Group.BURSTS in groups
            if groups:
                found.append(Pair(r, t, offset, groups))
    return found


def _groups(recording: Recording, trace: Trace, offset: int, *, is_extra: bool) -> tuple[Group, ...]:
    bursts = (Group.BURSTS,) if has_burst(recording, trace, offset) else ()
    return bursts if is_extra else (Group.ALL, *bursts)


def _longest_hole(trace: Trace) -> int:
    """In frames, also over the seam at which the trace repeats."""
    longest = hole = 0
    for gone in trace.network.lost * 2:
        hole = hole + 1 if gone else 0
        longest = max(longest, hole)
    return longest


# -- running ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    """Pairs of one recording, run in one process."""

    recording: Recording
    traces: tuple[Trace, ...]
    pairs: tuple[Pair, ...]
    plan: Plan

    @property
    def frames(self) -> int:
        """About how much work it is."""
        return len(self.pairs) * len(self.recording.frames)


PAIRS_A_JOB = 100


def jobs(
    recordings: Sequence[Recording], traces: Sequence[Trace], found: Sequence[Pair], plan: Plan
) -> list[Job]:
    """The work in pieces, the longest first."""
    of = {r: [pair for pair in found if pair.recording == r] for r in range(len(recordings))}
    cut = [
        Job(recordings[r], tuple(traces), tuple(mine[at : at + PAIRS_A_JOB]), plan)
        for r, mine in of.items()
        for at in range(0, len(mine), PAIRS_A_JOB)
    ]
    return sorted(cut, key=lambda job: -job.frames)


def run_job(job: Job) -> list[Row]:
    """Run all pairs of a job under all policies."""
    business = load_folder(SHIPPED_FLOWS).businesses[BUSINESS]
    return [row for pair_rows in _Runner(job, business).rows() for row in pair_rows]


class _Runner:
    """One recording's calls, and the calls without loss they are compared with."""

    def __init__(self, job: Job, business: Business) -> None:
        self._job, self._business = job, business
        self._caller = Caller(job.recording, Ear(job.recording.frames))
        perfect = without_loss(job.recording)
        self._clean = {
            policy: self._call(policy, perfect, "clean") for policy in {*job.plan.policies, Policy.FIXED}
        }

    def rows(self) -> Iterator[list[Row]]:
        """A list for each pair."""
        goes_on = self._job.plan.goes_on
        for pair in self._job.pairs:
            way = Way.of(self._job.recording, self._job.traces[pair.trace], pair.offset, goes_on=goes_on)
            yield [self._row(pair, way, policy) for policy in self._job.plan.policies]

    def _call(self, policy: Policy, way: Way, name: str) -> Outcome:
        # The same draws for each policy: they differ by what they do, not by luck.
        chance = Random(f"{self._job.plan.seed}/{self._job.recording.name}/{name}")  # noqa: S311
        return call(self._caller, way, self._business, MANNERS[policy], chance)

    def _row(self, pair: Pair, way: Way, policy: Policy) -> Row:
        trace = self._job.traces[pair.trace].name
        outcome = self._call(policy, way, f"{trace}/{pair.offset}")
        return Row(
            recording=self._job.recording.name,
            trace=trace,
            offset=pair.offset,
            groups=pair.groups,
            policy=policy,
            is_false=outcome.has_false,
            is_network_false=outcome.network_false(self._clean[Policy.FIXED]),
            delay_ms=outcome.delay_ms,
            cost_usd=outcome.discarded_usd - self._clean[policy].discarded_usd,
            decisions=outcome.decisions,
        )


def measure(
    recordings: Sequence[Recording],
    traces: Sequence[Trace],
    plan: Plan,
    processes: int,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> list[Row]:
    """All calls of the plan. `progress` is told how many pairs of how many are done."""
    found = pairs(recordings, traces, plan)
    work = jobs(recordings, traces, found, plan)
    rows: list[Row] = []
    done = 0
    progress(done, len(found))
    if processes <= 1:
        for job in work:
            rows += run_job(job)
            done += len(job.pairs)
            progress(done, len(found))
        return rows
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        running: dict[Future[list[Row]], Job] = {pool.submit(run_job, job): job for job in work}
        for ended in as_completed(running):
            rows += ended.result()
            done += len(running[ended].pairs)
            progress(done, len(found))
    return rows
