"""The flow's steps: from a state and an event to the next state and what is to be done. Pure."""

from dataclasses import replace

from callflows.actions import Begin, HangUp, Say, Told
from callflows.commands import command_in, emergency_in
from callflows.model import Business, Emergency, Talk
from callflows.moving import Moment, Step, at_node, carried, enter, here, language, transferred
from callflows.nodes.base import Awaited, Event, Key, NodeBase, ToolAnswer, Words
from callflows.nodes.menu import MenuNode
from callflows.nodes.tool import ToolNode
from callflows.state import FlowState
from callflows.texts import text_in
from callflows.using import USE, output_of, use

# -- beginning and going on ----------------------------------------------------------------------------------


def begin(business: Business, moment: Moment, uses: int = 0) -> Step:
    """A new call, greeted already unless it is a blocked caller: up to where the caller, or the model, is due.

    Where the flow says nothing of its own before a talking node, the greeting is what the caller answers.
    `uses`: tools that this call used before it was begun anew.
    """
    state = replace(at_node(business, business.start), uses=uses)
    if is_blocked(business, moment.caller):
        say = text_in(business.callers.say, business.language)
        return Step(replace(state, ended="hung_up"), (HangUp(say),))
    first = enter(business, state, business.start, moment)
    speaks = any(isinstance(action, Say) for action in first.actions)
    return replace(first, actions=tuple(a for a in first.actions[1:] if speaks or not isinstance(a, Begin)))


def is_blocked(business: Business, caller: str | None) -> bool:
    """Whether the business wants nothing to do with this caller."""
    return caller is not None and caller in business.callers.blocked


def again(business: Business, state: FlowState, moment: Moment) -> Step:
    """A call goes on after a break: the prompt of the node it stands at; a talking node has its own ways.

    A tool whose answer is awaited is used again, with its key of before.
    """
    node = business.node(state.node)
    if isinstance(node, Talk) and state.using is not None and not state.ended:
        state, order = use(business, state, state.using.tool, moment.call_id, moment.caller)
        return Step(state, (order,))
    if state.ended or node is None or isinstance(node, Talk):
        return Step(state, ())
    outcome = node.enter(here(business, state, moment))
    return carried(business, state, outcome, moment)


def takes_events(business: Business, state: FlowState) -> bool:
    """Whether the flow itself, not the model, listens to the caller now."""
    return not state.ended and not isinstance(business.node(state.node), Talk)


def awaits(business: Business, state: FlowState) -> Awaited | None:
    """What is waited for now; None while the model leads the talk, and after the end."""
    node = business.node(state.node)
    if state.ended or node is None:
        return None
    return node.awaits(here(business, state, Moment()))


def step(business: Business, state: FlowState, event: Event | ToolAnswer, moment: Moment) -> Step:
    """What comes of an event. In a talking node only emergency words are the flow's business."""
    node = business.node(state.node)
    if state.ended or node is None:
        return Step(state, ())
    if isinstance(event, ToolAnswer):
        return _answered(business, state, node, event, moment)
    awaited = awaits(business, state)
    if isinstance(event, Words) and not (awaited is not None and awaited.secret):
        urgent = emergency_in(business, event.text)
        if urgent is not None:
            return _emergency(business, state, urgent, moment)
    if awaited is None:
        return Step(state, ())
    if isinstance(event, Words) and awaited.words:
        commanded = command(business, state, event.text, moment)
        if commanded is not None:
            return commanded
    if isinstance(event, Key) and event.digit == "0" and _is_operator_key(business, node, state):
        return transferred(business, state, business.operator or "")
    return carried(business, state, node.take(event, here(business, state, moment)), moment)


def _answered(
    business: Business, state: FlowState, node: NodeBase, event: ToolAnswer, moment: Moment
) -> Step:
    """A tool answered. What is not awaited (any more) changes nothing, so that each use counts once."""
    using = state.using
    if using is None or using.key != event.key:
        return Step(state, ())
    view = here(business, state, moment)
    if using.is_pin():
        is_right = event.body is True and not event.is_failed
        return carried(business, replace(state, using=None), node.checked(is_right, view), moment)
    values = None if event.is_failed else business.tools[using.tool].read(event.body, view.region)
    state = replace(state, using=None)
    if isinstance(node, Talk):
        state = replace(state, slots={**state.slots, **(values or {})})
        return Step(state, (Told(f"{USE}{using.tool}", using.arguments or "{}", output_of(values)),))
    return carried(business, state, node.answered(values, view), moment)


def verification(business: Business, state: FlowState, event: ToolAnswer) -> bool | None:
    """Whether an answer verifies the caller; None for one that is about something else, or is not awaited."""
    using, node = state.using, business.node(state.node)
    if using is None or using.key != event.key:
        return None
    if using.is_pin():
        return event.body is True and not event.is_failed
    if not isinstance(node, ToolNode) or node.verifies is None or event.is_failed:
        return None
    values = business.tools[using.tool].read(event.body, here(business, state, Moment()).region)
    return None if values is None else values.get(node.verifies) is True


def is_urgent(business: Business, text: str) -> bool:
    """Whether words are such that a text of the business is said at once."""
    return emergency_in(business, text) is not None


def _is_operator_key(business: Business, node: NodeBase, state: FlowState) -> bool:
    """`0` reaches the operator from a menu that has no choice beginning with it."""
    if business.operator is None or not isinstance(node, MenuNode) or state.progress.keys:
        return False
    return not any(choice.startswith("0") for choice in node.options)


def _emergency(business: Business, state: FlowState, urgent: Emergency, moment: Moment) -> Step:
    said = Say(here(business, state, moment).text(urgent.say), interruptible=False)
    if urgent.transfer is not None:
        done = transferred(business, state, urgent.transfer)
        return replace(done, actions=(said, *done.actions))
    then = again(business, state, moment)
    waits = isinstance(business.node(state.node), Talk)
    follow = (*then.actions, Begin()) if waits else then.actions
    return Step(then.state, (said, *follow))


def command(business: Business, state: FlowState, text: str, moment: Moment) -> Step | None:
    match command_in(business, language(business, state), text):
        case "operator" if business.operator is not None:
            return transferred(business, state, business.operator)
        case "repeat":
            return again(business, state, moment)
        case "start_over":
            fresh = replace(at_node(business, business.start), language=state.language, uses=state.uses)
            return enter(business, fresh, business.start, moment)
        case "goodbye":
            return Step(replace(state, ended="hung_up"), (HangUp(""),))
        case _:
            return None
