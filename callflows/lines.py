"""A caller in a line: what they hear at this moment, or why they leave it. Pure."""

import hashlib
from dataclasses import dataclass, replace

from callflows.away import QUEUED, Came
from callflows.model import Business
from callflows.moving import Moment, here
from callflows.nodes.queue import QueueNode
from callflows.state import FlowState

MAX_NAME = 64
"""What Twilio takes as a queue's name."""


@dataclass(frozen=True, slots=True)
class InLine:
    """Where a caller stands: `position` from 1 on (0: not told), how long they have waited, the key they pressed."""

    position: int = 0
    waited_s: int = 0
    key: str = ""


@dataclass(frozen=True, slots=True)
class Hold:
    """What a caller hears for the next `for_s` seconds. `music`: a file beside the flow file; `leave`: the exit key."""

    text: str
    language: str
    music: str
    leave: str
    for_s: int


def line_name(business_id: str, node: str) -> str:
    """The line of a node, by the name that the telephone network knows it by: the same in every worker."""
    name = f"{business_id}.{node}"
    return name if len(name) <= MAX_NAME else hashlib.sha256(name.encode()).hexdigest()


def held(business: Business, state: FlowState, at: InLine) -> Hold | Came:
    """What comes next for a caller in a line: to wait on, or to leave it for this reason.

    A reason that was given once stands: `leaving` keeps it.
    """
    node = business.node(state.node)
    if state.ended != QUEUED or not isinstance(node, QueueNode):
        return Came.FAILED
    if state.trip.came:
        return Came(state.trip.came)
    if node.leave is not None and at.key == node.leave:
        return Came.LEFT
    if at.waited_s == 0 and at.position > node.max_waiting:
        return Came.FULL
    left_s = node.max_wait_s - at.waited_s
    if left_s <= 0:
        return Came.TIMEOUT
    view = here(business, state, Moment())
    music = node.music_for(view.language)
    text = node.hold_text(at.position, view)
    return Hold(text, view.language, music, node.leave or "", min(node.every_s, left_s))


def leaving(state: FlowState, came: Came) -> FlowState:
    """The caller is about to leave the line for this reason; the telephone network will only say that they did."""
    return replace(state, trip=replace(state.trip, came=came.value))


def came_out(business: Business, state: FlowState, waited_s: int) -> Came:
    """Why a caller has left the line on our word, also where the reason could not be kept."""
    node = business.node(state.node)
    if state.trip.came:
        return Came(state.trip.came)
    is_over = isinstance(node, QueueNode) and waited_s >= node.max_wait_s
    return Came.TIMEOUT if is_over else Came.LEFT
