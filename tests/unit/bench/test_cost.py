"""What a turn costs, by hand; lengths, shares and goals on small figures."""

import json

import msgspec
import pytest

from ivr.bench.cost import Assumptions, Row, Shape, Tokens, Usd, slope_share_per_h, summaries_usd, turn_usd
from ivr.bench.cost_command import as_csv, as_json, as_svg, goals_of
from ivr.bench.cost_run import Equal, Growth, Plan, joined, said_min
from ivr.bench.cost_talk import made_up
from memory.strategies import StrategyName

SHAPE = Shape(user_s=10.0, user_words=25, reply_words=25)
GIVEN = Assumptions("gpt-realtime-2.1", prefix_tokens=1_000, second_share=0.0, retry_share=0.0)


def price(cached: float = 0.0, given: Assumptions = GIVEN) -> Usd:
    history = Tokens(text=1_500.0, audio=200.0)
    return turn_usd(StrategyName.FULL, history, SHAPE, given, budget_tokens=1_500, cached_share=cached)


def test_a_turns_input_is_prefix_history_and_the_turn_itself() -> None:
    """2,500 text × $4 + 200 audio × $32 + 99.8 audio of the turn × $32, a million."""
    assert price().input == pytest.approx((10_000 + 6_400 + 3_193.6) / 1e6)


def test_a_reply_is_audio_at_twenty_tokens_a_second_and_its_words() -> None:
    """25 words take 10 s: 200 × $64 + 34 × $24, a million; 10 s of transcription at $0.017 a minute."""
    assert price().output == pytest.approx((12_800 + 816) / 1e6)
    assert price().transcription == pytest.approx(0.017 / 6)


def test_only_what_was_there_before_can_be_cached() -> None:
    """All but the turn at $0.40."""
    assert price(1.0).input == pytest.approx((2_700 * 0.4 + 3_193.6) / 1e6)
    assert price(0.5).input == pytest.approx((price(0.0).input + price(1.0).input) / 2)


def test_a_second_response_pays_the_input_twice_and_a_retry_half_a_reply_too() -> None:
    usd = price(given=Assumptions("gpt-realtime-2.1", prefix_tokens=1_000, second_share=0.5, retry_share=0.1))
    call = 40 * 24 / 1e6
    assert usd.seconds_and_retries == pytest.approx(
        0.5 * (usd.input + call) + 0.1 * (usd.input + usd.output / 2)
    )
    assert usd.total == pytest.approx(
        usd.input + usd.output + usd.transcription + usd.summaries + usd.seconds_and_retries
    )


def test_who_searches_by_likeness_makes_no_summaries() -> None:
    history = Tokens(1_500.0, 0.0)
    usd = {
        str(name): summaries_usd(name, SHAPE, "gpt-5.4-mini", 1_500, history, threads_a_page=1.5)
        for name in StrategyName
    }
    assert usd["page-rag"] == usd["hybrid-rag"] == usd["full"] == 0.0
    assert 0.0 < usd["hierarchical"] < usd["compaction"] < usd["vthreads"] < 0.005


def row(minutes: float, usd: float, cached: float = 0.0, tokens: float = 1_400.0) -> Row:
    forms = {"audio": 2.0, "transcript": 20.0, "summary": 3.0, "omitted": 1.0}
    return Row(minutes, usd, cached, tokens, 0.9, 0.8, forms, 1_500, False, Usd(usd, 0.0, 0.0, 0.0, 0.0))


def test_the_slope_is_of_the_hours_after_the_window_is_full() -> None:
    rows = [row(1, 0.01), row(60, 0.02), row(120, 0.02), row(660, 0.022)]
    assert slope_share_per_h(rows, 60) == pytest.approx(0.01)
    assert slope_share_per_h(rows[:1], 60) is None


def growth() -> Growth:
    ours = [row(1, 0.02, tokens=300.0), row(58, 0.03), row(598, 0.03)]
    full = [row(58, 0.9), row(58, 0.1, cached=1.0)]
    equal = {
        "vthreads": [Equal(58.0, 0.8, 0.03, 1_500, 0.8)],
        "page-rag": [Equal(58.0, 0.8, 0.05, 4_000, 0.81)],
        "hierarchical": [Equal(58.0, 0.8, None, None, 0.1)],
    }
    return Growth({"vthreads": ours, "full": full}, equal, {58.0: 40}, made_up_from_min=100.0)


def test_goals_are_told_as_measured() -> None:
    goals = goals_of(growth())
    assert (goals.slope_share_per_h, goals.window_full_from_min) == (0.0, 58)
    assert goals.times_below_full_at_58_min == 30.0
    assert goals.cheapest_at_equal_quality == {"58": "vthreads"}


def test_reports_hold_every_row() -> None:
    made = growth()
    read = json.loads(msgspec.json.encode(as_json(made, goals_of(made), Plan())))
    assert {"history_min", "usd_per_turn", "cached_share", "tokens", "hit", "verbatim", "forms"} <= set(
        read["strategies"]["vthreads"][0]
    )
    assert [one["cached_share"] for one in read["strategies"]["full"]] == [0.0, 1.0]
    assert read["equal_quality"]["hierarchical"][0]["usd_per_turn"] is None
    assert len(as_csv(made.rows).splitlines()) == 6
    assert as_svg(made.rows).count("<polyline") == 3


def test_made_up_talk_asks_for_facts_that_it_told_once() -> None:
    talk = made_up(300, 1, "made")
    assert talk == made_up(300, 1, "made")
    assert len({question.text for question in talk.questions}) == len(talk.questions) == 300
    assert all(question.evidence[0] in talk.turns() for question in talk.questions)


def test_dialogues_are_one_past_and_what_is_missing_is_made_up() -> None:
    first, second = made_up(20, 1, "a"), made_up(20, 2, "b")
    told = sum(said_min(page) for one in (first, second) for page in one.pages)
    talk = joined([first, second], told + 5)
    assert talk.made_up_from_min == pytest.approx(told)
    assert sum(map(said_min, talk.dialogue.pages)) >= told + 5
    page_of = talk.dialogue.page_of()
    assert [page_of[one.evidence[0]] for one in talk.dialogue.questions[:40]] == list(range(40))
    sessions = [page.session for page in talk.dialogue.pages]
    assert sessions == sorted(sessions)
    assert joined([first, second], told / 2).made_up_from_min is None
