"""A call away from our stream: what it does there, and how it goes on with what came of it. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from callflows.actions import Action, HangUp, Leave, Moved, Say, Transfer
from callflows.away import QUEUED, TAKING, TRANSFERRED, Away, Came, Dial, Take, Wait, Whisper
from callflows.lines import line_name
from callflows.model import Business, Talk
from callflows.moving import Moment, Step, carried, here, language
from callflows.nodes.base import NodeBase
from callflows.state import FlowState
from callflows.stock import NOT_REACHED, TRYING_NEXT, WHAT_ELSE, phrase

_OVER = frozenset({Came.REACHED, Came.HUNG_UP})
_STAYS = frozenset({(TRANSFERRED, Came.REACHED), (TRANSFERRED, Came.HUNG_UP), (QUEUED, Came.REACHED)})
"""Who talked to a person was transferred, whatever comes then."""


def away(business: Business, state: FlowState) -> Away | None:
    """What the call does now, away from our stream; None for one that is not away.

    The same for the same state: whoever asks twice is answered twice alike.
    """
    if not state.is_away():
        return None
    names = state.trip.ringing or (state.target,)
    numbers = tuple(business.transfers[name].number for name in names if name in business.transfers)
    node = _left_from(business, state)
    if state.ended == TRANSFERRED and not numbers:
        return None
    if node is None:
        return Dial(numbers)
    done = node.away(numbers, here(business, state, Moment()))
    if isinstance(done, Wait | Take):  # whose name the telephone network must know is the business's own
        return replace(done, line=line_name(business.id, done.line or state.node))
    return done


def whisper(business: Business, state: FlowState) -> Whisper | None:
    """What who answers hears first; None: they are connected at once."""
    node = _left_from(business, state)
    if node is None or not state.is_away():
        return None
    return node.whispered(here(business, state, Moment()))


def returned(business: Business, state: FlowState, came: Came, moment: Moment) -> Step:
    """How the call goes on. A call that is not away stays as it is, and so does one that was taken or given up.

    What is to be said before the call leaves again is in its trip too, for the network's own voice.
    """
    if not state.is_away() or (state.ended, came) in _STAYS:
        return Step(state, ())
    if came in _OVER and (state.ended, came) != (TAKING, Came.REACHED):
        return Step(replace(state, ended="hung_up"), ())
    node, trip = _left_from(business, state), state.trip
    back = replace(state, ended="", target="", trip=replace(trip, ringing=(), after=(), say="", came=""))
    if node is None:
        stays = back if _waits(business, back) else replace(back, node=business.start)
        return Step(stays, (Say(phrase(NOT_REACHED, language(business, back))),))
    outcome = node.returned(came, trip, here(business, back, moment))
    done = carried(business, back, outcome, moment)
    if not outcome.to and outcome.leave is None and outcome.end is None:
        done = replace(done, state=replace(done.state, node=business.start))
    if outcome.leave is not None and outcome.leave.ringing:
        next_one = Say(phrase(TRYING_NEXT, language(business, back)))
        done = replace(done, actions=(next_one, *done.actions))
    return _told(done) if done.state.is_away() else done


def opening(business: Business, step: Step) -> str:
    """What our stream says first when the call is back in it, without the prompt of the node it has come to."""
    last = max((no for no, action in enumerate(step.actions) if isinstance(action, Moved)), default=-1)
    before = step.actions[:last] if last >= 0 else step.actions
    texts = [*_texts(before)]
    if isinstance(business.node(step.state.node), Talk):
        texts.append(phrase(WHAT_ELSE, language(business, step.state)))
    return " ".join(texts)


def farewell(step: Step) -> str:
    """What the caller hears last, when the call is over."""
    return " ".join(_texts(step.actions))


def _told(step: Step) -> Step:
    """The call leaves again at once: what is to be said goes with it, kept so that it can be said again."""
    trip = replace(step.state.trip, say=" ".join(_texts(step.actions)))
    return replace(step, state=replace(step.state, trip=trip))


def _left_from(business: Business, state: FlowState) -> NodeBase | None:
    """The node the call left from; None where a command, the model or a ceiling sent it to a person."""
    node = business.node(state.node)
    return None if node is None or node.WAITS or not node.LEAVES else node


def _waits(business: Business, state: FlowState) -> bool:
    node = business.node(state.node)
    return node is not None and node.WAITS


def _texts(actions: Iterable[Action]) -> Iterable[str]:
    for action in actions:
        match action:
            case Say(text) if text:
                yield text
            case Transfer(_, _, say) | Leave(say) | HangUp(say) if say:
                yield say
