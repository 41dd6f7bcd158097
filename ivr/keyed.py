"""Failed calls that go on by keys: their flow, with what it asks of the database, and with the times it is away."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import replace

from callflows import engine
from callflows.engine import Came, FlowState, language
from callflows.model import Business
from ivr import bykeys
from ivr.core.setup import moved, restore, with_standing
from ivr.core.standing import PIN_TRIES, Standing
from ivr.lines import flow_of
from ivr.moments import moment_of
from ivr.outcomes import NOBODY_THERE, away_of, down_of, message_of
from ivr.override import apply_override
from ivr.web.deps import AskKeys, ByKeys, Ended, Outcome
from memory.calls import CallRow
from memory.model import Owner
from memory.store import Store

MAX_ANSWERS = 20
"""Tools and PINs that may be answered, one after the other, without a word of the caller's."""


class KeyedCalls:
    """Their rows say that they have failed: the model has. Each method may raise `memory.errors`."""

    def __init__(self, store: Store, check_pin: Callable[[Owner, str], Awaitable[bool]]) -> None:
        """`check_pin`: whether this is the caller's PIN; never raises."""
        self._store = store
        self._check_pin = check_pin

    async def go_on(self, row: CallRow, business: Business, digits: str | None) -> Outcome:
        """What comes of the keys that were pressed; `None`: the flow is taken up by keys only now."""
        state = flow_of(row, business)
        moment = await moment_of(self._store, business, row.caller, row.call_sid)
        step = (
            bykeys.begin(business, state, moment)
            if digits is None
            else bykeys.take(business, state, digits, moment)
        )
        return await self._done(row, business, step, moment)

    async def back(self, row: CallRow, business: Business, leg: int, came: Came) -> Outcome:
        """What comes of the call's time away: from where its flow sent it, or from the last that was left."""
        state = flow_of(row, business)
        if not state.is_away():
            if leg:  # that was told already, and the flow has gone on since
                return ByKeys()
            return message_of(business, "", language(business, state)) if came in NOBODY_THERE else Ended()
        if leg not in (0, state.trip.no):
            return away_of(business, state)
        moment = await moment_of(self._store, business, row.caller, row.call_sid)
        step = engine.returned(business, state, came, moment)
        if step.state == state:
            return Ended()
        if not step.state.ended and not _is_asked(step):
            entered = engine.enter(business, step.state, step.state.node, moment)
            step = engine.Step(entered.state, (*step.actions, *entered.actions))
        return await self._done(row, business, step, moment)

    async def _done(
        self, row: CallRow, business: Business, step: engine.Step, moment: engine.Moment
    ) -> Outcome:
        standing = restore(row.snapshot).standing or Standing()
        step, standing = await self._answered(row, business, step, moment, standing)
        state, turn = bykeys.turn_of(business, step)
        kept = with_standing(moved(row.snapshot, state), standing)
        await self._store.save_after_end(row.call_sid, kept)
        return _outcome(business, state, turn)

    async def _answered(
        self,
        row: CallRow,
        business: Business,
        step: engine.Step,
        moment: engine.Moment,
        standing: Standing,
    ) -> tuple[engine.Step, Standing]:
        """The step, with everything done that it asks for. Tools have failed: nobody would wait for one in silence."""
        actions: list[engine.Action] = []
        for _ in range(MAX_ANSWERS):
            answer: engine.ToolAnswer | None = None
            for action in step.actions:
                actions.append(action)
                match action:
                    case engine.SetHours():
                        await apply_override(self._store, business.id, action)
                    case engine.CheckPin(key, pin):
                        is_right = standing.failures < PIN_TRIES and await self._check_pin(row.owner, pin)
                        standing = standing.verified() if is_right else standing.failed()
                        answer = engine.ToolAnswer(key, is_right)
                    case engine.UseTool(key):
                        answer = engine.ToolAnswer(key, None, is_failed=True)
            if answer is None:
                break
            step = engine.step(business, step.state, answer, moment)
        return replace(step, actions=tuple(actions)), standing


def _is_asked(step: engine.Step) -> bool:
    """Whether the step itself asks the question of the node that it has come to."""
    return any(isinstance(action, engine.Moved) for action in step.actions)


def _outcome(business: Business, state: FlowState, turn: bykeys.Asked | bykeys.Left | bykeys.Away) -> Outcome:
    spoken = language(business, state)
    match turn:
        case bykeys.Asked(say, silence_s, most):
            return AskKeys(say, math.ceil(silence_s), most, spoken)
        case bykeys.Left(say, is_done=True):
            return Ended(say, spoken)
        case bykeys.Left(say):
            return down_of(business, say, spoken)
        case bykeys.Away():
            return away_of(business, state)
