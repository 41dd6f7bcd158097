"""Names of the parties in a query, and the sentence that a query asks for."""

import pytest

from memory.focus import FOCUS_WORDS_MAX, focus, stems
from memory.parties import Parties

NAMED = Parties(("Jo", "Joanna"), ("Nate",))


@pytest.mark.parametrize(
    ("query", "side", "rest"),
    [
        ("When did Joanna move?", 0, "When did move?"),
        ("What is nate's dog called?", 1, "What is dog called?"),
        ("What did Nate give Joanna?", None, "What did give ?"),
        ("Where is the joint?", None, "Where is the joint?"),
    ],
)
def test_a_name_says_who_spoke_and_nothing_about_what(query: str, side: int | None, rest: str) -> None:
    assert NAMED.asked_side(query) == side
    assert NAMED.without_names(query) == rest


def test_without_names_the_roles_are_names() -> None:
    assert Parties().asked_side("What did the caller order?") == 0
    assert Parties().asked_side("What did the assistant promise?") == 1
    assert Parties((), ()).without_names("the caller") == "the caller"


def test_the_sentence_with_the_words_asked_for() -> None:
    said = "Good morning! I am allergic to walnuts. It is so sunny today."
    assert focus(said, stems("Which walnut allergies are there?")) == "I am allergic to walnuts."
    assert focus(said, frozenset()) in said
    assert focus("", stems("walnuts")) == ""


def test_speech_without_punctuation_is_cut_by_words() -> None:
    said = " ".join(["so"] * 60 + ["my", "gate", "code", "is", "blue", "heron"])
    assert "gate code" in focus(said, stems("the gate code"))
    assert len(focus(said, stems("the gate code")).split()) <= FOCUS_WORDS_MAX
