"""PostgreSQL stops and comes back, while nobody calls and while somebody does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from ivr.phone.record import CallEvent, EndReason, EventKind
from ivr.phone.script import AfterReply, HangUp
from memory.calls import CallStatus
from memory.embedded import SERVICE_ROLE, EmbeddedPostgres
from memory.migrate import upgrade
from tests.acceptance.businesses import ANN, BEN
from tests.acceptance.line import say
from tests.acceptance.model import GREETING, calls, turn
from tests.acceptance.world import Act, Place, World, until
from tests.pg import FAST, MIGRATIONS, server_folder


class Cluster:
    """A server of the test's own, which can be stopped and started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server = EmbeddedPostgres(FAST)
        self.url = ""

    async def start(self) -> None:
        """Start it, or start it again."""
        self._server = EmbeddedPostgres(FAST)
        self.url = await asyncio.to_thread(self._server.start, self._folder)

    async def stop(self) -> None:
        """Every connection breaks."""
        await asyncio.to_thread(self._server.stop)


@asynccontextmanager
async def a_cluster() -> AsyncIterator[Cluster]:
    """A server of its own, migrated."""
    with server_folder() as folder:
        made = Cluster(folder)
        await made.start()
        await asyncio.to_thread(upgrade, made.url, MIGRATIONS, SERVICE_ROLE)
        yield made
        await made.stop()


async def stored(world: World, call_sid: str) -> list[tuple[str, str]]:
    """The call's words, once its end is written."""

    async def over() -> bool:
        row = await world.store.get_call(call_sid)
        return row is not None and row.status is not CallStatus.ACTIVE

    await until(over)
    return await world.words(call_sid)


async def restarts(place: Place, cluster: Cluster) -> None:
    """Between two calls; and it is down while a call begins, is answered and ends, all of which is kept."""
    script = [
        GREETING,
        turn("first", "Good morning"),
        turn("second", "Good day"),
        turn("third", "Good evening"),
        turn("goodbye", "Goodbye", **calls("hang_up")),
    ]
    async with replace(place, database_url=cluster.url).world(script) as world:
        before = await world.call(say(), HangUp(AfterReply(350)))
        await cluster.stop()
        await cluster.start()
        after = await world.call(say(), HangUp(AfterReply(350)), caller=BEN)
        assert await stored(world, before.call_sid) == [("first", "Good morning")]
        assert await stored(world, after.call_sid) == [("second", "Good day")]

        await cluster.stop()
        assert (await world.worker.readiness())[0] == 503
        without = await world.call(say(), say(), caller=ANN)
        assert (without.violations, without.end) == ((), EndReason.SERVICE_HUNG_UP)
        assert [event.text for event in without.of(EventKind.VERB)] == ["ConnectStream", "Redirect", "Hangup"]
        heard = without.of(EventKind.HEARD)
        assert heard[0].at_ms < 4_000
        (ended,) = without.of(EventKind.STREAM_ENDED)
        assert ended.text == "closed by the service: 1000"
        # Nobody is kept in silence until there is a database again.
        assert ended.at_ms - (heard[-1].until_ms or 0) < 8_000
        await cluster.start()
        assert await stored(world, without.call_sid) == [("third", "Good evening"), ("goodbye", "Goodbye")]
        row = await world.row(without.call_sid)
        assert (row.status, row.caller, row.business_id) == (CallStatus.FINISHED, ANN.number, "alpha")
        assert (await world.worker.readiness())[0] == 200


async def goes_down_during_a_call(place: Place, cluster: Cluster) -> None:
    """The second turn is answered without it; both turns are there when it is back."""
    script = [
        GREETING,
        turn("my name is Rosalind", "Hello Rosalind"),
        turn("what is my name", "You are Rosalind"),
        turn("goodbye", "Goodbye", **calls("hang_up")),
    ]
    async with replace(place, database_url=cluster.url).world(script) as world:
        stopping: list[asyncio.Task[None]] = []

        def on_event(event: CallEvent) -> None:
            if event.kind is EventKind.SAID and not stopping:
                stopping.append(asyncio.create_task(cluster.stop()))

        record = await world.call(say(), say(gap_ms=700), say(), on_event=on_event)
        assert record.end is EndReason.SERVICE_HUNG_UP
        await stopping[0]
        await cluster.start()
        assert await stored(world, record.call_sid) == [
            ("my name is Rosalind", "Hello Rosalind"),
            ("what is my name", "You are Rosalind"),
            ("goodbye", "Goodbye"),
        ]
        assert len(record.of(EventKind.STREAM_STARTED)) == 1


async def test_b089_a_database_that_is_away_costs_no_call_and_no_word(act: Act) -> None:
    async def first(place: Place) -> None:
        async with a_cluster() as cluster:
            await restarts(place, cluster)

    async def second(place: Place) -> None:
        async with a_cluster() as cluster:
            await goes_down_during_a_call(place, cluster)

    await act(first, second)
