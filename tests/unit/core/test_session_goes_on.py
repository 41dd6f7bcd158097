"""A reply whose session is lost goes on in the next one: at most the sentence under way is said again."""

import pytest

from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.begun import Begun, begun, joined, sentences
from ivr.core.heard import Heard
from tests.unit.core.harness import FAILED, Answer, World, speech

HOURS = "We open at eight. On Fridays we close at noon. On other days at six."
BEGINNING = "We open at eight. On Fridays we close"
REST = "On Fridays we close at noon. On other days at six."


def broken_off(*answers: Answer) -> World:
    """The session dies when the reply has got as far as its second sentence."""
    world = World(Answer(BEGINNING, 3_000, done_ms=None), *answers)
    world.greet()
    world.says("When do you open?")
    world.run(3_000)
    return world


def order_of(reply: do.StartReply) -> str:
    last = reply.input[-1]
    assert isinstance(last, do.SystemText)
    return last.text


def test_it_goes_on_with_the_sentence_that_was_cut_off_and_is_one_exchange() -> None:
    world = broken_off(speech(REST))
    world.lose_model()
    world.run(8_000)
    first, rest = world.asked()[-2:]
    assert rest.input[:-1] == first.input[:-1] or rest.input[:-1]  # the same turn, its audio by now as text
    assert 'Go on with the sentence that was cut off, from its beginning: "On Fridays we close"' in order_of(
        rest
    )
    assert 'The caller has heard: "We open at eight."' in order_of(rest)
    (exchange,) = world.exchanges()
    assert (exchange.user_text, exchange.reply_text) == ("When do you open?", HOURS)
    assert not exchange.interrupted


def test_what_there_is_of_it_is_heard_first() -> None:
    world = broken_off(speech(REST))
    world.lose_model()
    asked = len(world.asked())
    world.run(800)
    assert len(world.asked()) == asked  # the new session is there; the old sound plays on


def test_who_interrupts_what_is_left_of_it_does_not_hear_the_rest() -> None:
    world = broken_off(speech("At nine."))
    world.lose_model()
    world.run(300)
    world.says("Stop, please.", lasting_ms=900)
    world.run(8_000)
    first, second = world.exchanges()
    assert first.interrupted
    assert second.reply_text == "At nine."
    assert "cut off while you spoke" not in order_of(world.asked()[-1])


def test_a_session_that_is_lost_again_is_gone_on_with_and_no_more_than_twice() -> None:
    again = Answer("On Fridays we close at noon. On other", 2_000, done_ms=None)
    once_more = Answer("On other days at", 2_000, done_ms=None)
    world = broken_off(again, once_more, speech("Never."))
    for _ in range(3):
        world.lose_model()
        world.run(4_200)
    world.run(4_000)
    (exchange,) = world.exchanges()
    assert exchange.reply_text == "We open at eight. On Fridays we close at noon. On other days at"


def test_a_reply_that_fails_while_it_is_said_goes_on_too() -> None:
    world = World(Answer(BEGINNING, 3_000, status=ev.ReplyStatus.FAILED), speech(REST))
    world.greet()
    world.says("When do you open?")
    world.run(12_000)
    (exchange,) = world.exchanges()
    assert exchange.reply_text == HOURS


def test_what_was_heard_is_kept_when_the_caller_hangs_up_before_the_rest() -> None:
    world = broken_off(FAILED)
    world.lose_model()
    world.refused_opens = 3
    world.run(2_500)
    world.hang_up()
    world.run(2_000)
    (exchange,) = world.exchanges()
    assert (exchange.reply_text, exchange.interrupted) == (BEGINNING, True)


def test_our_own_words_go_on_from_the_sentence_that_was_cut_off() -> None:
    opening = "Welcome to the clinic. Calls are recorded. How can I help?"
    world = World(opening=opening)
    world.run(350)
    reply_id = world.of(do.StartReply)[0].reply_id
    world.happen(ev.ReplyText(reply_id, "Welcome to the clinic. Calls are re"))
    world.happen(ev.ReplyAudio(reply_id, b"\x01" * 16_000))
    world.lose_model()
    world.run(6_000)
    assert world.said() == [opening, "Calls are recorded. How can I help?"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("One. Two", ["One.", "Two"]),
        ("It is 9.30 a clock! Yes?  No", ["It is 9.30 a clock!", "Yes?", "No"]),
        ("八時です。金曜は", ["八時です。", "金曜は"]),
    ],
)
def test_sentences(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


def test_parts_are_joined_without_what_was_said_twice() -> None:
    first = begun(None, Heard("One. Tw", b"1", whole=True, received_ms=10), 5.0)
    second = begun(first, Heard("Two. Three. Fo", b"2", whole=True, received_ms=10), 9.0)
    assert second == Begun("One. Two. Three.", "Fo", b"12", 20, 5.0, 2)
    assert joined(second, Heard("Four.", b"3", whole=True, received_ms=5)) == Heard(
        "One. Two. Three. Four.", b"123", True, 25
    )
    assert joined(first, Heard("", b"", whole=False)) == Heard("One. Tw", b"1", False, 10)
    assert joined(None, Heard("One.", b"1", whole=True)) == Heard("One.", b"1", True)
