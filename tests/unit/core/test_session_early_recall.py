"""Recall begins on partial words while the caller speaks; the reply is never late because a transcript is."""

import pytest

from ivr.core import commands as do
from ivr.core import events as ev
from memory.model import Window
from tests.unit.core.harness import World, speech

WHOLE = "when do you open on Saturday morning"
HALF, REST = "when do you open", " on Saturday morning"


class Library(World):
    """Finds a window for each query, which says by its budget how many characters were asked with."""

    def _carry_out(self, command: do.Command) -> None:
        if isinstance(command, do.Recall):
            self.window = Window(budget_tokens=len(command.query))
        super()._carry_out(command)


def speaking(*parts: str, words_after_ms: float | None = 300, recall_ms: float | None = 50) -> Library:
    """A caller who speaks for 4 s; a part of what is said comes at the end of each of the first seconds."""
    world = Library(speech("At nine."))
    world.recall_ms = recall_ms
    world.greet()
    item = world.says(WHOLE, lasting_ms=4_000, words_after_ms=words_after_ms)
    for part in parts:
        world.run(1_000)
        world.happen(ev.TranscriptDelta(item, part))
    return world


def queries(world: World) -> list[str]:
    return [command.query for command in world.of(do.Recall)]


def budget(world: World) -> dict[str, float | None]:
    return world.exchanges()[-1].states["latency_ms"]  # type: ignore[no-any-return]


def used(world: World) -> int:
    """Characters of the query whose window the reply was asked with."""
    return int(world.exchanges()[-1].states["window"].get("budget_tokens", 0))


def test_without_partial_words_nothing_is_asked_early() -> None:
    world = speaking()
    world.run(9_000)
    assert queries(world) == [WHOLE]
    assert (budget(world)["transcript"], budget(world)["recall"]) == (300, 50)


def test_when_all_words_were_known_early_nothing_is_waited_for() -> None:
    world = speaking(HALF, REST)
    world.run(9_000)
    assert queries(world) == [HALF, WHOLE]
    assert (budget(world)["transcript"], budget(world)["recall"]) == (300, 0)
    assert used(world) == len(WHOLE)
    early, late = world.times(do.Recall)
    asked_at = world.times(do.StartReply)[-1]
    assert early < late < asked_at - 2_000


def test_only_the_difference_is_waited_for() -> None:
    world = speaking(HALF)
    world.run(9_000)
    assert queries(world) == [HALF, WHOLE]
    assert budget(world)["recall"] == 50
    assert used(world) == len(WHOLE)


@pytest.mark.parametrize("recall_ms", [51, 200, 5_000])
def test_what_lasts_longer_than_words_may_is_done_without(recall_ms: float) -> None:
    """Words 300 ms after the commit leave 50 ms for what they add; then what was found early serves."""
    world = speaking(HALF)
    world.run(1_000)
    world.recall_ms = recall_ms
    world.run(9_000)
    assert used(world) == len(HALF)
    assert (budget(world)["transcript"], budget(world)["recall"]) == (300, 50)


def test_a_late_transcript_makes_no_late_reply() -> None:
    world = speaking(HALF, words_after_ms=2_000)
    world.run(9_000)
    assert queries(world) == [HALF]
    assert (budget(world)["transcript"], budget(world)["recall"]) == (350, 0)
    assert used(world) == len(HALF)
    assert world.exchanges()[-1].user_text == WHOLE


def test_an_early_recall_that_is_still_under_way_is_not_asked_for_again() -> None:
    world = speaking(WHOLE, recall_ms=4_000)
    world.run(9_000)
    assert queries(world) == [WHOLE]
    assert budget(world)["recall"] == pytest.approx(1_000 + 4_000 - (4_000 + 520 + 300), abs=40)


def test_one_query_at_a_time_and_none_for_a_word_more() -> None:
    world = speaking(HALF, " on", " S", recall_ms=10)
    assert queries(world) == [HALF]
    slow = speaking(HALF, REST, recall_ms=1_500)
    assert queries(slow) == [HALF]
    slow.run(9_000)
    assert queries(slow) == [HALF, WHOLE]
    assert used(slow) == len(HALF)


def test_a_window_of_fewer_words_that_comes_while_all_of_them_are_asked_for_is_kept() -> None:
    """The early one comes after the words; that of all of them would take 5 s: there is no more time to wait."""
    world = speaking(HALF, recall_ms=3_900)
    world.run(1_000)
    world.recall_ms = 5_000
    world.run(9_000)
    assert queries(world) == [HALF, WHOLE]
    assert used(world) == len(HALF)
    assert budget(world)["recall"] == pytest.approx(1_000 + 3_900 - (4_000 + 520 + 300), abs=40)


def test_speech_that_goes_on_is_recalled_anew() -> None:
    world = speaking(HALF)
    world.run(3_000 + 560)  # closed, its words not there yet
    world.says("and on Sundays too please", lasting_ms=2_000)
    world.run(9_000)
    assert queries(world)[-1] == f"{WHOLE} and on Sundays too please"
    assert used(world) == len(queries(world)[-1])


def test_partial_words_of_noise_in_the_end_are_forgotten() -> None:
    world = Library(speech("Fine."))
    world.greet()
    item = world.says("", lasting_ms=1_000)
    world.run(500)
    world.happen(ev.TranscriptDelta(item, "thank you for watching"))
    world.run(3_000)
    world.says(WHOLE)
    world.run(9_000)
    assert used(world) == len(WHOLE)
