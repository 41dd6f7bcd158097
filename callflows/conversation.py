"""A flow tried without a telephone: what a caller does in, what is said and where the call stands out. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from callflows import engine
from callflows.engine import Action, FlowState, Moment
from callflows.model import Business

MASK = "•••"


@dataclass(frozen=True, slots=True)
class Reaction:
    """What the flow did. `refusal` says why a function of the model was refused, and is empty otherwise."""

    actions: tuple[Action, ...] = ()
    refusal: str = ""

    def sent(self) -> str:
        """The requests of the tools that were used, and what was ordered beside the call, as one text."""
        orders = [each for each in self.actions if isinstance(each, engine.UseTool)]
        requests = [order.request for order in orders if order.request is not None]
        beside = [each for each in self.actions if isinstance(each, engine.Order)]
        ordered = [" ".join(filter(None, (each.kind, each.to, each.due, each.text))) for each in beside]
        return " ".join(
            ordered + [f"{each.method} {each.url} {each.body or ''}".strip() for each in requests]
        )

    def said(self) -> str:
        """Everything that was said, as one text; a talking node begun by the model is `(the model speaks)`."""
        return " ".join(filter(None, map(_said, self.actions)))


def _said(action: Action) -> str:
    match action:
        case engine.Say(text):
            return text
        case engine.Transfer(_, _, say) | engine.Leave(say) | engine.HangUp(say):
            return say
        case engine.Begin() | engine.Told():
            return "(the model speaks)"
        case _:
            return ""


class Conversation:
    """One call through a flow. Time stands still at `moment`."""

    def __init__(self, business: Business, moment: Moment) -> None:
        self._business = business
        self._moment = moment
        self.state = engine.start(business)

    def begin(self) -> Reaction:
        """The call is answered."""
        first = engine.begin(self._business, self._moment)
        self.state = first.state
        if engine.is_blocked(self._business, self._moment.caller):
            return Reaction(first.actions)
        return Reaction((engine.Say(engine.greeting(self._business)), *first.actions))

    def press(self, keys: str) -> Reaction:
        """Keys, one after the other, and then no more."""
        events: list[engine.Event] = [engine.Key(digit) for digit in keys]
        return self._events([*events, engine.KeysDone()])

    def say(self, text: str) -> Reaction:
        """The caller speaks. In a talking node the model would answer: only emergency words do something."""
        return self._events([engine.Words(text)])

    def wait(self) -> Reaction:
        """The caller does nothing for as long as the node waits."""
        return self._events([engine.Silence()])

    def call(self, name: str, arguments: str = "") -> Reaction:
        """The speech model calls a function of the present node."""
        result = engine.apply(self._business, self.state, name, arguments, self._moment)
        if isinstance(result, engine.Refused):
            return Reaction(refusal=f"{result.code}: {result.message}")
        self.state = result.state
        return Reaction(result.actions)

    def answer(self, body: object, *, is_failed: bool = False) -> Reaction:
        """The tool that is awaited answers with this JSON, or fails; nothing happens where none is awaited."""
        key = self.state.using.key if self.state.using is not None else ""
        step = engine.step(self._business, self.state, engine.ToolAnswer(key, body, is_failed), self._moment)
        self.state = step.state
        return Reaction(step.actions)

    def result(self, came: engine.Came) -> Reaction:
        """The call was with somebody else, and this came of it. Nothing, if it was not away."""
        step = engine.returned(self._business, self.state, came, self._moment)
        self.state = step.state
        return Reaction(step.actions)

    def offered(self) -> tuple[str, ...]:
        """The functions that the model may call now."""
        return tuple(spec.name for spec in engine.functions(self._business, self.state))

    def slots(self) -> dict[str, object]:
        """What was gathered; secrets masked."""
        return {**self.state.slots, **dict.fromkeys(self.state.secrets, MASK)}

    def _events(self, events: Iterable[engine.Event]) -> Reaction:
        actions: list[Action] = []
        for event in events:
            if isinstance(event, engine.KeysDone) and not self.state.progress.keys:
                continue
            step = engine.step(self._business, self.state, event, self._moment)
            self.state = step.state
            actions += step.actions
        return Reaction(tuple(actions))


def where(state: FlowState) -> str:
    """Where a call stands, in a few words."""
    if state.ended:
        return f"{state.node}, {state.ended}{f' to {state.target}' if state.target else ''}"
    return state.node
