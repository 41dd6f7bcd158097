"""Placing a simulated call: carries out what the CallMachine decides, every 20 ms by absolute deadlines."""

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ivr.phone.board import (
    CloseStream,
    DialOutcome,
    Effect,
    FetchAudio,
    FetchCalled,
    FetchDocument,
    LineOutcome,
    Notify,
    OpenStream,
    SendText,
)
from ivr.phone.line import murmur
from ivr.phone.machine import Caller, CallMachine, CallSetup, RestUpdate
from ivr.phone.media_socket import MediaSocket, SocketEvents
from ivr.phone.network import Network
from ivr.phone.pace import Pace
from ivr.phone.record import CallEvent, CallRecord
from ivr.phone.rest import FakeTwilioRest
from ivr.phone.script import CallScript
from ivr.phone.service import Service, Webhooks, open_http
from ivr.phone.stream import StreamLeg
from ivr.phone.verbs import Voice
from ivr.phone.wavs import wav_to_ulaw


@dataclass(frozen=True)
class Surroundings:
    """The world around a call: how its frames travel, who answers a Dial, how the network says a `<Say>`."""

    network: Network = field(default_factory=Network)
    dial: DialOutcome = field(default_factory=DialOutcome)
    voice: Voice = murmur
    line: LineOutcome = field(default_factory=LineOutcome)


async def place_call(
    service: Service,
    *,
    caller: Caller,
    to: str,
    script: CallScript,
    surroundings: Surroundings | None = None,
    rest: FakeTwilioRest | None = None,
    record_to: Path | None = None,
    on_event: Callable[[CallEvent], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> CallRecord:
    """Call the service and follow the script to the call's end.

    rest: the REST API by which the service may change this call while it lives.
    record_to: a stereo WAV is written there (left the caller, right what the caller heard).
    on_event: told of each event as it is noted (a lasting one when it is over).
    The service's faults are in the record's `violations`; nothing is raised for them.
    """
    around = surroundings or Surroundings()
    setup = CallSetup(
        caller=caller,
        to=to,
        voice_url=service.voice_url,
        status_url=service.status_url,
        account_sid=service.account_sid,
        script=script,
        network=around.network,
        dial=around.dial,
        line=around.line,
        voice=around.voice,
        recordings_url=rest.recordings_url if rest else "https://api.twilio.com/recordings",
    )
    async with open_http() as http, asyncio.TaskGroup() as tasks:
        driver = _Driver(CallMachine(setup, _new_sid), service, Webhooks(service, http), tasks, on_event)
        if rest is not None:
            rest.register(driver)
        await driver.run(clock)
    record = driver.machine.record()
    if record_to is not None:
        await asyncio.to_thread(record.write_wav, record_to)
    return record


def _new_sid(prefix: str) -> str:
    return prefix + secrets.token_hex(16)


class _Driver:
    """One call's I/O. Everything happens on one event loop, so the machine needs no lock."""

    def __init__(
        self,
        machine: CallMachine,
        service: Service,
        webhooks: Webhooks,
        tasks: asyncio.TaskGroup,
        on_event: Callable[[CallEvent], None] | None,
    ) -> None:
        self.machine = machine
        self._service = service
        self._webhooks = webhooks
        self._tasks = tasks
        self._on_event = on_event
        self._told = 0
        self._sockets: dict[int, MediaSocket] = {}

    # -- as the REST API sees the call -----------------------------------------------------------

    @property
    def call_sid(self) -> str:
        return self.machine.board.call_sid

    @property
    def status(self) -> str:
        return self.machine.status

    def update(self, update: RestUpdate) -> bool:
        """Change the call by REST; False if it is over."""
        changed = self.machine.update(update)
        self._carry_out()
        return changed

    # -- the call --------------------------------------------------------------------------------

    async def run(self, clock: Callable[[], float]) -> None:
        """Tick until the call is over. What is still open then is left to the task group to wait for."""
        self.machine.dial()
        self._carry_out()
        pace = Pace(clock())
        while self.machine.end is None:
            await asyncio.sleep(pace.wait_s(clock()))
            self.machine.tick()
            self._carry_out()

    def _carry_out(self) -> None:
        for effect in self.machine.board.take_effects():
            self._do(effect)
        if self._on_event is not None:
            events = self.machine.board.events
            for event in events[self._told :]:
                self._on_event(event)
            self._told = len(events)

    def _do(self, effect: Effect) -> None:
        match effect:
            case SendText(serial, text):
                if serial in self._sockets:
                    self._sockets[serial].send(text)
            case FetchDocument():
                self._tasks.create_task(self._fetch_document(effect))
            case FetchCalled():
                self._tasks.create_task(self._fetch_called(effect))
            case FetchAudio():
                self._tasks.create_task(self._fetch_audio(effect))
            case Notify():
                self._tasks.create_task(self._notify(effect))
            case OpenStream():
                self._tasks.create_task(self._run_stream(effect))
            case CloseStream(serial, reset):
                if serial in self._sockets:
                    self._sockets[serial].close(reset=reset)

    async def _fetch_document(self, request: FetchDocument) -> None:
        answer = await self._webhooks.ask(request.url, request.method, request.form, secrets.token_hex(16))
        self.machine.webhook_answered(request.url, answer.status)
        self.machine.document_arrived(request.serial, answer.status, answer.content_type, answer.text)
        self._carry_out()

    async def _fetch_called(self, request: FetchCalled) -> None:
        answer = await self._webhooks.ask(request.url, "POST", request.form, secrets.token_hex(16))
        self.machine.webhook_answered(request.url, answer.status)
        self.machine.called_arrived(request.serial, answer.status, answer.content_type, answer.text)
        self._carry_out()

    async def _fetch_audio(self, request: FetchAudio) -> None:
        answer = await self._webhooks.ask(request.url, "GET", (), secrets.token_hex(16))
        ulaw, fault = None, str(answer.status or answer.text)
        if answer.status == 200:
            try:
                ulaw = wav_to_ulaw(answer.body)
            except ValueError as error:
                fault = str(error)
        self.machine.audio_arrived(request.serial, ulaw, fault)
        self._carry_out()

    async def _notify(self, request: Notify) -> None:
        answer = await self._webhooks.ask(request.url, "POST", request.form, secrets.token_hex(16))
        self.machine.webhook_answered(request.url, answer.status)
        self._carry_out()

    # -- the stream ------------------------------------------------------------------------------

    async def _run_stream(self, request: OpenStream) -> None:
        serial = request.serial

        def tell(report: Callable[[StreamLeg], None]) -> None:
            leg = self.machine.stream(serial)
            if leg is not None:
                report(leg)
            self._carry_out()

        socket = MediaSocket(
            self._service.reach(request.url),
            self._service.sign(request.url),
            SocketEvents(
                opened=lambda: tell(StreamLeg.opened),
                refused=lambda reason: tell(lambda leg: leg.refused(reason)),
                received=lambda data: tell(lambda leg: leg.received(data)),
                closed=lambda code: tell(lambda leg: leg.closed(code)),
                overflowed=lambda: self.machine.board.violation("31930: the service reads too slowly"),
            ),
        )
        self._sockets[serial] = socket
        try:
            await socket.run()
        finally:
            del self._sockets[serial]
