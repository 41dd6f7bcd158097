"""The line goes away in every state: what was said is kept, and the call ends once."""

from collections.abc import Callable

import pytest

from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.records import UNHEARD_WORDS
from memory.model import EndedBy
from tests.unit.core.harness import FAILED, START_MS, VAD_MS, Answer, World, calling, speech

WORDS = "one two three four five six seven eight nine ten"
LONG = speech(WORDS, 10_000)
HUNG_UP = do.EndCall(do.EndReason.DROPPED, by=EndedBy.CALLER)
Cut = Callable[[World], None]
CUTS = [pytest.param(World.hang_up, id="stop"), pytest.param(World.break_line, id="close")]


def farewells(world: World) -> list[do.Command]:
    return [c for _, c in world.sent if isinstance(c, do.EndCall | do.LeaveCall)]


def in_third_answer() -> World:
    world = World(speech("First."), speech("Second."), LONG)
    world.greet()
    for no in range(3):
        world.says(f"Question {no}?")
        world.run(5_000 if no < 2 else 4_070)  # 2 s into the third
    return world


def test_b090_turns_and_the_heard_part_are_kept_when_the_caller_hangs_up() -> None:
    world = in_third_answer()
    world.hang_up()
    assert [e.reply_text for e in world.exchanges()][:2] == ["First.", "Second."]
    third = world.exchanges()[2]
    assert third.interrupted
    assert third.reply_text == "one two"
    assert 1_800 <= len(third.reply_ulaw) / 8 <= 2_000
    assert farewells(world) == [HUNG_UP]
    last_two = [type(c) for _, c in world.sent[-2:]]
    assert last_two == [do.SaveSnapshot, do.EndCall]


def test_b090_the_same_when_the_socket_dies_but_the_call_may_come_back() -> None:
    world = in_third_answer()
    world.break_line()
    assert len(world.exchanges()) == 3
    assert farewells(world) == [do.LeaveCall()]
    assert world.of(do.SaveSnapshot)[-1].snapshot.state["exchange_no"] == 4


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("at_ms", range(0, 13_000, 510))
def test_b090_in_every_state_there_is_one_farewell_and_no_word_is_lost(cut: Cut, at_ms: int) -> None:
    """From the greeting through a question, a function, an answer, an interruption and what follows it."""
    world = World(calling(("set_response_speed", '{"speed": 1.1}')), LONG, speech("Good."))
    spoken = {2_800: "When do you open?", 9_000: "Stop, please."}
    for begins_ms, words in spoken.items():
        if begins_ms < at_ms:
            world.run(START_MS + begins_ms - world.now_ms)
            world.says(words)
    world.run(START_MS + at_ms - world.now_ms)
    cut(world)
    world.run(4_000)
    assert len(farewells(world)) == 1
    assert type(world.sent[-1][1]) in (do.EndCall, do.LeaveCall)
    heard = [begins_ms for begins_ms in spoken if begins_ms + VAD_MS <= at_ms]
    # Speech that the end cut off was never transcribed, but it is not forgotten.
    expected = [spoken[b] if at_ms >= b + 1_520 else UNHEARD_WORDS for b in heard]
    assert [e.user_text for e in world.exchanges()] == expected
    assert all(e.user_ulaw for e in world.exchanges())
    assert world.core.next_deadline(world.now_ms) is None


@pytest.mark.parametrize("cut", CUTS)
def test_b090_unanswered_words_that_come_late_are_waited_for_a_little(cut: Cut) -> None:
    world = World()
    world.greet()
    world.says("When do you open?", words_after_ms=1_000)
    world.run(1_700)
    cut(world)
    assert farewells(world) == []
    world.run(2_000)
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [("When do you open?", "")]
    assert len(farewells(world)) == 1
    sent = [type(c) for _, c in world.sent]
    assert sent.index(do.CommitExchange) < max(i for i, c in enumerate(sent) if c is do.SaveSnapshot)


def test_b090_words_that_never_come_do_not_keep_the_call() -> None:
    world = World()
    world.greet()
    world.says("lost", words_after_ms=None)
    world.run(1_700)
    world.hang_up()
    gone_ms = world.now_ms
    world.run(3_000)
    assert [e.user_text for e in world.exchanges()] == [UNHEARD_WORDS]
    ended = [at for at, c in world.sent if isinstance(c, do.EndCall)]
    assert ended == [gone_ms + 1_500]


def test_noise_at_the_end_is_no_exchange() -> None:
    world = World()
    world.greet()
    world.says("", lasting_ms=200, words_after_ms=100)
    world.run(830)
    world.hang_up()
    world.run(2_000)
    assert world.exchanges() == []
    assert len(farewells(world)) == 1


def test_stop_and_then_close_is_one_end() -> None:
    world = in_third_answer()
    world.hang_up()
    world.happen(ev.LineClosed(1000))
    world.happen(ev.LineStopped())
    world.run(5_000)
    assert farewells(world) == [HUNG_UP]
    assert len(world.exchanges()) == 3


def test_whoever_hangs_up_during_our_goodbye_has_finished() -> None:
    world = World(calling(("hang_up", "{}"), text="Goodbye and take care.", audio_ms=5_000))
    world.greet()
    world.says("Bye.")
    world.run(3_500)
    world.hang_up()
    world.run(2_000)
    assert farewells(world) == [do.EndCall(do.EndReason.FINISHED, by=EndedBy.CALLER)]
    assert world.of(do.SaveSnapshot)[-1].snapshot.state["flow"]["ended"] == "hung_up"


def test_whoever_hangs_up_before_being_put_through_was_not_put_through() -> None:
    answer = calling(("transfer", '{"target": "nurse"}'), text="Please hold on.", audio_ms=5_000)
    world = World(answer)
    world.greet()
    world.says("The nurse, please.")
    world.run(3_500)
    world.hang_up()
    world.run(2_000)
    assert farewells(world) == [HUNG_UP]
    assert world.of(do.TransferCall) == []
    assert world.of(do.SaveSnapshot)[-1].snapshot.state["flow"]["ended"] == ""


def test_nothing_is_sent_to_a_line_that_is_gone() -> None:
    world = in_third_answer()
    world.hang_up()
    count = len(world.sent)
    world.happen(ev.SpeechStarted("u9", 0))
    world.happen(ev.ReplyAudio(world.asked()[-1].reply_id, b"\x01" * 800))
    world.happen(ev.LineFrame(9_999, 9_999, 999_999, b"\xff" * 160))
    world.happen(ev.LineMark("0.1"))
    world.happen(ev.ModelLost("gone"))
    world.happen(ev.ModelReady("s2"))
    world.happen(ev.Handover())
    world.run(20 * 60_000)  # every deadline of the call has passed
    assert len(world.sent) == count


def test_a_call_may_end_before_it_began() -> None:
    world = World(model_after_ms=-1)
    world.hang_up()
    assert farewells(world) == [HUNG_UP]
    assert world.exchanges() == []


def test_no_exchange_is_kept_twice_when_the_model_fails_for_good() -> None:
    world = World(speech("First."), FAILED, FAILED, FAILED)
    world.greet()
    world.says("One?")
    world.run(5_000)
    world.says("Two?")
    world.run(6_000)
    world.hang_up()
    assert [(e.exchange_no, e.user_text) for e in world.exchanges()] == [(1, "One?"), (2, "Two?")]
    assert [type(c) for c in farewells(world)] == [do.EndCall]


def test_a_reply_that_was_asked_for_but_not_heard_is_not_kept_as_said() -> None:
    world = World(Answer("Never heard.", 2_000, first_ms=1_500, done_ms=1_600))
    world.greet()
    world.says("When do you open?")
    world.run(2_300)
    world.hang_up()
    assert [(e.user_text, e.reply_text, e.reply_ulaw) for e in world.exchanges()] == [
        ("When do you open?", "", b"")
    ]


def test_the_greeting_s_heard_part_is_no_exchange() -> None:
    world = World()
    world.run(1_500)
    world.hang_up()
    assert world.exchanges() == []
    assert world.of(do.SaveSnapshot) != []
