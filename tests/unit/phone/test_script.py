from ivr.phone.playback import FarSide
from ivr.phone.script import (
    AfterReply,
    At,
    BargeIn,
    BreakStream,
    CallScript,
    DropLine,
    Dtmf,
    HangUp,
    Now,
    Say,
    ScriptRunner,
    Step,
    Wait,
)

QUIET = FarSide()
REPLY = FarSide(busy=False, idle_ms=700, voiced_ms=1_000)


def test_the_caller_waits_for_the_far_side_to_have_spoken_and_stopped() -> None:
    say = Say(b"x")
    runner = ScriptRunner(CallScript((say,)))

    assert runner.next_step(20, QUIET, False) is None
    assert runner.next_step(40, FarSide(busy=True, spurt_ms=500, voiced_ms=500), False) is None
    assert runner.next_step(60, FarSide(idle_ms=680, voiced_ms=500), False) is None
    assert runner.next_step(80, FarSide(idle_ms=700, voiced_ms=500), False) is say


def test_a_second_utterance_waits_for_a_new_reply() -> None:
    first, second = Say(b"1"), Say(b"2")
    runner = ScriptRunner(CallScript((first, second)))
    assert runner.next_step(20, REPLY, False) is first

    assert runner.next_step(40, FarSide(idle_ms=900, voiced_ms=1_000), True) is None
    assert (
        runner.next_step(60, FarSide(idle_ms=5_000, voiced_ms=1_200), False) is None
    )  # until then: old words
    assert not runner.finished
    assert runner.next_step(80, FarSide(idle_ms=800, voiced_ms=1_400), False) is second


def test_what_was_heard_during_a_wait_counts_as_the_reply() -> None:
    second = Say(b"2")
    runner = ScriptRunner(CallScript((Say(b"1", when=Now()), Wait(1_000), second)))
    runner.next_step(20, QUIET, False)
    assert runner.next_step(40, QUIET, False) is None

    assert runner.next_step(1_000, REPLY, False) is None
    assert runner.next_step(1_040, FarSide(idle_ms=2_000, voiced_ms=1_000), False) is None  # the wait is over
    assert runner.next_step(1_060, FarSide(idle_ms=2_020, voiced_ms=1_000), False) is second


def test_patience_ends() -> None:
    say = Say(b"x", when=AfterReply(patience_ms=5_000))
    runner = ScriptRunner(CallScript((say,)))

    assert runner.next_step(4_980, QUIET, False) is None
    assert runner.next_step(5_000, QUIET, False) is say


def test_barging_in_waits_for_the_far_side_to_be_in_the_middle_of_it() -> None:
    say = Say(b"x", when=BargeIn(1_000))
    runner = ScriptRunner(CallScript((say,)))

    assert runner.next_step(20, REPLY, False) is None
    assert runner.next_step(40, FarSide(busy=True, spurt_ms=980, voiced_ms=900), False) is None
    assert runner.next_step(60, FarSide(busy=True, spurt_ms=1_000, voiced_ms=920), False) is say


def test_steps_at_a_time_and_at_once() -> None:
    steps: tuple[Step, ...] = (Dtmf("1", At(500)), BreakStream(), HangUp(Now()))
    runner = ScriptRunner(CallScript(steps))

    taken = [(now_ms, runner.next_step(now_ms, QUIET, False)) for now_ms in range(480, 580, 20)]

    assert taken == [(480, None), (500, steps[0]), (520, steps[1]), (540, steps[2]), (560, None)]
    assert runner.finished


def test_the_line_drops_at_its_time_even_in_the_middle_of_a_word() -> None:
    runner = ScriptRunner(CallScript((Say(b"x", when=Now()), Say(b"y")), drop_after_ms=300))
    runner.next_step(20, QUIET, False)

    assert runner.next_step(280, QUIET, True) is None
    assert runner.next_step(300, QUIET, True) == DropLine()
    assert runner.finished is False


def test_no_call_is_for_ever() -> None:
    runner = ScriptRunner(CallScript(hang_up_after_ms=1_000))

    assert runner.next_step(980, QUIET, False) is None
    assert runner.next_step(1_000, QUIET, False) == HangUp()
