"""The extractive summariser: what must survive survives."""

import pytest

from memory.summarise import (
    PAGE_WORDS_MAX,
    THREAD_WORDS_MAX,
    ExtractiveSummariser,
    extract_page,
    extract_thread,
    facts_in,
    keep_facts,
    sentences,
)
from tests.unit.memory.pages import page

CHAT = "It is such a lovely morning and the weather keeps getting better and better here. "


@pytest.mark.parametrize(
    "fact",
    [
        "I want no nuts in it.",
        "Not before ten please.",
        "My name is Ana.",
        "The total was 42.50 euros.",
        "Come on Friday at 9:30.",
        "My gate code is blue heron.",
    ],
)
def test_facts_survive_a_page_of_small_talk(fact: str) -> None:
    summary = extract_page(CHAT * 6 + fact + " " + CHAT * 6, CHAT * 4)
    assert fact in summary
    assert len(summary.split()) <= PAGE_WORDS_MAX + 2


def test_b078_a_fact_at_the_end_of_900_words_survives() -> None:
    assert "blue heron" in extract_page(
        "we talked about the garden " * 180 + "my gate code is blue heron", "Right."
    )


def test_who_said_what_is_kept_in_order() -> None:
    assert extract_page("Two loaves of rye.", "That is 9 euros.") == (
        "Caller: Two loaves of rye. Agent: That is 9 euros."
    )


def test_nothing_said_is_an_empty_summary() -> None:
    assert extract_page("", "") == ""


def test_what_a_model_dropped_is_appended() -> None:
    source = "I need it on the 12th. Please no sesame. It was sunny."
    assert keep_facts("The caller orders bread for the 12th.", source) == (
        "The caller orders bread for the 12th. Please no sesame."
    )
    assert keep_facts("Bread by the 12th, no sesame.", source) == "Bread by the 12th, no sesame."


def test_names_and_numbers_are_facts() -> None:
    assert facts_in("Tell Mr Novak, order 4711, at 9:30") == ["4711", "9:30", "Mr", "Novak"]


def test_a_text_without_punctuation_is_cut_all_the_same() -> None:
    assert [len(part.split()) for part in sentences("word " * 60)] == [25, 25, 10]


def test_a_thread_keeps_its_newest_pages() -> None:
    pages = [page(number, summary=f"Caller: point {number}. " + "filler " * 17) for number in range(1, 9)]
    summary = extract_thread(pages)
    assert "point 8" in summary and "point 1." not in summary
    assert summary.index("point 7") < summary.index("point 8")
    assert len(summary.split()) <= THREAD_WORDS_MAX


async def test_the_summariser_needs_no_stored_summaries() -> None:
    summary = await ExtractiveSummariser().thread([page(1, user_text="Two loaves, no nuts.")])
    assert summary == "Caller: Two loaves, no nuts."
