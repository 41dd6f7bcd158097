"""What a question asks for, and what a text could answer; and that the one meets the other in a ranking."""

import numpy as np
import pytest

from memory.fusion import cues
from memory.kinds import NOTHING_WANTED, Wanted, kinds_of, table_of, wanted_by
from memory.scan import CallerScan, Terms


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("When did I call about the boiler?", Wanted(time=True)),
        ("how long was the plumber here", Wanted(time=True)),
        ("How many loaves did I order?", Wanted(number=True)),
        ("Who is my dentist?", Wanted(name=True)),
        ("Which time suits, and where?", Wanted(name=True)),
        ("What time do I come?", Wanted(time=True)),
        ("Tell me about the boiler.", NOTHING_WANTED),
        ("Wann war das?", NOTHING_WANTED),
        ("", NOTHING_WANTED),
    ],
)
def test_a_question_asks_for_a_time_a_number_or_a_name(question: str, wanted: Wanted) -> None:
    assert wanted_by(question) == wanted


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Next Tuesday, or in May.", (3, 0, 2, 0)),
        ("I order two, no, three loaves.", (0, 2, 0, 0)),
        ("It is at 9:40.", (3, 2, 0, 0)),
        ("I saw Doctor Elena Ruiz.", (0, 0, 3, 0)),
        ("Is that so?", (0, 0, 0, 1)),
        ("well, then", (0, 0, 0, 0)),
        ("well then", (0, 0, 0, 0.07)),
        ("so what did you order for the party", (0, 0, 0, 0.67)),
        ("what did you order. Cake it was.", (0, 0, 0, 0)),
        ("", (0, 0, 0, 0)),
    ],
)
def test_a_text_has_times_numbers_and_names(text: str, kinds: tuple[int, int, int, float]) -> None:
    assert kinds_of(text) == kinds


def test_no_texts_are_an_empty_table() -> None:
    assert table_of([]).shape == (0, 4)


def test_what_is_asked_for_marks_the_utterances_that_have_it() -> None:
    ids = np.arange(2)
    terms = Terms(np.array([1, 2]), np.array([1, 1]))
    nothing = np.full(2, np.nan)
    table = table_of(["at nine.", "yesterday.", "no.", "Is it Ann?"])
    scan = CallerScan(ids, ids, nothing, nothing, terms, terms, np.array([1]), table, Wanted(time=True))
    found = cues(scan, None)
    assert found["time"].tolist() == found["asked_time"].tolist() == [0, 1, 0, 0]
    assert found["number"].tolist() == [1, 0, 0, 0]
    assert found["question"].tolist() == [0, 0, 0, 1]
    assert found["asked_number"].tolist() == found["asked_name"].tolist() == [0, 0, 0, 0]
