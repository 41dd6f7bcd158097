"""Sessions change before the provider ends them, and those that cannot be had are given up in time."""

import pytest

from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.deadlines import Deadline, Deadlines
from ivr.core.sessions import Sessions
from ivr.core.setup import Tuning
from memory.model import EndedBy
from tests.unit.core.harness import Answer, World, clinic, speech

LIFETIME_MS = 60_000
PATIENT = clinic("silence_s: 8", "silence_s: 60")


def world_of_short_sessions(*answers: Answer) -> World:
    """The greeting is over; the session lasts a minute."""
    world = World(*answers, business=PATIENT, model_after_ms=-1)
    world.run(300)
    world.happen(ev.ModelReady("s1", LIFETIME_MS))
    world.run(3_000)
    return world


def run_to(world: World, at_ms: float) -> None:
    """To a time since the session began."""
    world.run(50_000 + 300 + at_ms - world.now_ms)


def test_b034_a_session_is_changed_five_minutes_ahead_of_its_hour() -> None:
    deadlines = Deadlines()
    sessions = Sessions(Tuning(), deadlines, 0)
    sessions.ready(ev.SESSION_MS, 1_000)
    assert deadlines.at_ms(Deadline.ROLLOVER) == 1_000 + 55 * 60_000
    assert not sessions.rolls_over(is_quiet=False, now_ms=1_000 + 55 * 60_000)
    assert deadlines.at_ms(Deadline.ROLLOVER) == 1_000 + 55 * 60_000 + 100
    assert not sessions.rolls_over(is_quiet=False, now_ms=1_000 + 59 * 60_000 - 50)
    assert deadlines.at_ms(Deadline.ROLLOVER) == 1_000 + 59 * 60_000
    assert sessions.rolls_over(is_quiet=False, now_ms=1_000 + 59 * 60_000)


def test_b034_at_a_quiet_moment_at_once_and_the_conversation_goes_on() -> None:
    world = world_of_short_sessions(speech("At nine."), speech("At five."))
    world.says("When do you open?")
    run_to(world, 54_900)
    assert world.of(do.ReopenModel) == []
    run_to(world, 56_000)
    assert world.of(do.ReopenModel) == [do.ReopenModel(0)]
    assert world.times(do.ReopenModel) == [300 + 55_000]
    world.says("And close?")
    world.run(6_000)
    assert world.said() == [world.business.greeting]
    assert world.asked()[1].input[1:3] == (do.UserText("When do you open?"), do.AssistantText("At nine."))
    assert [(e.exchange_no, e.reply_text) for e in world.exchanges()] == [(1, "At nine."), (2, "At five.")]


def test_b034_not_while_anybody_speaks_or_a_reply_is_due() -> None:
    world = world_of_short_sessions(speech("At nine.", 2_000), speech("At five."))
    run_to(world, 54_000)
    world.says("When do you open?", lasting_ms=1_500)
    world.run(9_000)
    (changed_ms,) = world.times(do.ReopenModel)
    assert changed_ms >= 300 + 55_500 + 500 + 2_000
    assert changed_ms < 300 + 59_000
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [("When do you open?", "At nine.")]


def test_b034_transcripts_that_are_still_to_come_are_waited_for() -> None:
    world = world_of_short_sessions(speech("At nine.", 500))
    run_to(world, 52_500)
    world.says("When do you open?", lasting_ms=500, words_after_ms=3_000)
    world.run(10_000)
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [("When do you open?", "At nine.")]
    assert len(world.of(do.ReopenModel)) == 1


def test_b034_a_caller_who_never_stops_is_heard_on_by_the_next_session() -> None:
    world = world_of_short_sessions()
    run_to(world, 50_000)
    world.says("a long story", lasting_ms=30_000)
    run_to(world, 58_900)
    assert world.of(do.ReopenModel) == []
    run_to(world, 59_200)
    assert world.times(do.ReopenModel) == [300 + 59_000]
    assert world.of(do.EndCall) == []


def test_a_changed_session_is_no_loss() -> None:
    """Six losses in a row are the end; changes are none, however many."""
    world = world_of_short_sessions()
    world.lose_model()
    for no in range(8):
        world._forget(lambda due: due.source == "open")
        world.happen(ev.ModelReady(f"s{no}", 9_000))
        world.run(8_300)  # the new session would come 100 ms after the change
    assert world.of(do.EndCall) == []
    assert [command.delay_ms for command in world.of(do.ReopenModel)] == [250, *[0] * 8]


def test_b035_sessions_that_come_and_go_are_given_up_in_number() -> None:
    world = World(business=PATIENT)
    world.greet()
    for _ in range(20):
        if not world.of(do.EndCall):
            world.lose_model()
            world.run(world.of(do.ReopenModel)[-1].delay_ms + 110)
    assert [c.delay_ms for c in world.of(do.ReopenModel)] == [250, 500, 1_000, 2_000, 4_000]
    assert [c.reason for c in world.of(do.EndCall)] == [do.EndReason.FAILED]


def test_b035_and_in_time() -> None:
    world = World(business=PATIENT)
    world.greet()
    lost_at_ms = world.now_ms
    for _ in range(4):
        world.lose_model()
        world.run(world.of(do.ReopenModel)[-1].delay_ms + 6_000)
    world.lose_model()
    (ended_at_ms,) = [at for at, command in world.sent if isinstance(command, do.EndCall)]
    assert 20_000 <= ended_at_ms - lost_at_ms < 30_000


def test_a_session_that_held_for_a_while_makes_the_next_loss_a_new_trouble() -> None:
    world = World(business=PATIENT)
    world.greet()
    for _ in range(8):
        world.lose_model()
        world.run(11_000)
    assert world.of(do.EndCall) == []
    assert {command.delay_ms for command in world.of(do.ReopenModel)} == {250}


@pytest.mark.parametrize("in_mid_call", [False, True])
def test_an_opening_that_hangs_is_given_up(in_mid_call: bool) -> None:
    world = World(business=PATIENT, model_after_ms=300 if in_mid_call else -1)
    if in_mid_call:
        world.greet()
        world.lose_model()
        world._forget(lambda due: due.source == "open")
    world.run(19_500)
    assert world.of(do.EndCall) == []
    world.run(1_000)
    assert world.of(do.EndCall) == [
        do.EndCall(do.EndReason.FAILED, PATIENT.on_model_down.say_in("en-US"), EndedBy.MODEL)
    ]
