"""Whole calls of a line: from our stream into it, what is heard there, and out of it again."""

import wave
from pathlib import Path

import numpy as np

from ivr.phone.board import LineOutcome
from ivr.phone.record import EndReason, EventKind
from ivr.phone.script import AfterReply, Dtmf, HangUp
from memory.calls import CallStatus
from tests.acceptance.businesses import Json
from tests.acceptance.line import heard_pitches_hz
from tests.acceptance.model import GREETING
from tests.acceptance.world import Act, Place

TWO_MS = 5_000
"""Greeting and menu: a silence that is longer than what lies between them."""
LINE: Json = {
    "start": "menu",
    "nodes": {
        "menu": {"type": "menu", "say": "Press one.", "options": {"1": {"to": "line"}}},
        "line": {
            "type": "queue",
            "say": "Into the line.",
            "hold": "Please hold, or press one.",
            "music": "hold.wav",
            "every_s": 10,
            "leave": "1",
            "left": "menu",
            "max_waiting": 2,
            "otherwise": "bye",
        },
        "bye": {"type": "hangup", "say": "Nobody was free. Goodbye."},
    },
}


def music(folder: Path) -> None:
    """A tone of 600 Hz beside the flow files."""
    folder.mkdir(parents=True, exist_ok=True)
    samples = (8_000 * np.sin(2 * np.pi * 600 * np.arange(8_000) / 8_000)).astype("<i2")
    with wave.open(str(folder / "hold.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8_000)
        file.writeframes(samples.tobytes())


async def somebody_takes_the_call(place: Place) -> None:
    """The caller hears the text and the business's music, is taken out, talks, and the call is over."""
    music(place.folder / "flows")
    async with place.world([GREETING], flows={"alpha": LINE}) as world:
        taken = LineOutcome(position=2, taken_after_ms=3_000, talk_ms=500)
        record = await world.call(Dtmf("1", AfterReply(TWO_MS)), in_line=taken)
        row = await world.ended(record.call_sid)
        assert (record.violations, record.end) == ((), EndReason.SERVICE_HUNG_UP)
        assert row.status is CallStatus.TRANSFERRED
        prompts = [event.text for event in record.of(EventKind.PROMPT)]
        assert prompts == ["Please hold, or press one. You are number 2 in the line."]
        assert any(abs(pitch - 600) < 15 for pitch in heard_pitches_hz(record))


async def who_presses_the_key_is_back_in_the_talk(place: Place) -> None:
    music(place.folder / "flows")
    async with place.world([GREETING], flows={"alpha": LINE}) as world:
        steps = (Dtmf("1", AfterReply(TWO_MS)), Dtmf("1", AfterReply(700)), HangUp(AfterReply(TWO_MS)))
        record = await world.call(*steps)
        row = await world.ended(record.call_sid)
        assert record.violations == ()
        assert row.status is CallStatus.DROPPED
        assert [e.text for e in record.of(EventKind.VERB)].count("Leave") == 1
        assert world.model.own_words()[-1] == "Press one."


async def a_full_line_is_told_and_left_at_once(place: Place) -> None:
    music(place.folder / "flows")
    async with place.world([GREETING], flows={"alpha": LINE}) as world:
        record = await world.call(Dtmf("1", AfterReply(TWO_MS)), in_line=LineOutcome(position=3))
        row = await world.ended(record.call_sid)
        assert (record.violations, record.end) == ((), EndReason.SERVICE_HUNG_UP)
        assert row.status is CallStatus.FINISHED
        said = [event.text for event in record.of(EventKind.PROMPT)]
        assert said == ["I am sorry, nobody could take the call. Nobody was free. Goodbye."]


async def test_whole_calls_into_a_line_and_out_of_it(act: Act) -> None:
    await act(
        somebody_takes_the_call,
        who_presses_the_key_is_back_in_the_talk,
        a_full_line_is_told_and_left_at_once,
    )
