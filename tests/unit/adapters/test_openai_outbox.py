"""The queue to the model: order kept, audio bounded, commands never lost."""

import asyncio

from ivr.adapters.openai_outbox import Outbox


async def drain(outbox: Outbox, count: int) -> list[bytes]:
    return [await outbox.take() for _ in range(count)]


async def test_order_is_kept_between_commands_and_audio() -> None:
    outbox = Outbox()
    outbox.put_audio(b"a1")
    outbox.put_command(b"c1")
    outbox.put_command(b"c2")
    outbox.put_audio(b"a2")
    assert await drain(outbox, 4) == [b"a1", b"c1", b"c2", b"a2"]


async def test_too_much_audio_drops_the_oldest_audio_and_no_command() -> None:
    outbox = Outbox(max_audio_bytes=30)
    outbox.put_command(b"c1")
    for number in range(5):
        outbox.put_audio(b"%010d" % number)
    outbox.put_command(b"c2")
    assert outbox.dropped_audio == 2
    assert await drain(outbox, 5) == [b"c1", b"0000000002", b"0000000003", b"0000000004", b"c2"]


async def test_audio_that_was_taken_makes_room() -> None:
    outbox = Outbox(max_audio_bytes=20)
    for number in range(10):
        outbox.put_audio(b"%010d" % number)
        await outbox.take()
    assert outbox.dropped_audio == 0


async def test_a_waiting_reader_is_woken() -> None:
    outbox = Outbox()
    reader = asyncio.create_task(outbox.take())
    await asyncio.sleep(0)
    assert not reader.done()
    outbox.put_command(b"c")
    assert await reader == b"c"


async def test_closed_it_forgets_and_takes_nothing() -> None:
    outbox = Outbox()
    outbox.put_audio(b"a")
    outbox.put_command(b"c")
    outbox.close()
    outbox.put_audio(b"a")
    outbox.put_command(b"c")
    reader = asyncio.create_task(outbox.take())
    await asyncio.sleep(0)
    assert not reader.done()
    reader.cancel()


async def test_it_is_idle_only_while_its_reader_waits_for_a_message() -> None:
    outbox = Outbox()
    was_idle = [outbox.is_idle]  # nobody reads yet
    for _ in range(2):
        reading = asyncio.create_task(outbox.take())
        await asyncio.sleep(0)
        was_idle.append(outbox.is_idle)
        outbox.put_command(b"c")
        was_idle.append(outbox.is_idle)  # what is put now must not overtake it
        assert await reading == b"c"
        was_idle.append(outbox.is_idle)  # it is being written
    assert was_idle == [False, *[True, False, False] * 2]
