"""Several workers behind one address, and one that stops while calls run."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ivr.phone.machine import Caller
from ivr.phone.record import CallEvent, EndReason, EventKind
from ivr.phone.service import Service
from memory.calls import CallStatus
from tests.acceptance.businesses import ANN, BEN, TOKEN
from tests.acceptance.line import arrival, say, webhook
from tests.acceptance.model import GREETING, calls, turn
from tests.acceptance.world import Act, Balancer, Json, Place, Worker, World, together, until, worker


@asynccontextmanager
async def two_workers(place: Place, script: list[Json]) -> AsyncIterator[tuple[World, Worker, Balancer]]:
    """A world whose calls go through a balancer, and a second worker on the same database."""
    async with (
        Balancer().serving() as balancer,
        place.world(script, IVR_PUBLIC_URL=balancer.url) as world,
        worker(world.settings) as second,
    ):
        world.public_url = balancer.url
        yield world, second, balancer


async def webhooks_at_one_streams_at_the_other(place: Place) -> None:
    script = [GREETING, turn("bye", "Goodbye", 300, repeat=True, **calls("hang_up"))]
    async with two_workers(place, script) as (world, second, balancer):
        balancer.route = lambda line: second if "/twilio/media" in line else world.worker
        records = await together(*(world.call(say(), caller=Caller(f"+120255501{n:02d}")) for n in range(10)))
        for record in records:
            assert (record.violations, record.end) == ((), EndReason.SERVICE_HUNG_UP)
            assert (await world.row(record.call_sid)).status is CallStatus.FINISHED
            assert await world.words(record.call_sid) == [("bye", "Goodbye")]
        assert await second.metric("calls_started_total") == 10
        assert await world.worker.metric("calls_started_total") == 0


async def one_stops_and_hands_its_calls_over(place: Place) -> None:
    """Both are in the middle of a reply, which they hear to its end. New callers hear a sentence."""
    script = [
        GREETING,
        turn("first", "A long answer to the question", 1_500),
        turn("second", "Another long answer", 1_500),
        turn("goodbye", "Goodbye", **calls("hang_up")),
        turn("bye", "Bye bye", **calls("hang_up")),
    ]
    async with two_workers(place, script) as (world, second, balancer):
        first = world.worker
        balancer.route = lambda _: first
        talking = asyncio.Event()

        def on_event(event: CallEvent) -> None:
            if event.kind is EventKind.SAID:
                talking.set()

        # Asked on a connection that was kept open, the first worker has the caller wait two seconds (B059). What is
        # said meanwhile nobody hears; so this caller waits well beyond it, and until we have spoken again.
        steps = (say(), say(gap_ms=6_000))
        running = asyncio.gather(
            world.call(*steps, caller=ANN, on_event=on_event), world.call(*steps, caller=BEN)
        )
        await talking.wait()
        await until(lambda: len(world.model.answered()) == 2)
        balancer.route = lambda _: second
        first.drain()
        status, body = await first.readiness()
        assert (status, body["draining"]) == (503, True)
        _, twiml = await webhook(Service(first.url, TOKEN, balancer.url), "/twilio/voice", arrival("CA1"))
        assert "<Say" in twiml
        assert "<Connect" not in twiml

        for record in await running:
            assert (record.violations, record.end) == ((), EndReason.SERVICE_HUNG_UP)
            assert [event.text for event in record.of(EventKind.STREAM_ENDED)] == [
                "closed by the service: 1000",
                "closed by the service: 1000",
            ]
            row, turns = await world.ended(record.call_sid), await world.turns(record.call_sid)
            assert (row.status, row.epoch) == (CallStatus.FINISHED, 2)
            assert [t.page.exchange_no for t in turns] == [1, 2]
            assert not turns[0].page.interrupted
            assert turns[1].states["window"]["page_ids"] == [turns[0].page.page_id]
        assert world.model.own_words().count("Alpha Dental, how can I help you?") == 2
        assert await second.metric("calls_started_total") == 2


async def one_that_is_alone_lets_its_calls_go_on(place: Place) -> None:
    """Nobody could take them over, so nobody is cut off: the call ends as if nothing were."""
    script = [
        GREETING,
        turn("first", "An answer to the question", 600),
        turn("goodbye", "Goodbye", **calls("hang_up")),
    ]
    async with place.world(script, IVR_DRAIN_S="60") as world:
        talking = asyncio.Event()

        def on_event(event: CallEvent) -> None:
            if event.kind is EventKind.SAID:
                talking.set()

        running = asyncio.create_task(world.call(say(), say(), on_event=on_event))
        await talking.wait()
        world.worker.drain()
        status, body = await world.worker.readiness()
        assert (status, body["draining"]) == (503, True)
        record = await running
        assert (record.violations, record.end) == ((), EndReason.SERVICE_HUNG_UP)
        row = await world.ended(record.call_sid)
        assert (row.status, row.epoch) == (CallStatus.FINISHED, 1)
        assert len(await world.turns(record.call_sid)) == 2


async def test_b097_b109_two_workers_behind_one_address(act: Act) -> None:
    await act(
        webhooks_at_one_streams_at_the_other,
        one_stops_and_hands_its_calls_over,
        one_that_is_alone_lets_its_calls_go_on,
    )
