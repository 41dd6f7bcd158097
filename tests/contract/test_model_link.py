"""What every `ModelLink` keeps to, whichever model is behind it. Add an implementation to `MAKERS`."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from ivr.core.commands import CancelReply, FunctionTool, SessionConfig, StartReply, UpdateSession, UserText
from ivr.core.events import ModelLost, ModelReady
from ivr.errors import ModelUnavailable, PeerError
from ivr.ports import ModelLink
from tests.fake_realtime import FakeRealtime
from tests.integration.openai_link import model_server

CONFIG = SessionConfig("Be brief.", (FunctionTool("f", "F.", {"type": "object"}),), "marin", "en")


class Maker:
    """Makes links to one model that works, and can take that model away."""

    def __init__(self, link: Callable[[], ModelLink], vanish: Callable[[], None], absent: ModelLink) -> None:
        self.link = link
        self.vanish = vanish
        self.absent = absent


@asynccontextmanager
async def openai() -> AsyncIterator[Maker]:
    """The OpenAI link against the scripted server."""
    async with FakeRealtime() as gone:
        nobody = model_server(gone.url)
    async with FakeRealtime() as fake:
        server = model_server(fake.url)

        def vanish() -> None:
            for session in fake.sessions:
                session.socket.transport.abort()

        yield Maker(server.link, vanish, nobody.link())
        await server.close()
    await nobody.close()


MAKERS: dict[str, Callable[[], AbstractAsyncContextManager[Maker]]] = {"openai": openai}


@pytest.fixture(params=sorted(MAKERS))
async def maker(request: pytest.FixtureRequest) -> AsyncIterator[Maker]:
    async with MAKERS[request.param]() as made:
        yield made


async def test_ready_comes_first_and_close_ends_in_silence(maker: Maker) -> None:
    link = maker.link()
    await link.open(CONFIG)
    events = link.events()
    assert isinstance(await anext(events), ModelReady)
    await link.close()
    assert [event async for event in events if isinstance(event, ModelLost)] == []


async def test_a_model_that_vanishes_is_lost_last(maker: Maker) -> None:
    link = maker.link()
    await link.open(CONFIG)
    events = link.events()
    await anext(events)
    maker.vanish()
    assert [type(event) for event in [event async for event in events]][-1] is ModelLost
    await link.close()


async def test_closing_twice_is_closing(maker: Maker) -> None:
    link = maker.link()
    await link.open(CONFIG)
    await link.close()
    await link.close()


async def test_closing_what_was_never_opened_is_quiet(maker: Maker) -> None:
    await maker.link().close()


async def test_sending_never_raises_because_the_peer_is_gone(maker: Maker) -> None:
    link = maker.link()
    await link.open(CONFIG)
    maker.vanish()
    for number in range(50):
        link.hear(bytes(960))
        link.send(StartReply(f"r{number}", "", (UserText("Hi"),), ()))
        link.send(CancelReply(f"r{number}"))
        link.send(UpdateSession(CONFIG))
    await link.close()
    link.hear(bytes(960))
    link.send(CancelReply("r0"))


async def test_a_model_that_is_not_there_may_be_tried_again(maker: Maker) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        await maker.absent.open(CONFIG)
    assert isinstance(caught.value, PeerError)
    await maker.absent.close()
