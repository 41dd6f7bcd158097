"""Who speaks over us: what stops, what was heard, and what is taken back."""

import pytest

from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.units import ULAW_SILENCE
from tests.unit.core.harness import START_MS, Answer, World, speech

WORDS = " ".join(["word"] * 39 + ["ZULU"])
LONG = Answer(WORDS, 10_000, first_ms=100, done_ms=400)
"""Ten seconds, all sent in 0.3 s."""
ENDLESS = Answer(WORDS, 10_000, first_ms=100, done_ms=None)
"""The same, and never complete at the provider."""


def into_answer(answer: Answer, audible_ms: float, *more: Answer) -> World:
    """A world `audible_ms` into the first answer."""
    world = World(answer, *more)
    world.greet()
    world.says("Tell me everything.")
    while not world.asked():
        world.run(20)
    began_ms = world.times(do.StartReply)[-1] + answer.first_ms
    world.run(START_MS + began_ms + audible_ms - world.now_ms)
    return world


@pytest.mark.parametrize("answer", [ENDLESS, LONG], ids=["b011-streaming", "b012-complete"])
def test_b011_b012_one_clear_at_once_and_no_more_of_it(answer: Answer) -> None:
    world = into_answer(answer, 1_000, speech("All right."))
    world.says("Stop, please.", lasting_ms=1_500)
    world.run(60)
    spoke_at = world.now_ms - START_MS
    (cleared_at,) = world.times(do.SendClear)
    assert cleared_at == spoke_at
    world.run(2_500)
    assert [at for at in world.times(do.SendMedia) if at > cleared_at] == []
    world.run(6_000)
    assert len(world.of(do.SendClear)) == 1
    assert [e.reply_text for e in world.exchanges()][1:] == ["All right."]
    assert world.phone.sound().endswith(world.audio_of(world.asked()[1], 2_000))


def test_b011_the_reply_is_cancelled_once_it_is_known_to_be_speech() -> None:
    world = into_answer(ENDLESS, 1_000)
    world.says("Stop, please.", lasting_ms=1_500)
    world.run(1_200)
    assert world.of(do.CancelReply) == []
    world.run(100)
    assert [c.reply_id for c in world.of(do.CancelReply)] == [world.asked()[0].reply_id]


def test_b012_a_complete_reply_is_not_cancelled() -> None:
    world = into_answer(LONG, 1_000)
    world.says("Stop, please.", lasting_ms=1_500)
    world.run(6_000)
    assert world.of(do.CancelReply) == []


@pytest.mark.parametrize("answer", [ENDLESS, LONG], ids=["streaming", "complete"])
def test_b048_what_was_heard_is_what_is_kept(answer: Answer) -> None:
    world = into_answer(answer, 2_000)
    world.says("Stop, please.", lasting_ms=1_500)
    world.run(8_000)
    exchange = world.exchanges()[0]
    assert exchange.interrupted
    assert 6 <= len(exchange.reply_text.split()) <= 9  # 2.06 s of 10 s, 40 words
    assert "ZULU" not in exchange.reply_text
    heard_ms = len(exchange.reply_ulaw) / 8
    assert exchange.states["heard"] == {"heard_ms": heard_ms, "received_ms": 10_000, "estimated": True}
    assert 1_800 <= heard_ms <= 2_060
    assert world.audio_of(world.asked()[0], 10_000).startswith(exchange.reply_ulaw)
    assert "interrupted" in world.asked()[1].input[2].text  # type: ignore[union-attr]


def test_b026_speech_after_everything_was_heard_cuts_nothing() -> None:
    world = into_answer(speech(WORDS, 2_000), 7_000, speech("Yes?"))
    world.says("Thank you.")
    world.run(6_000)
    assert world.of(do.SendClear) == []
    assert [(e.reply_text, e.interrupted) for e in world.exchanges()] == [(WORDS, False), ("Yes?", False)]


def test_partial_words_confirm_an_interruption_early() -> None:
    world = into_answer(ENDLESS, 1_000)
    world.says("No no no", lasting_ms=1_000, partial="No no")
    world.run(520)
    assert len(world.of(do.CancelReply)) == 1


@pytest.mark.parametrize("words", ["", None], ids=["empty transcript", "no transcript"])
def test_b014_a_blip_before_the_greeting_does_not_wipe_it(words: str | None) -> None:
    world = World(model_after_ms=50)
    world.run(55)
    world.happen(ev.SpeechStarted("u0", 0))
    world.run(200)
    world.happen(ev.SpeechStopped("u0", 250))
    world.happen(ev.TurnCommitted("u0"))
    world.run(500)
    if words is not None:
        world.happen(ev.TranscriptDone("u0", words))
    world.run(2_500)
    greeting = world.of(do.StartReply)[0]
    assert world.phone.sound()[:16_000] == world.audio_of(greeting, 2_000)
    assert not any(world.of(kind) for kind in (do.SendClear, do.CancelReply, do.CommitExchange))


def test_a_question_asked_before_the_greeting_is_answered_after_it() -> None:
    world = World(speech("At nine."))
    world.own_words_ms = 4_000
    world.run(310)
    world.says("When do you open?", lasting_ms=800)
    world.run(12_000)
    assert world.of(do.SendClear) == []
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [("When do you open?", "At nine.")]


def test_b051_a_false_interruption_is_taken_back_where_it_was_left() -> None:
    world = into_answer(LONG, 2_000)
    world.says("", lasting_ms=250)
    world.run(60)
    assert len(world.of(do.SendClear)) == 1
    world.run(10_500)
    whole, heard = world.audio_of(world.asked()[0], 10_000), world.phone.sound().rstrip(ULAW_SILENCE)
    said = heard[heard.index(whole[:160]) :]
    repeated_ms = (len(said) - len(whole)) / 8
    assert 0 <= repeated_ms <= 220  # a mark's interval: nothing is left out, little is said twice
    assert said.endswith(whole[2_100 * 8 :])
    assert [(e.reply_text, e.interrupted) for e in world.exchanges()] == [(WORDS, False)]
    assert len(world.asked()) == 1


def test_a_false_interruption_of_a_reply_that_is_still_coming() -> None:
    slow = Answer(WORDS, 10_000, first_ms=100, done_ms=3_000)
    world = into_answer(slow, 1_000)
    world.says("", lasting_ms=250)
    world.run(12_500)
    whole, heard = world.audio_of(world.asked()[0], 10_000), world.phone.sound().rstrip(ULAW_SILENCE)
    assert heard.endswith(whole[1_100 * 8 :])
    assert [(e.reply_text, e.interrupted) for e in world.exchanges()] == [(WORDS, False)]


def test_noise_during_a_reply_loses_neither_turn_nor_reply() -> None:
    world = into_answer(LONG, 1_000)
    for _ in range(2):
        world.says("", lasting_ms=200)
        world.run(2_500)
    world.run(12_000)
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [("Tell me everything.", WORDS)]


def test_an_interruption_nobody_transcribes_is_believed_in_the_end() -> None:
    world = into_answer(LONG, 1_000, speech("Pardon?"))
    world.says(None, lasting_ms=250, words_after_ms=None)
    world.run(12_000)
    assert [e.reply_text for e in world.exchanges()][1:] == ["Pardon?"]
    assert world.exchanges()[0].interrupted


def test_a_long_interruption_is_believed_at_once_and_answered_when_it_ends() -> None:
    world = into_answer(LONG, 1_000, speech("I see."))
    world.says("a long story", lasting_ms=5_000)
    world.run(1_300)
    assert world.of(do.ReportTurn) != []  # the exchange is over
    world.run(9_000)
    assert [(e.user_text, e.reply_text) for e in world.exchanges()][1:] == [("a long story", "I see.")]


def test_b019_ninety_seconds_at_once_not_a_byte_lost_until_the_interrupt() -> None:
    world = into_answer(Answer(WORDS, 90_000, first_ms=100, done_ms=2_000), 70_000)
    assert world.said() == [world.business.greeting]  # nobody asked whether anybody is there
    (reply,) = world.asked()
    sent = b"".join(c.ulaw for c in world.of(do.SendMedia))[2_000 * 8 :]
    whole = world.audio_of(reply, 90_000)
    assert whole.startswith(sent)
    assert 70_000 <= len(sent) / 8 <= 70_400  # no more than what is sent ahead
    world.says("Enough.", lasting_ms=1_500)
    world.run(8_000)
    assert len(world.of(do.SendClear)) == 1
    heard_ms = len(world.exchanges()[0].reply_ulaw) / 8
    assert 69_800 <= heard_ms <= 70_060
