"""What the web tests share: Twilio's side (signing, forms, TwiML) and plain stand-ins for the ports."""

import asyncio
import base64
import hashlib
import hmac
import json
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from starlette.types import ASGIApp
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from ivr.core.events import LineEvent
from ivr.observe import Metrics
from ivr.ports import CallerLink
from ivr.server import Server, make_server
from ivr.web.deps import (
    BusinessInfo,
    DialReport,
    Ended,
    GoOn,
    LeaveLine,
    LineReport,
    MusicPiece,
    OpenResult,
    Outcome,
    PlaceInLine,
    Readiness,
    RecordingReport,
    RunCall,
    StatusReport,
    WaitOn,
    WebDeps,
    WebLimits,
    Whispered,
)
from ivr.web.slots import CallSlots
from ivr.wire.signature import SignatureChecker
from ivr.wire.tokens import Grant, StreamTokens
from ivr.wire.twilio import StartInfo

TOKEN = "an auth token for tests"
PUBLIC = "https://ivr.example.test"
NUMBER = "+15550009999"
CALLER = "+15551230012"
SID = "CA00000000000000000000000000000001"
BLOOM = BusinessInfo(
    "bloom", 'Smith & Sons <"Pipes"> 24/7', busy_say="All lines are busy.", down_say="Sorry & bye."
)


def sign(url: str, fields: dict[str, str] | None = None, token: str = TOKEN) -> str:
    """Twilio's signature over a URL and form fields."""
    text = url + "".join(name + value for name, value in sorted((fields or {}).items()))
    return base64.b64encode(hmac.new(token.encode(), text.encode(), hashlib.sha1).digest()).decode()


def form(call_sid: str = SID, **more: str) -> dict[str, str]:
    """A voice webhook's fields."""
    return {
        "CallSid": call_sid,
        "AccountSid": "AC1",
        "From": CALLER,
        "To": NUMBER,
        "CallStatus": "ringing",
    } | more


def signed_post(path: str, fields: dict[str, str], base: str = PUBLIC) -> tuple[bytes, dict[str, str]]:
    """Body and headers of a signed webhook."""
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "x-twilio-signature": sign(base + path, fields),
    }
    return urlencode(fields).encode(), headers


def parse_twiml(body: str | bytes) -> ET.Element:
    """The `<Response>`."""
    text = body.decode() if isinstance(body, bytes) else body
    assert text.startswith("<")
    root = ET.fromstring(text)
    assert root.tag == "Response"
    return root


def verbs(root: ET.Element) -> list[str]:
    """Names of the verbs, in order."""
    return [child.tag for child in root]


def parameters(root: ET.Element) -> dict[str, str]:
    """The Stream's parameters."""
    return {p.attrib["name"]: p.attrib["value"] for p in root.iter("Parameter")}


class Flows:
    """One business, or a fault."""

    def __init__(self) -> None:
        self.business = BLOOM
        self.fault: Exception | None = None

    def business_for(self, to_number: str) -> BusinessInfo | None:
        if self.fault:
            raise self.fault
        return self.business if to_number == NUMBER else None


class Registry:
    """Calls in memory. `fault` is raised by everything; `delay_s` comes before everything."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, str, str | None, str]] = []
        self.reports: list[StatusReport] = []
        self.given_up: list[str] = []
        self.pressed: list[tuple[str, str | None]] = []
        self.dials: list[DialReport] = []
        self.messages: list[tuple[str, int, bool, bool]] = []
        self.recordings: list[RecordingReport] = []
        self.hold: WaitOn | LeaveLine = WaitOn()
        self.music: bytes | None = None
        self.places: list[PlaceInLine] = []
        self.pieces: list[MusicPiece] = []
        self.lines: list[LineReport] = []
        self.whispers: dict[str, Whispered] = {}
        self.spent: set[str] = set()
        self.open_result = OpenResult.NEW
        self.next: Outcome = GoOn()
        self.fault: Exception | None = None
        self.delay_s = 0.0

    async def _come(self) -> None:
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if self.fault:
            raise self.fault

    async def open_call(
        self,
        call_sid: str,
        business_id: str,
        caller: str | None,
        to_number: str,
        *,
        is_attested: bool = False,
        account_sid: str = "",
    ) -> OpenResult:
        await self._come()
        self.opened.append((call_sid, business_id, caller, to_number))
        return self.open_result

    async def outcome(self, call_sid: str) -> Outcome:
        await self._come()
        return self.next

    async def status(self, report: StatusReport) -> None:
        await self._come()
        self.reports.append(report)

    async def give_up(self, call_sid: str) -> Outcome:
        await self._come()
        self.given_up.append(call_sid)
        return Ended("Nothing works.")

    async def keys(self, call_sid: str, digits: str | None) -> Outcome:
        await self._come()
        self.pressed.append((call_sid, digits))
        return self.next

    async def transfer_result(self, report: DialReport) -> Outcome:
        await self._come()
        self.dials.append(report)
        return self.next

    async def message_left(self, call_sid: str, leg: int, *, is_empty: bool, call_over: bool) -> Outcome:
        await self._come()
        self.messages.append((call_sid, leg, is_empty, call_over))
        return self.next

    async def waiting(self, place: PlaceInLine) -> WaitOn | LeaveLine:
        await self._come()
        self.places.append(place)
        return self.hold

    async def hold_music(self, piece: MusicPiece) -> bytes | None:
        await self._come()
        self.pieces.append(piece)
        return self.music

    async def out_of_line(self, report: LineReport) -> Outcome:
        await self._come()
        self.lines.append(report)
        return self.next

    async def recording(self, report: RecordingReport) -> None:
        await self._come()
        self.recordings.append(report)

    async def whisper(self, call_sid: str) -> Whispered | None:
        await self._come()
        return self.whispers.get(call_sid)

    async def spend_token(self, nonce: str, call_sid: str, expires_at: int) -> bool:
        await self._come()
        fresh = nonce not in self.spent
        self.spent.add(nonce)
        return fresh


@dataclass
class Calls:
    """A `run_call` that listens until the line closes and keeps what it heard; `behave` runs beside it."""

    heard: dict[str, list[LineEvent]] = field(default_factory=dict)
    grants: list[Grant] = field(default_factory=list)
    links: dict[str, CallerLink] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    behave: Callable[[CallerLink], Awaitable[None]] | None = None

    async def run(self, link: CallerLink, start: StartInfo, grant: Grant) -> None:
        self.grants.append(grant)
        self.links[start.call_sid] = link
        events = self.heard.setdefault(start.call_sid, [])
        self.begun.set()
        try:
            if self.behave:
                await self.behave(link)
            await link.listen(events.append)
        finally:
            self.ended.append(start.call_sid)


async def all_well() -> Readiness:
    """Everything works."""
    return Readiness({"database": True, "flows": True})


@dataclass
class World:
    """One worker's stand-ins."""

    flows: Flows = field(default_factory=Flows)
    registry: Registry = field(default_factory=Registry)
    calls: Calls = field(default_factory=Calls)
    metrics: Metrics = field(default_factory=Metrics)
    draining: bool = False
    public_url: str | None = PUBLIC
    max_calls: int = 50
    limits: WebLimits = field(default_factory=WebLimits)
    ready: Callable[[], Awaitable[Readiness]] = all_well
    token: str | None = TOKEN
    time: float = 1_800_000_000.0

    def deps(self, run_call: RunCall | None = None) -> WebDeps:
        """What `create_app` wants."""
        return WebDeps(
            checker=SignatureChecker(self.token, self.public_url),
            tokens=StreamTokens(self.token),
            metrics=self.metrics,
            slots=CallSlots(self.max_calls),
            flows=self.flows,
            calls=self.registry,
            run_call=run_call or self.calls.run,
            ready=self.ready,
            draining=lambda: self.draining,
            limits=self.limits,
            now=lambda: self.time,
        )

    def count(self, name: str, **labels: str) -> float:
        """A metric's value, 0 when it was never touched."""
        return self.metrics.registry.get_sample_value(f"callthread_{name}", labels) or 0.0


@asynccontextmanager
async def serving(app: ASGIApp) -> AsyncIterator[Server]:
    """`app` on a real port of this machine, by our server."""

    async def drained() -> None:
        return None

    server = make_server(app, "127.0.0.1", 0, on_drain=lambda: None, drained=drained, drain_s=5)
    task = asyncio.create_task(server.serve())
    await server.ready.wait()
    try:
        yield server
    finally:
        server.should_exit = True
        await task


def start_message(call_sid: str, parameters: dict[str, str] | None, stream_sid: str = "MZ1") -> str:
    """Twilio's `start`."""
    body = {
        "accountSid": "AC1",
        "callSid": call_sid,
        "streamSid": stream_sid,
        "tracks": ["inbound"],
        "customParameters": parameters,
        "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
    }
    return json.dumps({"event": "start", "sequenceNumber": "1", "streamSid": stream_sid, "start": body})


CONNECTED = '{"event":"connected","protocol":"Call","version":"1.0.0"}'
STOP = '{"event":"stop","sequenceNumber":"9","streamSid":"MZ1","stop":{"accountSid":"AC1","callSid":"CA1"}}'


def media_message(number: int, payload: bytes) -> str:
    """Twilio's `media`."""
    body = {
        "track": "inbound",
        "chunk": str(number),
        "timestamp": str(number * 20),
        "payload": base64.b64encode(payload).decode(),
    }
    return json.dumps(
        {"event": "media", "sequenceNumber": str(number + 1), "streamSid": "MZ1", "media": body}
    )


def dial_stream(port: int, signature: str | None = None) -> connect:
    """Twilio's handshake: the public URL is signed, whatever the inner address is."""
    signed = sign("wss://ivr.example.test/twilio/media") if signature is None else signature
    headers = {"X-Twilio-Signature": signed} if signed else {}
    url = f"ws://127.0.0.1:{port}/twilio/media"
    return connect(url, additional_headers=headers, compression=None, proxy=None)


async def closed_with(ws: ClientConnection) -> int:
    """Read to the end; the close code."""
    with suppress(ConnectionClosed):
        async for _ in ws:
            pass
    code: Any = ws.close_code
    return int(code)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that other tasks bring about."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  # what is waited for has no event
            await asyncio.sleep(0.005)
