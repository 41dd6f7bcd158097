"""The paper's estimate of the speaking rate and its mapping to a speed; other units, measured voices, who decides."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivr.core.speaking import (
    ENGLISH,
    Delivery,
    SpeakingRate,
    SpeedBy,
    SpeedState,
    Unit,
    VoicePace,
    VoiceProfile,
    band_of,
    count_units,
)

PAPER = VoiceProfile(((0.8, 142.4), (1.5, 267.0)))
"""The paper's provider: s 0.8…1.5 ↔ 142.4…267.0 words a minute."""
JUMPY = VoiceProfile(
    ((0.5, 100.0), (1.0, 200.0), (1.3, 220.0), (1.31, 290.0), (1.5, 300.0)), measured_units=500
)


def words(count: int) -> str:
    return " ".join(["word"] * count)


# -- the caller's rate -----------------------------------------------------------------------------------------


def test_newest_utterances_weigh_most() -> None:
    rate = SpeakingRate("en-US")
    for count in (10, 12, 15):  # in 5 s each: 120, 144, 180 words a minute
        rate.add(words(count), 5_000)
    assert rate.estimate() == pytest.approx((1 * 120 + 2 * 144 + 3 * 180) / 6)
    assert rate.shown() == "158 words a minute"


def test_only_the_last_ten_count() -> None:
    rate = SpeakingRate("en")
    for _ in range(5):
        rate.add(words(20), 5_000)
    for _ in range(10):
        rate.add(words(10), 5_000)
    assert rate.estimate() == pytest.approx(120)
    assert len(rate.recent) == 10


@given(st.lists(st.tuples(st.integers(1, 60), st.floats(500, 20_000)), max_size=30))
def test_the_estimate_is_the_paper_s_formula(utterances: list[tuple[int, float]]) -> None:
    rate = SpeakingRate("en")
    for count, duration_ms in utterances:
        rate.add(words(count), duration_ms)
    valid = [r for n, ms in utterances if 100 <= (r := n * 60_000 / ms) <= 300][-10:]
    if not valid:
        assert rate.estimate() is None
        return
    total = sum(i * r for i, r in enumerate(valid, 1))
    assert rate.estimate() == pytest.approx(total / (len(valid) * (len(valid) + 1) / 2))


@pytest.mark.parametrize(("count", "duration_ms"), [(2, 499), (1, 1_000), (6, 1_000), (0, 1_000), (5, 0)])
def test_too_short_or_implausible_utterances_are_left_out(count: int, duration_ms: int) -> None:
    rate = SpeakingRate("en-US")
    rate.add(words(count), duration_ms)
    assert rate.estimate() is None
    assert rate.shown() == "unknown"


@pytest.mark.parametrize(("count", "duration_ms"), [(1, 600), (5, 3_000), (5, 1_000)])
def test_the_ends_of_the_english_band_belong_to_it(count: int, duration_ms: int) -> None:
    rate = SpeakingRate("en-GB")
    rate.add(words(count), duration_ms)
    assert rate.estimate() == count * 60_000 / duration_ms


# -- units and bands -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["th-TH", "ko-KR", "km", "xx", ""])
def test_a_language_without_a_known_unit_has_no_rate(language: str) -> None:
    rate = SpeakingRate(language, recent=(150.0,))
    rate.add(words(12), 5_000)
    assert rate.band is None
    assert rate.estimate() is None


def test_han_script_is_counted_in_characters() -> None:
    rate = SpeakingRate("zh-Hans-CN")
    rate.add("我想订一张明天晚上七点的桌子，两个人。", 4_000)  # 17 characters
    assert rate.estimate() == pytest.approx(17 * 60_000 / 4_000)
    assert rate.shown() == "255 characters a minute"


def test_japanese_counts_kana_and_kanji() -> None:
    band = band_of("ja-JP")
    assert band is not None
    assert (band.unit, count_units("あしたの予約をお願いします。", band)) == (Unit.CHARACTERS, 13)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en-US", "我想订一张明天晚上七点的桌子 两个人 谢谢 你 好"),
        ("en-US", "я хочу заказать столик на завтра"),
        ("en-US", "ฉันอยากจองโต๊ะ พรุ่งนี้ ครับ"),
        ("zh-CN", "I would like a table for two"),
        ("ru-RU", "I would like a table for two"),
        ("en-US", "10001 90210 01803"),
        ("en-US", "my number is 555 0134 7788"),
    ],
)
def test_what_is_not_in_the_language_s_unit_is_no_observation(language: str, text: str) -> None:
    rate = SpeakingRate(language)
    for duration_ms in (600, 1_000, 2_000, 4_000):
        rate.add(text, duration_ms)
    assert rate.estimate() is None


def test_a_few_numbers_and_names_do_no_harm() -> None:
    assert count_units("Please press 1 to mute, 4 or 6 to change the volume, or 8 to leave.", ENGLISH) == 16
    assert count_units("I'd like a table at Müller's for 12 people on the first of May.", ENGLISH) == 14
    assert count_units("Meet me at 東京 station near the big old clock at noon please", ENGLISH) == 12
    assert (
        count_units("Unless to be rather cold-hearted — and selfish – is to be ill-disposed.", ENGLISH) == 13
    )
    assert count_units("", ENGLISH) == 0
    assert count_units("... — !", ENGLISH) == 0


def test_bands_of_other_languages_are_the_english_one_in_proportion() -> None:
    chinese, german = band_of("zh"), band_of("de-AT")
    assert chinese is not None
    assert german is not None
    assert [chinese.low, chinese.high] == pytest.approx([111.8, 335.5], abs=0.1)
    assert [german.low, german.high] == pytest.approx([78.5, 235.5], abs=0.1)
    assert band_of("EN") == ENGLISH


# -- the voice ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wpm", "speed"), [(142.4, 0.8), (267.0, 1.5), (204.7, 1.15), (100, 0.8), (300, 1.5)]
)
def test_two_points_are_the_paper_s_line(wpm: float, speed: float) -> None:
    assert PAPER.speed_for(wpm) == pytest.approx(speed)


@given(st.floats(0, 1_000))
def test_speed_never_leaves_the_profile(wpm: float) -> None:
    assert 0.8 <= PAPER.speed_for(wpm) <= 1.5
    assert 0.5 <= JUMPY.speed_for(wpm) <= 1.5


@given(st.floats(100, 300))
def test_a_table_is_read_both_ways(wpm: float) -> None:
    assert JUMPY.rate_at(JUMPY.speed_for(wpm)) == pytest.approx(wpm)


def test_a_jump_in_the_table_ends_at_the_nearer_side() -> None:
    pace = VoicePace(JUMPY, ENGLISH)
    assert (pace.speed_for(230), pace.speed_for(280)) == (1.3, 1.31)


@pytest.mark.parametrize(
    "points", [(), ((1.0, 150.0),), ((1.0, 150.0), (1.0, 160.0)), ((0.8, 160.0), (1.0, 150.0))]
)
def test_a_table_has_rising_points(points: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(ValueError, match="rising"):
        VoiceProfile(points)


def test_a_voice_that_is_faster_than_its_table_is_slowed_down_by_and_by() -> None:
    """Ten per cent faster: after 200 words as the table was worth, half of it is known; in the end, all."""
    pace = VoicePace(JUMPY, ENGLISH)
    for _ in range(4):
        pace.spoke(words(50), 50 * 60_000 / 220, speed=1.0)
    assert pace.factor == pytest.approx(math.sqrt(1.1))
    for _ in range(400):
        pace.spoke(words(50), 50 * 60_000 / 220, speed=1.0)
    assert pace.factor == pytest.approx(1.1, rel=0.01)
    assert JUMPY.rate_at(pace.speed_for(165)) * 1.1 == pytest.approx(165, rel=0.01)


def test_a_table_that_nobody_measured_is_believed_until_the_first_reply() -> None:
    pace = VoicePace(PAPER, ENGLISH)
    assert pace.factor == 1.0
    pace.spoke(words(50), 50 * 60_000 / 200, speed=1.0)
    assert pace.factor == pytest.approx(200 / 178.0)


@pytest.mark.parametrize(
    ("text", "duration_ms"), [(words(19), 6_000), (words(50), 0.0), ("10001 90210 " * 30, 9_000)]
)
def test_replies_that_tell_nothing_change_nothing(text: str, duration_ms: float) -> None:
    pace = VoicePace(PAPER, ENGLISH)
    pace.spoke(text, duration_ms, speed=1.0)
    assert pace.factor == 1.0


# -- who decides -------------------------------------------------------------------------------------------------


def delivery(state: SpeedState | None = None) -> Delivery:
    return Delivery("en-US", PAPER, state or SpeedState())


def test_we_speak_as_fast_as_the_caller() -> None:
    ours = delivery()
    assert not ours.match()
    assert (ours.speed, ours.by) == (1.0, SpeedBy.DEFAULT)
    ours.rate.add(words(12), 4_000)  # 180
    assert ours.match()
    assert (ours.speed, ours.by) == (1.01, SpeedBy.MATCHED)
    assert not ours.match()


def test_what_the_caller_asked_for_stands_against_every_measurement() -> None:
    ours = delivery()
    ours.set(0.8, asked=True)
    for _ in range(10):
        ours.rate.add(words(14), 3_000)  # 280: a caller in a hurry, who wants to be spoken to slowly
        assert not ours.match()
    assert (ours.speed, ours.by) == (0.8, SpeedBy.ASKED)


def test_the_model_s_own_match_never_undoes_what_was_asked_for() -> None:
    ours = delivery()
    ours.set(1.2, asked=False)
    assert (ours.speed, ours.by) == (1.2, SpeedBy.MATCHED)
    ours.set(0.8, asked=True)
    ours.set(1.2, asked=False)
    assert (ours.speed, ours.by) == (0.8, SpeedBy.ASKED)
    ours.set(1.0, asked=True)  # asked again
    assert (ours.speed, ours.by) == (1.0, SpeedBy.ASKED)


def test_a_call_that_goes_on_begins_where_it_was() -> None:
    first = delivery()
    first.rate.add(words(12), 4_000)
    first.match()
    again = delivery(state=first.state())
    assert (again.speed, again.by, again.rate.estimate()) == (first.speed, SpeedBy.MATCHED, 180.0)
    first.set(0.7, asked=True)
    resumed = delivery(state=first.state())
    resumed.rate.add(words(14), 3_000)
    assert not resumed.match()
    assert (resumed.speed, resumed.by) == (0.7, SpeedBy.ASKED)


@pytest.mark.parametrize(
    ("language", "profile"), [("en-US", None), ("zh-CN", PAPER), ("th-TH", PAPER), ("de-DE", PAPER)]
)
def test_without_a_fitting_profile_nothing_is_inferred(language: str, profile: VoiceProfile | None) -> None:
    ours = Delivery(language, profile, SpeedState())
    for text in (words(12), "我想订一张明天晚上七点的桌子"):
        ours.rate.add(text, 4_000)
    assert ours.matching_speed() is None
    assert not ours.match()
    assert ours.speed == 1.0


def test_a_profile_of_the_language_s_own_unit_works_in_it() -> None:
    chinese = VoiceProfile(((0.8, 200.0), (1.2, 300.0)), language="zh-CN")
    ours = Delivery("zh-Hant-TW", chinese, SpeedState())
    ours.rate.add("我想订一张明天晚上七点的桌子两个人", 3_400)  # 300
    assert ours.match()
    assert ours.speed == 1.2
