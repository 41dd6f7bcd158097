"""Being taken back to where a call broke off: the offer, the caller's answer to it, and values that have grown old.

Pure. Until it is accepted nothing of the broken call is entered: it waits in the state of the new one.
"""

from dataclasses import replace

from callflows import moving, running
from callflows.actions import Begin, HangUp, Moved, Say
from callflows.commands import command_in
from callflows.lexicon import NO, YES, plain
from callflows.model import Business, Talk
from callflows.moving import Moment, Step
from callflows.nodes.base import Awaited, Event, Key, Progress, Silence, ToolAnswer, Words
from callflows.state import FlowState
from callflows.stock import (
    CUT_OFF,
    CUT_OFF_TALKING,
    LET_US,
    SHALL_WE,
    WELCOME_BACK,
    WERE_WE_CUT_OFF,
    phrase,
)
from callflows.texts import filled

_SLOTS_ASKED = "slots"
"""The candidate in the progress of an offer whose values are being confirmed."""
_TIMES = 2
"""So often an offer is repeated to a caller who says nothing."""
_KEY_WAIT_S = 3.0
_GO_ON = (
    *("go on", "go ahead", "carry on", "continue", "pick up where", "where we left", "where we were"),
    *("weiter", "fortfahren", "weitermachen", "continuer", "continuons", "seguir", "sigamos", "continuar"),
)
_AFRESH = (
    *(
        "start afresh",
        "start over",
        "start again",
        "start new",
        "something else",
        "something new",
        "new call",
    ),
    *("von vorne", "neu anfangen", "etwas anderes", "recommencer", "autre chose", "de nuevo", "otra cosa"),
)
_SAYS_NOTHING = frozenset({"right", "please", "true", "correct", "exactly", "ok", "okay"})
"""Words of assent that also begin sentences which are no answer to the offer."""
_SHORT_WORDS = 8
"""A phrase of going on counts in an answer no longer than that: a long one is about something else."""


# -- what is said --------------------------------------------------------------------------------------------


def opening(business: Business, state: FlowState, topic: str) -> str:
    """What a caller who was cut off hears first. `topic`: the broken node's, in the file's words; may be empty."""
    policy = business.resume
    if policy.greeting == "never":
        return first_words(business)
    if policy.say and (topic or "{topic}" not in policy.say):
        return _announced(business, "", policy.say.replace("{topic}", topic))
    spoken = moving.language(business, state)
    cut = phrase(CUT_OFF_TALKING, spoken).format(topic) if topic else phrase(CUT_OFF, spoken)
    ending = LET_US if policy.greeting == "straight" and not state.offered else SHALL_WE
    if state.offered and state.progress.candidate == _SLOTS_ASKED:
        ending = LET_US
    welcome = phrase(WELCOME_BACK, spoken).format(business.name)
    return _announced(business, welcome, f"{cut} {phrase(ending, spoken)}")


def generic_opening(business: Business) -> str:
    """What is said where a call of the number broke off, and nobody knows whether it was this caller's."""
    asks = phrase(WERE_WE_CUT_OFF, business.language)
    return " ".join(filter(None, (first_words(business), asks)))


def first_words(business: Business) -> str:
    """What a new caller hears first."""
    return " ".join(filter(None, (business.disclosure, business.greeting, business.announcement)))


def _announced(business: Business, welcome: str, question: str) -> str:
    """This call is recorded as every other: that is said in it, too, before the question."""
    return " ".join(filter(None, (welcome, business.announcement, question)))


# -- the offer as a state ------------------------------------------------------------------------------------


def offered(business: Business, broken: FlowState, *, asks: bool, is_old: bool) -> FlowState:
    """The state of a call that is to go on with `broken`: after a yes if it `asks`, after its values were confirmed
    if they are old, else at once.
    """
    broken = replace(broken, offered=None, taken_up=True)
    is_old = is_old and bool(broken.slots)
    if not asks and not is_old:
        return broken
    candidate = None if asks else _SLOTS_ASKED
    fresh = moving.at_node(business, business.start)
    return replace(
        fresh,
        language=broken.language,
        offered=replace(broken, is_old=is_old),
        progress=Progress(candidate=candidate),
    )


def answer_to(text: str) -> bool | None:
    """Whether an offer to go on was accepted or declined; None for anything that is neither, or both."""
    said = plain(text)
    first = said.split(" ", 1)[0]
    is_short = len(said.split()) <= _SHORT_WORDS
    goes_on = (first in YES - _SAYS_NOTHING) or (is_short and _has(said, _GO_ON))
    starts = first in NO or _has(said, _AFRESH)
    return goes_on if goes_on != starts else None


def _has(said: str, phrases: tuple[str, ...]) -> bool:
    return any(f" {phrase} " in f" {said} " for phrase in phrases)


def listens(business: Business, state: FlowState) -> bool:
    """Whether the caller's words are an answer to the offer, and not the model's to understand.

    Once they were neither yes nor no, the model talks; it has functions to take the call up, or to begin anew.
    """
    return (
        state.progress.candidate is not None
        or not state.progress.no_match
        or not isinstance(business.nodes.get(state.node), Talk)
    )


def _awaits(business: Business, state: FlowState) -> Awaited | None:
    """An answer, by words or by key: 1 to go on, 2 to begin anew."""
    if not listens(business, state):
        return None
    return Awaited(words=True, keys=True, silence_s=business.limits.silence_s, key_wait_s=_KEY_WAIT_S)


def question(business: Business, state: FlowState) -> Step:
    """The offer, or the values, once more."""
    return Step(state, (Say(_question(business, state)),))


def _question(business: Business, state: FlowState) -> str:
    broken = state.offered
    if broken is None or state.progress.candidate != _SLOTS_ASKED:
        return phrase(SHALL_WE, moving.language(business, state))
    spoken = moving.here(business, broken, Moment()).spoken
    values = ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in spoken.items())
    return filled(business.resume.confirm, {"slots": values})


def _step(business: Business, state: FlowState, event: Event, moment: Moment) -> Step:
    """What comes of the caller's answer."""
    match event:
        case Silence():
            return _silent(business, state)
        case Key("0") if business.operator is not None:
            return moving.transferred(business, state, business.operator)
        case Key("1"):
            return accept(business, state, moment)
        case Key("2"):
            return decline(business, state, moment)
        case Words(text):
            return _said(business, state, text, moment)
        case _:
            return Step(state, ())


def _said(business: Business, state: FlowState, text: str, moment: Moment) -> Step:
    match command_in(business, moving.language(business, state), text):
        case "repeat":
            return question(business, state)
        case "start_over":
            return decline(business, state, moment)
        case "operator" | "goodbye":
            done = running.command(business, replace(state, offered=None), text, moment)
            if done is not None:
                return done
    answer = _answer(state, text)
    if answer is None:
        return _unclear(business, state, moment)
    return (accept if answer else decline)(business, state, moment)


def _answer(state: FlowState, text: str) -> bool | None:
    if state.progress.candidate != _SLOTS_ASKED:
        return answer_to(text)
    words = set(plain(text).split())
    return bool(words & YES) if bool(words & YES) != bool(words & NO) else None


def accept(business: Business, state: FlowState, moment: Moment) -> Step:
    """The caller goes on: where the call broke off, once old values are confirmed."""
    broken = state.offered
    if broken is None:
        return Step(state, ())
    if broken.is_old and state.progress.candidate != _SLOTS_ASKED:
        return question(business, replace(state, progress=Progress(candidate=_SLOTS_ASKED)))
    back = replace(broken, is_old=False)
    again = running.again(business, back, moment)
    return Step(again.state, (Moved(back.node), *(again.actions or (Begin(),))))


def decline(business: Business, state: FlowState, moment: Moment) -> Step:
    """The caller begins anew; or, asked whether old values are right, goes on without them, from the start."""
    keeps = state.progress.candidate == _SLOTS_ASKED
    fresh = replace(moving.at_node(business, business.start), language=state.language, taken_up=keeps)
    return moving.enter(business, fresh, business.start, moment)


def _silent(business: Business, state: FlowState) -> Step:
    if state.progress.no_input >= _TIMES:
        return Step(replace(state, offered=None, ended="hung_up"), (HangUp(""),))
    progress = replace(state.progress, no_input=state.progress.no_input + 1)
    return question(business, replace(state, progress=progress))


def _unclear(business: Business, state: FlowState, moment: Moment) -> Step:
    """Neither yes nor no: the model takes it where it leads, else it is asked once more, then begun anew."""
    progress = replace(state.progress, no_match=state.progress.no_match + 1)
    after = replace(state, progress=progress)
    if progress.candidate is None and isinstance(business.nodes.get(state.node), Talk):
        return Step(after, (Begin(),))
    return question(business, after) if progress.no_match == 1 else decline(business, state, moment)


# -- an offer to go on stands before everything else ------------------------------------------------------------


def takes_events(business: Business, state: FlowState) -> bool:
    """Whether the flow itself, not the model, listens to the caller now."""
    if state.offered is not None and not state.ended:
        return listens(business, state)
    return running.takes_events(business, state)


def awaits(business: Business, state: FlowState) -> Awaited | None:
    """What is waited for now; None while the model leads the talk, and after the end."""
    if state.offered is not None and not state.ended:
        return _awaits(business, state)
    return running.awaits(business, state)


def step(business: Business, state: FlowState, event: Event | ToolAnswer, moment: Moment) -> Step:
    """What comes of an event. In a talking node only emergency words are the flow's business."""
    is_urgent_now = isinstance(event, Words) and running.is_urgent(business, event.text)
    if isinstance(event, ToolAnswer) or state.offered is None or state.ended or is_urgent_now:
        return running.step(business, state, event, moment)
    answers = _step if listens(business, state) else running.step
    return answers(business, state, event, moment)


def again(business: Business, state: FlowState, moment: Moment) -> Step:
    """A call goes on after a break: the prompt of the node it stands at; a talking node has its own ways."""
    if state.offered is not None and not state.ended:
        return question(business, state)
    return running.again(business, state, moment)


def take_up(business: Business, state: FlowState, moment: Moment) -> Step:
    """The model understood that the caller goes on. Its answer to the same turn is how a talking node begins."""
    done = accept(business, state, moment)
    speaks = any(isinstance(action, Say) for action in done.actions)
    return replace(done, actions=tuple(a for a in done.actions if speaks or not isinstance(a, Begin)))
