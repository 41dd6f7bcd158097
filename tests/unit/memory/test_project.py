"""The projector, against the paper's rule and as properties."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memory.model import Form, Window
from memory.project import Candidate, forms_of, project
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
    """9.98 tokens a second, 1.33 a word; a label of two words a side; rounded up."""
    costs = {one.form: one.tokens for one in forms_of(candidate(1, 1.0, audio=True))}
    assert costs == {Form.AUDIO: 100 + 16, Form.TRANSCRIPT: 16 + 16, Form.SUMMARY: 7, Form.OMITTED: 0}


def test_everything_stays_at_its_best_while_it_fits() -> None:
    window = project([candidate(1, 0.1), candidate(2, 0.2, audio=True)], 148)
    assert forms(window) == {1: Form.TRANSCRIPT, 2: Form.AUDIO}
    assert (window.tokens, window.omitted) == (148, 0)


def test_the_least_relevant_is_degraded_to_its_end_first() -> None:
    three = [candidate(1, 0.9), candidate(2, 0.1), candidate(3, 0.5, audio=True)]
    assert forms(project(three, 179)) == {1: Form.TRANSCRIPT, 2: Form.SUMMARY, 3: Form.AUDIO}
    assert forms(project(three, 150)) == {1: Form.TRANSCRIPT, 3: Form.AUDIO}
    assert forms(project(three, 147)) == {1: Form.TRANSCRIPT, 3: Form.TRANSCRIPT}
    assert forms(project(three, 63)) == {1: Form.TRANSCRIPT, 3: Form.SUMMARY}
    assert forms(project(three, 6)) == {}
    assert project(three, 6).omitted == 3


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
    assert project([candidate(1, 1.0)], 40, safe_tokens=8).tokens == 32
    assert project([candidate(1, 1.0)], 40, safe_tokens=9).tokens == 7


def test_thread_summaries_take_an_eighth_at_most() -> None:
    window = project([candidate(1, 1.0)], 160, threads=[TEN, "", TEN, "short one"])
    assert window.threads == (TEN, "short one")
    assert window.tokens == 32 + 14 + 3


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
