"""The flow's own part of a call: what it waits for from the caller, and what it has still to say, in order."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from callflows import engine
from ivr.core.asking import Asking
from ivr.core.commands import CallOutput, CheckPin, EndReason, SetHours, UseTool
from ivr.core.records import Ending, OwnWords, ReplyKind
from ivr.core.setup import CallSetup


class Flowing:
    """Hands events to the engine and keeps what it answers until it is said."""

    def __init__(self, setup: CallSetup, asking: Asking) -> None:
        self._business = setup.business
        self._asking = asking
        self._queue: deque[OwnWords] = deque()
        self.is_ending = False
        """The end is being said: nothing the caller does changes that."""
        self._kept_keys: list[str] = []
        self._tools: list[UseTool | CheckPin | SetHours] = []
        self._awaited: engine.Awaited | None = None
        self._awaited_at: engine.FlowState | None = None
        self.carry(engine.Step(asking.flow, setup.first))

    def awaited(self) -> engine.Awaited | None:
        """What the present node waits for; None while the model leads, and once the end is being said."""
        if self.is_ending:
            return None
        if self._awaited_at is not self._asking.flow:  # a state never changes: each frame asks this
            self._awaited_at = self._asking.flow
            self._awaited = engine.awaits(self._business, self._asking.flow)
        return self._awaited

    def listens(self) -> bool:
        """Whether the caller's words are the flow's, not the model's, to understand."""
        return self.is_ending or engine.takes_events(self._business, self._asking.flow)

    def hears_secret(self) -> bool:
        """Whether what comes from the caller now is for nobody's ears."""
        awaited = self.awaited()
        return awaited is not None and awaited.secret

    def is_urgent(self, text: str) -> bool:
        """Whether words said to the model are such that the flow acts itself."""
        return not self.is_ending and engine.is_urgent(self._business, text)

    def has_keys(self) -> bool:
        """An entry has begun and may go on."""
        return bool(self._asking.flow.progress.keys)

    def take(self, event: engine.Event | engine.ToolAnswer, now_ms: float) -> None:
        """Let the flow act on an event; what was to be said before is out of date."""
        if not self.is_ending:
            moment = self._asking.moment(now_ms)
            self.carry(engine.step(self._business, self._asking.flow, event, moment))

    def carry(self, step: engine.Step) -> None:
        """Keep what a step wants said, and stand where it leads.

        The flow takes its last step only when the call really ends.
        """
        words = _words_of(step, engine.language(self._business, step.state))
        if words or step.state.ended:
            self._queue = deque(words)
        if step.state.ended:
            self.is_ending = True
            self._asking.flow = self._asking.flow.ordering(step.state)
        else:
            self._asking.flow = step.state
        due = [each for each in step.actions if isinstance(each, UseTool | CheckPin | SetHours)]
        self._tools += due
        for order in due:
            if isinstance(order, SetHours):
                self._asking.overrides = order.after(self._asking.overrides)

    def next_words(self) -> OwnWords | None:
        """What is to be said next; it is then no longer kept here."""
        return self._queue.popleft() if self._queue else None

    def take_tools(self) -> list[UseTool | CheckPin | SetHours]:
        """Tools that are to be used now, PINs to be checked, hours to be set."""
        tools, self._tools = self._tools, []
        return tools

    def awaits_tool(self) -> bool:
        """The model waits for an answer of a tool: silence is nobody's fault."""
        return not self.listens() and self._asking.flow.using is not None

    def has_words(self) -> bool:
        """Something is still to be said."""
        return bool(self._queue)

    def must_speak(self) -> bool:
        """What is said next must be heard."""
        return bool(self._queue) and not self._queue[0].interruptible

    def begins_next(self) -> bool:
        """The model itself is to speak next."""
        return bool(self._queue) and self._queue[0].begins

    def put_back(self, words: OwnWords) -> None:
        """This was not said after all, and must be."""
        self._queue.appendleft(words)

    def keep_key(self, digit: str) -> None:
        """A key that counts only later, when what is being said is over."""
        if len(self._kept_keys) < _MAX_KEPT:
            self._kept_keys.append(digit)

    def next_key(self) -> str:
        """The first key kept; empty if there is none."""
        return self._kept_keys.pop(0) if self._kept_keys else ""


_MAX_KEPT = 40


def _words_of(step: engine.Step, language: str) -> Sequence[OwnWords]:
    """A step's actions as words of ours: neighbouring texts are one, an end belongs to the last of them."""
    words: list[OwnWords] = []
    for action in step.actions:
        match action:
            case engine.Say(text, audio, interruptible):
                said = OwnWords(ReplyKind.STEP, text, audio=audio, interruptible=interruptible)
                words.append(_joined(words.pop(), said) if words and _can_join(words[-1], said) else said)
            case engine.Told(name, arguments, output):
                told = CallOutput(f"tool-{step.state.uses}", name, arguments, output)
                words.append(OwnWords(ReplyKind.STEP, "", told=told))
            case engine.Begin():
                words.append(OwnWords(ReplyKind.STEP, "", begins=True))
            case engine.Transfer(target, number, say):
                ending = Ending(EndReason.TRANSFERRED, target, number, say, step.state)
                words = _with_end(words, say, engine.stock.phrase(engine.stock.CONNECTING, language), ending)
            case engine.Leave(say):
                ending = Ending(EndReason.TRANSFERRED, say=say, flow=step.state)
                words = _with_end(words, say, engine.stock.phrase(engine.stock.CONNECTING, language), ending)
            case engine.HangUp(say):
                ending = Ending(EndReason.FINISHED, say=say, flow=step.state)
                words = _with_end(words, say, engine.stock.phrase(engine.stock.GOODBYE, language), ending)
    return words


def _can_join(first: OwnWords, second: OwnWords) -> bool:
    return not first.audio and not second.audio and first.interruptible == second.interruptible


def _joined(first: OwnWords, second: OwnWords) -> OwnWords:
    parts = (*(first.parts or (first.text,)), *(second.parts or (second.text,)))
    return replace(second, text=f"{first.text} {second.text}", parts=parts)


def _with_end(words: list[OwnWords], say: str, usual: str, ending: Ending) -> list[OwnWords]:
    """The end is said in its own words, else with what was said last, else as usual. Nobody talks over it."""
    if not say and words:
        return [*words[:-1], replace(words[-1], ending=ending, interruptible=False)]
    last = OwnWords(ReplyKind.STEP, say or usual, ending, interruptible=False)
    return [*words, last]
