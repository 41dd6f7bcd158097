"""A business's flow without a speech model: menus, entries, hours and transfers, by keys and the network's voice.

The same engine as in a call that is talked through; what needs the model (a talking node) is where it ends.
"""

from dataclasses import dataclass, replace

from callflows import engine
from callflows.engine import FlowState
from callflows.model import Business
from callflows.nodes.menu import MenuNode

MAX_DIGITS = 40


@dataclass(frozen=True, slots=True)
class Asked:
    """The caller is asked for keys. `most`: so many are enough; 0: a pause ends them."""

    say: str
    silence_s: float
    most: int


@dataclass(frozen=True, slots=True)
class Left:
    """The flow is over by keys. `is_done`: it came to its own end, and not to where keys lead no further."""

    say: str
    is_done: bool = True


@dataclass(frozen=True, slots=True)
class Away:
    """The call leaves for a person, a line or a message (`callflows.engine.away`); its trip holds what is said."""


def begin(business: Business, state: FlowState, moment: engine.Moment) -> engine.Step:
    """Where the flow is taken up: at the business's node for this, with what was gathered already."""
    node = business.on_model_down.keys or business.start
    return engine.enter(business, state, node, moment)


def take(business: Business, state: FlowState, digits: str, moment: engine.Moment) -> engine.Step:
    """What comes of the keys that were pressed; empty: none were."""
    if not digits:
        return engine.step(business, state, engine.Silence(), moment)
    said: list[engine.Action] = []
    done = engine.Step(state, ())
    for digit in digits[:MAX_DIGITS]:
        node = done.state.node
        done = engine.step(business, done.state, engine.Key(digit), moment)
        said += done.actions
        if done.state.node != node or done.state.ended or done.state.using is not None:
            break  # what was pressed beyond it was pressed before its question was heard
    if done.state.progress.keys and not done.state.ended:
        done = engine.step(business, done.state, engine.KeysDone(), moment)
        said += done.actions
    return engine.Step(done.state, tuple(said))


def turn_of(business: Business, step: engine.Step) -> tuple[FlowState, Asked | Left | Away]:
    """What the caller hears next, once everything that the step asks for is answered."""
    words = " ".join(filter(None, map(_words, step.actions)))
    if step.state.is_away():
        return replace(step.state, trip=replace(step.state.trip, say=words)), Away()
    if step.state.ended:
        return step.state, Left(words)
    awaited = engine.awaits(business, step.state)
    if awaited is None or not awaited.keys:
        return step.state, Left(words, is_done=False)
    return step.state, Asked(words, awaited.silence_s, _most(business, step.state))


def _words(action: engine.Action) -> str:
    match action:
        case engine.Say(text):
            return text
        case engine.Transfer(say=text) | engine.Leave(text) | engine.HangUp(text):
            return text
    return ""


def _most(business: Business, state: FlowState) -> int:
    node = business.nodes.get(state.node)
    return max(len(choice) for choice in node.options) if isinstance(node, MenuNode) else 0
