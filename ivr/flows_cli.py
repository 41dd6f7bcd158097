"""`ivr flows`: what a business's owner does with flow files. Nothing here needs a network or a database."""

import contextlib
import json
from datetime import datetime
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from rich.console import Console

from callflows.away import Came
from callflows.check import check_paths
from callflows.conversation import Conversation, Reaction, where
from callflows.diagram import differences, mermaid
from callflows.engine import HangUp, Leave, Moment, Moved, Order, Say, SetHours, Told, Transfer, UseTool
from callflows.faults import FlowErrors
from callflows.fields import e164
from callflows.model import Business
from callflows.parse import read_files
from callflows.reference import reference
from callflows.schema import json_schema
from callflows.scripts import TestResult, local_time, run_script, script_files
from ivr.errors import CallthreadError, ConfigError
from ivr.foundations import flow_folder
from ivr.settings import ModelSource, Settings

flows_app = typer.Typer(help="Call flows: one YAML file for each business.", no_args_is_help=True)
out = Console(highlight=False)

_HELP = (
    "Type what the caller says, or keys (0-9 * #). Empty line: silence. /call NAME {JSON}: the model's function. "
    "/answer {JSON}, /fail: what the tool comes to that is awaited. "
    "/result busy: what came of a transfer. /quit"
)


def _print(text: str) -> None:
    out.print(text, markup=False, soft_wrap=True)


def _existing(path: Path | None) -> Path:
    where_to = path or flow_folder(Settings.load())
    if not where_to.exists():
        raise CallthreadError(f"{where_to}: there is no such file or folder")
    return where_to


def _has_voice() -> bool:
    """Exact words are said exactly here; also where the settings are wrong, which is not what is asked."""
    with contextlib.suppress(ConfigError):
        settings = Settings.load()
        return settings.has_speech_endpoint or settings.model_source is ModelSource.SANDBOX
    return True


def _business(flow: str) -> Business:
    """By the path of its file, or by its id among the service's flows. Raises: `FlowErrors`, `CallthreadError`."""
    path = Path(flow)
    files, errors = read_files(path if path.suffix == ".yaml" else flow_folder(Settings.load()))
    found = [p.business for p in files if p.business is not None and (path.suffix or p.business.id == flow)]
    if found:
        return found[0]
    if errors:
        raise FlowErrors(errors)
    known = ", ".join(p.business.id for p in files if p.business is not None)
    raise CallthreadError(f"there is no flow {flow!r}: name a .yaml file, or one of {known}")


@flows_app.command("check")
def check(
    path: Annotated[Path | None, typer.Argument(help="A folder or file; default: IVR_CALLFLOWS.")] = None,
) -> None:
    """Check call flows; every fault with file:line:column and how to mend it. Exit code 1 if there is an error."""
    place = _existing(path)
    faults = check_paths(place, has_voice=_has_voice())
    for fault in faults:
        _print(str(fault))
    errors = sum(fault.severity == "error" for fault in faults)
    _print(f"{place}: {errors} errors, {len(faults) - errors} warnings")
    raise typer.Exit(1 if errors else 0)


@flows_app.command("schema")
def schema() -> None:
    """Print the JSON Schema of a flow file, for editors."""
    out.print_json(data=json_schema())


@flows_app.command("reference")
def print_reference() -> None:
    """Print every key of a flow file with its meaning, as Markdown (docs/callflows-reference.md)."""
    _print(reference())


@flows_app.command("show")
def show(flow: Annotated[str, typer.Argument(help="A flow file, or a business's id.")]) -> None:
    """Print the flow as a diagram: Mermaid text, which GitHub and many editors draw.

    Example: ivr flows show harbor-dental > flow.mmd
    """
    _print(mermaid(_business(flow)))


@flows_app.command("diff")
def diff(
    old: Annotated[str, typer.Argument(help="A flow file, or a business's id.")],
    new: Annotated[str, typer.Argument(help="Another.")],
) -> None:
    """Tell what a new flow file adds (+), takes out (-) and changes (~). Exit code 1 if there is a difference."""
    lines = differences(_business(old), _business(new))
    for line in lines:
        _print(line)
    raise typer.Exit(1 if lines else 0)


@flows_app.command("test")
def test(
    path: Annotated[
        Path | None, typer.Argument(help="A folder or *.test.yaml; default: IVR_CALLFLOWS.")
    ] = None,
) -> None:
    """Run the recorded conversations (*.test.yaml) of flow files. Exit code 1 if one goes another way."""
    scripts = script_files(_existing(path))
    if not scripts:
        raise CallthreadError(f"{path or 'IVR_CALLFLOWS'}: no *.test.yaml here; docs/callflows.md shows one")
    results = [result for script in scripts for result in run_script(script)]
    failed = sum(_told(result) for result in results)
    _print(f"{len(results)} tests, {failed} failed")
    raise typer.Exit(1 if failed else 0)


def _told(result: TestResult) -> bool:
    _print(f"{'FAILED' if result.faults else 'ok':6} {result.file}: {result.name}")
    for fault in result.faults:
        _print(f"       {fault}")
    return bool(result.faults)


@flows_app.command("simulate")
def simulate(
    flow: Annotated[str, typer.Argument(help="A flow file, or a business's id.")],
    at: Annotated[
        str, typer.Option(help="When: 2026-12-24T09:30, local at the business; default: now.")
    ] = "",
    from_: Annotated[str, typer.Option("--from", help="The caller's number; default: withheld.")] = "",
    script: Annotated[Path | None, typer.Option(help="A *.test.yaml to run and compare instead.")] = None,
) -> None:
    """Try a flow in the terminal by typing words and keys; no network, no model. Secrets are masked.

    Example: ivr flows simulate harbor-dental --at 2026-12-24T09:30 --from +12025550143
    """
    if script is not None:
        raise typer.Exit(1 if sum(_told(result) for result in run_script(script)) else 0)
    business = _business(flow)
    call = Conversation(business, _moment(business, at, from_))
    _print(_HELP)
    _react(call, call.begin())
    while not call.state.ended or call.state.is_away():
        try:
            line = input("> ").strip()
        except EOFError:
            break
        if line == "/quit":
            break
        _react(call, _typed(call, line))


def _moment(business: Business, at: str, caller: str) -> Moment:
    try:
        now = local_time(at, business.timezone) if at else datetime.now(ZoneInfo(business.timezone))
    except ValueError:
        raise CallthreadError("--at: not a time; like 2026-12-24T09:30") from None
    number = e164(caller) if caller else None
    if caller and number is None:
        raise CallthreadError("--from: not a telephone number in international form; like +12025550143")
    return Moment(now, number)


def _typed(call: Conversation, line: str) -> Reaction:
    if line.startswith("/call "):
        name, _, arguments = line.removeprefix("/call ").strip().partition(" ")
        return call.call(name, arguments)
    if line == "/fail":
        return call.answer(None, is_failed=True)
    if line.startswith("/answer"):
        try:
            return call.answer(json.loads(line.removeprefix("/answer")))
        except ValueError:
            return Reaction(refusal='not JSON; like /answer {"free": true}')
    if line.startswith("/result "):
        word = line.removeprefix("/result ").strip()
        if word not in set(Came):
            _print(f"  /result is one of {', '.join(Came)}")
            return Reaction()
        return call.result(Came(word))
    if not line:
        return call.wait()
    return call.press(line) if set(line) <= set("0123456789*#") else call.say(line)


def _react(call: Conversation, reaction: Reaction) -> None:
    if reaction.refusal:
        _print(f"  refused: {reaction.refusal}")
    for action in reaction.actions:
        match action:
            case Moved(node):
                _print(f"  -> {node}")
            case Say(text, audio):
                _print(f"  says: {text}{f' ({audio})' if audio else ''}")
            case Transfer(target, number, say):
                _print(f"  says: {say or '(connecting)'}\n  transfers to {target}, {number}")
            case Leave(say):
                _print(f"  says: {say}\n  leaves the call to the telephone network ({call.state.ended})")
            case Order(_, kind, to, text, due):
                _print(f"  orders {kind} to {to}{f' at {due}' if due else ''}{f': {text}' if text else ''}")
            case HangUp(say):
                _print(f"  says: {say or '(goodbye)'}\n  hangs up")
            case UseTool(_, tool):
                _print(
                    f"  uses the tool {tool}; nothing is sent: /answer {{JSON}} or /fail says what comes of it"
                )
            case SetHours(schedule, is_open, until):
                state = {True: "open", False: "closed", None: "as in the file"}[is_open]
                _print(f"  sets {schedule}: {state}, until {until:%Y-%m-%d %H:%M}")
            case Told(name, _, output):
                _print(f"  the model is told what {name} came to: {output}")
            case _:
                _print("  the model begins to speak")
    if not reaction.actions and not reaction.refusal and call.offered():
        _print("  (the model answers; /call lets it use a function)")
    slots = ", ".join(f"{name}={value}" for name, value in call.slots().items())
    offered = ", ".join(call.offered())
    may = f" functions: {offered}" if offered else ""
    _print(f"  [{where(call.state)}]{f' {slots}' if slots else ''}{may}")
