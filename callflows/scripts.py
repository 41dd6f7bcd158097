"""Recorded conversations that a flow must stand: `*.test.yaml` beside the flow files, run by `ivr flows test`."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from callflows.away import Came
from callflows.conversation import Conversation, Reaction
from callflows.document import Document, read_document
from callflows.engine import Moment
from callflows.faults import FlowErrors, FlowFault, in_order
from callflows.fields import Language, Line, Name, PhoneNumber, fault
from callflows.model import Business
from callflows.parse import read_files
from callflows.part import Part

_DOINGS = ("press", "say", "wait", "call", "answer", "fails", "result")
Keys = Annotated[str, Field(pattern=r"^[0-9*#]{1,40}$")]


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class TestStep(Part):
    """What the caller, or the model, does; and what must be so afterwards."""

    __test__ = False

    press: Keys | None = Field(None, description="Keys; then nothing more is pressed.")
    say: str | None = Field(None, max_length=500, description="Words.")
    wait: bool = Field(False, description="The caller says and presses nothing.")
    call: Line | None = Field(None, description="A function the speech model calls: leave_booking, hang_up.")
    arguments: str = Field("", max_length=4_000, description="Its arguments as JSON text.")
    result: Came | None = Field(
        None, description="What came of the call while it was with somebody else: busy, no_answer, reached."
    )
    answer: Any = Field(
        None, description="What the tool that is awaited answers: a mapping; for a PIN: true."
    )
    fails: bool = Field(False, description="The tool that is awaited does not answer.")
    sent: Annotated[tuple[Line, ...], BeforeValidator(_listed)] = Field(
        (), description="Parts of the request that a tool sends: method, URL, JSON."
    )
    said: Annotated[tuple[Line, ...], BeforeValidator(_listed)] = Field(
        (), description="Parts of what is said."
    )
    node: Line | None = Field(None, description="Of a flow within the flow: USE.NODE.")
    slots: dict[Name, str] = Field({}, description="Values as text; a secret is •••.")
    ended: Literal["hung_up", "transferred", "voicemail", "queued", "taking", "no"] | None = None
    target: Name | None = None
    language: Language | None = None
    refused: bool = Field(False, description="The function must be refused.")

    @model_validator(mode="after")
    def _one_doing(self) -> Self:
        if sum(getattr(self, each) not in (None, False) for each in _DOINGS) > 1:
            raise fault("a step is one thing that is done", f"one of {', '.join(_DOINGS)}")
        return self


class FlowTest(Part):
    """One call, from the greeting on."""

    name: Line
    at: str = Field(
        "2026-01-07T10:00", max_length=40, description="Local time at the business, or with a zone."
    )
    caller: PhoneNumber | None = Field(None, alias="from", description="Who calls; withheld when left out.")
    steps: tuple[TestStep, ...] = Field(min_length=1, max_length=200)


class Script(Part):
    """A file of tests for one flow file."""

    flow: str = Field(
        "", max_length=200, description="The flow file beside this one; by its name if left out."
    )
    tests: tuple[FlowTest, ...] = Field(min_length=1, max_length=200)


@dataclass(frozen=True, slots=True)
class TestResult:
    """How one test went. `faults` are places in the script where something else was expected."""

    __test__ = False

    file: str
    name: str
    faults: tuple[FlowFault, ...]


def local_time(text: str, zone: str) -> datetime:
    """ISO date and time; without a zone, at the business. Raises: `ValueError`."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=ZoneInfo(zone))


def script_files(path: Path) -> list[Path]:
    """The test scripts of a folder, or the one file named."""
    return sorted(path.glob("*.test.yaml")) if path.is_dir() else [path]


def _why(error: OSError | ValueError) -> str:
    return error.strerror or "" if isinstance(error, OSError) else "is not UTF-8 text"


def run_script(path: Path) -> list[TestResult]:
    """Run one script. Raises: `FlowErrors` for a script, or its flow, that cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise FlowErrors([FlowFault(str(path), 1, 1, f"cannot be read: {_why(error)}")]) from None
    document, faults = read_document(text, str(path))
    script = _parsed(document, faults)
    business = _business(path, script.flow)
    return [
        TestResult(str(path), test.name, tuple(_failures(business, test, document, number)))
        for number, test in enumerate(script.tests)
    ]


def _parsed(document: Document, faults: list[FlowFault]) -> Script:
    try:
        script = Script.model_validate(document.value)
    except ValidationError as invalid:
        faults += [document.fault(error["loc"], error["msg"]) for error in invalid.errors()]
        raise FlowErrors(in_order(faults)) from None
    if faults:
        raise FlowErrors(in_order(faults))
    return script


def _business(path: Path, flow: str) -> Business:
    name = flow or path.name.removesuffix(".test.yaml") + ".yaml"
    files, errors = read_files(path.parent / name)
    business = next((parsed.business for parsed in files), None)
    if business is None:
        raise FlowErrors(errors)
    return business


def _failures(business: Business, test: FlowTest, document: Document, number: int) -> Iterator[FlowFault]:
    here: tuple[str | int, ...] = ("tests", number)
    try:
        moment = Moment(local_time(test.at, business.timezone), test.caller)
    except ValueError:
        yield document.fault((*here, "at"), "not a time", "like 2026-12-24T09:30, local at the business")
        return
    call = Conversation(business, moment)
    begun = call.begin()
    for index, step in enumerate(test.steps):
        reaction = begun if index == 0 and not _does(step) else _done(call, step)
        for field, told in _differences(call, step, reaction):
            yield document.fault((*here, "steps", index, field), told)


def _does(step: TestStep) -> bool:
    return any(getattr(step, each) not in (None, False) for each in _DOINGS)


def _done(call: Conversation, step: TestStep) -> Reaction:
    if step.press is not None:
        return call.press(step.press)
    if step.say is not None:
        return call.say(step.say)
    if step.call is not None:
        return call.call(step.call, step.arguments)
    if step.answer is not None or step.fails:
        return call.answer(_answer(call, step.answer), is_failed=step.fails)
    if step.result is not None:
        return call.result(step.result)
    return call.wait() if step.wait else Reaction()


def _answer(call: Conversation, answer: Any) -> Any:
    """Values of a file are text; whether a PIN is right is not."""
    using = call.state.using
    return answer == "true" if using is not None and using.is_pin() else answer


def _differences(call: Conversation, step: TestStep, reaction: Reaction) -> Iterator[tuple[str, str]]:
    """What is not as the step says, by its field."""
    state, said = call.state, reaction.said()
    for part in step.said:
        if part.casefold() not in said.casefold():
            yield "said", f"expected to hear `{part}`, heard `{said}`"
    sent = reaction.sent()
    for part in step.sent:
        if part not in sent:
            yield "sent", f"expected a request with `{part}`, sent was `{sent}`"
    actual = {
        "node": state.node,
        "ended": state.ended or "no",
        "target": state.target,
        "language": state.language or None,
    }
    for field, value in actual.items():
        wanted = getattr(step, field)
        if wanted is not None and wanted != value:
            yield field, f"expected {field} `{wanted}`, it is `{value or ''}`"
    slots = {name: _text(value) for name, value in call.slots().items()}
    for name, wanted in step.slots.items():
        if slots.get(name) != wanted:
            yield "slots", f"expected slot {name} `{wanted}`, it is `{slots.get(name, '')}`"
    if bool(reaction.refusal) != step.refused:
        yield "call", reaction.refusal or "expected the function to be refused"


def _text(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
