"""`ivr flows simulate`: a call through a flow in the terminal, by typing words and keys."""

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from callflows.away import Came
from callflows.conversation import Conversation, Reaction, where
from callflows.engine import (
    Action,
    CheckPin,
    HangUp,
    Leave,
    Moment,
    Moved,
    Order,
    Say,
    SetHours,
    Told,
    Transfer,
    UseTool,
)
from callflows.model import Business
from callflows.scripts import local_time
from ivr.errors import CallthreadError
from ivr.wire.callers import caller_of, is_withheld

HELP = """\
Type what the caller says, or keys (0-9 * #); an empty line is silence.
  /call NAME {JSON}   the speech model uses a function    /answer JSON, /fail   what an awaited tool, or PIN, comes to
  /result WORD        what came of a transfer or message  /help, /quit (or Ctrl-D)"""


def moment_of(business: Business, at: str, caller: str) -> Moment:
    """When the call is, and who calls. Raises: `CallthreadError` with a right example."""
    zone = ZoneInfo(business.timezone)
    try:
        now = local_time(at, business.timezone) if at else datetime.now(zone)
    except ValueError:
        raise CallthreadError("--at: not a time; like 2026-12-24T09:30") from None
    there = now.astimezone(UTC).astimezone(now.tzinfo)
    if there.replace(tzinfo=None) != now.replace(tzinfo=None):
        raise CallthreadError(
            f"--at: there is no {now:%H:%M} on that day in {business.timezone}: the clocks are put forward; "
            f"{there:%Y-%m-%dT%H:%M} comes after it"
        )
    number = caller_of(caller, called=business.numbers[0])
    if number is None and not is_withheld(caller):
        raise CallthreadError(
            "--from: no telephone number, nor an address; like +12025550143, or sip:ann@example.com"
        )
    return Moment(now.astimezone(zone), number)


class Terminal:
    """One call. `tell` prints a line."""

    def __init__(self, business: Business, moment: Moment, tell: Callable[[str], None]) -> None:
        self._call = Conversation(business, moment)
        self._business = business
        self._moment = moment
        self._tell = tell

    def run(self, lines: Iterable[str]) -> None:
        """The call from its greeting to its end, or to the last line."""
        self._tell(HELP)
        now = f"{self._moment.now:%A %Y-%m-%d %H:%M %Z}" if self._moment.now is not None else ""
        self._tell(f"{self._business.name}, {now}, a call from {self._moment.caller or 'a withheld number'}")
        self._show(self._call.begin())
        if self._is_over():
            return
        for line in lines:
            if line.strip() == "/quit":
                return
            reaction = self._typed(line.strip())
            if reaction is not None:
                self._show(reaction)
            if self._is_over():
                return

    def _is_over(self) -> bool:
        return bool(self._call.state.ended) and not self._call.state.is_away()

    def _typed(self, line: str) -> Reaction | None:
        """What comes of a line; None: nothing, and it is told why."""
        call = self._call
        if line.startswith("/"):
            return self._command(*line.partition(" ")[::2])
        if call.state.is_away():
            self._tell(f"  the call is away: /result WORD says what came of it, one of {', '.join(Came)}")
            return None
        if not line:
            return call.wait()
        return call.press(line) if set(line) <= set("0123456789*#") else call.say(line)

    def _command(self, command: str, rest: str) -> Reaction | None:
        match command:
            case "/call":
                name, _, arguments = rest.strip().partition(" ")
                return self._function(name, arguments)
            case "/answer" | "/fail":
                return self._answer(command, rest)
            case "/result":
                return self._result(rest.strip())
            case "/help":
                self._tell(HELP)
            case _:
                self._tell(f"  there is no {command}: /help shows what there is")
        return None

    def _function(self, name: str, arguments: str) -> Reaction | None:
        offered = self._call.offered()
        if name in offered:
            return self._call.call(name, arguments or "{}")
        there = f"the model may use {', '.join(offered)}" if offered else "no model is asked here"
        self._tell(f"  there is no function {name or '(its name is missing)'}: {there}")
        return None

    def _answer(self, command: str, rest: str) -> Reaction | None:
        if self._call.state.using is None:
            self._tell("  no tool, and no PIN, is awaited here")
            return None
        if command == "/fail":
            return self._call.answer(None, is_failed=True)
        try:
            return self._call.answer(json.loads(rest))
        except ValueError:
            self._tell('  not JSON; like /answer {"free": true}, or /answer true for a PIN')
            return None

    def _result(self, word: str) -> Reaction | None:
        if not self._call.state.is_away():
            self._tell("  the call is not away: nobody is being called, and no message is left")
            return None
        if word not in set(Came):
            self._tell(f"  /result is one of {', '.join(Came)}")
            return None
        return self._call.result(Came(word))

    def _show(self, reaction: Reaction) -> None:
        call = self._call
        if reaction.refusal:
            self._tell(f"  refused: {reaction.refusal}")
        for action in reaction.actions:
            self._tell(_told(action, call.state.ended))
        if not reaction.actions and not reaction.refusal and call.offered():
            self._tell("  (the model answers; /call lets it use a function)")
        slots = ", ".join(f"{name}={value}" for name, value in call.slots().items())
        offered = ", ".join(call.offered())
        may = f" functions: {offered}" if offered else ""
        self._tell(f"  [{where(call.state)}]{f' {slots}' if slots else ''}{may}")


def _told(action: Action, ended: str) -> str:
    match action:
        case Moved(node):
            return f"  -> {node}"
        case Say(text, audio):
            return f"  says: {text}{f' ({audio})' if audio else ''}"
        case Transfer(target, number, say):
            return f"  says: {say or '(connecting)'}\n  transfers to {target}, {number}"
        case Leave(say):
            return f"  says: {say}\n  leaves the call to the telephone network ({ended})"
        case Order(_, kind, to, text, due):
            return f"  orders {kind} to {to}{f' at {due}' if due else ''}{f': {text}' if text else ''}"
        case HangUp(say):
            return f"  says: {say or '(goodbye)'}\n  hangs up"
        case UseTool(_, tool):
            return f"  uses the tool {tool}; nothing is sent: /answer {{JSON}} or /fail says what comes of it"
        case CheckPin():
            return "  checks the PIN; nobody is enrolled here: /answer true or /answer false says whether it is right"
        case SetHours(schedule, is_open, until):
            state = {True: "open", False: "closed", None: "as in the file"}[is_open]
            return f"  sets {schedule}: {state}{'' if is_open is None else f', until {until:%Y-%m-%d %H:%M}'}"
        case Told(name, _, output):
            return f"  the model is told what {name} came to: {output}"
        case _:
            return "  the model begins to speak"
