"""A business's ceiling in whole calls: spoken, then the end that it chose."""

from memory.calls import CallStatus
from tests.acceptance.businesses import FRONT_DESK
from tests.acceptance.model import GREETING
from tests.acceptance.test_calls import verbs
from tests.acceptance.world import Act, Place

LAST_WORDS = "I am connecting you to the front desk now."


async def the_greeting_reaches_the_ceiling(place: Place) -> None:
    """It costs more than a hundredth of a cent: it is heard to its end, then the caller is connected."""
    spending = {"per_call_usd": 0.0001, "say": LAST_WORDS, "transfer": "front_desk"}
    async with place.world([GREETING], flows={"alpha": {"spending": spending}}) as world:
        record = await world.call()
        row = await world.ended(record.call_sid)

        assert record.violations == ()
        assert world.model.own_words() == ["Alpha Dental, how can I help you?", LAST_WORDS]
        assert verbs(record)[:3] == ["ConnectStream", "Redirect", f"Dial {FRONT_DESK}"]
        assert row.status is CallStatus.TRANSFERRED
        assert await world.store.spent_in_call("alpha", record.call_sid) > 0.0001


async def a_month_that_is_spent(place: Place) -> None:
    spending = {"per_month_usd": 0.0001, "say": "Please call again next month."}
    async with place.world([GREETING], flows={"alpha": {"spending": spending}}) as world:
        first = await world.call()
        await world.ended(first.call_sid)
        second = await world.call()
        row = await world.ended(second.call_sid)

        assert world.model.own_words() == [
            "Alpha Dental, how can I help you?",
            "Please call again next month.",
            "Please call again next month.",
        ]
        assert verbs(second) == ["ConnectStream", "Redirect", "Hangup"]
        assert row.status is CallStatus.FINISHED


async def test_a_ceiling_ends_a_call_with_words(act: Act) -> None:
    await act(the_greeting_reaches_the_ceiling, a_month_that_is_spent)
