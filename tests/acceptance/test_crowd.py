"""Many calls: at once, one after the other, broken off at full speed; places are given back, nothing is left over."""

import asyncio
import gc
from collections.abc import Awaitable

import psutil
import pytest

from ivr import liveness
from ivr.phone.machine import Caller
from ivr.phone.record import CallRecord, EndReason, EventKind
from ivr.phone.script import AfterReply, At, BargeIn, BreakStream, DropLine, HangUp
from tests.acceptance.businesses import BEN, DENTAL, PLUMBING
from tests.acceptance.line import heard_pitches_hz, say
from tests.acceptance.model import GREETING, told, turn
from tests.acceptance.world import Act, Place, together, until


def caller(number: int) -> Caller:
    """One of many."""
    return Caller(f"+120255501{number:02d}")


async def twelve_calls_at_once(place: Place) -> None:
    """Each caller says a word of their own and hears a tone of their own."""
    script = [
        GREETING | {"speech": {"hz": 350}},
        *(turn(f"word{n}", f"echo{n}", speech={"hz": 600 + 200 * n}) for n in range(12)),
    ]
    async with place.world(script) as world:
        records = await together(
            *(
                world.call(
                    say(gap_ms=350 + 40 * n),
                    HangUp(AfterReply(400)),
                    caller=caller(n),
                    to=PLUMBING if n % 2 else DENTAL,
                )
                for n in range(12)
            )
        )
        seen = set()
        for n, record in enumerate(records):
            row = await world.ended(record.call_sid)
            assert (row.business_id, row.caller) == ("beta" if n % 2 else "alpha", caller(n).number)
            assert record.violations == ()
            ((heard, said),) = await world.words(record.call_sid)
            mark = heard.removeprefix("word")
            assert said == f"echo{mark}"
            greeting_hz, reply_hz = heard_pitches_hz(record)
            assert abs(greeting_hz - 350) < 20
            assert abs(reply_hz - (600 + 200 * int(mark))) < 20
            (question,) = [q for q in world.model.answered() if any(li.text == heard for li in q.lines)]
            name = "Beta Plumbing" if n % 2 else "Alpha Dental"
            assert name in question.instructions
            assert sum(f"word{k}" in told(question).split() for k in range(12)) == 1
            seen.add(mark)
        assert len(seen) == 12


async def a_place_is_free_after_each_kind_of_end(place: Place) -> None:
    """With room for one call: while it lasts a second caller hears a sentence, afterwards they are answered."""
    script = [
        GREETING,
        turn("one", "Good morning", 2_000),
        turn("four", "Oh dear", 600, abort=True, after_ms=300),
        *[turn("five", "", audio_ms=0, fail="server_error")] * 3,
    ]
    async with place.world(script, IVR_MAX_CALLS="1") as world:
        first, refused = await together(
            world.call(say(), HangUp(BargeIn(300))), _after(0.8, world.call(caller=BEN, to=PLUMBING))
        )
        assert first.end is EndReason.CALLER_HUNG_UP
        assert [event.text for event in refused.of(EventKind.VERB)] == ["Say", "Hangup"]
        assert "busy" in refused.of(EventKind.PROMPT)[0].text
        for steps in (
            (say(), DropLine(BargeIn(100))),  # the model breaks off, then the line
            (say(),),  # the model is gone for good
            (HangUp(At(0)),),  # before a stream
            (BreakStream(AfterReply(300)), HangUp(AfterReply(300))),
        ):
            record = await world.call(*steps, caller=BEN)
            assert record.violations == (), steps
            verbs = [event.text for event in record.of(EventKind.VERB)]
            assert verbs[:1] in (["ConnectStream"], []), steps
            await until(world.worker.is_idle)
        assert (await world.worker.readiness())[0] == 200


async def _after(delay_s: float, work: Awaitable[CallRecord]) -> CallRecord:
    await asyncio.sleep(delay_s)
    return await work


async def fifty_resets_while_audio_streams(place: Place) -> None:
    """The greeting is long and comes at once: each line breaks while it plays, at another moment."""
    script = [{"start": True, "repeat": True, "say": "Hello there", "audio_ms": 20_000}]
    async with place.world(script, IVR_MAX_CALLS="60") as world:
        records: list[CallRecord] = []
        for start in range(0, 50, 10):
            records += await together(
                *(
                    world.call(DropLine(BargeIn(40 * (n % 10))), caller=caller(n))
                    for n in range(start, start + 10)
                )
            )
        assert [record.end for record in records] == [EndReason.LINE_DROPPED] * 50
        assert all(record.violations == () for record in records)
        await until(lambda: world.model.open_sessions == 0)
        statuses = "SELECT status, count(*), count(DISTINCT call_sid) FROM calls GROUP BY status"
        await until(lambda: place.rows(statuses) == [("dropped", 50, 50)])


async def short_calls_leave_nothing_behind(place: Place) -> None:
    script = [GREETING | {"audio_ms": 100}, turn("hi", "Hello", 150, repeat=True)]
    async with place.world(script) as world:

        async def some_calls(first: int) -> None:
            for record in await together(
                *(
                    world.call(say(gap_ms=300), HangUp(AfterReply(300)), caller=caller(first + n))
                    for n in range(12)
                )
            ):
                await world.ended(record.call_sid)

        await some_calls(0)
        await until(lambda: world.model.open_sessions == 0)
        tasks, sockets = _left_over()
        await some_calls(12)
        await world.run_jobs()
        await until(lambda: _left_over()[0] <= tasks)
        # The database's two pools may have grown; a socket left by each call would be two dozen (both ends are here).
        await until(lambda: _left_over()[1] <= sockets + 15)
        done = world.rows("SELECT status::text, count(*) FROM procrastinate_jobs GROUP BY status")
        assert [status for status, _ in done] == ["succeeded"]
        assert world.rows("SELECT count(*) FROM pages WHERE summary <> ''") == [(24,)]


async def test_b100_b105_places_are_given_back_and_calls_keep_to_themselves(act: Act) -> None:
    await act(twelve_calls_at_once, a_place_is_free_after_each_kind_of_end)


async def test_b104_fifty_resets(act: Act, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "GONE_AFTER_S", 0.5)
    await act(fifty_resets_while_audio_streams)


async def test_b107_nothing_is_left_over(act: Act) -> None:
    await act(short_calls_leave_nothing_behind)


def _left_over() -> tuple[int, int]:
    """Tasks and sockets that there are now."""
    gc.collect()
    return len(asyncio.all_tasks()), len(psutil.Process().net_connections("all"))
