"""A business's flow without a speech model: menus, entries, hours and transfers, by keys and the network's voice.

The same engine as in a call that is talked through; what needs the model (a talking node) is where it ends.
"""

from dataclasses import dataclass

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
    """The flow is over by keys. `number`: whom to connect to, empty for nobody; `is_done`: it came to its own end."""

    say: str
    number: str = ""
    is_done: bool = True


Turn = tuple[FlowState, Asked | Left]


def begin(business: Business, state: FlowState, moment: engine.Moment) -> Turn:
    """Where the flow is taken up: at the business's node for this, with what was gathered already."""
    node = business.on_model_down.keys or business.start
    return _after(business, engine.enter(business, state, node, moment))


def take(business: Business, state: FlowState, digits: str, moment: engine.Moment) -> Turn:
    """What comes of the keys that were pressed; empty: none were."""
    if not digits:
        return _after(business, engine.step(business, state, engine.Silence(), moment))
    said: list[engine.Action] = []
    done = engine.Step(state, ())
    for digit in digits[:MAX_DIGITS]:
        node = done.state.node
        done = engine.step(business, done.state, engine.Key(digit), moment)
        said += done.actions
        if done.state.node != node or done.state.ended:
            break  # what was pressed beyond it was pressed before its question was heard
    if done.state.progress.keys and not done.state.ended:
        done = engine.step(business, done.state, engine.KeysDone(), moment)
        said += done.actions
    return _after(business, engine.Step(done.state, tuple(said)))


def _after(business: Business, step: engine.Step) -> Turn:
    words: list[str] = []
    for action in step.actions:
        match action:
            case engine.Say(text):
                words.append(text)
            case engine.Transfer(_, number, say):
                return step.state, Left(_joined(words, say), number)
            case engine.HangUp(say):
                return step.state, Left(_joined(words, say))
    awaited = engine.awaits(business, step.state)
    if awaited is None or not awaited.keys:
        return step.state, Left(_joined(words), is_done=False)
    return step.state, Asked(_joined(words), awaited.silence_s, _most(business, step.state))


def _most(business: Business, state: FlowState) -> int:
    node = business.nodes.get(state.node)
    return max(len(choice) for choice in node.options) if isinstance(node, MenuNode) else 0


def _joined(words: list[str], last: str = "") -> str:
    return " ".join(text for text in (*words, last) if text)
