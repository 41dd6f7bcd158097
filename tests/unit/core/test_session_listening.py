"""Sound over our reply that asks for nothing: signs of listening, coughs, our own echo. And what does ask."""

import pytest

from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.backchannels import is_backchannel, is_echo
from ivr.core.voice import level, pauses_ms, voiced_ms, word_edge
from tests.unit.core.harness import SPEECH, START_MS, Answer, World, speech

STORY = "We are at 12 Mill Street opposite the library and there is a car park behind the house"
LONG = Answer(STORY, 10_000, first_ms=100, done_ms=400)
ASKING = Answer(
    "Do you want the morning? Or is the afternoon better for you", 10_000, first_ms=100, done_ms=400
)
QUIET = b"\xff" * 160
LOUD = bytes([SPEECH]) * 160


def into_answer(audible_ms: float, *answers: Answer) -> World:
    world = World(*answers)
    world.greet()
    world.says("Tell me everything.")
    while not world.asked():
        world.run(20)
    world.run(world.times(do.StartReply)[-1] + START_MS + 100 + audible_ms - world.now_ms)
    return world


@pytest.mark.parametrize("words", ["Mhm.", "Yeah, yeah.", "Okay", "uh-huh", "I see."])
def test_a_sign_of_listening_does_not_end_the_reply(words: str) -> None:
    world = into_answer(2_000, LONG)
    world.says(words, lasting_ms=400)
    world.run(12_000)
    assert [(e.reply_text, e.interrupted) for e in world.exchanges()] == [(STORY, False)]
    assert len(world.asked()) == 1
    assert world.of(do.CancelReply) == []
    assert do.ForgetItem("u2") in world.of(do.ForgetItem)


def test_a_partial_transcript_that_may_only_be_a_sign_of_listening_decides_nothing() -> None:
    world = into_answer(2_000, LONG, speech("Of course."))
    world.says("Yeah but where do I park?", lasting_ms=1_000, partial="Yeah")
    world.run(8_000)
    assert [(e.reply_text, e.interrupted) for e in world.exchanges()][1:] == [("Of course.", False)]
    assert world.exchanges()[0].interrupted


def test_yes_is_an_answer_where_a_question_was_asked() -> None:
    world = into_answer(3_000, ASKING, speech("The morning, then."))
    world.says("Yes.", lasting_ms=400)
    world.run(8_000)
    assert [(e.user_text, e.reply_text) for e in world.exchanges()][1:] == [("Yes.", "The morning, then.")]


def test_less_voice_than_any_word_has_is_taken_back_before_its_transcript() -> None:
    world = into_answer(2_000, LONG)
    world.says("", lasting_ms=160, words_after_ms=2_000)
    world.run(60 + 160 + 500 + 20)
    (cleared,) = world.times(do.SendClear)
    resumed = [at for at in world.times(do.SendMedia) if at > cleared]
    assert resumed[0] - cleared <= 160 + 500 + 20


def test_words_outweigh_how_little_voice_they_had() -> None:
    world = into_answer(2_000, LONG, speech("I stop."))
    world.says("No!", lasting_ms=200, words_after_ms=600)
    world.run(8_000)
    assert world.exchanges()[0].interrupted
    assert [(e.user_text, e.reply_text) for e in world.exchanges()][1:] == [("No!", "I stop.")]


def test_the_echo_of_our_first_syllables_does_not_barge_in() -> None:
    world = into_answer(200, LONG)
    world.says("We are", lasting_ms=180)
    world.run(12_000)
    assert world.of(do.SendClear) == []
    assert [(e.reply_text, e.interrupted) for e in world.exchanges()] == [(STORY, False)]
    assert len(world.asked()) == 1


def test_speech_over_our_first_syllables_that_goes_on_does_barge_in() -> None:
    world = into_answer(200, LONG, speech("Yes?"))
    began_ms = world.now_ms - START_MS
    world.says("Wait a moment please", lasting_ms=1_500)
    world.run(8_000)
    (cleared,) = world.times(do.SendClear)
    assert began_ms + 220 <= cleared <= began_ms + 300
    assert [e.reply_text for e in world.exchanges()][1:] == ["Yes?"]


def test_two_false_interruptions_say_every_word_and_count_none_twice() -> None:
    world = into_answer(2_000, LONG)
    for _ in range(2):
        world.says("mhm", lasting_ms=300)
        world.run(2_500)
    world.run(12_000)
    (exchange,) = world.exchanges()
    assert (exchange.reply_text, exchange.interrupted) == (STORY, False)
    assert len(exchange.reply_ulaw) / 8 == 10_000  # what was said again is kept once


def test_a_real_interruption_after_a_false_one_keeps_what_was_heard() -> None:
    world = into_answer(2_000, LONG, speech("All right."))
    world.says("mhm", lasting_ms=300)
    world.run(2_500)
    world.says("Stop, please.", lasting_ms=1_500)
    world.run(8_000)
    exchange = world.exchanges()[0]
    assert exchange.interrupted
    assert STORY.startswith(exchange.reply_text)
    assert "behind the house" not in exchange.reply_text
    assert world.audio_of(world.asked()[0], 10_000).startswith(exchange.reply_ulaw)


def test_b051_noise_while_the_answer_is_awaited_leaves_the_answer() -> None:
    world = World(Answer("At nine.", 1_000, first_ms=1_200, done_ms=1_300), speech("At nine."))
    world.greet()
    world.says("When do you open?")
    world.run(2_000)
    world.says("", lasting_ms=100)
    world.run(9_000)
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [("When do you open?", "At nine.")]


@pytest.mark.parametrize(
    ("text", "language", "asked", "expected"),
    [
        ("Mhm.", "en-US", False, True),
        ("mhm", "ja-JP", True, True),
        ("Yes", "en", False, True),
        ("Yes", "en", True, False),
        ("ja genau", "de-DE", False, True),
        ("D’accord", "fr", False, True),
        ("okay okay okay okay", "en", False, False),
        ("no", "en", False, False),
        ("okay stop", "en", False, False),
        ("", "en", False, False),
    ],
)
def test_signs_of_listening(text: str, language: str, asked: bool, expected: bool) -> None:
    assert is_backchannel(text, language, asked=asked) is expected


def test_an_echo_is_our_own_words_in_order() -> None:
    assert is_echo("we open", "We open at nine.")
    assert not is_echo("open we", "We open at nine.")
    assert not is_echo("pen", "We open at nine.")
    assert not is_echo("", "We open at nine.")


def test_levels_and_voice() -> None:
    assert level(QUIET) == 0
    assert level(b"") == 0
    assert level(b"\x00" * 160) == 255  # full scale
    assert voiced_ms(QUIET * 3 + LOUD * 4) == 80
    assert voiced_ms(LOUD[:159]) == 0


@pytest.mark.parametrize(
    ("ulaw", "paused_ms"),
    [
        (b"", 0),
        (LOUD * 40, 0),
        (LOUD + QUIET * 24 + LOUD, 0),
        (LOUD + QUIET * 25 + LOUD, 500),
        (QUIET * 30 + LOUD + QUIET * 10 + LOUD + QUIET * 25, 1_100),
    ],
)
def test_only_long_silences_are_pauses(ulaw: bytes, paused_ms: int) -> None:
    assert pauses_ms(ulaw, 500) == paused_ms


def test_a_word_s_edge_is_behind_the_last_pause_or_the_quietest_frame() -> None:
    soft = bytes([0x40]) * 160
    assert word_edge(LOUD * 10 + QUIET * 2 + LOUD * 5) == 12 * 160
    assert word_edge(LOUD * 10 + soft + LOUD * 3) == 11 * 160
    assert word_edge(QUIET * 40 + LOUD * 30) == 70 * 160 - 400 * 8 + 160  # no pause within reach
    assert word_edge(b"") == 0
    assert word_edge(LOUD * 2 + QUIET) == 3 * 160


def test_nothing_changes_for_a_late_word_of_an_earlier_turn() -> None:
    world = into_answer(2_000, LONG)
    world.happen(ev.TranscriptDone("u0", "Stop!"))
    world.run(12_000)
    assert [(e.reply_text, e.interrupted) for e in world.exchanges()] == [(STORY, False)]
