"""A call moves through its flow: into nodes, on by what they answer, out of our stream. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import phonenumbers

from callflows.actions import Action, Begin, CheckPin, HangUp, Leave, Moved, Say, Transfer
from callflows.away import TRANSFERRED, Errand, Trip
from callflows.hours import Override, open_by
from callflows.model import Business, Talk
from callflows.nodes.base import Here, Outcome, Progress, Wish
from callflows.orders import MAX_ORDERS, NEVER_CALLED_BACK, CalledBack, Order, order_key
from callflows.state import STATE_VERSION, FlowState, Using
from callflows.understand import sounds
from callflows.using import kinds_of_slots, use

MAX_STEPS = 64
"""So many nodes are passed without the caller; a longer way is a circle, and ends the call."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What a step may know of the world beside the flow. `now` has a zone; None: the time is not known."""

    now: datetime | None = None
    caller: str | None = None
    overrides: Mapping[str, Override] = field(default_factory=dict)
    call_id: str = ""
    """Makes the keys of this call's tools differ from another's."""
    called_back: CalledBack = NEVER_CALLED_BACK


@dataclass(frozen=True, slots=True)
class Step:
    """The next state, and what is to be done, in order."""

    state: FlowState
    actions: tuple[Action, ...]


def at_node(business: Business, node: str) -> FlowState:
    """The state of a call that is at `node` with nothing gathered; an unknown node becomes the start."""
    return FlowState(STATE_VERSION, node if node in business.nodes else business.start)


def language(business: Business, state: FlowState) -> str:
    """The language the call is in."""
    return state.language or business.language


# -- moving --------------------------------------------------------------------------------------------------


def enter(business: Business, state: FlowState, name: str, moment: Moment) -> Step:
    """Go to a node, and on through all that need nobody. A talking node reached so is begun by the model."""
    actions: list[Action] = [Moved(name)]
    state = replace(state, node=name, progress=Progress(), using=None, offered=None)
    for _ in range(MAX_STEPS):
        node = business.nodes[state.node]
        if isinstance(node, Talk):
            actions.append(Begin())
            return Step(state, tuple(actions))
        outcome = node.enter(here(business, state, moment))
        state, done = _applied(business, state, outcome, moment)
        actions += done
        if outcome.hours is not None:
            moment = replace(moment, overrides=outcome.hours.after(moment.overrides))
        if not outcome.to:
            return Step(state, tuple(actions))
        actions.append(Moved(outcome.to))
        state = replace(state, node=outcome.to, progress=Progress(), using=None)
    return Step(replace(state, ended="hung_up"), (*actions, HangUp("")))


def carried(business: Business, state: FlowState, outcome: Outcome, moment: Moment) -> Step:
    """An outcome of the present node, carried out."""
    after, actions = _applied(business, state, outcome, moment)
    if not outcome.to:
        return Step(after, tuple(actions))
    onward = enter(business, after, outcome.to, moment)
    return replace(onward, actions=(*actions, *onward.actions))


def _applied(
    business: Business, state: FlowState, outcome: Outcome, moment: Moment
) -> tuple[FlowState, list[Action]]:
    """The state after an outcome, without the way it leads."""
    state = replace(
        state,
        slots={**state.slots, **outcome.slots},
        secrets={**state.secrets, **outcome.secrets},
        language=_language(business, outcome.language) if outcome.language else state.language,
        progress=outcome.progress if outcome.progress is not None else state.progress,
    )
    said = (Say(outcome.told), *outcome.say)
    actions: list[Action] = [each for each in said if each.text or each.audio]
    if outcome.hours is not None:
        actions.append(outcome.hours)
    if outcome.check:
        key = f"pin-{state.uses + 1}"
        state = replace(state, using=Using(key, ""), uses=state.uses + 1)
        return state, [*actions, CheckPin(key, outcome.check)]
    if outcome.may_return is not None:
        state = replace(state, may_return=outcome.may_return)
    if outcome.wish is not None:
        state, ordered = _ordered(business, state, outcome.wish, moment)
        actions += ordered
    if outcome.use:
        actions = actions or filler(business, state, outcome.use)
        state, order = use(business, state, outcome.use, moment.call_id, moment.caller)
        return state, [*actions, order]
    if outcome.leave is not None:
        state, done = _left(business, state, outcome.leave)
        return state, [*actions, done]
    if outcome.end is not None:
        return replace(state, ended="hung_up"), [*actions, outcome.end]
    return state, actions


def filler(business: Business, state: FlowState, tool: str) -> list[Action]:
    """What the tool itself has the caller told while it runs."""
    text = here(business, state, Moment()).text(business.tools[tool].say)
    return [Say(text)] if text else []


def _language(business: Business, language: str) -> str:
    return "" if language == business.language else language


def _ordered(
    business: Business, state: FlowState, wish: Wish, moment: Moment
) -> tuple[FlowState, list[Action]]:
    """What is to be done beside the call is part of its state: journalled with it, it is done once."""
    to = business.transfers[wish.target].number if wish.target else moment.caller
    number = len(state.orders) + 1
    if to is None:
        return state, []
    order = Order(order_key(business.id, moment.call_id, number), wish.kind, to, wish.text, wish.due)
    if state.ahead and replace(state.orders[-state.ahead], key=order.key) == order:
        return replace(state, ahead=state.ahead - 1), []  # the last step of this call, taken once more
    if number > MAX_ORDERS:
        return state, []
    return replace(state, orders=(*state.orders, order), ahead=0), [order]


def _left(business: Business, state: FlowState, leave: Errand) -> tuple[FlowState, Action]:
    """The call leaves our stream: to people, or to be recorded or kept in a line by the telephone network."""
    first = leave.ringing[0] if leave.ringing else ""
    trip = Trip(state.trip.no + 1, leave.ringing, leave.after)
    state = replace(state, ended=leave.ended, target=first, trip=trip)
    if not first:
        return state, Leave(leave.say)
    target = business.transfers[first]
    words = leave.say or here(business, state, Moment()).text(target.say)
    return state, Transfer(first, target.number, words)


def transferred(business: Business, state: FlowState, name: str) -> Step:
    """Connect the caller to one of the business's targets."""
    state, done = _left(business, state, Errand(TRANSFERRED, (name,)))
    return Step(state, (done,))


# -- what a node may know ------------------------------------------------------------------------------------


def here(business: Business, state: FlowState, moment: Moment) -> Here:
    """The node's view of the call."""
    spoken_in = language(business, state)
    zone = ZoneInfo(business.timezone)
    now = moment.now.astimezone(zone) if moment.now is not None else None
    kinds = kinds_of_slots(business)
    return Here(
        language=spoken_in,
        now=now,
        region=phonenumbers.region_code_for_number(phonenumbers.parse(business.numbers[0])) or "US",
        slots={**state.slots, **state.secrets},
        caller=moment.caller,
        is_vip=moment.caller is not None and moment.caller in business.callers.vip,
        is_owner=moment.caller is not None and moment.caller in business.callers.owners,
        is_staff=moment.caller is not None and moment.caller in business.callers.staff,
        is_open=lambda name: open_by(name, business.hours, moment.overrides, now, business.timezone),
        spoken={name: _sounds(value, kinds.get(name), spoken_in, now) for name, value in state.slots.items()},
        progress=state.progress,
        may_order=len(state.orders) < MAX_ORDERS,
        called_back=_called_back(business, state, moment),
        next_open=lambda name: business.hours[name].next_open(now, zone) if now is not None else None,
        on_duty=lambda name: business.rotas[name].on_duty(now, zone) if now is not None else (),
    )


def _called_back(business: Business, state: FlowState, moment: Moment) -> CalledBack:
    """With what this very call has ordered; an order of an older call that goes on here may be long done."""
    ours = {order_key(business.id, moment.call_id, number + 1) for number in range(len(state.orders))}
    is_due = any(order.kind == "callback" and order.key in ours for order in state.orders)
    return replace(moment.called_back, is_due=True) if is_due else moment.called_back


def _sounds(value: Any, kind: Any, language: str, now: datetime | None) -> str:
    try:
        return sounds(value, kind, language, now)
    except ValueError:  # a slot of an older flow file that was of another kind
        return str(value)
