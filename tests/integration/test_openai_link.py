"""A session that is open: replies, calls, faults, and every way it ends."""

import asyncio

import pytest
from websockets.exceptions import ConnectionClosed

from ivr.core.commands import CallOutput, ForgetItem, Hear, ItemRef, SessionConfig, StartReply, UpdateSession
from ivr.core.events import (
    ModelFault,
    ModelLost,
    ModelReady,
    ReplyCall,
    ReplyDone,
    ReplyPcm,
    ReplyStatus,
    ReplyText,
    TranscriptFailed,
    TurnCommitted,
)
from ivr.errors import InternalError, ModelUnavailable
from tests.fake_realtime import SESSION_ID, Script, call_done, call_item
from tests.integration.openai_link import CONFIG, Line, fake_and_server, open_line

PCM = bytes(range(240)) * 4


async def test_b026_a_whole_turn_and_nothing_is_truncated() -> None:
    async with open_line() as line:
        line.link.hear(PCM)
        await line.session.expect("input_audio_buffer.append")
        await line.session.send("input_audio_buffer.committed", item_id="u1", previous_item_id=None)
        assert await line.next() == TurnCommitted("u1")
        line.link.send(StartReply("t1", "Answer.", (ItemRef("u1"),), ()))
        create = await line.session.expect("response.create")
        assert create["response"]["input"] == [{"type": "item_reference", "id": "u1"}]
        await line.session.created(create, "r1")
        await line.session.audio("r1", PCM)
        await line.session.send("response.output_audio_transcript.delta", response_id="r1", delta="Hi.")
        await line.session.done(create, "r1", usage={"input_tokens": 1, "output_tokens": 1})
        first, second, last = await line.take(3)
        assert (first, second) == (ReplyPcm("t1", PCM), ReplyText("t1", "Hi."))
        assert isinstance(last, ReplyDone)
        line.link.send(ForgetItem("u1"))
        assert (await line.session.expect("conversation.item.delete"))["item_id"] == "u1"
        assert set(line.session.types()) == {
            "session.update",
            "input_audio_buffer.append",
            "response.create",
            "response.cancel",
            "conversation.item.delete",
        }


async def test_b029_and_b030_calls_are_told_at_once_and_answered_as_pairs() -> None:
    async with open_line() as line:
        create = await line.start("t1")
        await line.session.created(create, "r1")
        done = "response.function_call_arguments.done"
        await line.session.send(done, **call_done("r1", "c1", "look_up", "{}"))
        assert await line.next() == ReplyCall("t1", "c1", "look_up", "{}")
        await line.session.send(done, **call_done("r1", "c2", "look_up", "[]"))
        await line.session.audio("r1", PCM)
        output = [call_item("c1", "look_up", "{}"), call_item("c2", "look_up", "[]")]
        await line.session.done(create, "r1", output=output)
        assert await line.take(3) == [
            ReplyCall("t1", "c2", "look_up", "[]"),
            ReplyPcm("t1", PCM),
            ReplyDone("t1", ReplyStatus.COMPLETED),
        ]
        assert line.session.types().count("response.create") == 2  # the probe's, and the one asked for
        answers = (CallOutput("c1", "look_up", "{}", "one"), CallOutput("c2", "look_up", "[]", "two"))
        line.link.send(StartReply("t1b", "Answer.", (ItemRef("u1"), *answers), ()))
        again = (await line.session.expect("response.create"))["response"]["input"]
        assert [item.get("call_id") for item in again] == [None, "c1", "c1", "c2", "c2"]


async def test_b032_cancelled_before_it_exists_and_the_next_is_heard() -> None:
    async with open_line() as line:
        await line.session.expect("response.cancel")  # the probe's
        first = await line.start("t1")
        await line.cancel("t1")
        second = await line.start("t2")
        reading = asyncio.create_task(line.take(2))
        await line.session.created(first, "r1")
        await line.session.audio("r1", PCM)
        assert (await line.session.expect("response.cancel"))["response_id"] == "r1"
        await line.session.done(first, "r1", "cancelled")
        await line.session.created(second, "r2")
        await line.session.audio("r2", PCM)
        assert await reading == [ReplyDone("t1", ReplyStatus.CANCELLED), ReplyPcm("t2", PCM)]


async def test_b038_the_voice_is_not_sent_again() -> None:
    async with open_line() as line:
        create = await line.start("t1")
        await line.session.created(create, "r1")
        await line.session.audio("r1", PCM)
        await line.session.done(create, "r1")
        await line.take(2)
        line.link.send(UpdateSession(SessionConfig("You are sales.", (), "cedar", "de")))
        update = await line.session.expect("session.update")
        assert update["session"]["instructions"] == "You are sales."
        assert "voice" not in update["session"]["audio"]["output"]
        assert "model" not in update["session"]
        # Had it been refused, this would come after a fault.
        await line.session.send("input_audio_buffer.committed", item_id="u1")
        assert await line.next() == TurnCommitted("u1")


async def test_a_new_speed_waits_for_the_end_of_the_reply() -> None:
    async with open_line() as line:
        create = await line.start("t1")
        line.link.send(UpdateSession(SessionConfig("", (), "marin", "en", speed=1.2)))
        assert "speed" not in (await line.session.expect("session.update"))["session"]["audio"]["output"]
        await line.session.created(create, "r1")
        await line.session.done(create, "r1")
        assert isinstance(await line.next(), ReplyDone)
        reading = asyncio.create_task(line.rest())
        assert (await line.session.expect("session.update"))["session"]["audio"]["output"]["speed"] == 1.2
        await line.link.close()
        assert await reading == []


async def test_b043_a_failed_reply_surfaces_with_its_code() -> None:
    async with open_line() as line:
        create = await line.start("t1")
        await line.session.created(create, "r1")
        error = {"type": "failed", "error": {"type": "requests", "code": "rate_limit_exceeded"}}
        await line.session.done(create, "r1", "failed", status_details=error)
        assert await line.next() == ReplyDone("t1", ReplyStatus.FAILED, "rate_limit_exceeded")


async def test_a_refused_request_surfaces_as_a_failed_reply() -> None:
    async with open_line() as line:
        create = await line.start("t1")
        await line.session.error("item_not_found", event_id=create["event_id"])
        assert await line.next() == ReplyDone("t1", ReplyStatus.FAILED, "item_not_found")


async def test_b045_a_failed_transcription_is_told_and_the_reply_comes() -> None:
    async with open_line() as line:
        kind = "conversation.item.input_audio_transcription.failed"
        await line.session.send(kind, item_id="u1", content_index=0, error={"code": "audio_unintelligible"})
        create = await line.start("t1")
        await line.session.created(create, "r1")
        await line.session.audio("r1", PCM)
        assert await line.take(2) == [TranscriptFailed("u1", "audio_unintelligible"), ReplyPcm("t1", PCM)]


async def test_b050_the_unknown_and_the_broken_do_not_end_a_session() -> None:
    async with open_line() as line:
        await line.session.send("rate_limits.updated", rate_limits=[])
        await line.session.send("foo.bar", x=1)
        for junk in ("not json", '{"event_id":"e"}', "[]", b"\x00\xff", '{"type":"response.created"}'):
            await line.session.socket.send(junk)
        await line.session.error(None, "something new")
        await line.session.error("response_cancel_not_active")
        await line.session.send("input_audio_buffer.committed", item_id="u1")
        assert await line.take(2) == [
            ModelFault("invalid_request_error", "something new"),
            TurnCommitted("u1"),
        ]


async def test_a_frame_is_heard_not_sent() -> None:
    async with open_line() as line:
        with pytest.raises(InternalError):
            line.link.send(Hear(b"\xff"))


# -- the end -------------------------------------------------------------------------------------------------


async def test_b034_an_expired_session_is_lost() -> None:
    async with open_line() as line:
        await line.session.error("session_expired", "Your session hit the maximum duration of 60 minutes.")
        await line.session.socket.close(1001)
        assert await line.rest() == [ModelLost("session_expired")]


async def test_b034_closed_with_1001_is_lost() -> None:
    async with open_line() as line:
        await line.session.socket.close(1001, "going away")
        assert await line.rest() == [ModelLost("closed by the server (1001 going away)")]


async def test_closed_for_good_is_lost_for_good() -> None:
    async with open_line() as line:
        await line.session.socket.close(4000, "beta_api_shape_disabled")
        assert await line.rest() == [
            ModelLost("closed by the server (4000 beta_api_shape_disabled)", permanent=True)
        ]


async def test_b035_a_dead_connection_is_noticed_and_a_new_link_starts_clean() -> None:
    async with open_line() as line:
        create = await line.start("t1")
        await line.session.created(create, "r1")
        await line.session.audio("r1", PCM)
        line.session.socket.transport.abort()
        assert await line.rest() == [ReplyPcm("t1", PCM), ModelLost("connection lost (1006)")]
        line.link.hear(PCM)
        line.link.send(ForgetItem("u1"))
        await line.link.close()
        line.fake.script.statuses = [503, 503]
        for _ in range(2):
            with pytest.raises(ModelUnavailable):
                await line.server.link().open(CONFIG)
        link = line.server.link()
        await link.open(CONFIG)
        session = await line.fake.session()
        link.send(ForgetItem("marker"))
        await session.expect("conversation.item.delete")
        assert session.types() == ["session.update", "conversation.item.delete"]
        await link.close()


async def test_b035_a_peer_that_stalls_is_noticed_by_its_pings() -> None:
    async with open_line() as line:
        # No TCP reset, no close frame: the peer just reads and answers nothing any more.
        line.session.socket.transport.pause_reading()
        (lost,) = await line.rest()
        assert lost == ModelLost("connection given up (1011 keepalive ping timeout)")


async def flood(line: Line) -> None:
    """Stream a long reply, faster than anyone hears it, until the connection is gone."""
    create = await line.start("t1")
    await line.session.created(create, "r1")
    while not line.session.ended.is_set():
        try:
            await line.session.audio("r1", bytes(9600))
        except ConnectionClosed:
            return


async def test_b036_closing_during_a_long_reply_ends_the_session_and_the_tasks() -> None:
    async with open_line() as line:
        flooding = asyncio.create_task(flood(line))
        assert isinstance(await line.next(), ReplyPcm)
        reading = asyncio.create_task(line.rest())
        await asyncio.sleep(0)
        await line.link.close()
        await line.session.ended.wait()
        events = await reading
        assert not any(isinstance(event, ModelLost) for event in events)
        await flooding


async def test_b036_closing_while_nobody_reads_and_the_peer_is_deaf() -> None:
    async with open_line() as line:
        flooding = asyncio.create_task(flood(line))
        assert isinstance(await line.next(), ReplyPcm)
        line.session.socket.transport.pause_reading()
        for _ in range(200):
            line.link.hear(bytes(48_000))
        await line.link.close()
        line.session.socket.transport.abort()
        await flooding


async def test_closing_twice_and_using_a_closed_link_is_quiet() -> None:
    async with open_line() as line:
        await line.link.close()
        await line.link.close()
        line.link.hear(PCM)
        line.link.send(ForgetItem("u1"))
        assert await line.rest() == []


async def test_ten_links_at_once_share_nothing() -> None:
    async with fake_and_server(Script()) as (fake, server):
        links = [server.link() for _ in range(10)]
        await asyncio.gather(*(link.open(CONFIG) for link in links))
        streams = [link.events() for link in links]
        assert [await anext(stream) for stream in streams] == [ModelReady(SESSION_ID)] * 10
        for number, link in enumerate(links):
            link.send(ForgetItem(f"item_{number}"))
        got = [(await session.expect("conversation.item.delete"))["item_id"] for session in fake.sessions]
        assert sorted(got) == [f"item_{number}" for number in range(10)]
        await asyncio.gather(*(link.close() for link in links))
