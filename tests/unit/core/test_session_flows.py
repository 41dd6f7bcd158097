"""Menus, entries and exact texts in a call: by keys and by voice, with nobody talking over what must be heard."""

import json

import pytest

from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.units import ULAW_SILENCE
from memory.model import EndedBy
from tests.unit.core.flows import bank
from tests.unit.core.harness import SPEECH, Answer, World, calling, speech

MENU = "For balances press one, for opening hours press two."


def at_menu(*answers: Answer, old: str = "", new: str = "") -> World:
    world = World(*answers, business=bank(old, new))
    world.run(5_500)
    assert world.said() == ["The Bank.", MENU]
    return world


def snapshot(world: World) -> dict[str, object]:
    state: dict[str, object] = world.of(do.SaveSnapshot)[-1].snapshot.state["flow"]
    return state


def test_the_menu_is_said_after_the_greeting() -> None:
    world = at_menu()
    assert world.asked() == []


def test_a_key_chooses_and_the_flow_comes_back() -> None:
    world = at_menu()
    world.press("2")
    world.run(4_000)
    assert world.said()[2:] == [f"We open at nine. {MENU}"]


def test_a_key_stops_the_prompt_and_is_kept() -> None:
    world = World(business=bank())
    world.run(3_500)
    world.press("2")
    assert len(world.of(do.SendClear)) == 1
    world.run(3_000)
    assert world.said() == ["The Bank.", MENU, f"We open at nine. {MENU}"]


def test_a_key_during_the_greeting_counts() -> None:
    world = World(business=bank())
    world.run(1_500)
    world.press("2")
    world.run(4_000)
    assert world.said() == ["The Bank.", f"We open at nine. {MENU}"]


def test_keys_may_run_ahead_of_several_prompts() -> None:
    world = at_menu()
    world.press("1", "1", "2", "3", "4", each_ms=80)
    world.run(4_000)
    assert world.said()[-1] == "Your balance is nine dollars."
    assert world.of(do.EndCall) == [do.EndCall(do.EndReason.FINISHED)]


def test_words_choose_too_and_become_a_page() -> None:
    world = at_menu()
    world.says("When are your opening hours?")
    world.run(6_500)
    assert world.said()[2:] == [f"We open at nine. {MENU}"]
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [
        ("When are your opening hours?", f"We open at nine. {MENU}")
    ]
    assert world.asked() == []


def test_an_invalid_key_counts_once_and_then_leads_on() -> None:
    world = at_menu()
    world.press("9")
    world.run(4_000)
    assert world.said()[2:] == [f"Pardon? {MENU}"]
    world.press("9")
    world.run(4_000)
    assert world.said()[3:] == ["Goodbye then."]
    assert world.of(do.EndCall) == [do.EndCall(do.EndReason.FINISHED)]


def test_words_that_were_not_understood_are_no_match() -> None:
    world = at_menu()
    world.says(None)
    world.run(6_000)
    assert world.said()[2:] == [f"Pardon? {MENU}"]


def test_words_that_never_come_are_not_waited_for_long() -> None:
    world = at_menu()
    world.says("opening hours", words_after_ms=None)
    world.run(8_000)
    assert world.said()[2:] == [f"Pardon? {MENU}"]


def test_silence_is_asked_about_and_ends_where_the_flow_says() -> None:
    world = at_menu()
    world.run(9_000)
    assert world.said()[2:] == [f"Are you there? {MENU}"]
    world.run(12_000)
    assert world.said()[3:] == ["Goodbye then."]


def test_noise_is_no_answer() -> None:
    world = at_menu()
    world.says("")
    world.run(3_000)
    assert len(world.said()) == 2


def test_zero_reaches_the_operator() -> None:
    world = at_menu()
    world.press("0")
    world.run(4_000)
    assert world.said()[2:] == ["Connecting you."]
    assert world.of(do.TransferCall) == [do.TransferCall("desk", "+16175550102")]


def test_a_secret_is_heard_by_nobody_and_written_nowhere() -> None:
    world = at_menu()
    world.press("1")
    world.run(3_500)
    assert world.said()[2:] == ["Enter your PIN."]
    before = len(world.of(do.Hear))
    world.says("my pin is one two", lasting_ms=400)
    world.press("7", "3", "9")
    heard = world.of(do.Hear)[before:]
    assert heard
    assert all(set(h.ulaw) == {ULAW_SILENCE[0]} for h in heard)
    assert SPEECH not in b"".join(h.ulaw for h in heard)
    world.press("1")
    world.run(6_000)
    assert world.said()[-1] == "Your balance is nine dollars."
    assert world.of(do.EndCall) == [do.EndCall(do.EndReason.FINISHED)]
    written = json.dumps([s.snapshot.state for s in world.of(do.SaveSnapshot)])
    assert "7391" not in written
    assert "739" not in written


def test_b025_digits_of_a_secret_are_in_nothing_that_leaves_the_call() -> None:
    """Neither in what is written (states, pages) nor in what the model is sent; also where the entry failed once."""
    card = "4111111111111111"
    old = (
        "max_digits: 4\n    by: keys\n    secret: true\n    say: Enter your PIN.\n    to: balance\n"
        "  balance: {type: hangup, say: Your balance is nine dollars.}"
    )
    new = "max_digits: 16\n    by: keys\n    secret: true\n    say: Enter your card.\n    to: help"
    world = at_menu(Answer("It is three dollars."), old=old, new=new)
    world.press("1")
    world.run(3_500)
    world.press(*card[:3], "#")
    world.run(4_000)
    world.press(*card, "#")
    world.run(4_000)
    assert snapshot(world)["node"] == "help"
    world.says("What does it cost?")
    world.run(6_000)
    assert world.asked()
    assert world.of(do.CommitExchange)
    told = [command for _, command in world.sent if not isinstance(command, do.Hear | do.SendMedia)]
    assert "411" not in "".join(map(repr, told))


def test_an_entry_ends_by_its_key_or_by_waiting() -> None:
    world = at_menu()
    world.press("4", "1", "2", "#")
    world.run(4_000)
    assert world.said()[-1] == "You said 1 2. Right?"
    world.press("2")
    world.run(4_000)
    world.press("3", "4")
    world.run(6_000)
    assert world.said()[-1] == "You said 3 4. Right?"
    world.press("1")
    world.run(3_000)
    assert snapshot(world)["slots"] == {"account": "34"}
    assert snapshot(world)["node"] == "help"


def test_a_value_is_given_and_confirmed_by_voice() -> None:
    world = at_menu()
    world.press("4")
    world.run(3_000)
    world.says("it is five five seven")
    world.run(5_500)
    assert world.said()[-1] == "You said 5 5 7. Right?"
    world.says("yes that's right")
    world.run(3_000)
    assert snapshot(world)["slots"] == {"account": "557"}


def test_nobody_talks_or_presses_over_what_must_be_heard() -> None:
    world = at_menu()
    world.press("3")
    world.run(1_000)
    heard = len(world.of(do.Hear))
    world.press("2")
    assert all(set(h.ulaw) == {ULAW_SILENCE[0]} for h in world.of(do.Hear)[heard:])
    assert world.of(do.SendClear) == []
    world.run(8_000)
    assert world.said()[2:4] == ["This is important.", f"We open at nine. {MENU}"]


def test_where_the_model_is_to_talk_it_answers_the_words_that_led_there() -> None:
    world = at_menu(speech("Of course."))
    world.says("help me")
    world.run(5_000)
    (asked,) = world.asked()
    assert "Help the caller." in asked.instructions
    assert do.ItemRef("u1") in asked.input
    assert [(e.user_text, e.reply_text) for e in world.exchanges()] == [("help me", "Of course.")]


def test_where_a_key_led_to_the_model_it_begins() -> None:
    world = at_menu()
    world.press("5")
    world.run(3_000)
    (order,) = world.asked()
    assert order.instructions.endswith("Begin it with one short sentence.")
    assert order.tools == ()


def test_the_model_leads_back_to_the_menu_and_the_menu_is_said() -> None:
    world = at_menu(speech("Yes?"), calling(("leave_back", "{}")))
    world.press("5")
    world.run(4_000)
    world.says("Back to the menu.")
    world.run(6_000)
    assert world.said()[2:] == [MENU]
    world.press("2")
    world.run(3_000)
    assert world.said()[3:] == [f"We open at nine. {MENU}"]


def test_the_model_may_speak_before_it_leads_back() -> None:
    world = at_menu(speech("Yes?"), calling(("leave_back", "{}"), text="All right.", audio_ms=600))
    world.press("5")
    world.run(4_000)
    world.says("Back to the menu.")
    world.run(8_000)
    assert world.said()[2:] == [MENU]
    assert ("Back to the menu.", "All right.") in [(e.user_text, e.reply_text) for e in world.exchanges()]


@pytest.mark.parametrize("to_model", [False, True])
def test_emergency_words_are_answered_wherever_the_caller_is(to_model: bool) -> None:
    world = at_menu()
    if to_model:
        world.press("5")
        world.run(4_000)
    world.says("Help, my house is on fire!")
    world.run(6_000)
    assert "Please hang up and dial nine one one." in world.said()
    assert world.of(do.EndCall) == []


def test_keys_mean_nothing_where_the_model_talks() -> None:
    world = at_menu()
    world.press("5")
    world.run(4_000)
    sent = len(world.of(do.StartReply))
    world.press("1")
    world.run(1_000)
    assert len(world.of(do.StartReply)) == sent


def test_a_file_is_played_and_one_that_cannot_be_read_is_spoken() -> None:
    business = ("say: We open at nine.,", "say: We open at nine., audio: hours.wav,")
    world = at_menu(old=business[0], new=business[1])
    world.files.add("hours.wav")
    world.press("2")
    world.run(5_500)
    assert [p.path for p in world.of(do.PlayFile)] == ["hours.wav"]
    assert world.said()[2:] == [MENU]
    world.files.clear()
    world.press("2")
    world.run(9_500)
    assert world.said()[3:] == ["We open at nine.", MENU]


def test_a_session_lost_while_a_prompt_is_asked_for_says_it_again() -> None:
    world = at_menu()
    world.press("2", each_ms=50)
    world.lose_model()
    world.run(6_000)
    assert world.said()[2:] == [f"We open at nine. {MENU}"] * 2


def test_hanging_up_in_a_menu_drops_the_call() -> None:
    world = at_menu()
    world.hang_up()
    world.run(2_000)
    assert world.of(do.EndCall) == [do.EndCall(do.EndReason.DROPPED, by=EndedBy.CALLER)]
    assert snapshot(world)["node"] == "menu"


def test_a_key_after_the_end_does_nothing() -> None:
    world = at_menu()
    world.hang_up()
    world.happen(ev.LineDigit("2"))
    world.run(2_000)
    assert len(world.said()) == 2
