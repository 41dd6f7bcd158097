"""The model session goes away, in every state, and comes back: nothing is greeted twice and nothing is lost."""

import pytest

from callflows.stock import SAY_AGAIN
from ivr.core import commands as do
from ivr.core import events as ev
from memory.model import EndedBy
from tests.unit.core.harness import SPEECH, START_MS, Answer, World, calling, clinic, speech

SLOW = Answer("At nine.", 2_000, first_ms=1_500, done_ms=1_600)
ENDLESS = Answer("At nine.", 3_000, first_ms=200, done_ms=None)


def greetings(world: World) -> int:
    return world.said().count(world.business.greeting)


def understands(world: World, words: str) -> None:
    """The new session finds speech in what it was told again."""
    item = "again"
    for event in (
        ev.SpeechStarted(item, 0),
        ev.SpeechStopped(item, int(world.core._media.tape.length_ms())),
        ev.TurnCommitted(item),
    ):
        world.happen(event)
    world._at(world.now_ms + 300, ev.TranscriptDone(item, words), "vad")


def told_again(world: World) -> bytes:
    """What the last session heard at once when it was ready."""
    last_ms = max(at for at, command in world.sent if isinstance(command, do.ReopenModel))
    ready_ms = min(at for at, command in world.sent if isinstance(command, do.Hear) and at > last_ms)
    return b"".join(c.ulaw for at, c in world.sent if isinstance(c, do.Hear) and at == ready_ms)


def test_b008_seventy_five_frames_wait_and_go_once_in_order_when_ready() -> None:
    world = World(model_after_ms=2_005)
    frames = [bytes([no]) * 160 for no in range(75)]
    for no, ulaw in enumerate(frames):
        world.happen(ev.LineFrame(no + 2, no + 1, no * 20, ulaw), START_MS + no * 20)
    assert world.of(do.Hear) == []
    world._is_line_up = False
    world.run(600)
    heard = world.of(do.Hear)
    assert [h.ulaw for h in heard] == frames
    assert set(world.times(do.Hear)) == {2_005}


def test_b008_a_bound_drops_the_oldest() -> None:
    world = World(model_after_ms=-1)
    world._is_line_up = False
    for no in range(300):  # 6 s
        world.happen(ev.LineFrame(no + 2, no + 1, no * 20, bytes([no % 251]) * 160), START_MS + no * 20)
    world.happen(ev.ModelReady("s1"))
    assert [h.ulaw[0] for h in world.of(do.Hear)] == [no % 251 for no in range(50, 300)]


def test_b008_what_is_said_before_the_session_is_ready_is_answered() -> None:
    world = World(speech("At nine."), model_after_ms=2_000)
    world.run(1_900)
    assert world.of(do.Hear) == []
    world.run(200)
    assert len(world.of(do.Hear)) >= 100


@pytest.mark.parametrize("lost_after_ms", [50, 150, 480, 1_000, 2_310, 3_000])
def test_b035_the_greeting_is_heard_once(lost_after_ms: float) -> None:
    """Lost before, while asked for, while it plays, after it."""
    world = World()
    world.run(200 + lost_after_ms)
    world.lose_model()
    world.run(4_000)
    sound = world.phone.sound()
    frame_numbers = [int.from_bytes(sound[at + 2 : at + 4]) for at in range(0, len(sound), 160)]
    assert frame_numbers == list(range(len(frame_numbers)))
    assert len(frame_numbers) >= 50


def test_a_greeting_that_was_asked_for_and_lost_is_said_by_the_next_session() -> None:
    world = World()
    world.run(350)
    world.lose_model()
    world.run(5_000)
    assert world.said() == [world.business.greeting] * 2
    assert world.phone.sound() == world.audio_of(world.of(do.StartReply)[1], 2_000)


def test_a_session_that_cannot_be_opened_at_first_greets_when_it_can() -> None:
    world = World()
    world.refused_opens = 2
    world.run(6_000)
    assert greetings(world) == 1
    assert [c.delay_ms for c in world.of(do.ReopenModel)] == [250, 500]


def test_b034_lost_while_the_answer_is_asked_for_it_is_asked_for_again_in_text() -> None:
    world = World(SLOW, speech("At nine, again."))
    world.greet()
    world.says("When do you open?")
    world.run(2_300)
    assert len(world.asked()) == 1
    world.lose_model()
    world.run(6_000)
    assert greetings(world) == 1
    assert do.UserText("When do you open?") in world.asked()[1].input
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [
        ("When do you open?", "At nine, again.")
    ]


def test_b034_history_goes_on_after_a_loss() -> None:
    world = World(speech("At nine."), speech("At five."))
    world.greet()
    world.says("When do you open?")
    world.run(5_000)
    world.lose_model()
    world.run(1_000)
    world.says("And close?")
    world.run(6_000)
    assert [e.exchange_no for e in world.exchanges()] == [1, 2]
    assert world.asked()[1].input[1:3] == (do.UserText("When do you open?"), do.AssistantText("At nine."))
    assert greetings(world) == 1


def test_lost_while_the_window_is_awaited() -> None:
    world = World(speech("At nine."))
    world.recall_ms = 800
    world.greet()
    world.says("When do you open?")
    world.run(2_000)
    assert world.asked() == []
    world.lose_model()
    world.run(250)
    assert world.asked() == []  # no session to ask
    world.run(7_000)
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [("When do you open?", "At nine.")]


@pytest.mark.parametrize("asked_ms", [1_100, 1_600])
def test_b035_words_that_were_not_understood_are_told_again(asked_ms: float) -> None:
    """Lost while the caller pauses, while the words are awaited."""
    world = World(speech("At nine."))
    world.greet()
    world.says("When do you open?", words_after_ms=300)
    world.run(asked_ms)
    world.lose_model()
    world.run(360)
    assert told_again(world).count(SPEECH) == 1_000 * 8
    understands(world, "When do you open?")
    world.run(6_000)
    (exchange,) = world.exchanges()
    assert (exchange.user_text, exchange.reply_text) == ("When do you open?", "At nine.")
    assert exchange.user_ulaw.count(SPEECH) == 1_000 * 8
    assert SAY_AGAIN["en"] not in world.said()


def test_b035_an_answer_asked_for_without_words_is_asked_for_again_with_them() -> None:
    world = World(SLOW, speech("At nine, again."))
    world.greet()
    world.says("When do you open?", words_after_ms=2_000)
    world.run(2_200)
    assert len(world.asked()) == 1
    world.lose_model()
    world.run(360)
    understands(world, "When do you open?")
    world.run(6_000)
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [
        ("When do you open?", "At nine, again.")
    ]


def test_b035_what_was_understood_is_not_told_again() -> None:
    world = World(speech("Cancelled."), speech("On Monday at nine."))
    world.recall_ms = 900
    world.greet()
    world.says("When do you open", lasting_ms=500, words_after_ms=100)
    world.run(1_300)
    world.says("on Mondays?", lasting_ms=600, words_after_ms=300)
    world.run(1_200)
    world.lose_model()
    world.run(360)
    assert told_again(world).count(SPEECH) == 600 * 8
    understands(world, "on Mondays?")
    world.run(8_000)
    assert [e.user_text for e in world.exchanges()] == ["When do you open on Mondays?"]


def test_b035_what_is_lost_twice_is_told_twice() -> None:
    world = World(speech("At nine."))
    world.greet()
    world.says("When do you open?", words_after_ms=300)
    world.run(1_600)
    world.lose_model()
    world.run(360)
    world.lose_model()
    world.run(700)
    assert told_again(world).count(SPEECH) == 1_000 * 8
    understands(world, "When do you open?")
    world.run(6_000)
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [("When do you open?", "At nine.")]


def test_b035_a_first_syllable_is_told_again_though_no_vad_has_found_it() -> None:
    world = World()
    world.greet()
    world._talks_until_ms = world.now_ms + 5_000
    world.run(50)
    world.lose_model()
    world.run(360)
    assert told_again(world).count(SPEECH) >= 400 * 8


def test_the_caller_is_asked_to_say_it_again_if_the_next_session_finds_no_words() -> None:
    world = World(speech("At nine."))
    world.greet()
    world.says("When do you open?", words_after_ms=300)
    world.run(1_600)
    world.lose_model()
    world.run(3_000)
    assert world.said()[1:] == []
    world.run(3_000)
    assert world.said()[1:] == [SAY_AGAIN["en"]]
    world.says("When do you open?")
    world.run(6_000)
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [("When do you open?", "At nine.")]


def test_more_than_can_be_told_again_keeps_the_words_there_are() -> None:
    world = World(speech("A sad story."), business=clinic("silence_s: 8", "silence_s: 60"))
    world.greet()
    world.says("lost", lasting_ms=60_000, partial="Once upon a time")
    world.run(40_000)
    world.lose_model()
    world.run(8_000)
    assert [e.user_text for e in world.exchanges()] == ["Once upon a time"]


def test_b035_lost_while_the_caller_speaks_on() -> None:
    """The next session hears the sentence from its beginning, and to its end."""
    world = World(speech("On Monday at nine."))
    world.greet()
    world.says("lost", lasting_ms=2_500, partial="When do you open")
    world.run(1_800)
    world.lose_model()
    world.run(360)
    assert told_again(world).count(SPEECH) >= 2_100 * 8
    world.happen(ev.SpeechStarted("again", 0))
    world.run(900)
    world.happen(ev.SpeechStopped("again", int(world.core._media.tape.length_ms())))
    world.happen(ev.TurnCommitted("again"))
    world.happen(ev.TranscriptDone("again", "When do you open on Mondays?"))
    world.run(6_000)
    (exchange,) = world.exchanges()
    assert (exchange.user_text, exchange.reply_text) == ("When do you open on Mondays?", "On Monday at nine.")
    assert exchange.user_ulaw.count(SPEECH) == 2_500 * 8
    assert len(world.asked()) == 1


def test_b035_lost_in_mid_answer_what_came_plays_on_and_is_kept() -> None:
    world = World(ENDLESS, speech("Sundays at ten."), speech("At five."))
    world.greet()
    world.says("When do you open?")
    world.run(3_000)
    world.lose_model()
    world.run(8_000)
    (exchange,) = world.exchanges()
    assert (exchange.user_text, exchange.reply_text) == ("When do you open?", "At nine. Sundays at ten.")
    assert len(world.asked()) == 2
    world.says("And close?")
    world.run(6_000)
    assert [e.reply_text for e in world.exchanges()][1:] == ["At five."]


def test_lost_while_held_the_reply_goes_on() -> None:
    world = World(ENDLESS)
    world.greet()
    world.says("When do you open?")
    world.run(3_000)
    world.says("hm", lasting_ms=1_000)
    world.run(200)
    assert len(world.of(do.SendClear)) == 1
    world.lose_model()
    world.run(8_000)
    assert [e.reply_text for e in world.exchanges()] == ["At nine. Fine."]
    assert world.audio_of(world.asked()[0], 3_000)[-8_000:] in world.phone.sound()
    assert told_again(world).count(SPEECH) >= 200 * 8  # what was said over it


def test_a_turn_that_waited_for_our_reply_is_answered_by_the_next_session() -> None:
    world = World(speech("At nine."))
    world.own_words_ms = 4_000
    world.run(310)
    world.says("When do you open?", lasting_ms=500)  # over the greeting's beginning: answered after it
    world.run(2_000)
    world.lose_model()
    world.run(9_000)
    assert greetings(world) == 1
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [("When do you open?", "At nine.")]


def test_lost_while_deferred() -> None:
    world = World(calling(("defer_response", "{}")), speech("At nine."))
    world.greet()
    world.says("When do you open?")
    world.run(3_000)
    world.lose_model()
    world.run(8_000)
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [("When do you open?", "At nine.")]


def test_lost_while_a_failed_reply_waits_for_its_retry() -> None:
    world = World(Answer(status=ev.ReplyStatus.FAILED), speech("At nine."))
    world.greet()
    world.says("When do you open?")
    world.run(2_500)
    world.lose_model()
    world.run(7_000)
    assert len(world.asked()) == 2
    assert [e.reply_text for e in world.exchanges()] == ["At nine."]


def test_lost_while_the_farewell_is_asked_for_the_model_is_asked_again() -> None:
    world = World(calling(("hang_up", "{}")), calling(("hang_up", "{}"), text="Bye now.", audio_ms=1_000))
    world.greet()
    world.says("That is all.")
    world.run(2_330)
    assert len(world.said()) == 2
    world.lose_model()
    world.run(7_000)
    assert world.of(do.EndCall) == [do.EndCall(do.EndReason.FINISHED)]
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [("That is all.", "Bye now.")]


def test_b035_after_so_many_failures_there_is_a_spoken_fallback() -> None:
    world = World()
    world.greet()
    world.refused_opens = 100
    world.lose_model()
    world.run(15_000)
    assert [c.delay_ms for c in world.of(do.ReopenModel)] == [250, 500, 1_000, 2_000, 4_000]
    assert world.of(do.EndCall) == [
        do.EndCall(do.EndReason.FAILED, world.business.on_model_down.say_in("en-US"), EndedBy.MODEL)
    ]


def test_a_permanent_loss_fails_at_once() -> None:
    world = World()
    world.greet()
    world.lose_model(permanent=True)
    assert world.of(do.ReopenModel) == []
    assert [c.reason for c in world.of(do.EndCall)] == [do.EndReason.FAILED]


def test_losses_are_counted_in_a_row() -> None:
    world = World(business=clinic("silence_s: 8", "silence_s: 60"))
    world.greet()
    for no in range(8):
        world.lose_model()
        world.run(2_000)
        world.says(f"Question {no}?")
        world.run(5_000)
    assert world.of(do.EndCall) == []
    assert {c.delay_ms for c in world.of(do.ReopenModel)} == {250}
    assert len(world.exchanges()) == 8


def test_frames_during_the_gap_are_heard_by_the_next_session() -> None:
    world = World()
    world.greet()
    before = len(world.of(do.Hear))
    world.lose_model()
    world.run(340)
    assert len(world.of(do.Hear)) == before
    world.run(40)
    assert len(world.of(do.Hear)) >= before + 18


def test_events_of_a_session_that_is_gone_are_stale() -> None:
    world = World(SLOW)
    world.greet()
    world.says("When do you open?")
    world.run(2_300)
    (first,) = world.asked()
    world.lose_model()
    for event in (
        ev.SpeechStarted("u9", 0),
        ev.TurnCommitted("u9"),
        ev.TranscriptDone("u9", "x"),
        ev.ReplyAudio(first.reply_id, b"\x01" * 160),
        ev.ReplyDone(first.reply_id, ev.ReplyStatus.COMPLETED),
    ):
        world.happen(event)
    world.run(6_000)
    assert [e.user_text for e in world.exchanges()] == ["When do you open?"]
    assert b"\x01" * 160 not in world.phone.sound()
