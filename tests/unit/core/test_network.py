"""Who ended a call: `stop` comes alike from a caller who hangs up and from a line that is gone."""

import pytest

from ivr.core import commands as do
from ivr.core.network import NetworkState, ended_by
from memory.model import EndedBy
from tests.unit.core.harness import World, speech

LINES = [
    (NetworkState(), EndedBy.CALLER),
    (NetworkState(stall_ms=1_990, loss_rate=0.19), EndedBy.CALLER),
    (NetworkState(stall_ms=2_000), EndedBy.NETWORK),
    (NetworkState(loss_rate=0.2), EndedBy.NETWORK),
]


@pytest.mark.parametrize(("last", "by"), LINES)
def test_a_line_that_was_gone_before_the_call_was_ended_it(last: NetworkState, by: EndedBy) -> None:
    assert ended_by(last) is by


@pytest.mark.parametrize(("silent_ms", "by"), [(0, EndedBy.CALLER), (3_000, EndedBy.NETWORK)])
def test_a_call_whose_line_went_silent_first_was_ended_by_the_network(silent_ms: int, by: EndedBy) -> None:
    world = World(speech("We open at eight."))
    world.greet()
    world.says("When do you open?")
    world.run(4_000)
    world._forget(lambda due: due.source == "frame" and silent_ms > 0)
    world.run(silent_ms)
    world.hang_up()
    world.run(2_000)
    assert world.of(do.EndCall) == [do.EndCall(do.EndReason.DROPPED, by=by)]
