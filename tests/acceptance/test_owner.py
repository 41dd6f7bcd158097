"""Whole calls of what an owner relies on: hours set by telephone, transfers that are asked first, messages."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

import pytest
from aiohttp import web

from ivr import override
from ivr.adapters.outgoing_http import OutgoingHttp
from ivr.phone.board import DialOutcome
from ivr.phone.machine import Caller
from ivr.phone.record import CallEvent, EndReason, EventKind
from ivr.phone.script import AfterReply, Dtmf, HangUp, Say, Wait
from ivr.pins import hash_pin
from ivr.shelf import FlowShelf
from ivr.toolbox import FlowSecrets
from ivr.webhooks import WebhookSender
from memory.calls import CallStatus
from memory.jobqueue import VOICEMAIL
from memory.jobs import JobTools, run_pending
from memory.model import Owner
from memory.notices import sweep_notices
from memory.store import HoursOverride
from memory.summarise import ExtractiveSummariser
from tests.acceptance.businesses import ANN, ATTESTED, FRONT_DESK, Json
from tests.acceptance.line import speech
from tests.acceptance.model import GREETING
from tests.acceptance.world import Act, Place, World, until

BOSS = Caller("+12025550190", stir_verstat=ATTESTED)
PIN, PEPPER = "482615", "a pepper for tests of the whole service"
SECOND = "+16175550142"
MENU = "Press one for the hours."
TWO_MS = 5_000
"""The service speaks twice, greeting and menu: a silence that is longer than what lies between them."""
SHOP: Json = {
    "hours": {"office": {"weekly": {"mon-sun": "00:00-24:00"}}},
    "callers": {"owners": [BOSS.number]},
    "start": "menu",
    "nodes": {
        "menu": {
            "type": "menu",
            "say": MENU,
            "options": {"1": {"to": "now"}, "9": {"to": "pin"}},
        },
        "now": {"type": "hours", "hours": "office", "open": "open", "closed": "closed"},
        "open": {"type": "say", "say": "We are open.", "to": "menu"},
        "closed": {"type": "hangup", "say": "We are closed."},
        "pin": {
            "type": "verify",
            "say": "Your PIN.",
            "no_match": {"say": ["That was not right."], "times": 2},
            "to": "choose",
            "failed": "menu",
        },
        "choose": {"type": "menu", "say": "Two to close.", "options": {"2": {"to": "close"}}},
        "close": {
            "type": "override",
            "hours": "office",
            "state": "closed",
            "lasts": "3h",
            "to": "done",
            "failed": "menu",
        },
        "done": {"type": "hangup", "say": "It is set."},
    },
}
HELP: Json = {
    "transfers": {
        "first": {"number": FRONT_DESK, "description": "the first"},
        "second": {"number": SECOND, "description": "the second"},
    },
    "on_model_down": {"say": "Our assistant is away."},
    "start": "menu",
    "nodes": {
        "menu": {"type": "menu", "say": "Press one for help.", "options": {"1": {"to": "help"}}},
        "help": {
            "type": "transfer",
            "target": "first",
            "fallback": ["second"],
            "whisper": "A caller. Press one to take the call.",
            "not_reached": "Nobody took the call.",
            "otherwise": "bye",
        },
        "bye": {"type": "hangup", "say": "Please call again."},
    },
}


MESSAGE: Json = {
    "allow_hosts": ["127.0.0.1"],
    "start": "menu",
    "nodes": {
        "menu": {"type": "menu", "say": "Press one to leave a message.", "options": {"1": {"to": "message"}}},
        "message": {"type": "voicemail", "say": "After the tone.", "silence_s": 2, "to": "thanks"},
        "thanks": {"type": "hangup", "say": "Thank you."},
    },
}


async def enrolled(world: World) -> None:
    await world.store.enrol(Owner("alpha", BOSS.number), hash_pin(PIN, PEPPER))


async def the_owner_closes_by_telephone(place: Place) -> None:
    """A wrong PIN first; then the right one, and the next caller, of another worker or not, hears it."""
    async with place.world([GREETING], flows={"alpha": SHOP}, IVR_PIN_PEPPER=PEPPER) as world:
        await enrolled(world)
        before = await world.call(Dtmf("1", AfterReply(TWO_MS)), HangUp(AfterReply(3_000)))
        record = await world.call(
            Dtmf("9", AfterReply(TWO_MS)),
            Dtmf("111111#", AfterReply(2_500)),
            Dtmf(f"{PIN}#", AfterReply(2_500)),
            Dtmf("2", AfterReply(2_500)),
            caller=BOSS,
        )
        row = await world.ended(record.call_sid)
        assert (record.violations, record.end) == ((), EndReason.SERVICE_HUNG_UP)
        assert row.status is CallStatus.FINISHED
        said = world.model.own_words()
        assert any("We are open." in words for words in said)
        assert any("That was not right." in words for words in said)
        assert said[-1] == "It is set."
        assert place.rows("SELECT schedule, is_open FROM hours_overrides") == [("office", False)]
        after = await world.call(Dtmf("1", AfterReply(TWO_MS)))
        await world.ended(after.call_sid)
        assert world.model.own_words()[-1] == "We are closed."
        assert (before.violations, after.violations) == ((), ())
        told = str(world.watch.logs) + str(place.rows("SELECT snapshot FROM calls"))
        assert PIN not in told and "111111" not in told


async def without_the_pin_nothing_is_set(place: Place) -> None:
    """Three wrong ones lead back; so does the right PIN of somebody who is no owner."""
    async with place.world([GREETING], flows={"alpha": SHOP}, IVR_PIN_PEPPER=PEPPER) as world:
        await enrolled(world)
        await world.store.enrol(Owner("alpha", ANN.number), hash_pin(PIN, PEPPER))
        guesses = [Dtmf("9", AfterReply(TWO_MS))]
        guesses += [Dtmf(f"{guess}#", AfterReply(2_500)) for guess in ("111111", "222222", "333333")]
        await world.call(*guesses, HangUp(AfterReply(3_000)), caller=BOSS)
        assert MENU in world.model.own_words()[-1]
        await world.call(
            Dtmf("9", AfterReply(TWO_MS)),
            Dtmf(f"{PIN}#", AfterReply(2_500)),
            Dtmf("2", AfterReply(2_500)),
            HangUp(AfterReply(3_000)),
        )
        said = world.model.own_words()
        assert said[-2:] == ["Two to close.", MENU]
        assert place.rows("SELECT count(*) FROM hours_overrides") == [(0,)]


async def hours_set_by_hand_reach_a_call_under_way(place: Place) -> None:
    """As `ivr flows override` does it, in another process: while the caller listens to the menu."""
    async with place.world([GREETING], flows={"alpha": SHOP}) as world:
        started = asyncio.Event()

        def note(event: CallEvent) -> None:
            if event.kind is EventKind.STREAM_STARTED:
                started.set()

        async def close() -> None:
            await started.wait()
            await until(lambda: MENU in world.model.own_words())
            later = datetime.now(UTC) + timedelta(hours=1)
            await world.store.set_override("alpha", HoursOverride("office", False, later))

        record, _ = await asyncio.gather(
            world.call(Wait(4_000), Dtmf("1", AfterReply(TWO_MS)), on_event=note), close()
        )
        await world.ended(record.call_sid)
        assert world.model.own_words()[-1] == "We are closed."


async def a_whispered_call_goes_to_who_takes_it(place: Place) -> None:
    """The first hears the whisper and presses nothing; the second takes the call with the key."""
    dial = DialOutcome(ring_ms=200, talk_ms=400, by_number={SECOND: DialOutcome("completed", 200, 400, "1")})
    async with place.world([GREETING], flows={"alpha": HELP}) as world:
        record = await world.call(Dtmf("1", AfterReply(TWO_MS)), dial=dial)
        row = await world.ended(record.call_sid)
        assert record.violations == ()
        verbs = [event.text for event in record.of(EventKind.VERB)]
        assert [verb for verb in verbs if verb.startswith("Dial")] == [f"Dial {FRONT_DESK}", f"Dial {SECOND}"]
        whispered = [event.text for event in record.of(EventKind.WHISPERED)]
        assert whispered == ["A caller. Press one to take the call."] * 4  # twice to each of them
        assert (row.status, record.end) == (CallStatus.TRANSFERRED, EndReason.SERVICE_HUNG_UP)
        assert "Please call again." not in world.model.own_words()


async def a_call_that_nobody_takes_goes_on(place: Place) -> None:
    """A wrong key, then one who is busy: the flow goes on where the file says."""
    wrong = DialOutcome("completed", 200, 400, "7", by_number={SECOND: DialOutcome("busy", 200)})
    async with place.world([GREETING], flows={"alpha": HELP}) as world:
        record = await world.call(Dtmf("1", AfterReply(TWO_MS)), dial=wrong)
        row = await world.ended(record.call_sid)
        assert record.violations == ()
        assert len(record.of(EventKind.WHISPERED)) == 2
        prompts = [event.text for event in record.of(EventKind.PROMPT)]
        assert any("Please call again." in text for text in (*prompts, *world.model.own_words()))
        assert row.status is CallStatus.FINISHED


async def a_message_is_told_of_once_when_it_is_left(place: Place) -> None:
    """Jobs that run while the caller still speaks tell nothing; afterwards a sweep is enough, as after a crash."""
    async with Receiver() as receiver, OutgoingHttp(["127.0.0.1"]) as http:
        hook = {"url": f"{receiver.url}/calls", "secret": "${HOOK_SECRET}", "events": ["call_ended"]}
        flow = MESSAGE | {"webhooks": [hook]}
        env = {"HOOK_SECRET": "hush-hush", "IVR_PRIVATE_HOSTS": "127.0.0.1"}
        async with place.world([GREETING], flows={"alpha": flow}, **env) as world:
            shelf = FlowShelf(place.folder / "flows")
            sender = WebhookSender(shelf, http, FlowSecrets(world.settings.flow_environment))
            others = {VOICEMAIL: delivered}
            tools = JobTools(world.store, ExtractiveSummariser(), notifier=sender, others=others)
            jobs: list[asyncio.Future[None]] = []

            def work(event: CallEvent) -> None:
                if event.kind is EventKind.VERB and event.text.startswith("Record"):
                    jobs.append(asyncio.ensure_future(run_pending(world.database_url, tools)))

            record = await world.call(
                Dtmf("1", AfterReply(TWO_MS)), Wait(2_000), Say(speech(900)), on_event=work
            )
            await asyncio.gather(*jobs)
            row = await world.ended(record.call_sid)
            assert (record.violations, row.status, len(jobs)) == ((), CallStatus.FINISHED, 1)
            assert receiver.messages == []
            for _ in range(2):
                await sweep_notices(world.store, sender, datetime.now(UTC))
                await run_pending(world.database_url, tools)
            (message,) = receiver.messages
            assert (message["call"]["id"], message["call"]["reason"]) == (record.call_sid, "finished")


async def delivered(**_: str) -> None:
    """The message itself is another test's."""


class Receiver:
    """A business's system, on a real socket."""

    def __init__(self) -> None:
        self.messages: list[Json] = []
        self.url = ""
        app = web.Application()
        app.router.add_post("/calls", self._handle)
        self._runner = web.AppRunner(app)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        self.messages.append(await request.json())
        return web.Response()


async def test_hours_by_telephone_with_a_pin(act: Act, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(override, "LOOK_EVERY_S", 0.2)
    await act(
        the_owner_closes_by_telephone,
        without_the_pin_nothing_is_set,
        hours_set_by_hand_reach_a_call_under_way,
    )


async def test_whispers_and_messages(act: Act) -> None:
    await act(
        a_whispered_call_goes_to_who_takes_it,
        a_call_that_nobody_takes_goes_on,
        a_message_is_told_of_once_when_it_is_left,
    )
