"""`Call`: what it carries out, in which order, and what it leaves behind however it ends."""

import asyncio
from datetime import UTC, datetime

import pytest

from callflows.parse import parse_text
from ivr.call import CallEnd
from ivr.core import commands as do
from ivr.core import events as ev
from ivr.errors import CallTakenOver, ModelUnavailable, ModelUnsuitable, StorageUnavailable
from ivr.writing import JOURNAL_TIMEOUT_S
from memory.model import CallSnapshot, Charge, ChargeKind, Window
from tests.unit.core.call_rig import FakeModel, Rig, converted, in_frames, play, tone
from tests.unit.core.harness import clinic


def test_a_call_from_greeting_to_hanging_up() -> None:
    async def scene() -> None:
        rig = Rig()
        await rig.greet()
        await rig.ask("When do you open?")
        await rig.speak("At nine.", tone(800))
        rig.line.incoming.put_nowait(ev.LineStopped())
        assert await rig.ended() == CallEnd(do.EndReason.DROPPED)
        assert rig.model.config == rig.core.config()
        assert [type(c) for c in rig.model.sent] == [do.StartReply, do.StartReply]
        assert rig.recall.queries == ["When do you open?"]
        assert [(e.user_text, e.reply_text) for e in rig.journal.exchanges()] == [
            ("When do you open?", "At nine.")
        ]
        kinds = [type(w).__name__ for w in rig.journal.written]
        assert kinds == ["CallSnapshot", "Exchange", "CallSnapshot", "CallSnapshot", "EndReason"]
        assert [turn.turn_no for turn in rig.turns] == [1]
        assert rig.model.closed == 1

    play(scene)


def test_a_reply_is_converted_as_one_and_flushed_before_it_is_done() -> None:
    async def scene() -> None:
        rig = Rig()
        await asyncio.sleep(0.2)
        pcm, reply_id, at = tone(1_000), rig.model.asked()[0].reply_id, 0
        for size in (4_063, 1_697, 1, 2, 999, 48_000):  # cut at any byte (B002)
            rig.model.incoming.put_nowait(ev.ReplyPcm(reply_id, pcm[at : at + size]))
            at += size
        rig.model.incoming.put_nowait(ev.ReplyDone(reply_id, ev.ReplyStatus.COMPLETED))
        await asyncio.sleep(1.5)
        assert rig.line.sound() == in_frames(converted(pcm))
        rig.line.incoming.put_nowait(ev.LineStopped())
        await rig.ended()

    play(scene)


def test_b002_a_cancelled_reply_leaves_nothing_in_the_next() -> None:
    async def scene() -> None:
        rig = Rig()
        await rig.greet()
        await rig.ask("Tell me")
        heard = len(rig.line.sound())
        first = rig.model.asked()[-1].reply_id
        rig.model.incoming.put_nowait(ev.ReplyPcm(first, b"\x01"))  # half a sample: nothing audible yet
        await rig.ask("everything.", "u2")
        second = rig.model.asked()[-1].reply_id
        assert do.CancelReply(first) in rig.model.sent
        rig.model.incoming.put_nowait(ev.ReplyPcm(first, tone(500)))  # still under way when it was cancelled
        await rig.speak("All of it.", tone(300))
        assert second != first
        assert rig.line.sound()[heard:] == in_frames(converted(tone(300)))
        rig.line.incoming.put_nowait(ev.LineStopped())
        await rig.ended()

    play(scene)


def test_the_caller_s_frames_reach_the_model_at_its_rate_once_it_is_ready() -> None:
    async def scene() -> None:
        rig = Rig()
        for no in range(10):
            rig.line.incoming.put_nowait(ev.LineFrame(no + 2, no + 1, no * 20, b"\x21" * 160))
        await asyncio.sleep(0.05)
        assert rig.models[0].heard == []
        await asyncio.sleep(0.2)
        assert [len(pcm) for pcm in rig.model.heard] == [960] * 10
        rig.line.incoming.put_nowait(ev.LineFrame(13, 12, 220, b"\x21" * 160))  # one frame never came
        await asyncio.sleep(0.02)
        assert len(rig.model.heard[-1]) == 2 * 960
        rig.line.incoming.put_nowait(ev.LineStopped())
        await rig.ended()

    play(scene)


def test_storage_that_is_away_is_waited_for_and_the_order_kept() -> None:
    async def scene() -> None:
        rig = Rig()
        rig.journal.is_down = True
        await rig.greet()
        await rig.ask("When do you open?")
        await rig.speak("At nine.", tone(300))
        await asyncio.sleep(50)  # longer than the end of a call would wait
        assert rig.journal.written == []
        rig.journal.is_down = False
        rig.line.incoming.put_nowait(ev.LineStopped())
        await rig.ended()
        kinds = [type(w).__name__ for w in rig.journal.written]
        assert kinds[:3] == ["CallSnapshot", "Exchange", "CallSnapshot"]
        assert kinds[-1] == "EndReason"
        assert len(rig.journal.exchanges()) == 1

    play(scene)


def test_a_write_that_fails_once_is_written_once() -> None:
    async def scene() -> None:
        rig = Rig()
        await rig.greet()
        rig.journal.faults.extend([StorageUnavailable("x"), StorageUnavailable("x")])
        rig.line.incoming.put_nowait(ev.LineStopped())
        await rig.ended()
        assert [type(w).__name__ for w in rig.journal.written] == [
            "CallSnapshot",
            "CallSnapshot",
            "EndReason",
        ]

    play(scene)


def test_storage_that_stays_away_does_not_keep_a_call_that_is_over() -> None:
    async def scene() -> None:
        rig = Rig()
        rig.journal.is_down = True
        await rig.greet()
        rig.line.incoming.put_nowait(ev.LineStopped())
        began_ms = rig.clock.now_ms()
        assert await rig.ended() == CallEnd(do.EndReason.DROPPED)
        waited_s = (rig.clock.now_ms() - began_ms) / 1_000
        assert JOURNAL_TIMEOUT_S <= waited_s <= JOURNAL_TIMEOUT_S + 2
        assert rig.journal.written == []

    play(scene)


def test_a_call_that_was_taken_over_ends_quietly() -> None:
    async def scene() -> None:
        rig = Rig()
        rig.journal.faults.append(CallTakenOver("newer stream"))
        await rig.greet()
        assert await rig.ended() == CallEnd(None)
        assert rig.journal.written == []
        assert rig.journal.attempts == 1

    play(scene)


def test_an_unsuitable_model_is_not_tried_again() -> None:
    async def scene() -> None:
        rig = Rig(FakeModel(ModelUnsuitable("no out-of-band input")))
        end = await rig.ended()
        assert end == CallEnd(do.EndReason.FAILED, clinic().on_model_down.say_in("en-US"))
        assert len(rig.models) == 1
        assert rig.journal.written[-1] is do.EndReason.FAILED

    play(scene)


def test_b035_an_unreachable_model_is_tried_again_with_growing_waits() -> None:
    async def scene() -> None:
        rig = Rig(*(FakeModel(ModelUnavailable("refused")) for _ in range(6)))
        began_ms = rig.clock.now_ms()
        end = await rig.ended()
        assert end.reason is do.EndReason.FAILED
        assert len(rig.models) == 6
        waited_ms = rig.clock.now_ms() - began_ms
        assert 7_750 + 6 * 100 <= waited_ms <= 9_000

    play(scene)


def test_b035_a_session_that_is_lost_is_replaced_and_old_audio_dropped() -> None:
    async def scene() -> None:
        rig = Rig()
        await rig.greet()
        first = rig.model
        first.incoming.put_nowait(ev.ModelLost("1006"))
        await asyncio.sleep(1)
        assert len(rig.models) == 2
        assert first.closed == 1
        await rig.ask("When do you open?")
        await rig.speak("At nine.", tone(300))
        rig.line.incoming.put_nowait(ev.LineStopped())
        await rig.ended()
        assert [e.reply_text for e in rig.journal.exchanges()] == ["At nine."]
        assert [r.instructions.count("Say exactly") for m in rig.models for r in m.asked()] == [1, 0]

    play(scene)


def test_b034_a_session_is_changed_before_it_ends_and_the_old_one_closed() -> None:
    async def scene() -> None:
        rig = Rig(FakeModel(lifetime_ms=12_000))
        await rig.greet()
        first = rig.model
        await asyncio.sleep(11)
        assert len(rig.models) == 2
        assert first.closed >= 1
        first.incoming.put_nowait(ev.ModelLost("closed by us"))  # whatever it may still say
        await rig.ask("When do you open?")
        await rig.speak("At nine.", tone(300))
        assert len(rig.models) == 2
        rig.line.incoming.put_nowait(ev.LineStopped())
        await rig.ended()
        assert [e.reply_text for e in rig.journal.exchanges()] == ["At nine."]
        assert [r.instructions.count("Say exactly") for m in rig.models for r in m.asked()] == [1, 0]

    play(scene)


@pytest.mark.parametrize("where", ["line", "model", "write"])
def test_a_bug_closes_everything_and_is_raised(where: str) -> None:
    async def scene() -> None:
        rig = Rig()
        await rig.greet()
        bug = ZeroDivisionError("ours")
        if where == "line":
            rig.line.incoming.put_nowait(bug)
        elif where == "model":
            rig.model.incoming.put_nowait(bug)
        else:
            rig.journal.faults.append(bug)
            await rig.ask("Yes?")
            await rig.speak("Yes.", tone(100))
        with pytest.raises(ExceptionGroup) as raised:
            await rig.ended()
        assert raised.group_contains(ZeroDivisionError)

    play(scene)


def test_a_bug_in_a_tick_is_raised_by_run_and_not_by_the_pacer() -> None:
    async def scene() -> None:
        rig = Rig()
        await rig.greet()
        rig.core.receive = _broken  # type: ignore[method-assign]
        await asyncio.sleep(61)  # a reprompt falls due
        assert not rig.pacing.done()
        with pytest.raises(ExceptionGroup) as raised:
            await rig.ended()
        assert raised.group_contains(ZeroDivisionError)

    play(scene)


def _broken(event: ev.Event, now_ms: float) -> list[do.Command]:
    raise ZeroDivisionError


def test_a_recall_that_hangs_is_done_without() -> None:
    async def hang(query: str, live_items: tuple[str, ...]) -> Window:
        await asyncio.Event().wait()
        raise AssertionError

    async def scene() -> None:
        rig = Rig()
        rig.recall.answer = hang
        await rig.greet()
        await rig.ask("When do you open?")
        assert len(rig.model.asked()) == 1
        await asyncio.sleep(1.3)
        assert len(rig.model.asked()) == 2
        rig.line.incoming.put_nowait(ev.LineStopped())
        await rig.ended()

    play(scene)


def test_a_recall_that_times_out_itself_is_done_without() -> None:
    async def late(query: str, live_items: tuple[str, ...]) -> Window:
        raise TimeoutError

    async def scene() -> None:
        rig = Rig()
        rig.recall.answer = late
        await rig.greet()
        await rig.ask("When do you open?")
        assert len(rig.model.asked()) == 2
        rig.line.incoming.put_nowait(ev.LineStopped())
        await rig.ended()

    play(scene)


LINE_ENDS: list[list[ev.LineEvent]] = [
    [ev.LineStopped(), ev.LineClosed(1000)],
    [ev.LineClosed(1000)],
    [ev.LineClosed(1006)],
]


@pytest.mark.parametrize("ends", LINE_ENDS, ids=["stop-close", "close", "reset"])
def test_b036_the_model_session_is_closed_at_once_however_the_call_ends(ends: list[ev.LineEvent]) -> None:
    async def scene() -> None:
        rig = Rig()
        await rig.greet()
        await rig.ask("Tell me a long story.")
        reply_id = rig.model.asked()[-1].reply_id
        rig.model.incoming.put_nowait(ev.ReplyPcm(reply_id, tone(20_000)))
        await asyncio.sleep(1)
        for event in ends:
            rig.line.incoming.put_nowait(event)
        began_ms = rig.clock.now_ms()
        await rig.ended()
        assert rig.model.closed == 1
        assert rig.clock.now_ms() - began_ms < 2_000
        assert len(rig.journal.exchanges()) == 1

    play(scene)


def test_b036_the_model_is_closed_while_storage_is_still_waited_for() -> None:
    async def scene() -> None:
        rig = Rig()
        await rig.greet()
        rig.journal.is_down = True
        rig.line.incoming.put_nowait(ev.LineStopped())
        await asyncio.sleep(1)
        assert rig.model.closed == 1
        assert not rig.running.done()
        rig.journal.is_down = False
        await rig.ended()

    play(scene)


def test_b036_a_session_that_is_being_opened_is_closed_too() -> None:
    async def scene() -> None:
        rig = Rig()
        await asyncio.sleep(0.05)
        rig.line.incoming.put_nowait(ev.LineStopped())
        assert await rig.ended() == CallEnd(do.EndReason.DROPPED)
        assert rig.model.closed == 1

    play(scene)


def test_b104_the_line_dies_while_the_model_streams_at_full_speed() -> None:
    async def scene() -> None:
        rig = Rig()
        await rig.greet()
        await rig.ask("Tell me a long story.")
        reply_id = rig.model.asked()[-1].reply_id
        for _ in range(200):
            rig.model.incoming.put_nowait(ev.ReplyPcm(reply_id, tone(100)))
        await asyncio.sleep(0)
        rig.line.incoming.put_nowait(ev.LineClosed(1006))
        for _ in range(200):
            rig.model.incoming.put_nowait(ev.ReplyPcm(reply_id, tone(100)))
        assert await rig.ended() == CallEnd(None)
        assert do.EndReason.DROPPED not in rig.journal.written
        assert len(rig.journal.exchanges()) == 1

    play(scene)


def test_handing_over_writes_everything_and_leaves_the_call_alive() -> None:
    async def scene() -> None:
        rig = Rig()
        await rig.greet()
        rig.call.hand_over()
        assert await rig.ended() == CallEnd(None)
        assert [type(w) for w in rig.journal.written] == [CallSnapshot, CallSnapshot]

    play(scene)


def test_a_transfer_ends_with_its_target() -> None:
    async def scene() -> None:
        rig = Rig()
        await rig.greet()
        await rig.ask("The desk, please.")
        reply_id = rig.model.asked()[-1].reply_id
        rig.model.incoming.put_nowait(ev.ReplyCall(reply_id, "c1", "transfer", '{"target": "desk"}'))
        rig.model.incoming.put_nowait(ev.ReplyDone(reply_id, ev.ReplyStatus.COMPLETED))
        await asyncio.sleep(0.1)
        await rig.speak("Connecting you.", tone(500))
        assert await rig.ended() == CallEnd(do.EndReason.TRANSFERRED, target="desk")
        assert rig.journal.written[-1] is do.EndReason.TRANSFERRED

    play(scene)


def test_cancelling_run_closes_everything() -> None:
    async def scene() -> None:
        rig = Rig()
        await rig.greet()
        rig.running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await rig.ended()

    play(scene)


LOOKING = """\
id: shop
name: Shop
numbers: ["+16175550101"]
timezone: America/New_York
greeting: The Shop.
allow_hosts: [api.example.com]
emergency: [{words: [fire], say: Dial nine one one.}]
tools:
  sky: {description: x, url: "https://api.example.com/sky", result: {sky: {}}, say: One moment.}
start: look
nodes:
  look: {type: tool, tool: sky, to: told, failed: told}
  told: {type: hangup, say: "The sky is {sky}."}
"""


def test_a_tool_is_used_once_off_the_readers_however_often_it_is_asked_for() -> None:
    async def scene() -> None:
        rig = Rig(business=parse_text(LOOKING, "shop.yaml"))
        rig.tools.body = {"sky": "blue"}
        await asyncio.sleep(0.3)
        (key,) = rig.tools.used
        await rig.ask("Fire!")  # its text is said, and the tool is still awaited
        assert rig.tools.used == [key]
        await asyncio.sleep(2)
        written = [w for w in rig.journal.written if isinstance(w, CallSnapshot)]
        assert written[0].state["flow"]["using"]["key"] == key
        rig.line.incoming.put_nowait(ev.LineStopped())
        await rig.ended()

    play(scene)


def test_a_call_that_ends_does_not_wait_for_a_tool() -> None:
    async def scene() -> None:
        rig = Rig(business=parse_text(LOOKING, "shop.yaml"))
        await asyncio.sleep(0.3)
        assert len(rig.tools.used) == 1
        rig.line.incoming.put_nowait(ev.LineStopped())
        assert (await rig.ended()).reason is do.EndReason.DROPPED

    play(scene)


class OneEach:
    """A `Bill` that charges each reply, and one more at the end."""

    def __init__(self) -> None:
        self.count = 0

    def _charge(self) -> tuple[Charge, ...]:
        self.count += 1
        return (Charge(str(self.count), ChargeKind.SPEECH, "m", 0.01, datetime(2026, 11, 30, tzinfo=UTC)),)

    def event(self, event: ev.Event) -> tuple[ev.Event, tuple[Charge, ...]]:
        return event, self._charge() if isinstance(event, ev.ReplyDone) else ()

    def command(self, command: do.Command) -> None:
        pass

    def spoken(self, audio_ms: float) -> tuple[Charge, ...]:
        return self._charge()

    def close(self) -> tuple[Charge, ...]:
        return self._charge()


def test_what_was_paid_is_written_and_told() -> None:
    async def scene() -> None:
        rig = Rig(bill=OneEach())
        await rig.greet()
        rig.line.incoming.put_nowait(ev.LineStopped())
        await rig.ended()
        written = [what.charge_id for what in rig.journal.written if isinstance(what, Charge)]
        assert written == [charge.charge_id for charge in rig.charges] == ["1", "2"]

    play(scene)


def test_what_was_paid_is_written_also_after_a_newer_stream_took_the_call() -> None:
    async def scene() -> None:
        rig = Rig(bill=OneEach())
        rig.journal.void.append(CallTakenOver("newer stream"))
        await rig.greet()
        assert await rig.ended() == CallEnd(None)
        assert [type(what) for what in rig.journal.written] == [Charge, Charge]
        assert len(rig.charges) == 2

    play(scene)
