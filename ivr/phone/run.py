"""`ivr call`: one simulated call from a plain description, as a stream of events that ends in the record."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from ivr.phone.call import Surroundings, place_call
from ivr.phone.machine import Caller
from ivr.phone.record import CallEvent, CallRecord
from ivr.phone.rest import FakeTwilioRest
from ivr.phone.script import AfterReply, CallScript, Dtmf, HangUp, Say, Step
from ivr.phone.service import Service

FAREWELL_GAP_MS = 1_500
"""How long the far side must be quiet after the last step before the caller hangs up."""


@dataclass(frozen=True)
class Utterance:
    """One thing to say: µ-law 8 kHz, and its words for the record."""

    ulaw: bytes
    text: str = ""


@dataclass(frozen=True)
class CallPlan:
    """What `ivr call` was asked for. Utterances come first, then keys, each after a reply of the far side.

    drop_after_s: the line drops that long after the answer; without it the caller hangs up at the end.
    """

    caller: Caller
    to: str
    utterances: tuple[Utterance, ...] = ()
    digits: str = ""
    drop_after_s: float | None = None
    surroundings: Surroundings = field(default_factory=Surroundings)
    record_to: Path | None = None

    def script(self) -> CallScript:
        """The plan as steps."""
        steps: list[Step] = [Say(utterance.ulaw, utterance.text) for utterance in self.utterances]
        if self.digits:
            steps.append(Dtmf(self.digits))
        if self.drop_after_s is not None:
            return CallScript(tuple(steps), drop_after_ms=round(self.drop_after_s * 1_000))
        return CallScript((*steps, HangUp(AfterReply(FAREWELL_GAP_MS))))


async def run_call(
    service: Service, plan: CallPlan, rest: FakeTwilioRest | None = None
) -> AsyncIterator[CallEvent | CallRecord]:
    """Place the call; yields its events as they happen, and last its CallRecord."""
    events: asyncio.Queue[CallEvent | None] = asyncio.Queue()
    call = asyncio.create_task(
        place_call(
            service,
            caller=plan.caller,
            to=plan.to,
            script=plan.script(),
            surroundings=plan.surroundings,
            rest=rest,
            record_to=plan.record_to,
            on_event=events.put_nowait,
        )
    )
    call.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        yield await call
    finally:
        call.cancel()
