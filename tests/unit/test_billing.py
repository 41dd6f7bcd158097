"""What a call pays for: shown events and commands by hand, charges come out."""

from datetime import UTC, datetime

import pytest

from ivr.billing import Bill
from ivr.core import commands as do
from ivr.core import events as ev
from ivr.remembering import Prices
from memory.model import Charge, ChargeKind

PRICES = Prices("gpt-realtime-2.1", "gpt-realtime-whisper", "gpt-4o-mini-tts")
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
TOOL = do.FunctionTool(
    "book", "Book a table.", {"type": "object", "properties": {"seats": {"type": "integer"}}}
)
USAGE = ev.Usage(
    input_text_tokens=100, cached_text_tokens=40, output_text_tokens=5, output_audio_tokens=1_000
)


@pytest.fixture
def bill() -> Bill:
    return Bill(PRICES, lambda: NOW)


def ask(bill: Bill, reply_id: str = "r1") -> None:
    said = "word " * 100
    bill.command(do.StartReply(reply_id, said, (do.SystemText("Say exactly: Hello."),), ()))


def done(bill: Bill, reply_id: str = "r1", **values: object) -> tuple[ev.ReplyDone, tuple[Charge, ...]]:
    given = {"status": ev.ReplyStatus.COMPLETED, **values}
    event, charges = bill.event(ev.ReplyDone(reply_id, **given))  # type: ignore[arg-type]
    assert isinstance(event, ev.ReplyDone)
    return event, charges


def test_every_response_is_charged_by_what_the_provider_counted(bill: Bill) -> None:
    """The greeting, a prompt, a decision: nothing here asks what it was for."""
    ask(bill)
    event, (charge,) = done(bill, usage=USAGE)
    assert event.usage == USAGE
    assert (charge.kind, charge.model, charge.at) == (ChargeKind.SPEECH, "gpt-realtime-2.1", NOW)
    assert charge.usd == pytest.approx(PRICES.speech_usd(USAGE))
    assert (charge.input_tokens, charge.cached_tokens, charge.output_tokens) == (100, 40, 1_005)
    assert not charge.is_estimate


def test_a_cancelled_response_costs_what_it_costs(bill: Bill) -> None:
    ask(bill)
    bill.command(do.CancelReply("r1"))
    _, (charge,) = done(bill, usage=USAGE, status=ev.ReplyStatus.CANCELLED)
    assert charge.usd == pytest.approx(PRICES.speech_usd(USAGE))


def test_a_retry_is_paid_twice_and_a_repeated_end_once(bill: Bill) -> None:
    for reply_id in ("r1", "r2"):
        ask(bill, reply_id)
        assert len(done(bill, reply_id, usage=USAGE, status=ev.ReplyStatus.FAILED)[1]) == 1
        assert done(bill, reply_id, usage=USAGE)[1] == ()


def test_without_usage_tokens_are_estimated_and_the_event_has_them(bill: Bill) -> None:
    """100 words of instructions, 3 of the order; 2 s of the reply's audio at 20 tokens a second, 3 words of it."""
    ask(bill)
    bill.event(ev.ReplyAudio("r1", b"\xff" * 16_000))
    bill.event(ev.ReplyText("r1", "Hello "))
    bill.event(ev.ReplyText("r1", "there, caller."))
    event, (charge,) = done(bill)
    assert event.usage == ev.Usage(
        input_text_tokens=133 + 4, output_text_tokens=4, output_audio_tokens=40, is_estimate=True
    )
    assert charge.is_estimate
    assert charge.usd == pytest.approx(PRICES.speech_usd(event.usage))


def test_an_estimate_has_the_audio_that_was_referred_to_and_the_functions(bill: Bill) -> None:
    bill.event(ev.SpeechStarted("item", 1_000))
    bill.event(ev.SpeechStopped("item", 11_000))
    items = (do.UserText("one two three"), do.ItemRef("item"), do.ItemRef("unknown"))
    bill.command(do.StartReply("r1", "", items, (TOOL,)))
    bill.event(ev.ReplyCall("r1", "c1", "book", '{"seats": 4}'))
    event, _ = done(bill)
    assert event.usage is not None
    assert event.usage.input_audio_tokens == 100  # ten seconds at 9.98, rounded up
    assert event.usage.output_text_tokens == 4  # sixteen characters
    assert 4 + 20 < event.usage.input_text_tokens < 4 + 60  # the function's JSON is some 130 characters


def test_what_was_refused_costs_nothing(bill: Bill) -> None:
    ask(bill)
    assert done(bill, status=ev.ReplyStatus.FAILED, code="bad_request")[1] == ()


def test_a_lost_session_is_charged_for_what_had_come_of_it(bill: Bill) -> None:
    ask(bill, "r1")
    ask(bill, "r2")
    bill.event(ev.ReplyText("r1", "Hello"))
    _, charges = bill.event(ev.ModelLost("gone"))
    assert [charge.is_estimate for charge in charges] == [True]
    assert bill.close() == ()


def test_what_is_open_at_the_end_is_estimated(bill: Bill) -> None:
    """Who hangs up in the greeting has cost it all the same."""
    ask(bill)
    (charge,) = bill.close()
    assert charge.is_estimate
    assert charge.usd > 0.0
    assert bill.close() == ()


def test_each_item_is_transcribed_once_noise_too(bill: Bill) -> None:
    """A minute is 1.7 cents."""
    for _ in range(2):
        bill.event(ev.SpeechStarted("item", 1_000))
        bill.event(ev.SpeechStopped("item", 61_000))
        _, charges = bill.event(ev.TurnCommitted("item"))
        usd = [charge.usd for charge in charges]
        assert usd in ([pytest.approx(0.017)], [])
    assert usd == []
    assert bill.event(ev.TurnCommitted("never heard of"))[1] == ()


def test_files_of_the_business_are_free(bill: Bill) -> None:
    bill.command(do.PlayFile("r1", "hello.wav", "Hello."))
    bill.event(ev.ReplyAudio("r1", b"\xff" * 800))
    assert done(bill)[1] == ()
    assert bill.close() == ()


def test_words_of_ours_are_the_endpoints_to_charge_where_it_spoke(bill: Bill) -> None:
    """0.015 dollars a minute; nothing for the model, which was not asked."""
    ask(bill)
    bill.event(ev.ReplySpoken("r1", "Hello."))
    (made,) = bill.spoken(6_000)
    assert (made.model, made.kind, made.is_estimate) == ("gpt-4o-mini-tts", ChargeKind.SPEECH, True)
    assert made.usd == pytest.approx(0.0015)
    assert done(bill)[1] == () == bill.close()
    assert bill.spoken(0) == ()
