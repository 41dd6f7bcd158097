"""How a window becomes a reply's input."""

from dataclasses import replace

from callflows.engine import MEMORY_CLOSE, MEMORY_OPEN
from ivr.core.commands import AssistantText, CallOutput, ItemRef, SystemText, UserText
from ivr.core.context import Opening, build_input
from ivr.core.heard import Heard
from ivr.core.latency import Latency
from ivr.core.records import FinishedExchange, Turn
from memory.model import Form, Trust, Window, WindowEntry
from tests.unit.core.harness import remembered

STATE = "[state]"


def turn_of(*items: str) -> Turn:
    return Turn(1, list(items))


def window(*entries: tuple[Form, str, int]) -> Window:
    """Entries of (form, call, exchange number)."""
    pages = [
        (form, replace(remembered(call, no, f"q{no}", f"a{no}", f"i{no}"), summary=f"s{no}"))
        for form, call, no in entries
    ]
    return Window(tuple(WindowEntry(page, form, 1) for form, page in pages))


def built(
    turn: Turn, live: frozenset[str] = frozenset(), opening: Opening | None = None
) -> tuple[object, ...]:
    return build_input("CA1", turn.window or Window(), turn, (), opening or Opening(""), live, STATE)


def test_what_was_less_sure_stands_apart_and_gives_way() -> None:
    sure = replace(remembered("CA0", 1, "my street is Elm", "Noted."), trust=Trust.ATTESTED)
    less = replace(remembered("CA9", 1, "my street is Oak", "Noted."), trust=Trust.NUMBER)
    for pages in ((less, sure), (sure, less)):
        turn = turn_of()
        turn.window = Window(tuple(WindowEntry(page, Form.TRANSCRIPT, 5) for page in pages))
        text = repr(built(turn)[0])
        assert text.index("Elm") < text.index("that above holds") < text.index("Oak")


def test_pages_of_this_call_come_in_their_form() -> None:
    turn = turn_of("u1")
    turn.window = window((Form.AUDIO, "CA1", 1), (Form.TRANSCRIPT, "CA1", 2), (Form.OMITTED, "CA1", 3))
    assert built(turn, frozenset({"i1", "u1"})) == (
        ItemRef("i1"),
        AssistantText("a1"),
        UserText("q2"),
        AssistantText("a2"),
        ItemRef("u1"),
        SystemText(STATE),
    )


def test_audio_whose_item_is_gone_is_given_as_words() -> None:
    turn = turn_of("u1")
    turn.window = window((Form.AUDIO, "CA1", 1))
    turn.words["u1"] = "again"
    assert built(turn) == (UserText("q1"), AssistantText("a1"), UserText("again"), SystemText(STATE))


def test_summaries_and_other_calls_are_fenced_as_data() -> None:
    turn = turn_of("u1")
    turn.window = window((Form.TRANSCRIPT, "CA0", 1), (Form.SUMMARY, "CA0", 2), (Form.SUMMARY, "CA1", 3))
    earlier, summary, *_ = built(turn, frozenset({"u1"}))
    assert earlier == UserText(
        f"{MEMORY_OPEN}\nFrom earlier calls of this number:\ncaller: q1\nassistant: a1\nsummary: s2\n{MEMORY_CLOSE}"
    )
    assert summary == UserText(f"{MEMORY_OPEN}\nsummary: s3\n{MEMORY_CLOSE}")


def test_a_part_of_a_page_stands_for_it_and_is_data_in_any_call() -> None:
    turn = turn_of("u1")
    earlier, here = remembered("CA0", 1, "q1", "a1"), remembered("CA1", 2, "q2", "a2")
    turn.window = Window(
        (
            WindowEntry(earlier, Form.TRANSCRIPT, 5, "caller: q1"),
            WindowEntry(here, Form.SUMMARY, 5, "assistant: a sentence"),
        )
    )
    assert built(turn, frozenset({"u1"}))[:2] == (
        UserText(f"{MEMORY_OPEN}\nFrom earlier calls of this number:\ncaller: q1\n{MEMORY_CLOSE}"),
        UserText(f"{MEMORY_OPEN}\nassistant: a sentence\n{MEMORY_CLOSE}"),
    )


def test_an_interrupted_reply_says_so() -> None:
    turn = turn_of("u1")
    page = replace(remembered("CA1", 1, "q", "We open"), interrupted=True)
    turn.window = Window((WindowEntry(page, Form.TRANSCRIPT, 1),))
    assert AssistantText("We open — [interrupted here]") in built(turn)


def test_fresh_exchanges_are_added_once() -> None:
    turn, before = turn_of("u3"), turn_of("u2")
    before.words["u2"] = "q2"
    turn.window = window((Form.TRANSCRIPT, "CA1", 1))
    fresh = [
        FinishedExchange(no, before, Heard(f"a{no}", b"", whole=True), "main", "en", Latency())
        for no in (1, 2)
    ]
    items = build_input(
        "CA1", turn.window or Window(), turn, fresh, Opening("Hello."), frozenset({"u3"}), STATE
    )
    assert items == (
        AssistantText("Hello."),
        UserText("q1"),
        AssistantText("a1"),
        UserText("q2"),
        AssistantText("a2"),
        ItemRef("u3"),
        SystemText(STATE),
    )


def test_the_greeting_of_a_call_that_goes_on_comes_after_what_was_before() -> None:
    turn = turn_of("u6")
    turn.window = window((Form.TRANSCRIPT, "CA1", 4), (Form.TRANSCRIPT, "CA1", 5))
    assert built(turn, frozenset({"u6"}), Opening("Here again.", 5)) == (
        UserText("q4"),
        AssistantText("a4"),
        AssistantText("Here again."),
        UserText("q5"),
        AssistantText("a5"),
        ItemRef("u6"),
        SystemText(STATE),
    )


def test_call_outputs_follow_the_turn() -> None:
    turn = turn_of("u1", "u2")
    turn.partial["u2"] = "half a sen"
    output = CallOutput("c1", "f", "{}", "ok")
    turn.outputs.append(output)
    assert built(turn, frozenset({"u1"})) == (
        ItemRef("u1"),
        UserText("half a sen"),
        output,
        SystemText(STATE),
    )
