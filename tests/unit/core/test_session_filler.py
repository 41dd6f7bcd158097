"""An answer that fails is asked for again after a filler; after that the model counts as down."""

import pytest

from callflows.down import ModelDown
from ivr.core import commands as do
from ivr.core import events as ev
from tests.unit.core.harness import FAILED, Answer, World, speech

MOMENT = "One moment, please."


def asking(*answers: Answer, wait_ms: float = 9_000) -> World:
    world = World(*answers)
    world.own_words_ms = 1_000
    world.greet()
    world.says("When do you open?")
    world.run(wait_ms)
    return world


def test_a_failed_answer_is_asked_for_again_after_a_filler() -> None:
    world = asking(FAILED, speech("At nine."))
    assert world.said()[1:] == [MOMENT]
    assert len(world.asked()) == 2
    filler, again = world.of(do.StartReply)[-2:]
    assert again == world.asked()[-1] != filler
    (exchange,) = world.exchanges()
    assert (exchange.user_text, exchange.reply_text) == ("When do you open?", "At nine.")


def test_it_is_said_once_a_turn_and_then_the_model_is_down() -> None:
    world = asking(FAILED, FAILED, FAILED, FAILED, wait_ms=15_000)
    assert world.said()[1:] == [MOMENT]
    assert [c.reason for c in world.of(do.EndCall)] == [do.EndReason.FAILED]
    assert len(world.asked()) == 3


def test_the_next_turn_may_have_its_own() -> None:
    world = asking(FAILED, speech("At nine."), FAILED, speech("At five."))
    world.says("And close?")
    world.run(9_000)
    assert world.said()[1:] == [MOMENT, MOMENT]
    assert [e.reply_text for e in world.exchanges()] == ["At nine.", "At five."]


def test_who_speaks_over_it_goes_on_with_their_turn() -> None:
    world = World(FAILED, speech("At nine on Mondays."))
    world.greet()
    world.says("When do you open?")
    world.run(1_900)
    world.says("I mean on Mondays.", lasting_ms=1_500)
    world.run(9_000)
    (exchange,) = world.exchanges()
    assert exchange.user_text == "When do you open? I mean on Mondays."
    assert exchange.reply_text == "At nine on Mondays."


def test_a_session_that_is_lost_while_it_is_said_answers_in_the_next() -> None:
    world = World(FAILED, speech("At nine."))
    world.greet()
    world.says("When do you open?")
    world.run(1_900)
    world.lose_model()
    world.run(9_000)
    (exchange,) = world.exchanges()
    assert (exchange.user_text, exchange.reply_text) == ("When do you open?", "At nine.")


def test_nothing_is_said_before_our_own_words_are_tried_again() -> None:
    world = World()
    world.run(310)
    first = world.of(do.StartReply)[0]
    world.happen(ev.ReplyDone(first.reply_id, ev.ReplyStatus.FAILED))
    world.run(7_000)
    assert world.said()[:2] == [world.business.greeting] * 2
    assert MOMENT not in world.said()


@pytest.mark.parametrize(
    ("filler", "language", "said"),
    [
        (None, "en-US", MOMENT),
        (None, "de-DE", "Einen Moment bitte."),
        (None, "fi-FI", MOMENT),
        ("Hold on.", "de-DE", "Hold on."),
        ({"en-US": "Hold on.", "de-DE": "Moment."}, "de-AT", "Moment."),
    ],
)
def test_it_is_in_the_language_of_the_call(filler: object, language: str, said: str) -> None:
    down = ModelDown.model_validate({} if filler is None else {"filler": filler})
    assert down.filler_in(language) == said
