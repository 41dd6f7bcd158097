"""A speech model that goes away, fails or refuses, while somebody is on the line."""

from typing import Any

from ivr.phone.record import CallRecord, EndReason, EventKind
from ivr.phone.script import AfterReply, At, BargeIn, DropLine, Dtmf, HangUp, Say, Wait
from memory.calls import CallStatus
from tests.acceptance.businesses import ANN, BEN, FRONT_DESK, PLUMBING
from tests.acceptance.line import say, speech
from tests.acceptance.model import GREETING, calls, told, turn
from tests.acceptance.world import Act, Place, World, together, until

STORY = "Once upon a time there was a king with a crown"
HELLO = "Alpha Dental, how can I help you?"
GOODBYE = turn("goodbye", "Goodbye", **calls("hang_up"))


def verbs(record: CallRecord) -> list[str]:
    """The TwiML that was carried out."""
    return [event.text for event in record.of(EventKind.VERB)]


def carried_over(turns: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A script whose turns go on from session to session."""
    return {"carry_over": True, "turns": turns, **more}


async def a_lost_session(place: Place, **loss: Any) -> None:
    """The session is lost 400 ms into the second reply, which the next one ends; nobody is greeted twice."""
    turns = [
        GREETING,
        turn("my name is Rosalind", "Hello Rosalind"),
        turn("tell me a story", "Once upon a time there was a king", audio_ms=3_000, **loss),
        {"hear": "tell me a story", "say": STORY, "audio_ms": 800},
        turn("are you there", "Yes I am here", 900),
        GOODBYE,
    ]
    plan = carried_over(turns)
    if "abort" in loss:
        plan["connections"] = ["accept", "refuse", "refuse", "accept"]
    async with place.world(plan) as world:
        record = await world.call(say(), say(), Wait(1_500), say(gap_ms=2_500), say(), caller=ANN)
        row = await world.ended(record.call_sid)
        words = await world.words(record.call_sid)

        assert record.violations == ()
        assert record.end is EndReason.SERVICE_HUNG_UP
        assert len(record.of(EventKind.STREAM_STARTED)) == 1
        assert (row.status, row.epoch) == (CallStatus.FINISHED, 1)
        assert world.model.own_words().count(HELLO) == 1
        assert [heard for heard, _ in words] == [
            "my name is Rosalind",
            "tell me a story",
            "are you there",
            "goodbye",
        ]
        assert words[1][1] == STORY
        rest = told(world.model.answered()[2])
        assert "Go on with the sentence that was cut off" in rest
        assert "Rosalind" in rest
        assert world.model.sessions == 2


async def a_session_that_ends(place: Place) -> None:
    """B034."""
    await a_lost_session(place, close=1001, after_ms=400)


async def a_session_that_dies(place: Place) -> None:
    """B035. The first two attempts to connect again are refused."""
    await a_lost_session(place, abort=True, after_ms=400)


async def a_session_that_has_not_long_to_live(place: Place) -> None:
    """B034. It is changed for a new one before the provider ends it, and nobody notices."""
    turns = [
        GREETING,
        turn("my name is Rosalind", "Hello Rosalind"),
        turn("tell me a story", "Once upon a time there was a king", audio_ms=1_500),
        turn("are you there", "Yes I am here", 900),
        GOODBYE,
    ]
    async with place.world(carried_over(turns, lifetime_ms=8_000)) as world:
        record = await world.call(say(), say(), say(gap_ms=2_500), say(gap_ms=1_500), caller=ANN)
        row = await world.ended(record.call_sid)

        assert record.violations == ()
        assert (row.status, row.epoch) == (CallStatus.FINISHED, 1)
        assert [heard for heard, _ in await world.words(record.call_sid)] == [
            "my name is Rosalind",
            "tell me a story",
            "are you there",
            "goodbye",
        ]
        assert world.model.own_words().count(HELLO) == 1
        assert "Rosalind" in told(world.model.answered()[2])
        assert world.model.sessions >= 2
        assert world.watch.events("model_session_changed")


async def the_apology(world: World, *, in_mid_call: bool) -> None:
    """One business connects its callers to a person, the other can only say it is sorry."""
    steps = (say(), say()) if in_mid_call else ()
    alpha, beta = await together(world.call(*steps, caller=BEN), world.call(*steps, caller=BEN, to=PLUMBING))

    assert verbs(alpha) == ["ConnectStream", "Redirect", "Say", f"Dial {FRONT_DESK}", "Hangup"]
    assert alpha.of(EventKind.PROMPT)[0].text == "Our assistant is away."
    assert verbs(beta) == ["ConnectStream", "Redirect", "Say", "Hangup"]
    assert beta.of(EventKind.PROMPT)[0].text == "Nobody can take your call now."
    assert beta.end is EndReason.SERVICE_HUNG_UP
    for record in (alpha, beta):
        assert record.violations == ()
        assert (await world.ended(record.call_sid)).status is CallStatus.FAILED


async def dies_for_good(place: Place) -> None:
    """B035."""
    script = carried_over(
        [GREETING, *[turn("hello", "Hi", audio_ms=900, abort=True, after_ms=200)] * 2],
        connections=["accept", "accept", *["refuse"] * 40],
    )
    async with place.world(script) as world:
        await the_apology(world, in_mid_call=True)


async def answers_no_more(place: Place) -> None:
    """B043."""
    failing = turn("hello", "", audio_ms=0, fail="rate_limit_exceeded", repeat=True)
    async with place.world([GREETING, failing]) as world:
        await the_apology(world, in_mid_call=True)


async def refuses_our_settings(place: Place) -> None:
    """B041."""
    async with place.world({"refuse_update": True}) as world:
        await the_apology(world, in_mid_call=False)


async def goes_on_by_keys(place: Place) -> None:
    """Without a model the flow's menus, entries and transfers are still there."""
    flow = {
        "on_model_down": {"say": "Our assistant is away.", "keys": "menu"},
        "nodes": {
            "talk": {"type": "talk", "instructions": "Help."},
            "menu": {
                "type": "menu",
                "say": "For the hours press one, for a code press two.",
                "options": {"1": {"to": "hours"}, "2": {"to": "code"}, "3": {"to": "desk"}},
            },
            "hours": {"type": "say", "say": "We open at nine.", "to": "menu"},
            "code": {"type": "collect", "slot": "code", "kind": "digits", "say": "Enter it.", "to": "desk"},
            "desk": {"type": "transfer", "target": "front_desk", "say": "One moment."},
        },
    }
    async with place.world({"refuse_update": True}, flows={"alpha": flow}) as world:
        keys = [Dtmf(digits, AfterReply(700)) for digits in ("1", "2", "1234")]
        record = await world.call(*keys, caller=BEN)
        assert record.violations == ()
        assert verbs(record)[2:] == [
            *["Say", "Redirect"],
            *["Gather"] * 3,
            *["Say", f"Dial {FRONT_DESK}", "Hangup"],
        ]
        menu = "For the hours press one, for a code press two."
        assert [event.text for event in record.of(EventKind.PROMPT)] == [
            "Our assistant is away.",
            menu,
            f"We open at nine. {menu}",
            "Enter it.",
            "One moment.",
        ]
        row = await world.row(record.call_sid)
        assert row.status is CallStatus.FAILED


async def lacks_out_of_band_replies(place: Place) -> None:
    """A server that is named and not used."""
    async with place.world({"refuse_out_of_band": True}) as world:
        await the_apology(world, in_mid_call=False)
        assert any("out-of-band" in entry["reason"] for entry in world.watch.events("model_unsuitable"))


async def a_failed_response(place: Place) -> None:
    """B043: one failure is tried again, and the caller hears the answer."""
    script = [
        GREETING,
        turn("what does it cost", "", audio_ms=0, fail="rate_limit_exceeded"),
        turn("", "Ninety five dollars"),
        GOODBYE,
    ]
    async with place.world(script) as world:
        record = await world.call(say(), say(), caller=ANN)
        await world.ended(record.call_sid)

        assert (await world.words(record.call_sid))[0] == ("what does it cost", "Ninety five dollars")
        assert record.end is EndReason.SERVICE_HUNG_UP


async def a_failed_transcription(place: Place) -> None:
    """B045: the turn keeps its place, and its answer."""
    failing = turn("", "Nine to five") | {"no_transcript": "fail"}
    del failing["transcript"]
    async with place.world([GREETING, failing, GOODBYE]) as world:
        record = await world.call(say(), say(), caller=BEN)
        await world.ended(record.call_sid)

        assert await world.words(record.call_sid) == [
            ("(not understood)", "Nine to five"),
            ("goodbye", "Goodbye"),
        ]


async def no_session_outlives_its_call(place: Place) -> None:
    """B036. Hung up with `stop`, and reset, both in the middle of a long reply."""
    script = [GREETING, turn("one", "A long story", 8_000), turn("two", "A long story", 8_000)]
    async with place.world(script) as world:
        await together(
            world.call(say(), HangUp(BargeIn(300)), caller=ANN),
            world.call(say(), DropLine(BargeIn(300)), caller=BEN),
        )
        await until(lambda: world.model.open_sessions == 0, timeout_s=4)
        assert world.model.sessions == 2


async def who_speaks_before_the_model_is_ready(place: Place) -> None:
    """B008. They are heard, though no audio goes to a session before its settings are confirmed."""
    script = carried_over([GREETING, turn("hello", "Good morning")], before_ready_ms=1_000)
    async with place.world(script) as world:
        record = await world.call(Say(speech(), "hello", At(150)), HangUp(AfterReply(4_000)))
        await world.ended(record.call_sid)

        assert record.violations == ()
        assert await world.words(record.call_sid) == [("hello", "Good morning")]


async def test_b034_b035_b041_b043_a_model_that_goes_away(act: Act) -> None:
    await act(
        a_session_that_ends,
        a_session_that_dies,
        a_session_that_has_not_long_to_live,
        dies_for_good,
        answers_no_more,
        refuses_our_settings,
        lacks_out_of_band_replies,
    )


async def test_b035_without_a_model_the_flow_goes_on_by_keys(act: Act) -> None:
    await act(goes_on_by_keys)


async def test_b008_b036_b043_b045_a_model_that_is_late_or_fails_once(act: Act) -> None:
    await act(
        a_failed_response,
        a_failed_transcription,
        no_session_outlives_its_call,
        who_speaks_before_the_model_is_ready,
    )
