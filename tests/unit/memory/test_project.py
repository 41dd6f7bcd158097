"""The projector, against the paper's rule and as properties."""

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memory.model import Form, Window
from memory.project import Candidate, charged, forms_of, project, said_tokens
from tests.unit.memory.pages import page

ORDER = [Form.OMITTED, Form.SUMMARY, Form.TRANSCRIPT, Form.AUDIO]
TEN = "one two three four five six seven eight nine ten"


def candidate(
    number: int, relevance: float, *, audio: bool = False, summary: str = "three words here"
) -> Candidate:
    """10 s of the caller's audio, ten words each side."""
    told = page(number, user_text=TEN, reply_text=TEN, summary=summary, user_audio_ms=10_000)
    return Candidate(told, relevance, audio)


def forms(window: Window) -> dict[int, Form]:
    return {entry.page.page_id: entry.form for entry in window.entries}


def test_costs_follow_the_papers_estimate() -> None:
    """9.98 tokens a second, 1.33 a word; a label of one word a side; rounded up."""
    costs = {one.form: one.tokens for one in forms_of(candidate(1, 1.0, audio=True))}
    assert costs == {Form.AUDIO: 100 + 15, Form.TRANSCRIPT: 15 + 15, Form.SUMMARY: 6, Form.OMITTED: 0}


def test_everything_stays_at_its_best_while_it_fits() -> None:
    window = project([candidate(1, 0.1), candidate(2, 0.2, audio=True)], 145)
    assert forms(window) == {1: Form.TRANSCRIPT, 2: Form.AUDIO}
    assert (window.tokens, window.omitted) == (145, 0)


def test_the_least_relevant_is_degraded_to_its_end_first() -> None:
    three = [candidate(1, 0.9), candidate(2, 0.1), candidate(3, 0.5, audio=True)]
    assert forms(project(three, 174)) == {1: Form.TRANSCRIPT, 2: Form.SUMMARY, 3: Form.AUDIO}
    assert forms(project(three, 150)) == {1: Form.TRANSCRIPT, 3: Form.AUDIO}
    assert forms(project(three, 144)) == {1: Form.TRANSCRIPT, 3: Form.TRANSCRIPT}
    assert forms(project(three, 59)) == {1: Form.TRANSCRIPT, 3: Form.SUMMARY}
    assert forms(project(three, 5)) == {}
    assert project(three, 5).omitted == 3


def test_forms_that_do_not_exist_or_do_not_save_are_skipped() -> None:
    assert [one.form for one in forms_of(candidate(1, 1.0, summary=""))] == [Form.TRANSCRIPT, Form.OMITTED]
    long = candidate(1, 1.0, summary=TEN * 3)
    assert Form.SUMMARY not in [one.form for one in forms_of(long)]
    silent = Candidate(page(1, user_audio_path="u.wav"), 1.0, audio=True)
    assert [one.form for one in forms_of(silent)] == [Form.OMITTED]


def test_the_order_is_that_of_the_conversation_and_a_page_counts_once() -> None:
    window = project([candidate(3, 0.9), candidate(1, 0.5), candidate(2, 0.7), candidate(3, 0.9)], 1_000)
    assert [entry.page.page_id for entry in window.entries] == [1, 2, 3]


def test_the_safety_margin_is_kept_free() -> None:
    assert project([candidate(1, 1.0)], 40, safe_tokens=10).tokens == 30
    assert project([candidate(1, 1.0)], 40, safe_tokens=11).tokens == 6


def test_thread_summaries_take_an_eighth_at_most() -> None:
    window = project([candidate(1, 1.0)], 160, threads=[TEN, "", TEN, "short one"])
    assert window.threads == (TEN, "short one")
    assert window.tokens == 30 + 14 + 3


def searched(
    number: int, user: float, reply: float, user_text: str = TEN, reply_text: str = TEN
) -> Candidate:
    return Candidate(page(number, user_text=user_text, reply_text=reply_text), 0.0, sides=(user, reply))


def shortest(text: str) -> str:
    return " ".join(text.split()[:3])


def test_the_side_that_answers_can_be_enough() -> None:
    window = project([searched(1, 5.0, -5.0), searched(2, 4.0, 4.0)], 45)
    assert [(entry.form, entry.text, entry.tokens) for entry in window.entries] == [
        (Form.TRANSCRIPT, f"caller: {TEN}", 15),
        (Form.TRANSCRIPT, "", 30),
    ]


def test_a_silent_other_side_makes_a_side_the_whole_page() -> None:
    window = project([searched(1, -math.inf, 1.0, user_text="")], 15)
    assert [(entry.form, entry.text) for entry in window.entries] == [(Form.TRANSCRIPT, "")]


def test_a_short_answer_is_preferred_to_a_long_one() -> None:
    long = searched(1, 1.0, -math.inf, user_text=TEN * 4)
    short = searched(2, 0.9, -math.inf, user_text="half past ten")
    window = project([long, short], 20)
    assert [entry.text for entry in window.entries] == ["caller: half past ten"]


def test_a_share_is_kept_for_a_sentence_of_each_further_page() -> None:
    pages = [searched(number, 10.0 - number, -math.inf) for number in range(1, 11)]
    window = project(pages, 120, focus=shortest)
    assert [(entry.page.page_id, entry.form) for entry in window.entries] == [
        *((number, Form.TRANSCRIPT) for number in range(1, 7)),
        *((number, Form.SUMMARY) for number in (7, 8, 9)),
    ]
    assert [entry.text for entry in window.entries][-1] == "caller: one two three"
    assert window.tokens == 6 * 15 + 3 * 6


def test_a_sentence_that_is_all_that_was_said_is_a_transcript() -> None:
    pages = [searched(1, 9.0, -math.inf), searched(2, 1.0, -math.inf, user_text="a b c", reply_text="")]
    assert forms(project(pages, 60, focus=shortest)) == {1: Form.TRANSCRIPT, 2: Form.TRANSCRIPT}


side_candidates = st.lists(
    st.builds(
        lambda number, sides, user, reply: Candidate(
            page(number, user_text="word " * user, reply_text="word " * reply), 0.0, sides=sides
        ),
        st.integers(1, 40),
        st.tuples(st.floats(-9, 9), st.floats(-9, 9)),
        st.integers(0, 60),
        st.integers(0, 60),
    ),
    max_size=25,
    unique_by=lambda one: one.page.page_id,
)


@given(side_candidates, st.integers(0, 2_000))
def test_sides_and_sentences_are_never_over_budget(pages: list[Candidate], budget: int) -> None:
    window = project(pages, budget, focus=shortest)
    assert window.tokens == sum(entry.tokens for entry in window.entries) <= budget
    assert window.omitted + len(window.entries) == len(pages)


@given(side_candidates, st.integers(0, 2_000), st.integers(0, 500))
def test_more_budget_never_takes_a_page_or_its_words_away(
    pages: list[Candidate], budget: int, more: int
) -> None:
    less, greater = (project(pages, size, focus=shortest) for size in (budget, budget + more))
    tokens = {entry.page.page_id: entry.tokens for entry in greater.entries}
    assert all(tokens.get(entry.page.page_id, 0) >= entry.tokens for entry in less.entries)


@given(side_candidates, st.integers(0, 2_000))
def test_words_go_to_the_more_relevant_first(pages: list[Candidate], budget: int) -> None:
    """Whoever lacks a side word for word is charged less relevant than every side that is there so."""
    window = project(pages, budget)
    worth: dict[bool, list[float]] = {True: [], False: []}
    texts = {entry.page.page_id: entry.text for entry in window.entries}
    for one in pages:
        for side, (text, label) in enumerate(
            ((one.page.user_text, "caller"), (one.page.reply_text, "assistant"))
        ):
            if text and one.sides is not None:
                shown = texts.get(one.page.page_id)
                there = shown is not None and (shown == "" or shown.startswith(label))
                worth[there].append(charged(one.sides[side], said_tokens(text)))
    assert min(worth[True], default=math.inf) >= max(worth[False], default=-math.inf)


candidates = st.lists(
    st.builds(
        lambda number, relevance, user, reply, summary, audio_ms, audio: Candidate(
            page(
                number,
                user_text="word " * user,
                reply_text="word " * reply,
                summary="word " * summary,
                user_audio_ms=audio_ms,
            ),
            relevance,
            audio,
        ),
        st.integers(1, 40),
        st.floats(0, 1),
        st.integers(0, 60),
        st.integers(0, 60),
        st.integers(0, 20),
        st.integers(0, 20_000),
        st.booleans(),
    ),
    max_size=25,
    unique_by=lambda one: one.page.page_id,
)


@given(candidates, st.integers(0, 2_000))
def test_never_over_budget(pages: list[Candidate], budget: int) -> None:
    window = project(pages, budget)
    assert window.tokens == sum(entry.tokens for entry in window.entries) <= budget
    assert window.omitted + len(window.entries) == len(pages)


@given(candidates, st.integers(0, 2_000), st.integers(0, 500))
def test_more_budget_never_takes_a_better_form_away(pages: list[Candidate], budget: int, more: int) -> None:
    less, greater = forms(project(pages, budget)), forms(project(pages, budget + more))
    for page_id, form in less.items():
        assert ORDER.index(greater.get(page_id, Form.OMITTED)) >= ORDER.index(form)


@given(candidates, st.integers(0, 2_000))
def test_a_page_is_degraded_only_when_all_less_relevant_ones_are_omitted(
    pages: list[Candidate], budget: int
) -> None:
    chosen = forms(project(pages, budget))
    for one in pages:
        best = forms_of(one)[0].form
        if chosen.get(one.page.page_id, Form.OMITTED) is not best:
            assert not any(
                other.relevance < one.relevance and other.page.page_id in chosen for other in pages
            )


@given(candidates, st.integers(0, 2_000))
def test_a_page_is_degraded_no_further_than_needed(pages: list[Candidate], budget: int) -> None:
    """Giving the last degraded page its next better form back would break the budget."""
    window = project(pages, budget)
    chosen = {entry.page.page_id: entry.tokens for entry in window.entries}
    degraded = [one for one in pages if chosen.get(one.page.page_id, 0) != forms_of(one)[0].tokens]
    if degraded:
        last = max(degraded, key=lambda one: (one.relevance, one.page.created_at))
        costs = [form.tokens for form in forms_of(last)]
        now = chosen.get(last.page.page_id, 0)
        assert window.tokens - now + costs[costs.index(now) - 1] > budget


@given(candidates, st.integers(0, 2_000))
def test_the_order_of_candidates_does_not_matter(pages: list[Candidate], budget: int) -> None:
    distinct = [replace(one, relevance=float(number)) for number, one in enumerate(pages)]
    assert project(distinct, budget) == project(list(reversed(distinct)), budget)
