"""The rules by which the sandbox answers."""

import json
from typing import Any

import pytest

from ivr.sandbox.brain import Answer, Line, Question, ToolSpec, Who
from ivr.sandbox.language import is_question, is_unfinished, stem
from ivr.sandbox.rules import REALLY_FORGET
from ivr.sandbox.think import DONT_KNOW, MAX_WORDS, think

INSTRUCTIONS = """You answer for Trattoria Lume.
# Facts
- We are open from Tuesday to Sunday in the evening, and closed on Monday.
- The restaurant is at 12 Harbour Street.
- Tables for up to eight people can be booked by telephone.
- Parking behind the building is free.
- Our desserts are a lemon tart and a chocolate cake.
# Now
- Be brief.
"""


def user(text: str) -> Line:
    return Line(Who.USER, text)


def reply(text: str) -> Line:
    return Line(Who.ASSISTANT, text)


def system(text: str) -> Line:
    return Line(Who.SYSTEM, text)


def tool(name: str, description: str = "", required: tuple[str, ...] = (), **properties: Any) -> ToolSpec:
    return ToolSpec(
        name, description, {"type": "object", "properties": properties, "required": list(required)}
    )


TRANSFER = tool(
    "transfer",
    "Connect the caller. front_desk: reception, books and moves; emergency: the dentist on call, for strong pain",
    ("target",),
    target={"type": "string", "enum": ["emergency", "front_desk"]},
)
TOOLS = (
    TRANSFER,
    tool("hang_up"),
    tool("set_response_speed", speed={"type": "number"}),
    tool("set_response_instruction", text={"type": "string"}),
    tool("set_vad_silence_duration", ms={"type": "integer"}),
    tool("defer_response", reason={"type": "string"}),
)


def ask(*lines: Line, tools: tuple[ToolSpec, ...] = (), instructions: str = INSTRUCTIONS) -> Answer:
    return think(Question(instructions, lines, tools))


def called(answer: Answer) -> tuple[str, dict[str, Any]]:
    (call,) = answer.calls
    return call.name, json.loads(call.arguments)


def test_what_is_to_be_said_exactly_is_said_and_nothing_is_called() -> None:
    answer = ask(
        user("Goodbye"), tools=TOOLS, instructions=f"{INSTRUCTIONS}\nSay exactly: Welcome, and hello."
    )
    assert (answer.say, answer.calls) == ("Welcome, and hello.", ())


@pytest.mark.parametrize(
    ("asked", "fact"),
    [
        ("When are you open?", "We are open from Tuesday"),
        ("What time do you close on Sundays?", "We are open from Tuesday"),
        ("Where are you?", "The restaurant is at 12 Harbour Street."),
        ("Could you tell me your address", "The restaurant is at 12 Harbour Street."),
        ("Can I park there?", "Parking behind the building is free."),
        ("Can I book a table for six?", "Tables for up to eight people"),
        ("Which dessert do you have?", "Our desserts are"),
    ],
)
def test_a_question_is_answered_with_the_fact_that_fits(asked: str, fact: str) -> None:
    assert ask(user(asked)).say.startswith(fact)


@pytest.mark.parametrize(
    "asked", ["Who is the president of France?", "Do you repair bicycles?", "Be brief about what?"]
)
def test_what_is_not_there_is_not_made_up(asked: str) -> None:
    assert ask(user(asked)).say == DONT_KNOW


def test_what_the_user_told_is_given_back() -> None:
    history = (
        user("Hello, my name is Ana."),
        reply("Hello."),
        user("I am allergic to nuts."),
        reply("Noted."),
    )
    assert ask(*history, user("What is my name?")).say == 'You told me: "Hello, my name is Ana".'
    assert ask(*history, user("What am I allergic to?")).say == 'You told me: "I am allergic to nuts".'


def test_a_statement_is_noted_with_the_fact_that_fits() -> None:
    answer = ask(user("I would like to book a table for two."))
    assert answer.say.startswith('Noted: "I would like to book a table for two". Tables for up to eight')


def test_a_constraint_told_long_before_is_mentioned_when_it_matters() -> None:
    digression = [line for n in range(20) for line in (user(f"My dog number {n} is brown."), reply("Noted."))]
    answer = ask(
        user("Please, no nuts for me."), reply("Noted."), *digression, user("Which dessert do you have?")
    )
    assert answer.say == (
        'Our desserts are a lemon tart and a chocolate cake. I remember you said: "Please, no nuts for me".'
    )
    assert "nuts" not in ask(user("Please, no nuts for me."), *digression, user("Can I park there?")).say


@pytest.mark.parametrize("asked", ["Where were we?", "Wherever we...", "What were we talking about?"])
def test_where_we_were_is_answered_from_the_history(asked: str) -> None:
    answer = ask(
        user("I'd like to book a table for two on Friday."),
        reply("Tables can be booked. Which time?"),
        user("Yes."),
        reply("Good."),
        user(asked),
    )
    assert answer.say == (
        'We were talking about: "I\'d like to book a table for two on Friday". I had said: "Tables can be booked".'
    )


RECORD = user(
    "<memory>\nFrom earlier calls of this number:\ntopic: a table\ncaller: I'd like a table, but no nuts please.\n"
    "assistant: Tables for up to eight. — [interrupted here]\n</memory>"
)
OFFER = reply("Welcome back. We were cut off while talking about a table. Shall we go on, or start afresh?")
AFRESH = (tool("start_afresh"),)


def test_a_record_of_earlier_talk_is_history_and_never_a_turn() -> None:
    where = ask(RECORD, OFFER, user("Where were we?"), tools=AFRESH)
    assert where.say == (
        'We were talking about: "I\'d like a table, but no nuts please". I had said: "Tables for up to eight".'
    )
    assert ask(RECORD, system("speed=1")).say == "Hello. How can I help you?"


PERSONAL = tuple(map(tool, ("another_person", "refuse_recording", "forget_me", "confirm_forget_me")))


def test_who_else_is_on_the_line_and_what_they_want_kept() -> None:
    ana = user("This is Ana, my test is on Monday.")
    assert called(ask(ana, reply("Noted."), user("This is Ben."), tools=PERSONAL)) == ("another_person", {})
    assert called(ask(user("Somebody else is speaking now."), tools=PERSONAL)) == ("another_person", {})
    for said in ("This is Ana again.", "This is urgent.", "My name is Ana."):
        assert ask(ana, reply("Noted."), user(said), tools=PERSONAL).calls == ()
    assert ask(user("This is Ben."), tools=PERSONAL).calls == ()
    assert called(ask(user("Please don't record me."), tools=PERSONAL)) == ("refuse_recording", {})
    assert called(ask(user("Please forget me."), tools=PERSONAL)) == ("forget_me", {})
    confirmed = ask(reply(REALLY_FORGET), user("Yes, please."), tools=PERSONAL)
    assert called(confirmed) == ("confirm_forget_me", {})
    assert ask(reply("Anything else?"), user("Yes, please."), tools=PERSONAL).calls == ()


def test_an_offer_to_go_on_is_accepted_or_declined() -> None:
    accepted = ask(RECORD, OFFER, user("Yes, please."), tools=AFRESH)
    assert accepted.say.startswith("Good, let's go on. We were talking about")
    assert called(ask(RECORD, OFFER, user("Yes, go on."), tools=(*AFRESH, tool("go_on")))) == ("go_on", {})
    assert called(ask(RECORD, OFFER, user("No, thanks."), tools=AFRESH)) == ("start_afresh", {})
    assert called(ask(RECORD, OFFER, user("Let's start over."), tools=AFRESH)) == ("start_afresh", {})
    assert ask(reply("Is that all?"), user("No nuts please."), tools=AFRESH).calls == ()


@pytest.mark.parametrize(
    ("said", "target"),
    [
        ("Can I speak to a person?", "front_desk"),
        ("Put me through to the dentist, please.", "emergency"),
        ("I'd like to talk to the front desk.", "front_desk"),
        ("Transfer me, I have strong pain.", "emergency"),
        ("Operator!", "front_desk"),
    ],
)
def test_who_wants_a_person_is_connected(said: str, target: str) -> None:
    answer = ask(user(said), tools=TOOLS)
    assert (answer.say, called(answer)) == ("One moment, I'll connect you.", ("transfer", {"target": target}))


def test_a_person_offered_and_accepted_is_connected_and_talk_alone_is_not() -> None:
    assert (
        called(ask(user("Who is king?"), reply(DONT_KNOW), user("Yes, please."), tools=TOOLS))[0]
        == "transfer"
    )
    assert ask(user("I wanted to talk to you about a tart."), tools=TOOLS).calls == ()
    assert ask(user("Can I speak to a person?")).calls == ()


@pytest.mark.parametrize("said", ["Goodbye.", "That's all, thank you.", "Okay, bye bye!"])
def test_goodbye_hangs_up_with_a_farewell(said: str) -> None:
    answer = ask(user(said), tools=TOOLS)
    assert (answer.say, called(answer)) == ("Thank you for calling. Goodbye.", ("hang_up", {}))


@pytest.mark.parametrize(
    ("said", "state", "speed"),
    [
        ("Could you speak slower?", "runtime: speed=1 silence_ms=500", 0.8),
        ("You are too fast.", "runtime: speed=1.3", 1.1),
        ("A bit faster please", "", 1.2),
        ("Slow down!", "speed: 0.3", 0.25),
        ("Faster!", "speed=1.45", 1.5),
    ],
)
def test_speed_goes_by_steps_from_the_present_one_without_a_word(said: str, state: str, speed: float) -> None:
    answer = ask(user(said), system(state), tools=TOOLS)
    assert (answer.say, called(answer)) == ("", ("set_response_speed", {"speed": speed}))


def test_the_other_directives() -> None:
    assert called(ask(user("Please keep it short."), tools=TOOLS))[0] == "set_response_instruction"
    assert called(ask(user("Give me more time."), tools=TOOLS)) == ("set_vad_silence_duration", {"ms": 1_200})
    assert called(ask(user("Answer as soon as I finish."), tools=TOOLS)) == (
        "set_vad_silence_duration",
        {"ms": 300},
    )


@pytest.mark.parametrize(
    ("said", "concealed_ms", "deferred"),
    [
        ("I would like to", 400, True),
        ("", 400, True),
        ("I would like to", 0, False),
        ("When are you open?", 400, False),
    ],
)
def test_an_unfinished_turn_over_a_bad_network_is_deferred(
    said: str, concealed_ms: int, deferred: bool
) -> None:
    state = system(f"network: concealed_ms={concealed_ms} stall_ms=0\nruntime: speed=1")
    answer = ask(user(said), state, tools=TOOLS)
    assert bool(answer.calls) is deferred
    assert not deferred or (called(answer)[0], answer.say) == ("defer_response", "")


def after(said: str, name: str, output: str) -> Answer:
    return ask(
        user(said), Line(Who.CALL, "{}", name), Line(Who.OUTPUT, output, name), system("speed=1"), tools=TOOLS
    )


def test_after_a_function_its_output_is_said_or_confirmed_and_the_rest_is_answered() -> None:
    assert after("Slower please.", "set_response_speed", "ok").say == "Okay, slower now."
    assert after("Faster! When do you open?", "set_response_speed", "ok").say.startswith(
        "Okay, faster now. We are open"
    )
    assert after("Bye", "hang_up", '{"say": "See you."}').say == "See you."
    assert after("Put me through", "transfer", '{"error": "unknown_target"}').say.startswith("I am afraid")
    assert after("Do it", "book", "done").say == "All right, that is done."
    assert after("Slower. Bye.", "set_response_speed", "ok").calls == ()


def test_pieces_of_one_turn_are_read_together() -> None:
    first, second = (
        Line(Who.USER, "Can I book", item_id="i1"),
        Line(Who.USER, "a table for six?", item_id="i2"),
    )
    assert ask(first, second).say.startswith("Tables for up to eight people")


def test_nothing_heard_is_said_so_and_an_open_end_is_waited_for() -> None:
    assert ask(user("")).say.startswith("Sorry, I didn't catch that")
    assert ask(user("I would like to")).say == "Yes, please go on."


def test_replies_stay_short() -> None:
    facts = "# Facts\n- " + "our very long table rule " * 40
    assert len(ask(user("What is the table rule?"), instructions=facts).say.split()) == MAX_WORDS


def test_words_meet_by_their_stems() -> None:
    assert {stem("allergic"), stem("allergies"), stem("allergy")} == {"allerg"}
    assert stem("closes") == stem("close") == stem("closed") == "clos"
    assert stem("Mondays".lower()) == stem("monday")


def test_questions_and_open_ends() -> None:
    assert is_question("I'd like to know your address")
    assert is_question("and what about parking")
    assert not is_question("My name is Ana.")
    assert is_unfinished("I'd like to book a table for")
    assert not is_unfinished("What is it for?")


def test_what_stands_only_in_a_document_is_answered_from_it() -> None:
    papers = user(
        "<documents>\n- House rules: Bicycles may stand in the yard. Dogs are welcome.\n</documents>"
    )
    assert ask(papers, user("May bicycles stand somewhere?")).say == "Bicycles may stand in the yard."
    assert ask(papers, system("speed=1")).say == "Hello. How can I help you?"
