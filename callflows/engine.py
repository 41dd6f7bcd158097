"""A call flow at work: where a call stands, what the speech model may do there, and what comes of it.

Pure; the one module of the flow engine that the service uses. Its parts: `moving` (from node to node), `running` (what
comes of an event), `proposals` (what the model may do), `offers` (being taken back), `trips` (away from our stream),
`stock` (our own phrases).
"""

import json
from datetime import datetime

from callflows import offers, stock
from callflows.actions import (
    Action,
    Begin,
    CheckPin,
    HangUp,
    Leave,
    Moved,
    Request,
    Say,
    SetHours,
    Told,
    Transfer,
    UseTool,
)
from callflows.away import QUEUED, Away, Came, Dial, Record, Take, Wait, Whisper
from callflows.hours import Override
from callflows.lines import Hold, InLine, came_out, held, leaving
from callflows.model import Business, Talk
from callflows.moving import Moment, Step, at_node, enter, language
from callflows.nodes.base import Awaited, Event, Key, KeysDone, Silence, ToolAnswer, Words
from callflows.offers import again, awaits, offered, step, take_up, takes_events
from callflows.orders import NEVER_CALLED_BACK, CalledBack, Order, orders_json
from callflows.prompt import (
    MEMORY_CLOSE,
    MEMORY_OPEN,
    Prompt,
    as_data,
    as_documents,
    clock,
    compose,
    estimate_tokens,
)
from callflows.proposals import (
    HANG_UP,
    TRANSFER,
    Applied,
    FunctionSpec,
    Refused,
    apply,
    functions,
    gathered,
    talk_at,
)
from callflows.running import begin, is_blocked, is_urgent, verification
from callflows.state import FlowState
from callflows.trips import away, farewell, opening, returned, whisper

__all__ = [
    "HANG_UP",
    "MAX_TOKENS",
    "MEMORY_CLOSE",
    "MEMORY_OPEN",
    "NEVER_CALLED_BACK",
    "QUEUED",
    "TRANSFER",
    "Action",
    "Applied",
    "Awaited",
    "Away",
    "Begin",
    "CalledBack",
    "Came",
    "CheckPin",
    "Dial",
    "Event",
    "FlowState",
    "FunctionSpec",
    "HangUp",
    "Hold",
    "InLine",
    "Key",
    "KeysDone",
    "Leave",
    "Moment",
    "Moved",
    "Order",
    "Override",
    "Record",
    "Refused",
    "Request",
    "Say",
    "SetHours",
    "Silence",
    "Step",
    "Take",
    "Told",
    "ToolAnswer",
    "Transfer",
    "UseTool",
    "Wait",
    "Whisper",
    "Words",
    "again",
    "apply",
    "as_data",
    "as_documents",
    "at_node",
    "awaits",
    "away",
    "begin",
    "came_out",
    "enter",
    "estimate_tokens",
    "farewell",
    "fit",
    "functions",
    "gathered",
    "generic_offer",
    "greeting",
    "held",
    "instructions",
    "is_blocked",
    "is_urgent",
    "language",
    "leaving",
    "offered",
    "opening",
    "orders_json",
    "resume_offer",
    "returned",
    "start",
    "step",
    "stock",
    "take_up",
    "takes_events",
    "topic",
    "verification",
    "whisper",
]

MAX_TOKENS = 14_000
"""For instructions and flow functions together; of the service's 16,384 the rest is for other functions."""


def start(business: Business) -> FlowState:
    """The state of a new call."""
    return at_node(business, business.start)


# -- what the model and the caller are told ------------------------------------------------------------------


def instructions(
    business: Business, state: FlowState, *, now_local: datetime | None = None, max_tokens: int = MAX_TOKENS
) -> str:
    """The session's instructions: the same text for the same business and node, so that it is cached.

    With the functions they cost at most `max_tokens` by `estimate_tokens`; what does not fit is cut, the last
    facts first. `now_local` adds the time as a last section: better told in a turn's input, which spoils
    no cache.
    """
    text = fit(business, state, max_tokens=max_tokens).text
    return text if now_local is None else f"{text}\n\n{clock(business, now_local)}"


def fit(business: Business, state: FlowState, *, max_tokens: int = MAX_TOKENS) -> Prompt:
    """The instructions together with what was left out of them."""
    described = [[spec.name, spec.description, spec.parameters] for spec in functions(business, state)]
    spent = estimate_tokens(json.dumps(described, ensure_ascii=False)) if described else 0
    return compose(business, talk_at(business, state), spent, max_tokens, language(business, state))


def greeting(business: Business) -> str:
    """What a new caller hears first, word for word."""
    return offers.first_words(business)


def generic_offer(business: Business) -> str:
    """What is said instead of the greeting where a call broke off on a number that several people use."""
    return offers.generic_opening(business)


def topic(business: Business, state: FlowState) -> str:
    """What the present node is about, in the file's words; empty if it does not say."""
    node = business.nodes.get(state.node)
    return node.topic if isinstance(node, Talk) else ""


def resume_offer(business: Business, state: FlowState) -> str:
    """What a caller who was cut off hears first: with the topic of the node where the call broke off, if it has one.

    Policy `never` gives the plain greeting. `state`: of the new call, or of the broken one if it simply goes on.
    """
    return offers.opening(business, state, topic(business, state.offered or state))
