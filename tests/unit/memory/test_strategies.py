"""Ours and the paper's baselines behind one interface: what each shows of the same past."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.model import Form, Page, Window
from memory.strategies import Found, Past, StrategyName
from memory.strategies_baselines import (
    STRATEGIES,
    Compaction,
    FullHistory,
    HierarchicalSummary,
    HybridRag,
    PageRag,
    condense,
)
from tests.unit.memory.pages import page

TEN = "one two three four five six seven eight nine ten"
COSTS = 30
"""A page of ten words a side, by the paper's estimate, with both labels."""


def told(number: int, **fields: object) -> Page:
    values: dict[str, object] = {"user_text": TEN, "reply_text": TEN, "summary": f"Page {number}."}
    return page(number, **{**values, "user_item_id": f"i{number}", "user_audio_ms": 5_000, **fields})


def past(count: int, cosines: dict[int, float] | None = None, live: tuple[str, ...] = ()) -> Past:
    pages = [told(number) for number in range(1, count + 1)]
    found = {number: Found((cosine * 9, cosine * 9), cosine) for number, cosine in (cosines or {}).items()}
    return Past(pages, pages[-8:], "CA1", live, found)


def ids(window: Window) -> list[int]:
    return [entry.page.page_id for entry in window.entries]


def test_every_name_has_its_strategy() -> None:
    assert set(STRATEGIES) == set(StrategyName)


def test_full_history_is_everything_whatever_the_budget() -> None:
    window = FullHistory().window(past(100), 10, 2)
    assert ids(window) == list(range(1, 101))
    assert (window.tokens, window.omitted) == (100 * COSTS, 0)


def test_full_history_loses_the_oldest_where_the_model_can_hold_no_more() -> None:
    window = FullHistory(limit_tokens=95).window(past(100), 10, 2)
    assert ids(window) == [98, 99, 100]
    assert window.omitted == 97


def test_page_rag_takes_the_most_similar_pages_whole() -> None:
    window = PageRag().window(past(20, {3: 0.9, 7: 0.8, 9: 0.7}), 2 * COSTS, 2)
    assert ids(window) == [3, 7]
    assert {entry.form for entry in window.entries} == {Form.TRANSCRIPT}


def test_hybrid_rag_keeps_the_last_two_turns_and_weighs_likeness_with_recency() -> None:
    """The oldest is the most similar (0.7 + 0.3 · 1/40), page 38 merely new (0.3 · 38/40), page 20 in no top ten."""
    likeness = {1: 1.0, 20: 0.0} | dict.fromkeys(range(2, 12), 0.05)
    window = HybridRag().window(past(40, likeness), 4 * COSTS, 2)
    assert ids(window) == [1, 38, 39, 40]
    everything = HybridRag().window(past(40, likeness), 100 * COSTS, 2)
    assert ids(everything) == [1, *range(3, 12), *range(31, 41)]


def test_compaction_leaves_all_turns_until_they_are_too_many() -> None:
    assert ids(Compaction().window(past(4), 4 * COSTS, 2)) == [1, 2, 3, 4]
    window = Compaction().window(past(5), 4 * COSTS, 2)
    assert ids(window) == [4, 5]
    assert window.threads == ("Page 1. Page 2. Page 3.",)
    assert window.covers == ((1, 2, 3),)
    assert window.omitted == 0


def test_compaction_goes_on_from_its_own_summary() -> None:
    window = Compaction().window(past(60), 4 * COSTS, 2)
    assert window.covers[0] == tuple(range(1, 61 - len(ids(window))))
    assert ids(window)[-2:] == [59, 60]
    assert window.tokens <= 4 * COSTS


def test_hierarchical_summary_is_of_ten_turns_each_the_latest_first() -> None:
    window = HierarchicalSummary().window(past(42), 10_000, 2)
    assert ids(window) == [41, 42]
    assert window.covers == tuple(tuple(range(start, start + 10)) for start in (1, 11, 21, 31))
    short = HierarchicalSummary().window(past(42), 2 * COSTS + 30, 2)
    assert short.covers == (tuple(range(31, 41)),)
    assert short.omitted == 30


def test_a_condensed_text_keeps_what_carries_facts_in_its_order() -> None:
    lines = [
        "Caller: nice day today",
        "Caller: flight BA 117 at 9:40",
        "Agent: all right then",
        "Call 5550143",
    ]
    assert condense(lines, 9) == [lines[1], lines[3]]
    assert condense([TEN], 3) == ["one two three …"]
    assert condense([], 3) == []


@pytest.mark.parametrize("name", [StrategyName.VTHREADS, StrategyName.FULL, StrategyName.COMPACTION])
def test_audio_is_for_the_last_live_turns_that_the_policy_allows(name: StrategyName) -> None:
    live = tuple(f"i{number}" for number in range(1, 7))
    for turns in (0, 1, 2):
        window = STRATEGIES[name].window(past(6, live=live), 1_000, turns)
        audible = [entry.page.page_id for entry in window.entries if entry.form is Form.AUDIO]
        assert audible == [5, 6][2 - turns :]


@given(
    st.sampled_from([name for name in StrategyName if name is not StrategyName.FULL]),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.floats(-1, 1)), max_size=40),
    st.integers(0, 2_000),
)
def test_no_strategy_is_over_its_budget(
    name: StrategyName, sizes: list[tuple[int, int, float]], budget: int
) -> None:
    pages = [
        told(number, user_text="word " * user, reply_text="word " * reply)
        for number, (user, reply, _) in enumerate(sizes, start=1)
    ]
    found = {
        one.page_id: Found((cosine, -cosine), cosine)
        for one, (_, _, cosine) in zip(pages, sizes, strict=True)
    }
    window = STRATEGIES[name].window(Past(pages, pages[-3:], "CA1", (), found), budget, 2)
    assert window.tokens <= budget
    assert window.tokens >= sum(entry.tokens for entry in window.entries)
    assert ids(window) == sorted(ids(window))
    assert len(ids(window)) + sum(map(len, window.covers)) + window.omitted == len(pages)
