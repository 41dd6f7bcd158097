"""What memory adds to a turn, by stage: embed the query, search, fuse, project, build the model's input."""

import asyncio
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np

from ivr.bench.memory_world import BUSINESS, MemoryWorld
from ivr.core.context import Opening, build_input
from ivr.core.records import Turn
from memory.focus import focus, stems
from memory.model import Owner, Page
from memory.project import Candidate, project
from memory.service import Memory
from memory.store_filler import Filler
from memory.strategies import BUDGET_TOKENS

STAGES = ("embed", "search", "fuse", "project", "build")
FILL_TIMEOUT_S = 3_600.0
OTHERS_PAGES = 100
"""How many pages each of the other callers has."""
WARM_UP = 5
CANDIDATES = (100, 2_000)
PROJECTIONS = 100
_WORDS = (
    "about address after again airport allergy answer appointment april ask bakery bank beach birthday boat book bread"
    " breakfast bring brother building bus business buy cake call car card change cheap check child city class clean"
    " close coffee cold color come cost country daughter day dentist dinner doctor dog door drive early eat evening"
    " family far father find finish fish flight flower food forget friday friend garden gate give glass good green"
    " guest happy hear help holiday home hospital hotel hour house invoice job key kitchen know last late leave letter"
    " library lunch market meet milk minute monday money month morning mother mountain move music name near need new"
    " night note number office old open order paint paper park party pay phone picture place plan play price question"
    " quiet rain read repair rest return river road room run school sea send shop short sister sleep small son song"
    " speak station stay street summer sunday table talk teacher tell ticket time today tomorrow town train travel"
    " tuesday visit wait walk wall warm water weather week window winter work write year yellow yesterday"
)
VOCABULARY = _WORDS.split()
"""Real words: the model cuts made-up ones into many pieces, and takes as many times longer."""
PAGE_WORDS = (8, 30)
QUERY_WORDS = (6, 14)


class StageTime(msgspec.Struct, frozen=True):
    """Milliseconds."""

    median_ms: float
    p95_ms: float


class Overhead(msgspec.Struct, frozen=True):
    """Of one turn: the whole, and its stages (they overlap: the call's own pages are read during embedding)."""

    median_ms: float
    p95_ms: float
    stages: dict[str, StageTime]


@dataclass(slots=True)
class _Clock:
    """Milliseconds of each turn, in all and by stage."""

    totals: list[float] = field(default_factory=list)
    stages: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in STAGES})

    def add(self, turn: Mapping[str, float], total: float) -> None:
        self.totals.append(total)
        for name in STAGES:
            self.stages[name].append(turn.get(name, 0.0))

    def result(self) -> Overhead:
        whole = _time(self.totals)
        stages = {name: _time(values) for name, values in self.stages.items()}
        return Overhead(whole.median_ms, whole.p95_ms, stages)


async def fill(world: MemoryWorld, sizes: Sequence[int], total: int) -> dict[int, Owner]:
    """A caller with so many pages for each size, and others up to `total` pages in the table."""
    callers = {size: Owner(BUSINESS, f"+1202556{number:04}") for number, size in enumerate(sizes)}
    others = max(0, total - sum(sizes)) // OTHERS_PAGES
    all_sizes = [(owner, size) for size, owner in callers.items()]
    all_sizes += [(Owner(BUSINESS, f"+1303{number:07}"), OTHERS_PAGES) for number in range(others)]
    filler = Filler(world.url, timeout_s=FILL_TIMEOUT_S)
    model = world.embedder.model if world.embedder else ""
    try:
        await filler.fill(all_sizes, model, _texts(random.Random(1), 2_000, PAGE_WORDS))  # noqa: S311 - reproducible
    finally:
        await filler.close()
    return callers


async def measure(world: MemoryWorld, owner: Owner, turns: int, at_once: int) -> Overhead:
    """So many turns of each of `at_once` calls that run side by side."""
    clock = _Clock()
    rng = random.Random(2)  # noqa: S311 - reproducible
    calls = [
        _call(world, owner, f"call-{number}", _texts(rng, turns + WARM_UP, QUERY_WORDS), clock)
        for number in range(at_once)
    ]
    await asyncio.gather(*calls)
    return clock.result()


async def _call(
    world: MemoryWorld, owner: Owner, call_id: str, queries: Sequence[str], clock: _Clock
) -> None:
    turn: dict[str, float] = {}

    def note(stage: str, took_ms: float) -> None:
        turn[stage] = turn.get(stage, 0.0) + took_ms

    memory = Memory(world.store, world.audio, world.embedder, on_stage=note)
    for number, query in enumerate(queries):
        turn.clear()
        began = time.perf_counter()
        window = await memory.recall(owner, call_id, query, ())
        asked = Turn(number, items=["item"], words={"item": query}, window=window)
        building = time.perf_counter()
        build_input(call_id, window, asked, [], Opening(""), frozenset(), "state")
        ended = time.perf_counter()
        note("build", (ended - building) * 1_000)
        if number >= WARM_UP:
            clock.add(turn, (ended - began) * 1_000)


def projections() -> dict[int, StageTime]:
    """What `memory.project` takes by the number of candidates, in CPU time: it waits for nothing."""
    return {count: _time(list(_projected(count))) for count in CANDIDATES}


def _projected(count: int) -> Iterator[float]:
    rng = random.Random(count)  # noqa: S311 - reproducible
    said = _texts(rng, 2 * count, PAGE_WORDS)
    began = datetime(2026, 1, 1, tzinfo=UTC)
    candidates = []
    for number in range(count):
        user, reply = said[2 * number : 2 * number + 2]
        at = began + timedelta(minutes=number)
        page = Page(number, "call", number, user, reply, user, "", "", 0, 0, False, "", at)
        sides = (rng.gauss(-4.0, 2.0), rng.gauss(-4.0, 2.0))
        candidates.append(Candidate(page, max(sides), sides=sides))
    asked = stems(_texts(rng, 1, QUERY_WORDS)[0])
    for _ in range(PROJECTIONS):
        started = time.thread_time()
        project(candidates, BUDGET_TOKENS, focus=lambda text: focus(text, asked))
        yield (time.thread_time() - started) * 1_000


def _texts(rng: random.Random, count: int, words: tuple[int, int]) -> list[str]:
    """Word salad, few of its words frequent."""
    weights = [1.0 / rank for rank in range(1, len(VOCABULARY) + 1)]
    return [" ".join(rng.choices(VOCABULARY, weights, k=rng.randint(*words))) for _ in range(count)]


def _time(values: Sequence[float]) -> StageTime:
    return StageTime(round(float(np.median(values)), 3), round(float(np.percentile(values, 95)), 3))
