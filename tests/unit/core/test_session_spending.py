"""A ceiling is reached: what is being said is said, then the business's last words, then the end that it chose."""

from callflows.stock import MONEY_IS_SPENT
from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.session import CallCore
from ivr.core.setup import CallSetup
from tests.unit.core.harness import START_MS, World, clinic, speech

LIMITS = "limits: {max_call_minutes: 5, silence_s: 8, reprompts: 2}"
SAY = "That was all we can pay for. Goodbye."
HANGS_UP = clinic(LIMITS, f"{LIMITS}\nspending: {{per_call_usd: 1, say: '{SAY}'}}")
CONNECTS = clinic(LIMITS, f"{LIMITS}\nspending: {{per_call_usd: 1, say: '{SAY}', transfer: desk}}")


def in_an_answer(world: World) -> World:
    world.greet()
    world.says("When do you open?")
    world.run(3_000)
    return world


def test_the_reply_is_spoken_to_its_end_then_the_last_words_then_the_line_is_closed() -> None:
    world = in_an_answer(World(speech("At nine.", 4_000), business=HANGS_UP))
    world.happen(ev.CeilingReached())
    world.run(20_000)
    (kept,) = world.exchanges()
    assert (kept.reply_text, kept.interrupted) == ("At nine.", False)
    assert world.said()[-1] == SAY
    assert world.of(do.EndCall) == [do.EndCall(do.EndReason.FINISHED)]
    assert world.of(do.TransferCall) == []
    last_words_ms, ended_ms = world.times(do.StartReply)[-1], world.times(do.EndCall)[0]
    assert ended_ms - last_words_ms >= world.own_words_ms


def test_the_caller_is_connected_where_the_business_says_so() -> None:
    world = in_an_answer(World(speech("At nine."), business=CONNECTS))
    world.happen(ev.CeilingReached())
    world.run(20_000)
    assert world.said()[-1] == SAY
    assert world.of(do.TransferCall) == [do.TransferCall("desk", "+16175550102")]
    assert world.of(do.EndCall) == [do.EndCall(do.EndReason.TRANSFERRED)]


def test_it_may_be_told_twice_and_is_said_once() -> None:
    world = in_an_answer(World(speech("At nine."), business=HANGS_UP))
    world.happen(ev.CeilingReached())
    world.happen(ev.CeilingReached())
    world.run(20_000)
    assert world.said().count(SAY) == 1
    assert len(world.of(do.EndCall)) == 1


def test_who_talks_over_it_is_cut_off_within_a_minute() -> None:
    world = in_an_answer(World(business=HANGS_UP))
    world.run(10_000)
    reached_ms = world.now_ms
    world.happen(ev.CeilingReached())
    for _ in range(40):
        if not world.core.is_over:
            world.says("But wait", lasting_ms=1_500)
            world.run(2_000)
    (ended,) = world.times(do.EndCall)
    assert ended <= reached_ms - START_MS + 61_000


def test_a_call_that_begins_with_nothing_left_hears_only_that() -> None:
    world = World(business=HANGS_UP)
    setup = world.setup
    world.core = CallCore(
        CallSetup(setup.call_id, setup.business, setup.flow, setup.opening, is_spent=True), world.now_ms
    )
    world.run(10_000)
    assert world.said() == [SAY]
    assert world.of(do.EndCall) == [do.EndCall(do.EndReason.FINISHED)]


def test_a_spent_call_whose_transfer_reached_nobody_is_not_connected_again() -> None:
    world = World(business=CONNECTS)
    setup = world.setup
    nobody = CallSetup(
        setup.call_id, setup.business, setup.flow, "What else?", is_spent=True, was_transferred=True
    )
    world.core = CallCore(nobody, world.now_ms)
    world.run(10_000)
    assert world.said() == [MONEY_IS_SPENT["en"]]
    assert world.of(do.EndCall) == [do.EndCall(do.EndReason.FINISHED)]
