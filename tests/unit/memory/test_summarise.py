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
    assert (summary.text, summary.charge) == ("Caller: Two loaves, no nuts.", None)


@pytest.mark.parametrize(
    ("summary", "source", "lost"),
    [
        (
            "The caller has no car and orders a cake.",
            "I have no car. But no nuts in it.",
            "But no nuts in it.",
        ),
        ("The caller can come.", "I can come. Not before ten.", "Not before ten."),
        ("The caller orders loaves.", "I want two loaves of rye.", "I want two loaves of rye."),
        ("The caller comes this week.", "i come on tuesday", "i come on tuesday"),
        (
            "The caller asks for the price.",
            "How much is it? The cake is 45 dollars.",
            "The cake is 45 dollars.",
        ),
        ("The caller asks for her.", "May I speak to Oksana please", "May I speak to Oksana please"),
        ("The cake must have no nuts, they said.", "There must be no nuts in the cake.", ""),
        ("Two loaves on Tuesday at 9:30, for Oksana.", "On tuesday at 9:30, two loaves for Oksana.", ""),
    ],
)
def test_each_kind_of_fact_is_checked_by_itself(summary: str, source: str, lost: str) -> None:
    """Another refusal, another number does not stand for the one that was dropped."""
    assert keep_facts(summary, source) == f"{summary} {lost}".strip()


def test_where_room_is_short_the_last_that_was_said_is_appended() -> None:
    source = "\n".join(f"It costs {price} dollars at the shop." for price in (10, 20, 30))
    assert keep_facts("It costs.", source, 14).endswith(
        "It costs 20 dollars at the shop. It costs 30 dollars at the shop."
    )
