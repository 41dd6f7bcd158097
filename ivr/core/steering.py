"""What the model's function calls do to the call, once the reply that made them is complete (B029, B030)."""

from dataclasses import dataclass, field

from callflows import engine
from ivr.core.asking import Asking
from ivr.core.commands import CallOutput, Command, EndReason, UpdateSession
from ivr.core.directives import Effect
from ivr.core.events import ReplyCall, ReplyStatus
from ivr.core.flowing import Flowing
from ivr.core.functions import AboutPerson, FlowStep, Outcome
from ivr.core.persons import Personal
from ivr.core.records import Ending, OwnWords, SpokenReply, Turn
from ivr.core.turns import Sign


@dataclass(slots=True)
class Steered:
    """What came of a reply's calls. `words` are to be said now, because the reply itself said nothing."""

    sign: Sign
    words: OwnWords | None = None
    orders: list[Command] = field(default_factory=list)
    moved: bool = False
    """The flow stands elsewhere: worth a snapshot."""


class Steering:
    """Applies calls in the order in which they were made, each once."""

    def __init__(self, asking: Asking, flowing: Flowing) -> None:
        self._asking = asking
        self._flowing = flowing

    def apply(self, reply: SpokenReply, status: ReplyStatus, turn: Turn | None, now_ms: float) -> Steered:
        """Carry out the calls of a complete reply; their outputs go to the turn, as pairs for the next input.

        A reply that was stopped before it said anything has failed.
        """
        silent = reply.first_audio_at_ms is None
        if status is ReplyStatus.FAILED or (silent and status is not ReplyStatus.COMPLETED):
            return Steered(Sign.FAILED)
        # What is kept back until the line is heard again is made, and will be heard.
        audible = not silent or bool(reply.held)
        steered = Steered(Sign.ANSWERED)
        for call in reply.calls:
            outcome = self._apply(call, turn, now_ms, audible=audible)
            if turn is not None:
                turn.outputs.append(CallOutput(call.call_id, call.name, call.arguments, outcome.output))
            self._take_effect(outcome, reply, steered)
            if not audible and steered.sign is not Sign.DEFER:
                defers = isinstance(outcome.effect, Effect) and outcome.effect.defers
                steered.sign = Sign.DEFER if defers else Sign.CALLS
        if reply.ending is not None and not audible:  # an end that nobody was told of: say so first
            steered.sign = Sign.CALLS
            steered.words = OwnWords(reply.kind, self._farewell(reply.ending), reply.ending)
        elif steered.sign is Sign.CALLS and self._flowing.has_words():
            steered.words = self._flowing.next_words()
            if turn is not None:
                turn.settled = True
        return steered

    def _apply(self, call: ReplyCall, turn: Turn | None, now_ms: float, *, audible: bool) -> Outcome:
        asking = self._asking
        return asking.functions.apply(
            asking.flow,
            call.name,
            call.arguments,
            asking.moment(now_ms),
            asking.situation(turn),
            audible=audible,
        )

    def _take_effect(self, outcome: Outcome, reply: SpokenReply, steered: Steered) -> None:
        match outcome.effect:
            case Effect(apply, changes_session):
                apply(self._asking)
                if changes_session:
                    steered.orders.append(UpdateSession(self._asking.config()))
            case AboutPerson(what, anew):
                self._note(what, anew, reply, steered)
            case FlowStep() as step if reply.ending is None and not self._flowing.is_ending:
                self._move(step, reply, steered)

    def _note(self, what: Personal, anew: FlowStep, reply: SpokenReply, steered: Steered) -> None:
        steered.moved = True
        match what:
            case Personal.ANOTHER_PERSON:
                self._hand_over(anew, reply, steered)
            case Personal.REFUSE_RECORDING:
                self._asking.refuse_recording()
            case Personal.FORGET_ME | Personal.CONFIRM_FORGET_ME:
                self._asking.forget_me(confirmed=what is Personal.CONFIRM_FORGET_ME)

    def _hand_over(self, anew: FlowStep, reply: SpokenReply, steered: Steered) -> None:
        """Somebody else is on the line: a call that broke off was another's, and is not gone on with."""
        asking = self._asking
        begins_anew = asking.resumed or asking.flow.offered is not None
        asking.somebody_else()
        if begins_anew and reply.ending is None and not self._flowing.is_ending:
            self._move(anew, reply, steered)

    def _farewell(self, ending: Ending) -> str:
        is_transferred = ending.reason is EndReason.TRANSFERRED
        return ending.say or self._asking.ours(
            engine.stock.CONNECTING if is_transferred else engine.stock.GOODBYE
        )

    def _move(self, step: FlowStep, reply: SpokenReply, steered: Steered) -> None:
        """The flow goes on: by what it has to say itself, if it has."""
        if any(isinstance(action, engine.Say | engine.Begin | engine.UseTool) for action in step.actions):
            self._flowing.carry(engine.Step(step.state, step.actions))
        else:
            reply.ending = _ending(step)
            if reply.ending is not None:  # the flow takes its last step only when the call really ends
                self._asking.flow = self._asking.flow.ordering(step.state)
                steered.moved = steered.moved or self._asking.flow.ahead > 0
                return
            self._asking.flow = step.state
        steered.moved = True


def _ending(step: FlowStep) -> Ending | None:
    for action in step.actions:
        match action:
            case engine.Transfer(target, number, say):
                return Ending(EndReason.TRANSFERRED, target, number, say, step.state)
            case engine.Leave(say):
                return Ending(EndReason.TRANSFERRED, say=say, flow=step.state)
            case engine.HangUp(say):
                return Ending(EndReason.FINISHED, say=say, flow=step.state)
    return None
