"""What the calls of `ivr bench chaos` lost, and what they left behind."""

import asyncio
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from ivr.bench.chaos import Failure, Run, World, heard_numbers, is_lost
from ivr.bench.chaos_world import WorkerProcess
from ivr.phone.record import CallRecord
from memory.calls import CallStatus
from memory.model import LATE_NO
from memory.store import Store

SETTLE_S = 60.0
"""Dropped lines are asked about after 10 s, spools replayed each second."""
_NUMBER = re.compile(r"\d{5}")


@dataclass(frozen=True, slots=True)
class Pages:
    """What is kept of one call: numbers by exchange, and whether the call has an end."""

    numbers: dict[int, list[int]]
    is_over: bool


@dataclass(frozen=True, slots=True)
class Left:
    """What a worker holds beyond what it held when it had just started."""

    tasks: int
    sockets: int
    memory_mb: float


async def kept(place: World, runs: list[Run]) -> dict[int, Pages]:
    """What the database has of each run's call, once all of them have ended."""
    store = Store(place.database_url)
    try:
        async with asyncio.timeout(SETTLE_S):
            while await store.active_calls():  # noqa: ASYNC110  # rows have no event
                await asyncio.sleep(0.5)
    except TimeoutError:
        pass  # told by `is_over`
    try:
        return {run.no: await _pages(store, place.tally.records[run.no]) for run in runs}
    finally:
        await store.close()


async def _pages(store: Store, record: CallRecord) -> Pages:
    row = await store.get_call(record.call_sid)
    if row is None:
        return Pages({}, is_over=True)
    turns = await store.turns_of(row.owner, record.call_sid)
    numbers = {turn.page.exchange_no: _numbers(turn.page.user_text) for turn in turns}
    return Pages(numbers, row.status is not CallStatus.ACTIVE)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in _NUMBER.findall(text)]


async def left_behind(place: World) -> list[Left]:
    """What each worker still holds, once it has had the time to let go."""
    waited_s = 0.0
    while waited_s < SETTLE_S and any([await _surplus(worker) > 0 for worker in place.workers]):
        waited_s += 0.5
        await asyncio.sleep(0.5)
    return [
        Left(
            await _surplus(worker),
            worker.sockets() - worker.sockets_at_start,
            worker.memory_mb(),
        )
        for worker in place.workers
    ]


async def _surplus(worker: WorkerProcess) -> int:
    return await worker.tasks() - worker.tasks_at_start


def figures(place: World, runs: list[Run], pages: dict[int, Pages], left: list[Left]) -> dict[str, Any]:
    """The bench's JSON."""
    tally = place.tally
    lost = [run for run in runs if is_lost(run, tally.records[run.no])]
    said = len(runs) * len(runs[0].numbers) if runs else 0
    in_pages = {run.no: Counter(n for one in pages[run.no].numbers.values() for n in one) for run in runs}
    return {
        "runs": len(runs),
        "calls_lost": len(lost),
        "exchanges_lost": sum(_lost(place, run, pages[run.no]) for run in runs),
        "exchanges_doubled": sum(sum(c - 1 for c in in_pages[run.no].values()) for run in runs),
        "misdirected": sum(_misdirected(place, run, in_pages[run.no]) for run in runs),
        "lost_by_failure": Counter(run.failure.value for run in lost),
        "ends": Counter(str(tally.records[run.no].end) for run in lost),
        "numbers_said": said,
        "numbers_kept": sum(len(set(in_pages[run.no]) & set(run.numbers)) for run in runs),
        "numbers_answered": sum(_answered(place, run) for run in runs),
        "exchanges_accepted": len(tally.accepted),
        "calls_without_an_end": sum(not pages[run.no].is_over for run in runs),
        "violations": sum(len(tally.records[run.no].violations) for run in runs),
        "without_an_end": [f"{run.no}: {run.failure.value}" for run in runs if not pages[run.no].is_over],
        "tracebacks": len(tally.faults),
        "faults": tally.faults,
        "drain_exit_codes": {str(code): count for code, count in tally.exit_codes.items()},
        "failures": Counter(failure.value for failure in Failure for run in runs if run.failure is failure),
        "left": left,
    }


def _lost(place: World, run: Run, pages: Pages) -> int:
    sid = place.tally.records[run.no].call_sid
    accepted = {no for call, no in place.tally.accepted if call == sid}
    return len([no for no in accepted if no not in pages.numbers and no + LATE_NO not in pages.numbers])


def _misdirected(place: World, run: Run, in_pages: Counter[int]) -> int:
    others = set(heard_numbers(place.tally.records[run.no])) | set(in_pages)
    return len(others - set(run.numbers))


def _answered(place: World, run: Run) -> int:
    return len(set(heard_numbers(place.tally.records[run.no])) & set(run.numbers))
