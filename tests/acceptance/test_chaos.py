"""A sample of `ivr bench chaos`: every failure once, real processes, eight calls at once."""

from ivr.bench.chaos import Failure
from ivr.bench.chaos_command import measure


async def test_each_failure_once_costs_no_call_and_no_exchange() -> None:
    found = await measure(len(Failure), 3, lambda _run, _record: None)
    assert found["calls_lost"] == 0, found
    assert found["exchanges_lost"] == found["exchanges_doubled"] == found["misdirected"] == 0, found
    assert found["calls_without_an_end"] == found["violations"] == found["tracebacks"] == 0, found
    assert set(found["drain_exit_codes"]) == {"0"}, found
    assert max(left.tasks for left in found["left"]) <= 0, found
