"""Turns over a line that loses and delays: who holds an answer back, for how long, and what becomes of it."""

import json

import pytest

from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.setup import restore
from memory.model import CallSnapshot
from tests.unit.core.harness import START_MS, Answer, calling, speech
from tests.unit.core.lossy import LossyWorld

DEFER = calling(("defer_response", '{"reason": "the network lost something"}'))
GOES_ON_AFTER_MS = 560


def hole_in_a_sentence(world: LossyWorld) -> None:
    """A second of speech and more of it lost, a pause, and the rest.

    Without loss nobody would be interrupted: an answer is audible 850 ms after the last word here.
    """
    world.words_after_ms = 100
    world.greet()
    world.speaks("I would like to know", 1_000)
    world.run(1_000)
    world.speaks("whether you", 600)
    world.lose(600)
    world.run(600 + GOES_ON_AFTER_MS)
    world.speaks("open on Sundays?", 1_000)
    world.run(1_000)


ENDS_MS = 300 + 200 + 2_000 + 200 + 1_000 + 600 + GOES_ON_AFTER_MS + 1_000
"""When the caller's last word ends there, ms since the start of the call."""
WHOLE = "I would like to know whether you open on Sundays?"


def test_off_answers_into_the_pause_that_the_network_made() -> None:
    world = LossyWorld(speech("What?"), speech("At nine."), mode="off")
    hole_in_a_sentence(world)
    world.run(9_000)
    assert world.audible_ms()[0] < ENDS_MS
    assert world.silences() == []


@pytest.mark.parametrize("mode", ["local", "joint"])
def test_a_silence_with_a_hole_in_it_is_not_answered_before_it_was_heard(mode: str) -> None:
    world = LossyWorld(speech("What?"), speech("On Sundays from ten."), mode=mode)
    hole_in_a_sentence(world)
    assert world.audible_ms() == []
    world.run(9_000)
    (audible,) = world.audible_ms()
    assert audible > ENDS_MS
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [(WHOLE, "On Sundays from ten.")]


@pytest.mark.parametrize("mode", ["local", "joint"])
def test_a_turn_that_ends_in_a_hole_is_answered_as_soon_as_enough_silence_was_heard(mode: str) -> None:
    world = LossyWorld(speech("At nine."), mode=mode)
    world.greet()
    world.speaks("When do you open?", 1_000)
    world.run(900)
    world.lose(400)
    healed_ms = world.now_ms + 400 - START_MS
    world.run(5_000)
    (asked,) = [at - START_MS for at, c in world.sent if c in world.asked()]
    assert asked == pytest.approx(healed_ms + 500, abs=40)
    assert len(world.of(do.CancelReply)) == 0


@pytest.mark.parametrize("mode", ["off", "local", "model", "joint"])
def test_a_good_line_is_answered_alike_in_all_modes(mode: str) -> None:
    world = LossyWorld(speech("At nine."), mode=mode)
    world.greet()
    world.speaks("When do you open?", 1_000)
    ended_ms = world.now_ms + 1_000 - START_MS
    world.run(5_000)
    assert world.audible_ms()[0] - ended_ms == pytest.approx(500 + 300 + 50 + 200 + 15, abs=40)


@pytest.mark.parametrize("mode", ["local", "joint"])
def test_a_hole_too_short_to_hide_a_sound_delays_nothing(mode: str) -> None:
    world = LossyWorld(speech("At nine."), mode=mode)
    world.greet()
    world.speaks("When do you open?", 1_000)
    world.run(1_200)
    ended_ms = world.now_ms - 200 - START_MS
    world.lose(40)
    world.run(4_000)
    assert world.audible_ms()[0] - ended_ms == pytest.approx(1_065, abs=60)


@pytest.mark.parametrize("mode", ["local", "joint"])
def test_an_answer_that_is_ready_waits_while_nothing_is_heard_of_the_caller(mode: str) -> None:
    world = LossyWorld(speech("Too early."), speech("On Sundays from ten."), mode=mode)
    world.greet()
    world.speaks("When do you open", 1_000)
    world.run_until(world.asked)
    world.lose(800)
    world.speaks("on Sundays?", 1_500)  # begins in the hole, ends after it
    world.run(9_000)
    assert [e.reply_text for e in world.exchanges()] == ["On Sundays from ten."]
    assert [e.user_text for e in world.exchanges()] == ["When do you open on Sundays?"]
    assert world.phone.sound().count(world.audio_of(world.asked()[0], 2_000)[:160]) == 0


@pytest.mark.parametrize("mode", ["local", "joint"])
def test_an_answer_that_was_kept_back_is_heard_whole_once_the_line_is_back(mode: str) -> None:
    world = LossyWorld(speech("At nine."), mode=mode)
    world.greet()
    world.speaks("When do you open?", 1_000)
    world.run_until(world.asked)
    world.lose(900)
    healed_ms = world.now_ms + 900 - START_MS
    world.run(9_000)
    (audible,) = world.audible_ms()
    assert audible == pytest.approx(healed_ms + 200, abs=60)  # so long it takes to know of speech
    (reply,) = world.asked()
    assert world.audio_of(reply, 2_000) in world.phone.sound()
    assert [(e.reply_text, e.interrupted) for e in world.exchanges()] == [("At nine.", False)]


@pytest.mark.parametrize("mode", ["local", "joint"])
def test_an_answer_still_coming_when_the_line_is_back_is_heard_in_order(mode: str) -> None:
    world = LossyWorld(Answer("A long story.", 6_000, first_ms=200, done_ms=3_000), mode=mode)
    world.greet()
    world.speaks("Tell me.", 1_000)
    world.run_until(world.asked)
    world.lose(500)
    world.run(12_000)
    (reply,) = world.asked()
    assert world.audio_of(reply, 6_000) in world.phone.sound()


@pytest.mark.parametrize("mode", ["local", "joint"])
def test_late_frames_are_waited_for(mode: str) -> None:
    world = LossyWorld(speech("Too early."), speech("On Sundays from ten."), mode=mode)
    world.greet()
    world.speaks("When do you open", 1_000)
    world.run_until(world.asked)
    world.stall(600)
    world.speaks("on Sundays?", 1_000)
    world.run(9_000)
    assert [e.user_text for e in world.exchanges()] == ["When do you open on Sundays?"]
    assert [e.reply_text for e in world.exchanges()] == ["On Sundays from ten."]


@pytest.mark.parametrize("mode", ["local", "joint"])
def test_nobody_waits_longer_than_five_seconds(mode: str) -> None:
    world = LossyWorld(speech("At nine."), mode=mode)
    world.greet()
    world.speaks("When do you open?", 1_000)
    world.run(1_600)
    world.lose(20_000)
    world.run(9_000)
    (closed_ms,) = [at for at, event in world.heard if event == ev.TurnCommitted("v1")]
    assert closed_ms + 5_000 < world.audible_ms()[0] <= closed_ms + 5_000 + 300


def test_joint_asks_the_model_what_the_line_cannot_tell_by_the_soft_deadline() -> None:
    world = LossyWorld(DEFER, speech("At nine."))
    world.greet()
    world.speaks("When do you", 1_000)
    world.run(1_600)
    world.lose(20_000)
    world.run(9_000)
    first, second = (at - START_MS for at, c in world.sent if c in world.asked())
    assert "concealed_ms=" in str(world.asked()[0].input[-1])
    closed_ms = first - 1_500
    assert second == pytest.approx(closed_ms + 5_000, abs=60)
    names = [[tool.name for tool in reply.tools] for reply in world.asked()]
    assert ["defer_response" in offered for offered in names] == [True, False]


def test_local_never_asks_the_model_whether_to_answer() -> None:
    world = LossyWorld(speech("At nine."), mode="local")
    world.greet()
    world.speaks("When do you open?")
    world.run(4_000)
    (reply,) = world.asked()
    names = [tool.name for tool in reply.tools]
    assert "defer_response" not in names
    assert "set_vad_silence_duration" in names


def test_off_leaves_the_turns_to_the_pause_alone() -> None:
    world = LossyWorld(DEFER, speech("At nine."), mode="off")
    world.greet()
    world.speaks("When do you open?")
    world.run(6_000)
    names = [tool.name for tool in world.asked()[0].tools]
    assert not {"defer_response", "set_vad_silence_duration"} & set(names)
    assert "set_response_speed" in names
    outputs = [item for item in world.asked()[1].input if isinstance(item, do.CallOutput)]
    assert "not_available" in outputs[0].output


# -- the model's deferral ----------------------------------------------------------------------------------------


def test_a_deferral_is_reconsidered_at_the_soft_deadline_if_the_line_is_well() -> None:
    world = LossyWorld(DEFER, speech("At nine."), mode="model")
    world.greet()
    world.speaks("When do you", 1_000)
    world.run(9_000)
    first, second = (at for at, c in world.sent if c in world.asked())
    assert second - first == 400 + 1_500


def test_a_deferral_lasts_while_the_line_is_bad_but_not_beyond_the_hard_deadline() -> None:
    world = LossyWorld(DEFER, speech("At nine."), mode="model")
    world.greet()
    world.speaks("When do you", 1_000)
    world.run_until(lambda: world.asked())
    closed_ms = world.now_ms - 350
    world.lose(20_000)
    world.run(9_000)
    _, second = (at for at, c in world.sent if c in world.asked())
    assert second == pytest.approx(closed_ms + 5_000, abs=40)


def test_a_deferral_ends_when_the_line_is_well_again() -> None:
    world = LossyWorld(DEFER, speech("At nine."), mode="model")
    world.greet()
    world.speaks("When do you", 1_000)
    world.run_until(lambda: world.asked())
    world.lose(2_400)
    healed_ms = world.now_ms + 2_400
    world.run(9_000)
    _, second = (at for at, c in world.sent if c in world.asked())
    assert second == pytest.approx(healed_ms + 200, abs=40)


def test_speech_that_continues_a_deferred_turn_is_answered_once_as_a_whole() -> None:
    world = LossyWorld(DEFER, speech("On Monday at nine."), mode="model")
    world.greet()
    world.speaks("When do you", 1_000)
    world.run_until(lambda: world.asked())
    world.run(600)
    world.speaks("open on Mondays?", 800)
    world.run(9_000)
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [
        ("When do you open on Mondays?", "On Monday at nine.")
    ]
    assert len(world.audible_ms()) == 1


# -- D_VAD -------------------------------------------------------------------------------------------------------


def test_a_boundary_that_proved_false_raises_the_threshold_by_the_true_gap() -> None:
    world = LossyWorld(speech("Too early."), speech("On Monday at nine."), mode="model")
    world.greet()
    world.speaks("When do you open", 1_000)
    world.run_until(lambda: world.asked())
    gap_ms = 500 + 20 + 300 + 50
    world.speaks("on Mondays?", 800)
    world.run(400)
    (raised,) = world.silences()
    # min(5000, 100·⌈(500 + g + 200)/100⌉), and g to a frame
    assert raised in {100 * -(-(500 + gap_ms + off + 200) // 100) for off in (-20, 0, 20)}
    world.run(9_000)
    assert world.silences() == [raised, 500]


def test_the_threshold_is_normal_again_after_five_healthy_seconds_in_a_row() -> None:
    world = LossyWorld(speech("Too early."), speech("On Monday at nine."), mode="model")
    world.greet()
    world.speaks("When do you open", 1_000)
    world.run_until(lambda: world.asked())
    world.speaks("on Mondays?", 800)
    world.run(3_000)
    world.lose(300)
    healed_ms = world.now_ms + 300 - START_MS
    world.run(9_000)
    restored_ms = world.times(do.UpdateSession)[-1]
    assert restored_ms == pytest.approx(healed_ms + 5_000, abs=40)


def test_a_boundary_that_was_held_teaches_nothing() -> None:
    world = LossyWorld(speech("On Sundays from ten."), mode="joint")
    world.greet()
    world.speaks("When do you open", 1_000)
    world.run(950)
    world.lose(500)
    world.run(800)  # a boundary, 300 ms after the hole: too little was heard of it
    world.speaks("on Sundays?", 800)
    world.run(9_000)
    assert world.silences() == []
    assert [e.user_text for e in world.exchanges()] == ["When do you open on Sundays?"]


def test_what_the_caller_asked_for_is_what_the_threshold_goes_back_to() -> None:
    patient = calling(("set_vad_silence_duration", '{"silence_ms": 1200}'))
    world = LossyWorld(patient, speech("Of course."), speech("x"), speech("At nine."), mode="model")
    world.greet()
    world.speaks("Give me more time, please.", 1_000)
    world.run(6_000)
    assert world.silences() == [1_200]
    world.speaks("When do you open", 1_000)
    world.run_until(lambda: len(world.asked()) == 3)
    world.speaks("on Mondays?", 800)
    world.run(12_000)
    assert world.silences()[-1] == 1_200
    assert world.silences()[1] > 1_200


def test_a_pause_that_no_longer_ends_a_turn_is_still_no_speaking_time() -> None:
    patient = calling(("set_vad_silence_duration", '{"silence_ms": 1200}'))
    world = LossyWorld(patient, speech("Of course."), speech("At nine."), mode="joint")
    world.greet()
    world.speaks("Give me more time, please.", 2_000)  # 150 words a minute
    world.run(8_000)
    world.speaks("one two three four", 1_000)
    world.run(1_000 + 800)
    world.speaks("five six seven eight", 1_000)  # 240
    world.run(8_000)
    rate = int(str(world.asked()[-1].input[-1]).partition("speaking rate: ")[2].split()[0])
    assert rate == pytest.approx((150 + 2 * 240) / 3, rel=0.05)
    assert [e.user_text for e in world.exchanges()][-1] == "one two three four five six seven eight"


def test_what_only_suits_the_line_lasts_until_the_line_is_well() -> None:
    patient = calling(("set_vad_silence_duration", '{"silence_ms": 1200, "asked": false}'))
    world = LossyWorld(patient, speech("Say that again?"), mode="model")
    world.greet()
    world.speaks("When do you open?", 1_000)
    world.run(12_000)
    assert world.silences() == [1_200, 500]
    assert "silence_ms=1200 (for this line; else 500)" in str(world.asked()[1].input[-1])
    assert world.of(do.UpdateSession)[-1].config.silence_ms == 500


def test_a_quick_answer_that_was_asked_for_is_quick_in_the_call_that_resumes() -> None:
    quick = calling(("set_vad_silence_duration", '{"silence_ms": 300}'))
    before = LossyWorld(quick, speech("I will."), mode="joint")
    before.greet()
    before.speaks("Answer as soon as I finish.", 1_000)
    before.run(6_000)
    state = json.loads(json.dumps(before.of(do.SaveSnapshot)[-1].snapshot.state))
    silence_ms = restore(CallSnapshot(1, state)).silence_ms
    assert silence_ms == 300
    after = LossyWorld(speech("At nine."), resumed=True, silence_ms=silence_ms)
    assert after.core.config().silence_ms == 300
    after.greet()
    after.speaks("When do you open?", 1_000)
    after.run(6_000)
    assert "silence_ms=300 (asked)" in str(after.asked()[0].input[-1])


@pytest.mark.parametrize("stored", [None, 0, 199, 5_001, "300", 2.5, []])
def test_a_stored_threshold_that_nobody_can_have_asked_for_is_none(stored: object) -> None:
    assert restore(CallSnapshot(1, {"silence_ms": stored})).silence_ms is None


def test_the_model_is_told_how_long_ago_the_line_lost_something() -> None:
    world = LossyWorld(speech("Yes."), speech("At nine."), mode="joint")
    world.greet()
    world.speaks("Are you there?", 1_000)
    world.run(8_000)
    assert "since_concealment_ms=never" in str(world.asked()[0].input[-1])
    world.speaks("When do you open?", 1_000)
    world.lose(200)
    world.run(8_000)
    said = str(world.asked()[1].input[-1])
    # the rest of the second, D_VAD and the way to the words
    assert 1_300 <= int(said.partition("since_concealment_ms=")[2].split()[0]) <= 2_000


def test_answer_as_soon_as_i_finish_does_not_make_a_hole_an_end() -> None:
    """A conflict: the caller wants quick answers, the line loses what they say. A whole sentence comes first."""
    quick = calling(("set_vad_silence_duration", '{"silence_ms": 300}'))
    world = LossyWorld(quick, speech("I will."), speech("On Sundays from ten."), mode="joint")
    world.greet()
    world.speaks("Answer as soon as I finish.", 1_000)
    world.run(6_000)
    world.speaks("When do you open", 1_000)
    world.run(950)
    world.lose(500)
    world.run(500 + 200)  # there are 300 ms of silence, of which 200 were heard
    assert len(world.asked()) == 2
    world.speaks("on Sundays?", 800)
    ended_ms = world.now_ms + 800 - START_MS
    world.run(5_000)
    assert [e.user_text for e in world.exchanges()][1:] == ["When do you open on Sundays?"]
    assert world.audible_ms()[-1] - ended_ms == pytest.approx(300 + 565, abs=40)  # and it is quick


def test_a_loss_of_the_session_while_held_loses_neither_turn_nor_answer() -> None:
    world = LossyWorld(speech("At nine."), mode="joint")
    world.greet()
    world.speaks("When do you open?", 1_000)
    world.run(950)
    world.lose(600)
    world.run(1_000)
    world.happen(ev.ModelLost("gone"))
    world.run(9_000)
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [("When do you open?", "At nine.")]
