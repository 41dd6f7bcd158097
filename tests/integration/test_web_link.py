"""The caller's link on an in-memory socket: order, a peer that stops reading, closing twice."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from ivr.adapters.direct_socket import DIRECT
from ivr.adapters.twilio_socket import TwilioCallerLink, WaitingRoom
from ivr.core.commands import SendClear, SendMark, SendMedia
from ivr.core.events import LineClosed, LineEvent
from ivr.observe import Metrics
from ivr.web.slots import CallSlots, SpentNonces
from ivr.wire.twilio import StartInfo


class Peer:
    """The other end: what it sent, and whether it takes anything. Directly it says and takes as much as by ASGI."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.take: Callable[[str], None] | None = None
        self.incoming: asyncio.Queue[Message] = asyncio.Queue()
        self.taking = asyncio.Event()
        self.taking.set()
        self.fault: Exception | None = None

    def listen(self, take: Callable[[str], None]) -> None:
        self.take = take

    def write(self, text: bytes) -> bool:
        if self.taking.is_set() and not self.fault:
            self.sent.append({"type": "websocket.send", "text": text.decode()})
        return self.taking.is_set()

    async def receive(self) -> Message:
        return await self.incoming.get()

    async def send(self, message: Message) -> None:
        await self.taking.wait()
        if self.fault:
            raise self.fault
        self.sent.append(message)
        if message["type"] == "websocket.close":
            self.incoming.put_nowait({"type": "websocket.disconnect", "code": message["code"]})


async def accepted(peer: Peer) -> WebSocket:
    scope: dict[str, Any] = {"type": "websocket", "path": "/", "headers": [], "query_string": b""}
    scope["extensions"] = {DIRECT: peer}
    ws = WebSocket(scope, peer.receive, peer.send)
    peer.incoming.put_nowait({"type": "websocket.connect"})
    await ws.accept()
    peer.sent.clear()
    return ws


async def link_to(peer: Peer, metrics: Metrics | None = None) -> TwilioCallerLink:
    return TwilioCallerLink(await accepted(peer), StartInfo("CA1", "AC1", "MZ1", {}), metrics or Metrics())


async def everything(link: TwilioCallerLink) -> list[LineEvent]:
    events: list[LineEvent] = []
    await link.listen(events.append)
    return events


async def test_what_was_sent_is_written_in_order_before_the_close() -> None:
    peer = Peer()
    link = await link_to(peer)
    link.send(SendMedia(b"\xff"))
    link.send(SendMark("m"))
    link.send(SendClear())
    await link.close()
    sent = [json.loads(m["text"])["event"] if "text" in m else m["code"] for m in peer.sent]
    assert sent == ["media", "mark", "clear", 1000]
    assert await everything(link) == [LineClosed(1000)]


async def test_b104_sending_to_a_peer_that_is_gone_never_raises() -> None:
    for fault in (OSError("gone"), WebSocketDisconnect(1006), RuntimeError("after close")):
        peer = Peer()
        link = await link_to(peer)
        peer.fault = fault
        for _ in range(10):
            link.send(SendClear())
            await asyncio.sleep(0)
        await asyncio.gather(link.close(), link.close())
        await link.close()
        link.send(SendClear())


async def test_b104_a_disconnect_is_the_last_event_and_listening_on_is_no_error() -> None:
    peer = Peer()
    link = await link_to(peer)
    peer.incoming.put_nowait({"type": "websocket.disconnect", "code": 1005})
    assert await everything(link) == [LineClosed(1006)]
    assert await everything(link) == []
    link.send(SendClear())
    await link.close()
    assert [m["type"] for m in peer.sent] == ["websocket.close"]


async def test_a_peer_that_stops_reading_is_closed_not_collected() -> None:
    peer = Peer()
    link = await link_to(peer)
    peer.taking.clear()
    for _ in range(50):
        link.send(SendMedia(b"\xff"))
    await asyncio.sleep(0)
    peer.taking.set()
    await link.close()
    assert [m["code"] for m in peer.sent if "code" in m] == [1008]
    assert len(peer.sent) < 10
    assert await everything(link) == [LineClosed(1008)]


async def test_a_cancelled_close_still_closes() -> None:
    peer = Peer()
    link = await link_to(peer)
    closing = asyncio.create_task(link.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait({closing})
    assert closing.cancelled()
    await link.close()
    assert [m["type"] for m in peer.sent] == ["websocket.close"]


async def test_a_link_leaves_no_task_behind() -> None:
    before = len(asyncio.all_tasks())
    for _ in range(20):
        link = await link_to(Peer())
        link.send(SendClear())
        await link.close()
    assert len(asyncio.all_tasks()) == before


def test_the_waiting_room_is_bounded() -> None:
    room = WaitingRoom(2)
    assert [room.enter(), room.enter(), room.enter()] == [True, True, False]
    room.leave()
    assert room.enter()


def test_b100_places_are_reserved_occupied_and_freed() -> None:
    slots = CallSlots(1, reserve_s=15)
    assert slots.reserve("CA1", 0)
    assert slots.reserve("CA1", 1)
    assert not slots.reserve("CA2", 2)
    assert slots.reserve("CA2", 17)  # CA1's stream never came
    slots.occupy("CA2")
    slots.occupy("CA2")  # the same call again: a newer stream
    assert not slots.reserve("CA3", 18)
    slots.vacate("CA2")
    assert not slots.reserve("CA3", 19)
    slots.vacate("CA2")
    assert slots.reserve("CA3", 20)
    assert slots.streams == 0


async def test_b100_a_call_that_is_over_frees_its_place_before_its_socket_closes() -> None:
    slots = CallSlots(1)
    slots.occupy("CA1")
    slots.call_over("CA1")
    assert slots.reserve("CA2", 0)
    waiting = asyncio.create_task(slots.empty())
    await asyncio.sleep(0)
    assert not waiting.done()
    slots.vacate("CA1")
    await waiting


def test_a_nonce_is_spent_once_and_forgotten_when_it_expires() -> None:
    spent = SpentNonces()
    assert spent.spend("n", 60, 0)
    assert not spent.spend("n", 60, 1)
    assert spent.spend("m", 60, 1)
    assert spent.spend("n", 120, 61)
