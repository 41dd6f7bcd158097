"""We speak as fast as the caller, unless they asked for a speed; and where the time of a turn went."""

import json

import pytest

from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.setup import restore
from ivr.core.speaking import SpeedBy, SpeedState, VoiceProfile
from memory.model import CallSnapshot
from tests.unit.core.harness import FAILED, Answer, World, calling, clinic, speech

VOICE = VoiceProfile(((0.5, 100.0), (1.5, 300.0)), measured_units=1_000)
"""200 words a minute at its own speed."""
FAST = "one two three four five six seven eight"
SLOWER = ("set_response_speed", '{"speed": 0.7}')
MATCHING = ("set_response_speed", '{"speed": 1.2, "asked": false}')


def spoken_to(*answers: Answer, mode: str = "joint", **world_is: object) -> World:
    business = clinic("start: main", f"orchestration: {mode}\nstart: main")
    world = World(*answers, business=business, voice=VOICE, **world_is)  # type: ignore[arg-type]
    world.greet()
    return world


def says(world: World, words: str, lasting_ms: float = 2_000) -> None:
    world.says(words, lasting_ms=lasting_ms)
    world.run(8_000)


def speeds(world: World) -> list[float]:
    return [command.config.speed for command in world.of(do.UpdateSession)]


def state_of(reply: do.StartReply) -> str:
    return str(reply.input[-1])


def snapshot(world: World) -> CallSnapshot:
    return world.of(do.SaveSnapshot)[-1].snapshot


@pytest.mark.parametrize("mode", ["local", "joint"])
def test_the_first_answer_is_as_fast_as_the_caller(mode: str) -> None:
    world = spoken_to(speech("At nine."), mode=mode)
    says(world, FAST)  # 240 words a minute
    (speed,) = speeds(world)
    assert speed == pytest.approx(1.2, abs=0.03)
    kinds = [type(c) for _, c in world.sent if isinstance(c, do.UpdateSession | do.StartReply)]
    assert kinds == [do.StartReply, do.UpdateSession, do.StartReply]  # the greeting; then speed before answer
    assert f"speed={speed:g} (matched)" in state_of(world.asked()[0])
    assert restore(snapshot(world)).speed.by is SpeedBy.MATCHED


def test_a_caller_who_slows_down_is_followed() -> None:
    world = spoken_to(speech("At nine."), speech("At five."))
    says(world, FAST)
    says(world, "and when do you", 2_000)  # 120
    fast, slower = speeds(world)
    assert fast == pytest.approx(1.2, abs=0.03)
    assert slower == pytest.approx((240 + 2 * 120) / 3 / 200, abs=0.03)


def test_off_matches_nothing() -> None:
    world = spoken_to(speech("At nine."), mode="off")
    says(world, FAST)
    assert speeds(world) == []
    assert "speed=1 (default)" in state_of(world.asked()[0])


def test_the_model_is_told_what_would_match_and_decides() -> None:
    world = spoken_to(calling(MATCHING), speech("At nine."), mode="model")
    says(world, FAST)
    assert speeds(world) == [1.2]
    first, second = world.asked()
    suggested = float(state_of(first).partition("which speed ")[2].split()[0])
    assert suggested == pytest.approx(1.2, abs=0.03)
    assert "speed=1.2 (matched)" in state_of(second)


def test_asked_for_slower_while_speaking_fast() -> None:
    world = spoken_to(calling(SLOWER), speech("Of course."), speech("At nine."))
    says(world, f"please speak slower {FAST}", 2_500)
    says(world, FAST)
    assert speeds(world)[-1] == 0.7
    assert "speed=0.7 (asked)" in state_of(world.asked()[-1])
    assert snapshot(world).state["speed_by"] == "asked"


@pytest.mark.parametrize("asked", [{"asked": "yes"}, {"asked": 1}, {"asked": None}])
def test_who_asked_is_a_yes_or_a_no(asked: dict[str, object]) -> None:
    world = spoken_to(calling(("set_response_speed", json.dumps({"speed": 0.7, **asked}))), mode="off")
    says(world, FAST)
    (output,) = (i for i in world.asked()[1].input if isinstance(i, do.CallOutput))
    assert "bad_type" in output.output
    assert speeds(world) == []


def test_what_was_asked_for_holds_in_the_call_that_resumes() -> None:
    before = spoken_to(calling(SLOWER), speech("Of course."))
    says(before, "please speak slower")
    stored = CallSnapshot(1, json.loads(json.dumps(snapshot(before).state)))
    restored = restore(stored).speed
    assert (restored.speed, restored.by) == (0.7, SpeedBy.ASKED)
    after = spoken_to(speech("At nine."), resumed=True, speed=restored)
    assert after.core.config().speed == 0.7
    says(after, FAST)
    assert speeds(after) == []
    assert "speed=0.7 (asked)" in state_of(after.asked()[0])


def test_a_stream_that_goes_on_knows_how_fast_the_caller_speaks() -> None:
    before = spoken_to(speech("At nine."))
    says(before, FAST)
    restored = restore(snapshot(before)).speed
    after = spoken_to(speech("At five."), speed=restored)
    says(after, "and when do you", 2_000)
    first = state_of(after.asked()[0])
    assert int(first.partition("speaking rate: ")[2].split()[0]) == pytest.approx(160, abs=3)


@pytest.mark.parametrize(
    ("state", "speed"),
    [
        ({}, SpeedState()),
        ({"speed": 1.0}, SpeedState()),
        ({"speed": 0.8}, SpeedState(0.8, SpeedBy.ASKED)),  # stored before it was said who had set it
        ({"speed": 0.8, "speed_by": "a later code's"}, SpeedState(0.8, SpeedBy.DEFAULT)),
        (
            {"speed": 1.1, "speed_by": "matched", "rates": [180, 170.5]},
            SpeedState(1.1, SpeedBy.MATCHED, (180.0, 170.5)),
        ),
    ],
)
def test_snapshots_of_other_versions_are_read(state: dict[str, object], speed: SpeedState) -> None:
    assert restore(CallSnapshot(1, state)).speed == speed


def test_a_voice_faster_than_its_table_is_corrected_by_what_it_spoke() -> None:
    """The table says 200 at 1.0; the greeting, 30 words in 6 s, says 300: the next reply is asked for slower."""
    greeting = " ".join(["welcome"] * 30)
    business = clinic("Hello, this is the clinic. How can I help?", greeting)
    unmeasured = VoiceProfile(VOICE.points)
    world = World(speech("At nine."), business=business, voice=unmeasured)
    world.own_words_ms = 6_000
    world.run(8_000)
    says(world, FAST)  # 240: by the table 1.2, as heard 0.8
    assert speeds(world) == [pytest.approx(0.8, abs=0.03)]


def test_a_reply_that_was_broken_off_tells_nothing_of_the_voice() -> None:
    world = spoken_to(Answer(" ".join(["long"] * 60), 4_000, done_ms=None), speech("Fine."))
    says(world, FAST, 2_000)
    says(world, FAST, 2_000)
    assert speeds(world) == [pytest.approx(1.2, abs=0.03)]


# -- the latency budget ------------------------------------------------------------------------------------------


def budget(world: World) -> dict[str, float | None]:
    return world.exchanges()[-1].states["latency_ms"]  # type: ignore[no-any-return]


def test_the_stages_of_a_turn_add_up_to_its_delay() -> None:
    world = spoken_to(speech("At nine."))
    world.recall_ms = 80
    says(world, FAST)
    stages = budget(world)
    assert stages == {
        "vad": pytest.approx(500, abs=1),
        "transcript": 300,
        "recall": 80,
        "decision": 0,
        "first_audio": 200,
        "total": pytest.approx(1_080, abs=1),
    }
    exchange = world.exchanges()[-1]
    assert exchange.states["first_audio_ms"] == stages["total"]
    (report,) = world.of(do.ReportTurn)
    assert report.latency.total == stages["total"]


@pytest.mark.parametrize(
    ("first", "took_ms"), [(calling(SLOWER), 400), (calling(("defer_response", "{}")), 1_900)]
)
def test_function_calls_and_deferrals_are_decisions(first: Answer, took_ms: float) -> None:
    world = spoken_to(first, speech("At nine."))
    says(world, FAST)
    stages = budget(world)
    assert stages["decision"] == pytest.approx(took_ms, abs=1)
    assert stages["first_audio"] == 200


def test_so_is_a_failure_with_the_filler_that_is_heard_after_it() -> None:
    world = spoken_to(FAILED, speech("At nine."))
    says(world, FAST)
    stages = budget(world)
    failed_ms, filler_ms = 400, 200 + world.own_words_ms
    assert stages["decision"] == pytest.approx(failed_ms + filler_ms, abs=50)
    assert stages["first_audio"] == 200


def test_what_was_waited_for_in_vain_counts() -> None:
    world = spoken_to(speech("At nine."))
    world.recall_ms = None
    world.says(FAST, words_after_ms=None)
    world.run(15_000)
    stages = budget(world)
    assert (stages["transcript"], stages["recall"]) == (350, 1_500)


def test_of_a_turn_without_an_answer_only_what_is_known_is_kept() -> None:
    world = spoken_to()
    world.says(FAST, words_after_ms=None)
    world.run(1_650)
    world.happen(ev.LineStopped())
    world.run(3_000)
    stages = budget(world)
    assert stages["vad"] == pytest.approx(500, abs=1)
    assert (stages["first_audio"], stages["total"]) == (None, None)
