"""Text messages and calls back: to whom, when, and how often."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callflows.conversation import Conversation, Reaction
from callflows.engine import FlowState, Moment
from callflows.hours import Hours
from callflows.orders import MAX_ORDERS, CalledBack, Order, may_reach, orders_of
from callflows.parse import FlowErrors, parse_text
from tests.unit.callflows.examples import unhurried

SHOP = """\
id: shop
name: The Shop
numbers: ["+16175550101"]
timezone: America/New_York
disclosure: ""
greeting: The Shop.
hours: {office: {weekly: {mon-fri: "09:00-17:00"}, holidays: {country: US}}}
transfers: {desk: {number: "+16175550102", description: a person}}
operator: desk
start: menu
nodes:
  menu:
    type: menu
    say: Press a key.
    options: {"1": {to: name}, "2": {to: back}, "3": {to: staff}}
  name: {type: collect, slot: who, kind: text, by: voice, say: "Your name?", to: text}
  text: {type: sms, text: "Thank you, {who}. The Shop", to: menu, otherwise: cannot}
  staff: {type: sms, text: A customer waits., recipient: desk, to: menu}
  back:
    type: callback
    say: May we call you back when we are open?
    hours: office
    no_input: {times: 1, to: menu}
    no_match: {times: 1, to: menu}
    to: promised
    otherwise: cannot
  promised: {type: say, say: We will call you., to: menu}
  cannot: {type: say, say: Then please call again., to: menu}
"""
AGREES = SHOP.replace("    hours: office\n    no_input", "    when: dropped\n    no_input") + (
    "resume: {call_back: {hours: office}}\n"
)
BUSINESS = parse_text(SHOP, "shop.yaml")
ZONE = ZoneInfo("America/New_York")
CALLER = "+12025550144"
OPEN = datetime(2026, 1, 7, 10, 0, tzinfo=ZONE)
FRIDAY_NIGHT = datetime(2026, 1, 16, 20, 0, tzinfo=ZONE)
TUESDAY_MORNING = "2026-01-20T14:00:00+00:00"  # Monday is a holiday


def call(now: datetime = OPEN, caller: str | None = CALLER) -> Conversation:
    """One that has begun."""
    made = Conversation(BUSINESS, Moment(now, caller, call_id="CA1"))
    made.begin()
    return made


def ordered(reaction: Reaction) -> list[tuple[str, str, str, str]]:
    """What was ordered, without keys."""
    return [(o.kind, o.to, o.text, o.due) for o in reaction.actions if isinstance(o, Order)]


def test_the_caller_is_sent_a_text_once_for_each_time() -> None:
    talk = call()
    talk.press("1")
    first = talk.say("Ana")
    assert ordered(first) == [("sms", CALLER, "Thank you, Ana. The Shop", "")]
    assert first.sent() == f"sms {CALLER} Thank you, Ana. The Shop"
    talk.press("1")
    talk.say("Ana")
    keys = [order.key for order in talk.state.orders]
    assert len(set(keys)) == 2
    assert FlowState.from_json(talk.state.to_json(), BUSINESS) == talk.state
    other = Conversation(BUSINESS, Moment(OPEN, CALLER, call_id="CA2"))
    other.begin()
    other.press("1")
    other.say("Ana")
    assert other.state.orders[0].key not in keys


def test_a_call_orders_no_more_than_so_much() -> None:
    talk = call()
    for _ in range(MAX_ORDERS + 3):
        talk.press("3")
    assert [order.to for order in talk.state.orders] == ["+16175550102"] * MAX_ORDERS


def test_b083_a_withheld_number_is_neither_written_to_nor_called() -> None:
    talk = call(caller=None)
    talk.press("1")
    assert talk.say("Ana").said() == "Then please call again. Press a key."
    assert talk.press("2").said() == "Then please call again. Press a key."
    assert talk.state.orders == ()


@pytest.mark.parametrize(
    ("number", "countries", "may"),
    [
        ("+12025550144", ["US"], True),
        ("+447400123456", ["US"], False),
        ("+447400123456", ["US", "GB"], True),
        ("+19005550100", ["US"], False),  # premium
        ("+18005550100", ["US"], False),  # toll-free: nobody's own
        ("+447012345678", ["GB"], False),  # personal numbering: at premium prices
        ("+449098790123", ["GB"], False),
        ("+881612345678", ["US", "001"], False),  # satellite
        ("+88216123456789", ["US"], False),
        ("+999", ["US"], False),
        ("no number", ["US"], False),
        ("sip:+12025550144@example.com", ["US"], False),  # whatever the far side wrote there
        ("client:+12025550144", ["US"], False),
        (None, ["US"], False),
    ],
)
def test_only_ordinary_numbers_of_allowed_countries(
    number: str | None, countries: list[str], may: bool
) -> None:
    assert may_reach(number, countries) is may


@pytest.mark.parametrize(
    ("now", "due"),
    [(OPEN, ""), (FRIDAY_NIGHT, TUESDAY_MORNING), (OPEN.replace(hour=6), "2026-01-07T14:00:00+00:00")],
)
def test_a_call_back_is_asked_for_and_comes_within_hours(now: datetime, due: str) -> None:
    talk = call(now)
    assert talk.press("2").said() == "May we call you back when we are open?"
    assert talk.state.orders == ()
    agreed = talk.say("yes please")
    assert agreed.said() == "We will call you. Press a key."
    assert ordered(agreed) == [("callback", CALLER, "", due)]


NOTED = "It is noted already that we call you back. We will call you. Press a key."
TOO_SOON = "We have called you back once already; we can do that once a day only. Then please call again. Press a key."


def test_a_second_wish_in_a_call_is_told_of_the_first() -> None:
    talk = call(FRIDAY_NIGHT)
    talk.press("2")
    talk.say("yes")
    again = talk.press("2")
    assert again.said() == NOTED
    assert len(talk.state.orders) == 1


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (CalledBack(is_due=True), OPEN, NOTED),
        (CalledBack(begun_at=OPEN - timedelta(hours=2)), OPEN, TOO_SOON),
        (CalledBack(begun_at=OPEN - timedelta(hours=19, minutes=59)), OPEN, TOO_SOON),
        (CalledBack(begun_at=OPEN - timedelta(hours=20)), OPEN, "May we call you back when we are open?"),
        # Called on Friday, and due on Tuesday: that will be done.
        (
            CalledBack(begun_at=FRIDAY_NIGHT - timedelta(hours=4)),
            FRIDAY_NIGHT,
            "May we call you back when we are open?",
        ),
    ],
)
def test_b083_what_would_not_be_done_is_not_promised(before: CalledBack, now: datetime, said: str) -> None:
    """Once a day, which is twenty hours (docs/callflows.md)."""
    talk = Conversation(BUSINESS, Moment(now, CALLER, call_id="CA2", called_back=before))
    talk.begin()
    assert talk.press("2").said() == said
    assert talk.state.orders == ()


def test_an_order_of_the_call_that_goes_on_here_may_be_long_done() -> None:
    talk = call(FRIDAY_NIGHT)
    talk.press("2")
    talk.say("yes")
    later = Conversation(BUSINESS, Moment(OPEN, CALLER, call_id="CA9"))
    later.state = talk.state
    assert later.press("2").said() == "May we call you back when we are open?"


def test_a_call_that_has_ordered_enough_is_promised_nothing() -> None:
    talk = call()
    for _ in range(MAX_ORDERS):
        talk.press("3")
    assert talk.press("2").said() == "Then please call again. Press a key."


def test_what_the_last_step_orders_stands_and_is_not_ordered_twice() -> None:
    talk = call()
    talk.press("1")
    before = talk.state
    after = talk.say("Ana")
    heard_not = before.ordering(talk.state)
    assert (heard_not.node, heard_not.orders, heard_not.ahead) == ("name", talk.state.orders, 1)
    assert FlowState.from_json(heard_not.to_json(), BUSINESS) == heard_not
    for call_id in ("CA1", "CA5"):  # the same call comes back; another one goes on with it
        again = Conversation(BUSINESS, Moment(OPEN, CALLER, call_id=call_id))
        again.state = heard_not
        again.say("Ana")
        assert (again.state.orders, again.state.ahead) == (talk.state.orders, 0)
    other = call()
    other.state = heard_not
    other.say("Ben")
    assert [order.text for order in other.state.orders] == [
        "Thank you, Ana. The Shop",
        "Thank you, Ben. The Shop",
    ]
    assert ordered(after)


@pytest.mark.parametrize("ahead", [-1, 9, "x", None])
def test_a_stored_count_that_cannot_be_is_none(ahead: object) -> None:
    stored = call().state.to_json() | {"ahead": ahead}
    assert FlowState.from_json(stored, BUSINESS).ahead == 0


@pytest.mark.parametrize("answer", ["2", "no thanks"])
def test_without_a_yes_there_is_no_call(answer: str) -> None:
    talk = call()
    talk.press("2")
    done = talk.press(answer) if answer.isdecimal() else talk.say(answer)
    assert done.said() == "Then please call again. Press a key."
    assert talk.state.orders == ()


def test_silence_and_noise_are_no_yes() -> None:
    talk = call()
    talk.press("2")
    assert "May we call you back" in talk.wait().said()
    assert talk.wait().said() == "Press a key."
    talk.press("2")
    assert "May we call you back" in talk.press("7").said()
    assert talk.say("blue").said() == "Press a key."
    assert talk.state.orders == ()


def test_the_next_opening_is_in_the_zones_own_time() -> None:
    hours = Hours.model_validate({"weekly": {"sun": "09:00-17:00"}})
    # Clocks go forward in the night to Sunday, March 8.
    before = datetime(2026, 3, 7, 12, 0, tzinfo=ZONE)
    assert hours.next_open(before, ZONE) == datetime(2026, 3, 8, 13, 0, tzinfo=ZoneInfo("UTC"))
    never = Hours.model_validate({"weekly": {"sun": "closed"}})
    assert never.next_open(before, ZONE) is None


VALUES = st.none() | st.integers() | st.text(max_size=5) | st.just("sms")
KEYS = st.sampled_from(["key", "kind", "to", "text", "due"])


@unhurried
@given(st.lists(st.dictionaries(KEYS, VALUES) | VALUES) | VALUES)
def test_any_journalled_orders_can_be_read(data: object) -> None:
    assert all(isinstance(order, Order) for order in orders_of(data))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("recipient: desk", "recipient: boss", "no transfer target is called `boss`"),
        ("hours: office\n    no_input", "hours: shop\n    no_input", "no schedule is called `shop`"),
        ('text: "Thank you, {who}. The Shop"', 'text: "Thank you, {whom}."', "no slot is called `whom`"),
        ("to: menu, otherwise: cannot}", "to: menu, countries: [XX]}", "not a country"),
        ("    otherwise: cannot\n", "", "is missing"),
    ],
)
def test_what_is_wrong_is_told(old: str, new: str, told: str) -> None:
    assert old in SHOP
    with pytest.raises(FlowErrors) as caught:
        parse_text(SHOP.replace(old, new, 1), "shop.yaml")
    assert any(told in fault.message for fault in caught.value.faults), caught.value.faults


@pytest.mark.parametrize(
    ("caller", "key", "node", "agreed"),
    [
        (CALLER, "1", "menu", True),
        (CALLER, "2", "menu", False),
        ("+19005550144", "", "menu", False),
        (None, "", "menu", False),
    ],
)
def test_a_caller_agrees_to_be_called_should_the_call_break_off(
    caller: str | None, key: str, node: str, agreed: bool
) -> None:
    business = parse_text(AGREES, "shop.yaml")
    made = Conversation(business, Moment(FRIDAY_NIGHT, caller, call_id="CA1"))
    made.begin()
    made.press("2")
    if key:
        made.press(key)
    assert (made.state.node, made.state.may_return, made.state.orders) == (node, agreed, ())
    assert FlowState.from_json(made.state.to_json(), business).may_return is agreed


def test_who_is_called_back_goes_on_and_needs_a_schedule_that_is_there() -> None:
    with pytest.raises(FlowErrors, match="goes on where the call stopped"):
        parse_text(SHOP + "resume: {greeting: never, call_back: {}}\n", "shop.yaml")
    with pytest.raises(FlowErrors, match="no schedule is called `nights`"):
        parse_text(SHOP + "resume: {call_back: {hours: nights}}\n", "shop.yaml")
