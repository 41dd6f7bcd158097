"""A call's turns: greeting, question, answer, and what is kept of them."""

from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.records import UNHEARD_WORDS
from memory.model import Form, Window, WindowEntry
from tests.unit.core.harness import Answer, World, calling, remembered, speech


def kinds(world: World, *wanted: type) -> list[str]:
    return [type(command).__name__ for _, command in world.sent if isinstance(command, wanted)]


def test_the_greeting_comes_first_word_for_word_and_once() -> None:
    world = World()
    world.run(7_000)
    assert world.said() == ["Hello, this is the clinic. How can I help?"]
    first = world.of(do.StartReply)[0]
    assert world.phone.sound() == world.audio_of(first, 2_000)
    assert first.tools == ()


def test_nothing_is_asked_for_before_a_session_is_ready() -> None:
    world = World(model_after_ms=-1)
    world.run(3_000)
    assert world.of(do.StartReply) == []


def test_without_an_opening_the_caller_begins() -> None:
    world = World(speech("Hello."), opening="")
    world.run(1_000)
    assert world.of(do.StartReply) == []
    world.says("Hello?")
    world.run(6_000)
    assert [e.reply_text for e in world.exchanges()] == ["Hello."]


def test_a_turn_is_recalled_answered_heard_and_committed_in_this_order() -> None:
    world = World(speech("We open at nine."))
    world.greet()
    world.says("When do you open?")
    world.run(6_000)
    order = kinds(world, do.Recall, do.StartReply, do.CommitExchange, do.SaveSnapshot)
    # the greeting and its snapshot; then the turn
    assert order == ["StartReply", "SaveSnapshot", "Recall", "StartReply", "CommitExchange", "SaveSnapshot"]
    recall = world.of(do.Recall)[0]
    assert (recall.query, recall.live_items) == ("When do you open?", ("u1",))
    (exchange,) = world.exchanges()
    assert (exchange.call_id, exchange.exchange_no, exchange.interrupted) == ("CA1", 1, False)
    assert (exchange.user_text, exchange.reply_text) == ("When do you open?", "We open at nine.")
    assert exchange.reply_ulaw == world.audio_of(world.asked()[0], 2_000)
    assert (exchange.user_item_id, exchange.flow_node) == ("u1", "main")
    assert exchange.usage["input_text_tokens"] == 100
    assert world.of(do.SaveSnapshot)[-1].snapshot.state["exchange_no"] == 2


def test_the_caller_s_audio_is_kept_with_the_turn() -> None:
    world = World(speech("Yes."))
    world.greet()
    world.says("Hello?", lasting_ms=1_000)
    world.run(6_000)
    ulaw = world.exchanges()[0].user_ulaw
    assert ulaw.count(0x21) in range(8_000, 8_481)  # 1 s of voice, in whole frames
    assert len(ulaw) / 8 == 1_800  # with 300 ms before it and the silence that ended it


def test_input_holds_window_greeting_turn_and_the_state_last() -> None:
    page = remembered("CA1", 7, "Do you do X-rays?", "Yes, we do.")
    world = World(speech("At nine."))
    world.window = Window((WindowEntry(page, Form.TRANSCRIPT, 9),), tokens=9, budget_tokens=100)
    world.greet()
    world.says("When do you open?")
    world.run(6_000)
    (reply,) = world.asked()
    assert reply.input[:-1] == (
        do.AssistantText("Hello, this is the clinic. How can I help?"),
        do.UserText("Do you do X-rays?"),
        do.AssistantText("Yes, we do."),
        do.ItemRef("u1"),
    )
    state = reply.input[-1]
    assert isinstance(state, do.SystemText)
    assert "speaking rate" in state.text
    assert "silence_ms=500" in state.text
    names = [tool.name for tool in reply.tools]
    assert "transfer" in names
    assert "defer_response" in names
    assert world.exchanges()[0].states["window"] == {
        "pages": 1,
        "tokens": 9,
        "budget_tokens": 100,
        "omitted": 0,
        "threads": 0,
        "forms": {"transcript": 1},
        "page_ids": [7],
        "page_forms": ["transcript"],
    }


def test_a_fresh_exchange_is_in_the_context_before_its_page_is_recalled() -> None:
    world = World(speech("At nine."), speech("At five."))
    world.greet()
    world.says("When do you open?")
    world.run(5_000)
    world.says("And close?")
    world.run(5_000)
    assert world.asked()[1].input[1:-1] == (
        do.UserText("When do you open?"),
        do.AssistantText("At nine."),
        do.ItemRef("u2"),
    )


def test_the_greeting_leaves_the_context_after_two_turns_and_old_items_are_forgotten() -> None:
    world = World()
    world.greet()
    for no in range(4):
        world.says(f"Question {no}?")
        world.run(5_000)
    greeted = [any("this is the clinic" in getattr(i, "text", "") for i in r.input) for r in world.asked()]
    assert greeted == [True, True, False, False]
    assert world.of(do.ForgetItem) == [do.ForgetItem("u1"), do.ForgetItem("u2")]


def test_a_transcript_that_comes_after_the_reply_is_waited_for() -> None:
    world = World(speech("At nine.", 1_000))
    world.greet()
    world.says("When do you open?", words_after_ms=4_000)
    world.run(4_500)
    assert world.of(do.ReportTurn) != []
    assert world.exchanges() == []
    world.run(2_000)
    (exchange,) = world.exchanges()
    assert (exchange.user_text, exchange.reply_text) == ("When do you open?", "At nine.")


def test_a_transcript_that_never_comes_holds_neither_reply_nor_page() -> None:
    world = World(speech("At nine.", 1_000))
    world.greet()
    world.says("lost", words_after_ms=None, partial="When do")
    world.run(5_000)
    assert world.of(do.Recall)[0].query == "When do"
    assert world.exchanges() == []
    world.run(5_000)
    assert [e.user_text for e in world.exchanges()] == ["When do"]


def test_a_recall_that_never_answers_does_not_hold_the_reply() -> None:
    world = World(speech("At nine."))
    world.recall_ms = None
    world.greet()
    world.says("When do you open?")
    world.run(6_000)
    assert world.times(do.StartReply)[1] - world.times(do.Recall)[0] == 1_500
    assert len(world.exchanges()) == 1


def test_b045_failed_transcription_keeps_the_turn_in_order() -> None:
    world = World(speech("At nine."), speech("At five."))
    world.greet()
    world.says(None)
    world.run(5_000)
    world.says("And close?")
    world.run(5_000)
    assert [(e.exchange_no, e.user_text, e.reply_text) for e in world.exchanges()] == [
        (1, UNHEARD_WORDS, "At nine."),
        (2, "And close?", "At five."),
    ]
    assert do.ItemRef("u1") in world.asked()[0].input


def test_b051_noise_is_no_turn() -> None:
    world = World()
    world.greet()
    world.says("", lasting_ms=250)
    world.run(3_000)
    assert world.asked() == []
    assert world.exchanges() == []
    assert do.ForgetItem("u1") in world.of(do.ForgetItem)


def test_b051_noise_found_out_after_the_reply_was_asked_for() -> None:
    world = World(Answer("What?", 1_000, first_ms=2_000, done_ms=2_100))
    world.greet()
    world.says("", lasting_ms=250, words_after_ms=900)
    world.run(4_000)
    assert [c.reply_id for c in world.of(do.CancelReply)] == [world.asked()[0].reply_id]
    assert world.exchanges() == []
    world.run(8_000)
    assert world.said()[1:] == ["Are you still there?"]


def test_b032_speech_that_goes_on_before_the_answer_is_audible_is_the_same_turn() -> None:
    world = World(Answer("Too early.", 2_000, first_ms=1_500, done_ms=1_600), speech("On Monday at nine."))
    world.greet()
    world.says("When do you open")
    world.run(2_300)  # asked for, not audible
    assert len(world.asked()) == 1
    world.says("on Mondays?")
    world.run(8_000)
    first, second = world.asked()
    assert [c.reply_id for c in world.of(do.CancelReply)] == [first.reply_id]
    assert second.input[1:3] == (do.ItemRef("u1"), do.ItemRef("u2"))
    assert [r.query for r in world.of(do.Recall)] == ["When do you open", "When do you open on Mondays?"]
    (exchange,) = world.exchanges()
    assert (exchange.user_text, exchange.reply_text) == ("When do you open on Mondays?", "On Monday at nine.")
    assert exchange.user_item_id == ""  # two items are not one
    assert world.of(do.SendClear) == []


def test_b032_audio_of_the_cancelled_reply_is_not_heard() -> None:
    world = World(Answer("Too early.", 2_000, first_ms=1_500, done_ms=1_600), speech("At nine."))
    world.greet()
    world.says("When do you open")
    world.run(2_300)
    world.says("on Mondays?")
    world.run(200)
    stale = world.asked()[0].reply_id
    world.happen(ev.ReplyAudio(stale, b"\x01" * 1_600))
    world.happen(ev.ReplyDone(stale, ev.ReplyStatus.COMPLETED))
    world.run(8_000)
    assert b"\x01" * 160 not in world.phone.sound()
    assert [e.reply_text for e in world.exchanges()] == ["At nine."]


def test_speech_that_goes_on_while_words_or_window_are_awaited_is_the_same_turn() -> None:
    world = World(speech("At nine."))
    world.recall_ms = 1_000
    world.greet()
    world.says("When do you open", words_after_ms=100)
    world.run(1_900)  # the recall is under way
    world.says("on Mondays?", words_after_ms=100)
    world.run(8_000)
    assert [r.query for r in world.of(do.Recall)] == ["When do you open", "When do you open on Mondays?"]
    assert len(world.asked()) == 1
    assert [e.user_text for e in world.exchanges()] == ["When do you open on Mondays?"]


def test_a_window_for_the_shorter_turn_is_not_taken_for_the_longer() -> None:
    world = World(speech("At nine."))
    world.recall_ms = None
    world.greet()
    world.says("When do you open", words_after_ms=100)
    world.run(1_800)
    world.says("on Mondays?", lasting_ms=300, words_after_ms=100)
    world.run(1_000)
    first, second = world.of(do.Recall)
    page = remembered("CA1", 3, "old", "old")
    world.happen(ev.Recalled(first.turn_no, Window((WindowEntry(page, Form.TRANSCRIPT, 1),))))
    assert world.asked() == []
    world.happen(ev.Recalled(second.turn_no, Window()))
    assert len(world.asked()) == 1
    assert do.UserText("old") not in world.asked()[0].input


def test_a_noise_after_the_question_does_not_lose_it() -> None:
    world = World(Answer("Late.", 1_000, first_ms=1_500, done_ms=1_600), speech("At nine."))
    world.greet()
    world.says("When do you open?")
    world.run(2_300)
    world.says("", lasting_ms=200)
    world.run(8_000)
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [("When do you open?", "At nine.")]


def test_a_reply_without_a_word_leaves_the_floor_to_the_caller() -> None:
    world = World(Answer(), speech("At nine."))
    world.greet()
    world.says("Hm.")
    world.run(4_000)
    world.says("When do you open?")
    world.run(6_000)
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [
        ("Hm.", ""),
        ("When do you open?", "At nine."),
    ]


def test_repeated_and_late_events_of_an_item_change_nothing() -> None:
    world = World(Answer("At nine.", 1_000, first_ms=1_000, done_ms=1_100))
    world.greet()
    item = world.says("When do you open?")
    world.run(2_200)
    for event in (
        ev.SpeechStarted(item, 0),
        ev.SpeechStopped(item, 1_000),
        ev.TurnCommitted(item),
        ev.TranscriptDone(item, "Something else"),
        ev.TranscriptDelta(item, "more"),
        ev.TranscriptFailed(item, "x"),
    ):
        world.happen(event)
    world.run(5_000)
    assert world.of(do.CancelReply) == []
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [("When do you open?", "At nine.")]


def test_b105_two_calls_share_nothing() -> None:
    worlds = [World(speech(f"Answer {no}."), call_id=f"CA{no}") for no in range(2)]
    for _ in range(3_000 // 100):
        for world in worlds:
            world.run(100)
    for no, world in enumerate(worlds):
        world.says(f"Question {no}?")
    for _ in range(6_000 // 100):
        for world in worlds:
            world.run(100)
    texts = [[(e.call_id, e.user_text, e.reply_text) for e in world.exchanges()] for world in worlds]
    assert texts == [[("CA0", "Question 0?", "Answer 0.")], [("CA1", "Question 1?", "Answer 1.")]]
    worlds[0].hang_up()
    worlds[1].run(200)
    assert (worlds[0].core.is_over, worlds[1].core.is_over) == (True, False)


def test_the_caller_s_speaking_rate_is_told() -> None:
    world = World(speech("At nine."), speech("At five."))
    world.greet()
    world.says("one two three four five six", lasting_ms=2_000)  # 180 words a minute
    world.run(7_000)
    world.says("And close?", lasting_ms=1_000)  # 120
    world.run(3_000)
    states = [str(reply.input[-1]) for reply in world.asked()]
    rates = [int(state.partition("speaking rate: ")[2].split()[0]) for state in states]
    assert abs(rates[0] - 180) <= 4
    assert abs(rates[1] - (1 * 180 + 2 * 120) / 3) <= 4


def test_a_function_only_reply_is_no_audible_answer() -> None:
    world = World(calling(("set_response_speed", '{"speed": 1.2}')), speech("Faster now."))
    world.greet()
    world.says("Speak faster, please.")
    world.run(7_000)
    (exchange,) = world.exchanges()
    assert exchange.reply_text == "Faster now."
    assert exchange.usage["input_text_tokens"] == 200
