"""Scripts for the sandbox: a YAML file of turns, checked when read, with errors that name file and line."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml
from msgspec import Meta, Struct, field

from ivr.errors import CallthreadError

Ms = Annotated[float, Meta(ge=0, le=3_600_000)]


class ScriptError(CallthreadError):
    """A script cannot be used. The text is one line: file:line, what is wrong."""


class _Strict(Struct, forbid_unknown_fields=True, frozen=True):
    """Unknown keys are errors: a misspelt one would silently change a test."""


class CallStep(_Strict, frozen=True):
    """A function to call. `arguments` as text is sent as it is, broken or not."""

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)


class ToneStep(_Strict, frozen=True):
    """What the speech of a turn sounds like. `hz` None: 400 + 100 for each turn before it (25 tones, then again)."""

    hz: Annotated[float, Meta(ge=20, le=11_000)] | None = None
    level_dbfs: Annotated[float, Meta(ge=-90, le=-4)] = -20.0
    ms_per_word: Annotated[float, Meta(gt=0, le=5_000)] = 300.0


class TurnStep(_Strict, frozen=True):
    """When it applies, what the user's audio is said to be, and what is answered. docs/sandbox.md tells each key."""

    hear: str | None = None
    any: bool = False
    start: bool = False
    output: bool | str = False
    text: bool = False
    repeat: bool = False
    transcript: str | None = None
    no_transcript: Literal["fail", "never", "empty"] | None = None
    transcript_delay_ms: Ms = 0
    transcript_times: Annotated[int, Meta(ge=1, le=10)] = 1
    say: str = ""
    call: CallStep | list[CallStep] = field(default_factory=list)
    audio_ms: Ms | None = None
    speech: ToneStep = ToneStep()
    delay_ms: Ms = 0
    pace_ms: Ms = 0
    fail: str = ""
    close: Annotated[int, Meta(ge=1000, le=4999)] | None = None
    abort: bool = False
    after_ms: Ms = 0
    raw: list[str | dict[str, Any]] = field(default_factory=list)


class Script(_Strict, frozen=True):
    """A whole script."""

    turns: list[TurnStep] = field(default_factory=list)
    before_ready_ms: Ms = 0
    partials_ms: Ms = 0
    refuse_update: bool = False
    refuse_out_of_band: bool = False
    created_delay_ms: Ms = 0
    lifetime_ms: Annotated[float, Meta(gt=0, le=3_600_000)] = 3_600_000
    carry_over: bool = False
    connections: list[Literal["accept", "refuse", "abort"]] = field(default_factory=list)


def load_script(path: Path) -> Script:
    """Read and check a script. Raises: `ScriptError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScriptError(f"{path}: cannot be read: {error}") from error
    return parse_script(text, str(path))


def parse_script(text: str, name: str) -> Script:
    """Check a script's text; `name` is what errors call it. Raises: `ScriptError`."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 1
        problem = getattr(error, "problem", None) or "not YAML"
        raise ScriptError(f"{name}:{line}: {problem}") from error
    try:
        script = msgspec.convert({"turns": data} if isinstance(data, list) else data or {}, Script)
    except msgspec.ValidationError as error:
        where, what = _split(str(error))
        raise ScriptError(f"{name}:{_line(root, where)}: {where or 'script'}: {what}") from error
    for number, turn in enumerate(script.turns):
        fault = _turn_fault(turn)
        if fault:
            where = f"turns[{number}]"
            raise ScriptError(f"{name}:{_line(root, where)}: {where}: {fault}")
    return script


def _turn_fault(turn: TurnStep) -> str:
    conditions = [turn.hear is not None, turn.any, turn.start, bool(turn.output)]
    if sum(conditions) != 1:
        return "needs exactly one of hear, any, start, output"
    if turn.transcript is not None and turn.no_transcript is not None:
        return "transcript and no_transcript exclude each other"
    if bool(turn.fail) + (turn.close is not None) + turn.abort > 1:
        return "fail, close and abort exclude each other"
    return ""


_AT = re.compile(r" - at `\$\.?(?P<path>[^`]*)`")
_UNKNOWN = re.compile(r"unknown field `(?P<key>[^`]*)`")


def _split(text: str) -> tuple[str, str]:
    """`turns[3].sya` and the fault, out of msgspec's message."""
    found = _AT.search(text)
    where = found["path"] if found else ""
    unknown = _UNKNOWN.search(text)
    if unknown:
        return f"{where}.{unknown['key']}".strip("."), "unknown key"
    return where, _AT.sub("", text)


def _line(root: yaml.Node | None, where: str) -> int:
    """The line (from 1) of what a path names, or of the last part of it that exists."""
    node = root
    line = root.start_mark.line if root is not None else 0
    for step in re.findall(r"[^.\[\]]+", where):
        if isinstance(node, yaml.SequenceNode) and step.isdigit() and int(step) < len(node.value):
            node = node.value[int(step)]
        elif isinstance(node, yaml.MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == step), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line, pair[1]
            continue
        else:
            continue  # `turns` of a script that is a bare list
        line = node.start_mark.line
    return line + 1
