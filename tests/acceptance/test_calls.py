"""Whole calls: heard, answered, kept, ended, transferred, interrupted."""

import struct
from pathlib import Path

import pytest

from ivr import liveness
from ivr.phone.board import DialOutcome
from ivr.phone.record import CallRecord, EndReason, EventKind
from ivr.phone.script import AfterReply, BargeIn, DropLine, HangUp, Say
from memory.calls import CallStatus
from tests.acceptance.businesses import FRONT_DESK
from tests.acceptance.line import say, speech
from tests.acceptance.model import GREETING, calls, told, turn
from tests.acceptance.world import Act, Place, World, together, until

COUNTED = " ".join([f"w{n}" for n in range(1, 20)] + ["ZULU"])
"""Twenty words; nobody who hangs on for the first quarter hears the last."""


def verbs(record: CallRecord) -> list[str]:
    """The TwiML that was carried out, verb by verb."""
    return [event.text for event in record.of(EventKind.VERB)]


def playable_ms(world: World, path: str) -> int:
    """The length of a file that the service keeps: a WAV with µ-law, mono, 8 kHz."""
    data = (Path(world.settings.audio_url.removeprefix("file://")) / path).read_bytes()
    assert (data[:4], data[8:16]) == (b"RIFF", b"WAVEfmt ")
    assert struct.unpack_from("<HHIIHH", data, 20) == (7, 1, 8_000, 8_000, 1, 8)
    at = data.index(b"data")
    length = int.from_bytes(data[at + 4 : at + 8], "little")
    assert len(data) - at - 8 == length + length % 2
    return length // 8


async def greeted_answered_kept_and_ended(place: Place) -> None:
    script = [
        GREETING,
        turn("what does a check-up cost", "Ninety five dollars"),
        turn("thank you goodbye", "Goodbye and thank you", **calls("hang_up")),
    ]
    async with place.world(script) as world:
        # The second pause is long enough for the first exchange to be on a slow disk before it is to be recalled; a
        # reply to who is quicker has it all the same, as what was just said.
        record = await world.call(say(), say(gap_ms=2_000))
        row = await world.ended(record.call_sid)
        kept = await world.turns(record.call_sid)

        assert (record.violations, record.end) == ((), EndReason.SERVICE_HUNG_UP)
        assert verbs(record) == ["ConnectStream", "Redirect", "Hangup"]
        assert (row.status, row.epoch) == (CallStatus.FINISHED, 1)
        assert [(t.page.user_text, t.page.reply_text) for t in kept] == [
            ("what does a check-up cost", "Ninety five dollars"),
            ("thank you goodbye", "Goodbye and thank you"),
        ]
        assert world.model.own_words() == ["Alpha Dental, how can I help you?"]
        assert len(record.of(EventKind.HEARD)) == 3
        for one in kept:
            assert playable_ms(world, one.page.user_audio_path) >= 440
            assert abs(playable_ms(world, one.page.reply_audio_path) - 500) <= 40
        assert kept[1].states["window"]["page_ids"] == [kept[0].page.page_id]


async def the_farewell_is_heard_to_its_end(place: Place) -> None:
    """B017. A second of audio comes within 100 ms, with the function call: the line is closed after it was heard."""
    script = [
        GREETING,
        turn("goodbye", "So long and take care of yourself", audio_ms=1_600, **calls("hang_up")),
        turn("bye", "It was a pleasure to talk to you", audio_ms=1_600, **calls("hang_up")),
    ]
    async with place.world(script) as world:
        for record in await together(world.call(say()), world.call(say())):
            (ended,) = record.of(EventKind.STREAM_ENDED)
            assert (ended.text, ended.value) == ("closed by the service: 1000", 0)
            farewell = record.of(EventKind.HEARD)[-1]
            assert farewell.until_ms is not None
            assert farewell.until_ms - farewell.at_ms >= 1_580
            assert ended.at_ms >= farewell.until_ms
            (kept,) = await world.turns(record.call_sid)
            assert not kept.page.interrupted


async def a_transfer_that_is_taken(place: Place) -> None:
    script = [
        GREETING,
        turn(
            "a person please",
            "One moment, I am connecting you",
            900,
            **calls("transfer", target="front_desk"),
        ),
    ]
    async with place.world(script) as world:
        record = await world.call(say())
        row = await world.ended(record.call_sid)

        assert record.violations == ()
        assert verbs(record) == ["ConnectStream", "Redirect", f"Dial {FRONT_DESK}", "Hangup"]
        assert record.of(EventKind.STREAM_ENDED)[0].value == 0
        assert row.status is CallStatus.TRANSFERRED


async def a_busy_transfer_gives_the_caller_back(place: Place) -> None:
    script = [
        GREETING,
        turn("a person please", "One moment please", **calls("transfer", target="front_desk")),
        turn("then tell me your hours", "We are open until six"),
        turn("goodbye", "Goodbye", **calls("hang_up")),
    ]
    async with place.world(script) as world:
        record = await world.call(say(), say(gap_ms=3_000), say(), dial=DialOutcome("busy", 200))
        row = await world.ended(record.call_sid)

        assert record.violations == ()
        assert verbs(record)[2:4] == [f"Dial {FRONT_DESK}", "ConnectStream"]
        greeting, again = world.model.own_words()
        assert greeting == "Alpha Dental, how can I help you?"
        assert again == "I am sorry, nobody could take the call. What else can I do for you?"
        assert [said for _, said in await world.words(record.call_sid)] == [
            "One moment please",
            "We are open until six",
            "Goodbye",
        ]
        assert (row.status, row.epoch) == (CallStatus.FINISHED, 3)  # back from the dial is one of them


async def a_barge_in(place: Place) -> None:
    """B011, B048. One reply is complete at the provider when the caller speaks, the other still comes (B012)."""
    script = [
        GREETING,
        turn("tell me everything", COUNTED, audio_ms=6_000),
        turn("tell me all of it", COUNTED, audio_ms=6_000, pace_ms=190),
        turn("stop please", "All right then"),
        turn("hold on", "As you wish"),
    ]
    steps = (say(), Say(speech(1_000), "stop", BargeIn(700)), HangUp(AfterReply(400)))
    async with place.world(script) as world:
        for record in await together(world.call(*steps), world.call(*steps)):
            await world.ended(record.call_sid)
            assert record.violations == ()
            (clear,) = record.of(EventKind.CLEAR)
            stop = record.of(EventKind.SAID)[1]
            assert stop.at_ms <= clear.at_ms <= stop.at_ms + 900
            heard = record.of(EventKind.HEARD)
            assert len(heard) == 3
            assert heard[1].until_ms is not None
            assert heard[1].until_ms <= clear.at_ms + 40
            cut, last = await world.turns(record.call_sid)
            assert cut.page.interrupted
            words = cut.page.reply_text.split()
            assert words == COUNTED.split()[: len(words)]
            assert 1 <= len(words) <= 9
            assert last.page.reply_text in ("All right then", "As you wish")
        assert all("ZULU" not in told(question) for question in world.model.questions)
        await world.run_jobs()
        assert world.rows("SELECT count(*) FROM pages WHERE summary LIKE '%ZULU%'") == [(0,)]
        assert world.rows("SELECT count(*) FROM pages WHERE summary = ''") == [(0,)]


async def a_drop(place: Place) -> None:
    script = [
        GREETING,
        turn("hello there", "Good morning to you"),
        turn("tell me everything", COUNTED, audio_ms=6_000),
    ]
    async with place.world(script) as world:
        record = await world.call(say(), say(), DropLine(BargeIn(900)))
        await _both_turns(world, record.call_sid)
        first, cut = await world.turns(record.call_sid)

        assert (first.page.reply_text, first.page.interrupted) == ("Good morning to you", False)
        words = cut.page.reply_text.split()
        assert cut.page.interrupted
        assert words == COUNTED.split()[: len(words)]
        assert 1 <= len(words) <= 8
        await world.ended(record.call_sid)
        assert place.rows("SELECT status, count(*) FROM calls GROUP BY status") == [("dropped", 1)]


async def _both_turns(world: World, call_sid: str) -> None:
    async def kept() -> bool:
        return len(await world.turns(call_sid)) == 2

    await until(kept)


async def test_b017_b059_b061_calls_end_as_they_should(act: Act) -> None:
    await act(
        greeted_answered_kept_and_ended,
        the_farewell_is_heard_to_its_end,
        a_transfer_that_is_taken,
        a_busy_transfer_gives_the_caller_back,
    )


async def test_b011_b012_b048_b090_what_was_heard_is_what_was_said(
    act: Act, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "GONE_AFTER_S", 1.0)
    await act(a_barge_in, a_drop)
