"""Calls that break off: what comes back to the same caller, and to nobody else."""

from datetime import timedelta

from callflows.parse import load_folder
from ivr.adapters.twilio_accounts import TwilioAccounts
from ivr.adapters.twilio_outward import TwilioOutward
from ivr.orders import Orders
from ivr.phone.machine import Caller
from ivr.phone.record import EndReason, EventKind
from ivr.phone.rest import FakeTwilioRest
from ivr.phone.script import AfterReply, BargeIn, BreakStream, DropLine, HangUp, Wait
from ivr.returns import Returns
from ivr.sandbox.brain import Question
from memory.calls import CallStatus
from memory.model import EndedBy
from memory.store_orders import return_key
from tests.acceptance.businesses import ANN, BEN, DENTAL, PLUMBING, TOKEN
from tests.acceptance.line import say
from tests.acceptance.model import GREETING, calls, told, turn
from tests.acceptance.world import Act, Place, World, together, until

PUBLIC = "https://ivr.example.test"
OFFER = "Welcome back to Alpha Dental. We were cut off. Shall we go on, or start afresh?"
HELLO = "Alpha Dental, how can I help you?"
MARKED = "Is Doctor Marigold there on Friday?"
LONG = "Doctor Marigold is there in the morning and in the afternoon of every Friday of the year"


def question_with(world: World, text: str) -> Question:
    """The question whose turn said `text`, and so everything the model was told for it."""
    (found,) = [
        q for q in world.model.answered() if q.lines and text in told(q).split("[state of the call")[0]
    ][-1:]
    return found


async def pages_of(world: World, call_sid: str) -> set[int]:
    """The call's own pages."""
    return {t.page.page_id for t in await world.turns(call_sid)}


async def kept(world: World, call_sid: str, turns: int) -> None:
    """Until so many turns of the call are stored."""

    async def enough() -> bool:
        return len(await world.turns(call_sid)) >= turns

    await until(enough)


async def goes_on_for_its_caller_alone(place: Place) -> None:
    script = [
        GREETING,
        turn(MARKED, LONG, audio_ms=5_000),
        *(turn(f"yes, number {n} speaking", f"Reply {n}") for n in range(1, 6)),
    ]
    others = (
        {"caller": BEN},
        {"caller": Caller("anonymous")},
        {"caller": Caller("+266696687")},
        {"caller": ANN, "to": PLUMBING},
    )
    async with place.world(script) as world:
        first = await world.call(say(), DropLine(BargeIn(900)))
        await kept(world, first.call_sid, 1)
        await world.run_jobs()
        steps = (say(), HangUp(AfterReply(400)))
        mine, *theirs = await together(
            world.call(*steps),
            *(world.call(*steps, **who) for who in others),
        )
        row, dropped = await world.ended(mine.call_sid), await world.row(first.call_sid)

        assert first.end is EndReason.LINE_DROPPED
        assert (dropped.status, row.resumed_from) == (CallStatus.DROPPED, first.call_sid)
        offers = [words for words in world.model.own_words() if words.startswith("Welcome back")]
        assert offers == [OFFER]
        assert sorted(w for w in world.model.own_words() if w not in offers) == [
            *[HELLO] * 4,
            "Beta Plumbing, what can we do for you?",
        ]
        (my_turn,) = await world.turns(mine.call_sid)
        assert set(my_turn.states["window"]["page_ids"]) >= await pages_of(world, first.call_sid)
        assert my_turn.states["window"]["threads"] == 1
        shown = told(question_with(world, my_turn.page.user_text))
        assert "Marigold" in shown.partition("topic: ")[2].partition("caller: ")[0]
        for record in theirs:
            other = await world.ended(record.call_sid)
            assert other.resumed_from is None
            (their_turn,) = await world.turns(record.call_sid)
            assert their_turn.states["window"]["page_ids"] == []
            assert "Marigold" not in told(question_with(world, their_turn.page.user_text))
        withheld = [await world.row(record.call_sid) for record in theirs[1:3]]
        assert [one.caller for one in withheld] == [None, None]
        assert all(record.violations == () for record in (first, mine, *theirs))


async def nobody_is_not_taken_back_to_nobodys_call(place: Place) -> None:
    script = [GREETING, turn("I am Ana, order 77", LONG, audio_ms=4_000), turn("who am I", "I do not know")]
    async with place.world(script) as world:
        nobody = Caller("Anonymous")
        first = await world.call(say(), DropLine(BargeIn(400)), caller=nobody)
        await kept(world, first.call_sid, 1)
        second = await world.call(say(), HangUp(AfterReply(400)), caller=nobody)
        row = await world.ended(second.call_sid)
        await world.run_jobs()

        assert row.resumed_from is None
        assert world.model.own_words() == [HELLO, HELLO]
        assert "77" not in told(question_with(world, "who am I"))
        assert world.rows("SELECT count(*) FROM thread_pages") == [(0,)]


async def a_line_that_drops_again_before_a_word(place: Place) -> None:
    script = [GREETING, turn(MARKED, LONG, audio_ms=4_000), turn("go on", "Gladly")]
    async with place.world(script) as world:
        first = await world.call(say(), DropLine(BargeIn(500)))
        await kept(world, first.call_sid, 1)
        await world.call(DropLine(BargeIn(200)))
        third = await world.call(say(), HangUp(AfterReply(400)))
        await world.ended(third.call_sid)

        assert world.model.own_words() == [HELLO, OFFER, OFFER]
        (last,) = await world.turns(third.call_sid)
        assert set(last.states["window"]["page_ids"]) >= await pages_of(world, first.call_sid)


async def too_late_to_resume(place: Place) -> None:
    script = [GREETING, turn(MARKED, LONG, audio_ms=3_000)]
    flows = {"alpha": {"resume": {"within": "1s"}}}
    async with place.world(script, flows=flows) as world:
        first = await world.call(say(), DropLine(BargeIn(300)))
        await kept(world, first.call_sid, 1)
        world.rows(
            "UPDATE calls SET status = 'dropped', ended_at = now() - interval '2 s',"
            " last_activity_at = now() - interval '2 s' RETURNING 1"
        )
        second = await world.call(HangUp(AfterReply(400)))
        row = await world.ended(second.call_sid)

        assert row.resumed_from is None
        assert world.model.own_words() == [HELLO, HELLO]


async def a_broken_stream_comes_back(place: Place) -> None:
    """One stream breaks in the middle of a reply, the other while nobody speaks."""
    script = [
        GREETING,
        turn("first question", LONG, audio_ms=3_000),
        turn("another question", "A short answer"),
        turn("second question", "Gladly again"),
        turn("second matter", "Certainly so"),
        turn("goodbye", "Goodbye", **calls("hang_up")),
        turn("bye", "Bye bye", **calls("hang_up")),
    ]
    # Between two streams nobody hears the caller, who therefore waits until we have spoken again.
    in_reply = (say(), BreakStream(BargeIn(300)), say(gap_ms=3_000), say())
    at_rest = (say(), BreakStream(AfterReply(500)), say(gap_ms=3_000), say())
    async with place.world(script) as world:
        records = await together(world.call(*in_reply), world.call(*at_rest, caller=BEN))
        for record in records:
            row = await world.ended(record.call_sid)
            turns = await world.turns(record.call_sid)

            assert record.violations == ()
            assert record.end is EndReason.SERVICE_HUNG_UP
            assert len(record.of(EventKind.STREAM_STARTED)) == 2
            assert (row.status, row.epoch, row.resumed_from) == (CallStatus.FINISHED, 2, None)
            assert [t.page.exchange_no for t in turns] == [1, 2, 3]
            assert turns[1].states["window"]["page_ids"] == [turns[0].page.page_id]
        assert sorted(world.model.own_words()) == [
            HELLO,
            HELLO,
            "Sorry, the line broke for a moment. Please go on.",
            "Sorry, the line broke for a moment. Please go on.",
        ]
        assert world.rows("SELECT count(*) FROM calls") == [(2,)]


async def breaks_before_the_words_are_known(place: Place) -> None:
    """The new stream waits for what the old one still has to write."""
    script = [
        GREETING,
        turn("words that come late", "An answer nobody hears", transcript_delay_ms=700),
        turn("goodbye", "Goodbye", **calls("hang_up")),
    ]
    async with place.world(script) as world:
        record = await world.call(say(), Wait(620), BreakStream(), say(gap_ms=3_500))
        await world.ended(record.call_sid)

        assert record.violations == ()
        assert await world.words(record.call_sid) == [("words that come late", ""), ("goodbye", "Goodbye")]


async def nobody_carries_it_any_more(place: Place) -> None:
    """Its worker stopped without another to take over. The next one finds it: by its caller, or by its age."""
    async with place.world([GREETING, turn(MARKED, LONG, 4_000)]) as world:
        record = await world.call(say(), DropLine(BargeIn(300)))
        await kept(world, record.call_sid, 1)
    assert place.rows("SELECT status FROM calls") == [("active",)]
    place.rows("UPDATE calls SET last_activity_at = now() - interval '20 s' RETURNING 1")
    async with place.world([GREETING]) as world:
        await world.call(HangUp(AfterReply(300)), caller=BEN)
        assert (await world.row(record.call_sid)).status is CallStatus.ACTIVE
        second = await world.call(HangUp(AfterReply(300)))
        assert (await world.ended(second.call_sid)).resumed_from == record.call_sid
        dropped = await world.row(record.call_sid)
        assert dropped.status is CallStatus.DROPPED
        assert dropped.ended_at == dropped.last_activity_at
        world.rows("UPDATE calls SET status = 'active', ended_at = NULL RETURNING 1")
        assert set(await world.store.drop_stale(timedelta(seconds=10))) == {record.call_sid}


async def who_was_cut_off_is_called_back_and_goes_on(place: Place) -> None:
    """Their line breaks, the order is made with the end of the call, and Twilio calls them: as `Url` says."""
    script = [GREETING, turn(MARKED, LONG, audio_ms=4_000), turn("yes please", "Gladly")]
    flows = {"alpha": {"resume": {"call_back": {"consent": "policy"}}}}
    async with place.world(script, flows=flows) as world, FakeTwilioRest(auth_token=TOKEN) as rest:
        first = await world.call(say(), DropLine(BargeIn(500)))
        await kept(world, first.call_sid, 1)
        dropped = await world.ended(first.call_sid)
        assert (dropped.status, dropped.ended_by) == (CallStatus.DROPPED, EndedBy.TWILIO)
        businesses = load_folder(place.folder / "flows").businesses
        outward = TwilioOutward(TwilioAccounts(rest.account_sid, TOKEN, rest.base_url))
        jobs = Orders(world.store, outward, PUBLIC, Returns(world.store, lambda: businesses))
        for _ in range(2):
            await jobs.carry_out(first.call_sid, return_key(first.call_sid))
        (form,) = rest.made
        assert (form["To"], form["From"], form["Url"]) == (ANN.number, DENTAL, f"{PUBLIC}/twilio/voice")

        called = await world.call(say(), HangUp(AfterReply(400)), caller=Caller(ANN.number, is_called=True))
        row = await world.ended(called.call_sid)
        assert (row.caller, row.resumed_from) == (ANN.number, first.call_sid)
        assert world.model.own_words() == [HELLO, OFFER]
        (answered,) = await world.turns(called.call_sid)
        assert set(answered.states["window"]["page_ids"]) >= await pages_of(world, first.call_sid)


async def test_b082_b083_b090_calls_that_break_off(act: Act) -> None:
    await act(
        goes_on_for_its_caller_alone,
        nobody_is_not_taken_back_to_nobodys_call,
        too_late_to_resume,
        a_line_that_drops_again_before_a_word,
        a_broken_stream_comes_back,
        breaks_before_the_words_are_known,
        nobody_carries_it_any_more,
        who_was_cut_off_is_called_back_and_goes_on,
    )
