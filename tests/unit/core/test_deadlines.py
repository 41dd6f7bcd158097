"""Deadlines: the earliest is always the one that comes next."""

from hypothesis import given
from hypothesis import strategies as st

from ivr.core.deadlines import Deadline, Deadlines

NAMES = st.sampled_from(Deadline)
SET = st.tuples(NAMES, st.floats(0, 1_000))
TAKE = st.floats(0, 1_000)


@given(st.lists(st.one_of(SET, NAMES, TAKE), max_size=40))
def test_the_earliest_is_next_and_taken_first_and_once(
    steps: list[tuple[Deadline, float] | Deadline | float],
) -> None:
    deadlines, plain = Deadlines(), dict[Deadline, float]()
    for step in steps:
        if isinstance(step, tuple):
            deadlines.set(*step)
            plain[step[0]] = step[1]
        elif isinstance(step, Deadline):
            deadlines.clear(step)
            plain.pop(step, None)
        else:
            name = deadlines.take_due(step)
            due = [at_ms for at_ms in plain.values() if at_ms <= step]
            assert (name is None) == (not due)
            assert name is None or plain.pop(name) == min(due)
        assert deadlines.next_ms() == min(plain.values(), default=None)
        assert {n: deadlines.at_ms(n) for n in Deadline if deadlines.has(n)} == plain
