"""Simulated calls over real sockets, against a small echo service made here."""

import asyncio
import base64
import contextlib
import json
import socket
import wave
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from twilio.base.exceptions import TwilioRestException
from twilio.http.http_client import TwilioHttpClient
from twilio.request_validator import RequestValidator
from twilio.rest import Client

from ivr.phone.call import Surroundings, place_call
from ivr.phone.line import SILENT_FRAME
from ivr.phone.machine import Caller
from ivr.phone.network import Network
from ivr.phone.record import CallEvent, CallRecord, EndReason, EventKind
from ivr.phone.rest import FakeTwilioRest
from ivr.phone.run import CallPlan, Utterance, run_call
from ivr.phone.script import At, BargeIn, BreakStream, CallScript, DropLine, Dtmf, HangUp, Say
from ivr.phone.service import Service
from tests.unit.phone.harness import tone

TOKEN = "echo-service-token"
CALLER = Caller("+15550100001", stir_verstat="TN-Validation-Passed-A", name="O'Neil & Co")
Json = dict[str, Any]
NO_CLOSE_FRAME = {1005, 1006}
"""How a server names a socket that broke: 1006, but uvicorn's newer protocol says 1005."""


@dataclass
class Heard:
    """What the service saw of one stream."""

    messages: list[Json] = field(default_factory=list)
    close_code: int | None = None

    def of(self, event: str) -> list[Json]:
        return [message for message in self.messages if message["event"] == event]


@dataclass
class Echo:
    """Greets with a tone and a mark, echoes what is loud, clears on `1`, hangs up on `9`."""

    base: str = ""
    public: str = ""
    greeting_ms: int = 200
    greet: bool = True
    webhooks: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    streams: list[Heard] = field(default_factory=list)
    continues: list[str] = field(default_factory=lambda: ["<Response><Hangup/></Response>"])
    forged: int = 0

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/twilio/voice", self.voice, methods=["POST"]),
                Route("/twilio/continue", self.resume, methods=["POST"]),
                Route("/twilio/status", self.status, methods=["POST"]),
                WebSocketRoute("/twilio/media", self.media),
            ]
        )

    @property
    def media_url(self) -> str:
        return self.public.replace("http", "ws", 1) + "/twilio/media"

    def connect(self) -> str:
        stream = f'<Stream url="{self.media_url}"><Parameter name="token" value="t"/></Stream>'
        return f"<Response><Connect>{stream}</Connect><Redirect>/twilio/continue</Redirect></Response>"

    async def voice(self, request: Request) -> Response:
        return await self._webhook(request, self.connect())

    async def resume(self, request: Request) -> Response:
        return await self._webhook(request, self.continues.pop(0))

    async def status(self, request: Request) -> Response:
        await self._webhook(request, "")
        return Response(status_code=204)

    async def _webhook(self, request: Request, twiml: str) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        signature = request.headers["X-Twilio-Signature"]
        if not RequestValidator(TOKEN).validate(self.public + request.url.path, form, signature):
            self.forged += 1
            return Response(status_code=403)
        self.webhooks.append((request.url.path, form))
        return Response(twiml, media_type="text/xml")

    async def media(self, link: WebSocket) -> None:
        if not RequestValidator(TOKEN).validate(self.media_url, {}, link.headers["X-Twilio-Signature"]):
            self.forged += 1
            await link.close(1008)
            return
        await link.accept()
        heard = Heard()
        self.streams.append(heard)
        try:
            while True:
                message = json.loads(await link.receive_text())
                heard.messages.append(message)
                await self._answer(link, message)
        except (WebSocketDisconnect, RuntimeError) as gone:
            heard.close_code = gone.code if isinstance(gone, WebSocketDisconnect) else None

    async def _answer(self, link: WebSocket, message: Json) -> None:
        async def send(body: Json) -> None:
            await link.send_text(json.dumps(body | {"streamSid": message["streamSid"]}))

        match message:
            case {"event": "start"} if self.greet:
                payload = base64.b64encode(tone(self.greeting_ms)).decode()
                await send({"event": "media", "media": {"payload": payload}})
                await send({"event": "mark", "mark": {"name": "greeting"}})
            case {"event": "media", "media": {"payload": payload}}:
                if base64.b64decode(payload) != SILENT_FRAME:
                    await send({"event": "media", "media": {"payload": payload}})
            case {"event": "dtmf", "dtmf": {"digit": "1"}}:
                await send({"event": "clear"})
            case {"event": "dtmf", "dtmf": {"digit": "9"}}:
                await link.close(1000)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def _serving(echo: Echo, public: str | None = None) -> AsyncIterator[Service]:
    listening = socket.create_server(("127.0.0.1", 0))
    server = _Server(uvicorn.Config(echo.app(), log_config=None, lifespan="off"))
    running = asyncio.create_task(server.serve(sockets=[listening]))
    echo.base = f"http://127.0.0.1:{listening.getsockname()[1]}"
    echo.public = public or echo.base
    try:
        yield Service(echo.base, TOKEN, public_url=public)
    finally:
        server.should_exit = True
        await running


async def _call(service: Service, script: CallScript, **options: Any) -> CallRecord:
    return await place_call(service, caller=CALLER, to="+15550100002", script=script, **options)


async def test_a_call_is_signed_answered_echoed_and_hung_up(tmp_path: Path) -> None:
    echo, wav = Echo(), tmp_path / "deep" / "call.wav"
    script = CallScript((Say(tone(300, 1_000), "hello", At(500)), HangUp(At(1_400))))
    async with _serving(echo) as service:
        record = await _call(service, script, record_to=wav)

    assert (record.end, record.violations, echo.forged) == (EndReason.CALLER_HUNG_UP, (), 0)
    assert [path for path, _ in echo.webhooks] == ["/twilio/voice", "/twilio/status"]
    form = echo.webhooks[0][1]
    assert (form["StirVerstat"], form["CallerName"], form["FromCity"]) == (
        CALLER.stir_verstat,
        CALLER.name,
        "",
    )
    assert echo.webhooks[1][1]["CallStatus"] == "completed"
    assert [event.text for event in record.of(EventKind.MARK)] == ["greeting"]
    # Both the greeting and the echo were heard whole.
    assert tone(200) in record.heard_ulaw
    assert tone(300, 1_000) in record.said_ulaw
    assert tone(300, 1_000) in record.heard_ulaw
    assert echo.streams[0].messages[-1]["event"] == "stop"
    _check_media(echo.streams[0])
    _check_wav(wav, record)


def _check_media(stream: Heard) -> None:
    media = stream.of("media")
    assert 60 <= len(media) <= 72  # 1.4 s, less the time the connection took
    stamps = np.array([int(message["media"]["timestamp"]) for message in media])
    assert (np.diff(stamps) == 20).all()
    assert all(len(base64.b64decode(message["media"]["payload"])) == 160 for message in media)
    sequence = [int(message["sequenceNumber"]) for message in stream.messages[1:]]
    assert sequence == list(range(1, len(sequence) + 1))


def _check_wav(path: Path, record: CallRecord) -> None:
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getframerate(), file.getsampwidth()) == (2, 8_000, 2)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)
    assert len(samples) == len(record.heard_ulaw)
    said = record.of(EventKind.SAID)[0]
    assert said.until_ms is not None
    loud = np.abs(samples[:, 0]) > 500
    assert abs(int(loud.argmax()) - 8 * said.at_ms) < 16
    assert abs(len(loud) - int(loud[::-1].argmax()) - 8 * said.until_ms) < 16
    right = samples[8 * said.at_ms :, 1]
    assert (np.abs(right) > 500).any()


async def test_b089_signatures_are_over_the_public_address() -> None:
    echo = Echo()
    async with _serving(echo, public="https://ivr.example.com") as service:
        record = await _call(service, CallScript((HangUp(At(300)),)))

    assert echo.media_url == "wss://ivr.example.com/twilio/media"
    assert (echo.forged, record.violations, len(echo.streams)) == (0, (), 1)


async def test_a_wrong_token_is_refused() -> None:
    echo = Echo()
    async with _serving(echo) as service:
        record = await _call(Service(service.url, "another"), CallScript((HangUp(At(300)),)))

    assert record.end is EndReason.FAILED
    assert record.violations == ("11200: the webhook failed: 403",)


async def test_b011_the_caller_barges_in_and_a_clear_is_heard_at_once() -> None:
    echo = Echo(greeting_ms=20_000)
    script = CallScript((Dtmf("1", BargeIn(500)), HangUp(At(1_000))))
    async with _serving(echo) as service:
        record = await _call(service, script)

    (clear,) = record.of(EventKind.CLEAR)
    (heard,) = record.of(EventKind.HEARD)
    assert clear.value is not None
    assert clear.value > 18_000
    assert [event.text for event in record.of(EventKind.MARK_CLEARED)] == ["greeting"]
    assert heard.until_ms is not None
    assert 480 <= heard.until_ms - heard.at_ms <= 900
    assert record.heard_ulaw.endswith(SILENT_FRAME)


async def test_a_broken_stream_continues_the_same_call() -> None:
    echo = Echo(greet=False)
    script = CallScript((BreakStream(At(300)), HangUp(At(800))))
    async with _serving(echo) as service:
        echo.continues = [echo.connect()]
        record = await _call(service, script)

    first, second = echo.streams
    assert record.end is EndReason.CALLER_HUNG_UP
    assert first.of("stop") == []
    assert first.close_code in NO_CLOSE_FRAME
    assert [message["event"] for message in second.messages[:2]] == ["connected", "start"]
    assert {stream.of("start")[0]["start"]["callSid"] for stream in echo.streams} == {record.call_sid}
    assert [path for path, _ in echo.webhooks] == ["/twilio/voice", "/twilio/continue", "/twilio/status"]


async def test_a_dropped_line_is_a_reset_and_nothing_else() -> None:
    echo = Echo()
    async with _serving(echo) as service:
        record = await _call(service, CallScript((DropLine(At(400)),)))

    assert record.end is EndReason.LINE_DROPPED
    assert echo.streams[0].of("stop") == []
    assert echo.streams[0].close_code in NO_CLOSE_FRAME
    assert [path for path, _ in echo.webhooks] == ["/twilio/voice"]


async def test_the_service_closes_and_the_call_goes_to_what_follows() -> None:
    echo = Echo()
    async with _serving(echo) as service:
        record = await _call(service, CallScript((Dtmf("9", At(300)),)))

    assert record.end is EndReason.SERVICE_HUNG_UP
    assert [event.text for event in record.of(EventKind.DTMF)] == ["9"]
    assert [message["dtmf"]["digit"] for message in echo.streams[0].of("dtmf")] == ["9"]


async def test_a_lossy_network_is_seen_as_jumps() -> None:
    echo = Echo(greet=False)
    around = Surroundings(Network(lost=(False, True, False, False)))
    async with _serving(echo) as service:
        await _call(service, CallScript((HangUp(At(600)),)), surroundings=around)

    stamps = np.array([int(message["media"]["timestamp"]) for message in echo.streams[0].of("media")])
    assert set(np.diff(stamps)) == {20, 40}


async def test_events_come_as_they_happen_and_the_record_last() -> None:
    echo = Echo()
    plan = CallPlan(CALLER, "+15550100002", (Utterance(tone(200), "hello"),), digits="9")
    async with _serving(echo) as service:
        told = [item async for item in run_call(service, plan)]

    *events, record = told
    assert isinstance(record, CallRecord)
    assert all(isinstance(event, CallEvent) for event in events)
    assert sorted(events, key=_order) == sorted(record.events, key=_order)
    assert [event.text for event in record.of(EventKind.SAID)] == ["hello"]
    assert record.end is EndReason.SERVICE_HUNG_UP
    (delay_ms,) = record.reply_delays_ms()
    assert delay_ms is None  # an echo is heard while the caller still speaks: no reply


def _order(item: CallEvent | CallRecord) -> str:
    return repr(item)


# -- REST ----------------------------------------------------------------------------------------


class _Rewriting:
    """Sends what is meant for Twilio's host to another address, as the service does."""

    is_async = False

    def __init__(self, base_url: str) -> None:
        self._http = TwilioHttpClient(timeout=5)
        self._base_url = base_url

    def request(self, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
        return self._http.request(
            method, url.replace("https://api.twilio.com", self._base_url), *args, **kwargs
        )


def _client(rest: FakeTwilioRest, token: str = TOKEN) -> Client:
    return Client(rest.account_sid, token, http_client=_Rewriting(rest.base_url))


async def _call_and(
    act: Callable[[FakeTwilioRest, str], object], echo: Echo
) -> tuple[CallRecord, object, FakeTwilioRest]:
    """Place a call; once its stream runs, `act` in a thread, as a service's REST client would."""
    async with _serving(echo) as service, FakeTwilioRest(auth_token=TOKEN) as rest:
        started = asyncio.Event()

        def on_event(event: CallEvent) -> None:
            if event.kind is EventKind.STREAM_STARTED:
                started.set()

        script = CallScript(hang_up_after_ms=8_000)
        call = asyncio.create_task(_call(service, script, rest=rest, on_event=on_event))
        await started.wait()
        await asyncio.sleep(0.1)
        sid = echo.webhooks[0][1]["CallSid"]
        result = await asyncio.to_thread(act, rest, sid)
        return await call, result, rest


async def test_the_service_ends_the_call_by_rest() -> None:
    echo = Echo()

    def end(rest: FakeTwilioRest, sid: str) -> tuple[str, str, int]:
        client = _client(rest)
        before = str(client.calls(sid).fetch().status)
        after = str(client.calls(sid).update(status="completed").status)
        with pytest.raises(TwilioRestException) as gone:
            client.calls(sid).update(status="completed")
        return before, after, gone.value.status

    record, statuses, _ = await _call_and(end, echo)

    assert statuses == ("in-progress", "completed", 404)
    assert record.end is EndReason.REST_COMPLETED
    assert echo.streams[0].messages[-1]["event"] == "stop"
    assert echo.webhooks[-1][1]["CallStatus"] == "completed"


async def test_the_service_gives_the_call_other_twiml_by_rest() -> None:
    echo = Echo()

    def redirect(rest: FakeTwilioRest, sid: str) -> None:
        _client(rest).calls(sid).update(twiml="<Response><Say>Bye</Say><Hangup/></Response>")

    record, _, _ = await _call_and(redirect, echo)

    assert record.end is EndReason.SERVICE_HUNG_UP
    assert [event.text for event in record.of(EventKind.PROMPT)] == ["Bye"]
    assert [event.kind for event in record.events][-2:] == [EventKind.ENDED, EventKind.WEBHOOK]
    assert echo.streams[0].messages[-1]["event"] == "stop"


async def test_rest_refuses_as_twilio_does() -> None:
    echo = Echo()

    def misuse(rest: FakeTwilioRest, sid: str) -> list[int]:
        attempts: list[Callable[[], object]] = [
            lambda: _client(rest, "wrong").calls(sid).fetch(),
            lambda: _client(rest).calls("CA" + "0" * 32).update(status="completed"),
            lambda: _client(rest).calls(sid).update(twiml="<Response/>" + " " * 4_000),
            lambda: _client(rest).calls(sid).update(),
        ]
        statuses = []
        for attempt in attempts:
            with pytest.raises(TwilioRestException) as refused:
                attempt()
            statuses.append(refused.value.status)
        _client(rest).calls(sid).update(status="completed")
        return statuses

    record, statuses, rest = await _call_and(misuse, echo)

    assert statuses == [401, 404, 400, 400]
    assert [update.status for _, update in rest.requests] == ["completed"]
    assert record.end is EndReason.REST_COMPLETED


async def test_a_service_that_is_not_there_is_told_so() -> None:
    record = await _call(Service("http://127.0.0.1:9", TOKEN), CallScript())

    assert record.end is EndReason.FAILED
    assert record.violations == ("11200: the webhook failed: ClientConnectorError",)
