"""A caller who says nothing, a call that takes too long, and a worker that has to hand its calls over."""

import pytest

from callflows.stock import NOBODY_THERE, STILL_THERE, TIME_IS_UP
from ivr.core import commands as do
from ivr.core import events as ev
from tests.unit.core.harness import START_MS, Answer, World, calling, clinic, speech

GREETED_MS = 300 + 200 + 2_000
"""When the greeting's last byte has been sent; a round trip later its end is known."""


def spoken(world: World) -> list[tuple[str, float]]:
    """What was said of our own accord after the greeting, and when it was asked for."""
    own = [at - START_MS for at, c in world.sent if isinstance(c, do.StartReply) and c not in world.asked()]
    return list(zip(world.said(), own, strict=True))[1:]


def test_b022_two_reprompts_at_the_limit_after_the_end_of_playback_then_the_end() -> None:
    world = World()
    world.run(60_000)
    (first, t1), (second, t2), (last, t3) = spoken(world)
    assert (first, second, last) == (STILL_THERE["en"], STILL_THERE["en"], NOBODY_THERE["en"])
    assert t1 == pytest.approx(GREETED_MS + 8_000, abs=60)
    assert t2 == pytest.approx(t1 + 200 + 2_000 + 8_000, abs=60)
    assert t3 == pytest.approx(t2 + 200 + 2_000 + 8_000, abs=60)
    (ended,) = world.times(do.EndCall)
    assert ended == pytest.approx(t3 + 200 + 2_000, abs=60)
    assert world.of(do.EndCall) == [do.EndCall(do.EndReason.DROPPED)]
    assert world.exchanges() == []


def test_b022_noise_that_holds_no_words_does_not_start_the_count_anew() -> None:
    world = World()
    for _ in range(20):
        if not world.core.is_over:
            world.says("", lasting_ms=300)
            world.run(2_900)
    assert [text for text, _ in spoken(world)][-1] == NOBODY_THERE["en"]
    assert len(world.of(do.EndCall)) == 1


def test_words_start_the_count_anew() -> None:
    world = World(speech("At nine."))
    world.greet()
    world.run(8_000 + 3_000)
    assert [text for text, _ in spoken(world)] == [STILL_THERE["en"]]
    world.says("Yes, when do you open?")
    world.run(5_000)
    world.run(21_000)
    assert world.said().count(STILL_THERE["en"]) == 3
    assert world.of(do.EndCall) == []


def test_a_key_press_starts_the_count_anew() -> None:
    world = World()
    world.greet()
    world.run(7_000)
    world.happen(ev.LineDigit("5"))
    world.run(7_900)
    assert spoken(world) == []
    world.run(200)
    assert [text for text, _ in spoken(world)] == [STILL_THERE["en"]]


def test_b052_no_reprompt_while_a_reply_plays() -> None:
    world = World(speech("A long story.", 12_000))
    world.greet()
    world.says("Tell me.")
    world.run(1_520 + 300 + 50 + 200 + 12_000 + 7_900)
    assert spoken(world) == []
    world.run(300)
    assert [text for text, _ in spoken(world)] == [STILL_THERE["en"]]


def test_b052_no_reprompt_while_an_answer_is_pending() -> None:
    slow = Answer("Found it.", 1_000, first_ms=9_500, done_ms=9_600)
    world = World(slow)
    world.greet()
    world.says("Look it up.")
    world.run(12_500)
    assert world.said() == [world.business.greeting]
    assert [e.reply_text for e in world.exchanges()] == ["Found it."]


def test_b052_no_reprompt_while_the_caller_talks() -> None:
    world = World(speech("I see."))
    world.greet()
    world.says("A very long story.", lasting_ms=20_000)
    world.run(24_000)
    assert world.said() == [world.business.greeting]
    assert [e.reply_text for e in world.exchanges()] == ["I see."]


@pytest.mark.parametrize("begins_ms", range(6_000, 8_400, 200))
def test_b052_no_reprompt_between_the_end_of_speech_and_its_turn(begins_ms: int) -> None:
    world = World(speech("At nine."))
    world.run(GREETED_MS + begins_ms)
    world.says("When do you open?", lasting_ms=1_000, words_after_ms=800)
    world.run(5_500)
    reprompted = [at for text, at in spoken(world) if at > GREETED_MS + begins_ms + 60]
    assert reprompted == []
    assert [e.reply_text for e in world.exchanges()] == ["At nine."]


def test_speech_that_never_becomes_a_turn_does_not_silence_us_for_ever() -> None:
    world = World()
    world.greet()
    world.run(7_500)
    world.happen(ev.SpeechStarted("u1", 0))
    world.run(500)
    world.happen(ev.SpeechStopped("u1", 500))
    world.run(3_100)
    assert [text for text, _ in spoken(world)] == [STILL_THERE["en"]]


def test_speech_at_the_very_moment_of_a_reprompt_goes_first() -> None:
    world = World(speech("At nine."))
    world.greet()
    deadline_ms = world.core.next_deadline(world.now_ms)
    assert deadline_ms is not None
    assert deadline_ms - world.now_ms > 7_000
    world._forget(lambda due: due.source == "frame")  # nothing else happens until then
    world.happen(ev.SpeechStarted("u1", 0), deadline_ms)
    world.happen(ev.SpeechStopped("u1", 1_000), deadline_ms + 900)
    world.happen(ev.TurnCommitted("u1"))
    world.happen(ev.TranscriptDone("u1", "When do you open?"))
    world.run(8_000)  # a line from which nothing comes is waited for, 5 s at most
    assert spoken(world) == []
    assert [e.reply_text for e in world.exchanges()] == ["At nine."]


def test_silence_is_not_counted_without_a_session() -> None:
    world = World()
    world.greet()
    world.refused_opens = 4
    world.run(6_000)
    world.lose_model()
    world.run(5_000)
    assert spoken(world) == []
    world.run(6_500)  # 8 s after the new session
    assert spoken(world) == []


def test_the_longest_call_ends_with_a_word() -> None:
    business = clinic("max_call_minutes: 5, silence_s: 8", "max_call_minutes: 1, silence_s: 60")
    world = World(business=business)
    world.run(64_000)
    assert world.said()[1:] == [TIME_IS_UP["en"]]
    assert world.times(do.StartReply)[1] == 60_000
    assert world.of(do.EndCall) == [do.EndCall(do.EndReason.FINISHED)]


def test_the_longest_call_s_goodbye_may_be_talked_over_but_not_for_ever() -> None:
    business = clinic("max_call_minutes: 5, silence_s: 8", "max_call_minutes: 1, silence_s: 60")
    world = World(business=business)
    world.run(60_500)
    for _ in range(40):
        if not world.core.is_over:
            world.says("But wait", lasting_ms=1_500)
            world.run(2_000)
    (ended,) = world.times(do.EndCall)
    assert 60_000 < ended <= 121_000


def test_handover_waits_for_a_quiet_moment() -> None:
    world = World(speech("We open at nine.", 3_000))
    world.greet()
    world.says("When do you open?")
    world.run(2_500)  # the answer plays
    world.happen(ev.Handover())
    world.run(1_000)
    assert world.of(do.LeaveCall) == []
    world.run(3_000)
    assert [e.reply_text for e in world.exchanges()] == ["We open at nine."]
    assert len(world.of(do.LeaveCall)) == 1
    assert world.of(do.EndCall) == []
    assert isinstance(world.sent[-2][1], do.SaveSnapshot)


def test_handover_answers_a_question_first() -> None:
    world = World(speech("At nine.", 1_000))
    world.greet()
    world.says("When do you open?")
    world.run(100)
    world.happen(ev.Handover())
    world.run(8_000)
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [("When do you open?", "At nine.")]
    assert len(world.of(do.LeaveCall)) == 1


def test_handover_in_silence_is_at_once() -> None:
    world = World()
    world.greet()
    commands = world.happen(ev.Handover())
    assert [type(c) for c in commands] == [do.SaveSnapshot, do.LeaveCall]
    assert world.core.is_over
    assert world.core.next_deadline(world.now_ms) is None


def test_handover_does_not_wait_for_a_session_that_is_gone() -> None:
    world = World(model_after_ms=-1)
    world.run(500)
    world.happen(ev.Handover())
    assert len(world.of(do.LeaveCall)) == 1


def test_a_call_whose_flow_ends_during_a_handover_ends() -> None:
    world = World(calling(("hang_up", "{}"), text="Goodbye.", audio_ms=2_000))
    world.greet()
    world.says("Bye.")
    world.run(2_500)
    world.happen(ev.Handover())
    world.run(5_000)
    assert [type(c).__name__ for c in (*world.of(do.EndCall), *world.of(do.LeaveCall))] == ["EndCall"]
    assert world.times(do.EndCall)[0] < world.now_ms - START_MS


def test_what_we_say_of_our_own_accord_is_in_the_calls_language() -> None:
    world = World(business=clinic("start: main", "language: de-DE\nstart: main"))
    world.run(60_000)
    assert [text for text, _ in spoken(world)][-2:] == [STILL_THERE["de"], NOBODY_THERE["de"]]
