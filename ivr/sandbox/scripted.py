"""A brain that follows a script: what was heard, what is answered, what goes wrong."""

import re
from dataclasses import dataclass, field

import msgspec

from ivr.sandbox.brain import Answer, Call, HearPlan, Line, Manners, Outcome, Question, Who
from ivr.sandbox.pcm import Tone
from ivr.sandbox.script import CallStep, Script, TurnStep

NO_TURN = "The script has no turn for this."
_TONES = 25
_WORDS = re.compile(r"[\w']+")


def words(text: str) -> set[str]:
    """The words of a text, in lower case."""
    return set(_WORDS.findall(text.lower()))


@dataclass
class Progress:
    """Which turns are used up, and which piece of audio each was assigned to."""

    used: set[int] = field(default_factory=set)
    assigned: dict[str, int] = field(default_factory=dict)


class Stage:
    """One server's script: hands a brain to each session, and says how to treat each connection."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._shared = Progress() if script.carry_over else None
        self._connections = 0

    def next_connection(self) -> str:
        """`accept`, `refuse` (HTTP 503) or `abort` (TCP) for the connection that is being made."""
        number = self._connections
        self._connections += 1
        plan = self._script.connections
        return plan[number] if number < len(plan) else "accept"

    def brain(self) -> "ScriptedBrain":
        """A brain for a new session: it begins at the first turn, unless the script carries over."""
        return ScriptedBrain(self._script, self._shared or Progress())


class ScriptedBrain:
    """Follows the rules told in docs/sandbox.md under "Scripts"."""

    def __init__(self, script: Script, progress: Progress) -> None:
        self._turns = script.turns
        self._progress = progress
        self._manners = Manners(
            before_ready_ms=script.before_ready_ms,
            partials_ms=script.partials_ms,
            refuse_update=script.refuse_update,
            refuse_out_of_band=script.refuse_out_of_band,
            created_delay_ms=script.created_delay_ms,
            lifetime_ms=script.lifetime_ms,
        )

    @property
    def manners(self) -> Manners:
        """As the script's top level says."""
        return self._manners

    def hear(self, item_id: str) -> HearPlan:
        """The next turn that is about something the user says, and is neither answered nor assigned."""
        taken = self._progress.used | set(self._progress.assigned.values())
        for number, turn in enumerate(self._turns):
            if number not in taken and (turn.hear is not None or turn.any):
                if not turn.repeat:
                    self._progress.assigned[item_id] = number
                return _hear_plan(turn)
        return HearPlan(listen=False, text="")

    def answer(self, question: Question) -> Answer:
        """The turn that fits: the one assigned to the last user item, else the first unused in file order."""
        number = self._choose(question)
        if number is None:
            return Answer(say=NO_TURN, tone=Tone(300, 400), pace_ms=0)
        turn = self._turns[number]
        if not turn.repeat:
            self._progress.used.add(number)
        return _answer(turn, number)

    def _choose(self, question: Question) -> int | None:
        last = question.lines[-1] if question.lines else None
        users = [line for line in question.lines if line.who is Who.USER]
        spoken = [line for line in question.lines if line.who is not Who.SYSTEM]
        after_call = bool(spoken) and spoken[-1].who is Who.OUTPUT
        heard = users[-1] if users else None
        free = [
            number
            for number, turn in enumerate(self._turns)
            if number not in self._progress.used and turn.text == question.text_only
        ]
        if after_call:
            name = spoken[-1].name
            found = next((n for n in free if self._turns[n].output in (True, name)), None)
            if found is not None or last is None:
                return found
        own = self._progress.assigned.get(heard.item_id) if heard is not None else None
        if own is not None and own in free and _fits(self._turns[own], heard):
            return own
        others = set(self._progress.assigned.values())
        return next((n for n in free if n not in others and _fits(self._turns[n], heard)), None)


def _fits(turn: TurnStep, heard: Line | None) -> bool:
    if turn.hear is not None:
        return heard is not None and words(turn.hear) <= words(heard.text)
    return turn.any or (turn.start and heard is None)


def _hear_plan(turn: TurnStep) -> HearPlan:
    delay_ms, times = turn.transcript_delay_ms, turn.transcript_times
    if turn.no_transcript == "fail":
        return HearPlan(listen=False, outcome=Outcome.FAILED, delay_ms=delay_ms)
    if turn.no_transcript == "never":
        return HearPlan(listen=False, outcome=Outcome.NEVER)
    text = "" if turn.no_transcript == "empty" else turn.transcript
    return HearPlan(
        listen=False, text=turn.hear or "" if text is None else text, delay_ms=delay_ms, times=times
    )


def _answer(turn: TurnStep, number: int) -> Answer:
    calls = turn.call if isinstance(turn.call, list) else [turn.call]
    return Answer(
        say=turn.say,
        calls=tuple(Call(call.name, _arguments(call)) for call in calls),
        tone=_tone(turn, number),
        delay_ms=turn.delay_ms,
        pace_ms=turn.pace_ms,
        failure=turn.fail,
        close_code=turn.close or 0,
        abort=turn.abort,
        break_after_ms=turn.after_ms,
        raw=tuple(text if isinstance(text, str) else msgspec.json.encode(text).decode() for text in turn.raw),
    )


def _tone(turn: TurnStep, number: int) -> Tone | None:
    duration_ms = turn.audio_ms
    if duration_ms is None:
        duration_ms = len(turn.say.split()) * turn.speech.ms_per_word
    if not duration_ms:
        return None
    return Tone(turn.speech.hz or 400 + 100 * (number % _TONES), duration_ms, turn.speech.level_dbfs)


def _arguments(call: CallStep) -> str:
    return call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()
