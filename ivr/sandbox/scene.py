"""What a response is about: the user's last turn, what came before, what was called since."""

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from ivr.sandbox.brain import Answer, Call, Line, Question, ToolSpec, Who
from ivr.sandbox.extract import state

_YES = re.compile(
    r"^(yes|yeah|yep|yup|sure|please do|go on|go ahead|continue|carry on|of course|right|correct|okay|ok)\b"
)
_NO = re.compile(
    r"^(no|nope|not really|never mind)\b"
    r"|\b(start over|start afresh|start again|something else|new (topic|call|question))\b"
)


@dataclass(frozen=True)
class Scene:
    """`turn`: the user's last words. `outputs`: function outputs after them."""

    question: Question
    turn: str
    earlier: tuple[Line, ...]
    outputs: tuple[Line, ...]
    has_user: bool
    numbers: dict[str, float]

    @classmethod
    def of(cls, question: Question) -> "Scene":
        """Cut the lines at the user's last one; several user lines in a row are one turn only if adjacent items are."""
        lines = question.lines
        last = max((n for n, line in enumerate(lines) if line.who is Who.USER), default=-1)
        after = lines[last + 1 :]
        return cls(
            question,
            lines[last].text.strip() if last >= 0 else "",
            lines[: max(last, 0)],
            tuple(line for line in after if line.who is Who.OUTPUT),
            last >= 0,
            state(question),
        )

    def tool(self, name: str) -> ToolSpec | None:
        """The tool of that name, if it may be called."""
        return next((tool for tool in self.question.tools if tool.name == name), None)

    @property
    def last_reply(self) -> str:
        """What was said to the user last, before this turn."""
        return next((line.text for line in reversed(self.earlier) if line.who is Who.ASSISTANT), "")

    @property
    def accepts(self) -> bool:
        """Whether the turn says yes."""
        return bool(_YES.search(plain(self.turn))) and not self.declines

    @property
    def declines(self) -> bool:
        """Whether the turn says no, or asks for something else."""
        return bool(_NO.search(plain(self.turn)))


def plain(text: str) -> str:
    """Lower case, straight apostrophes, no punctuation but apostrophes: what patterns are matched against."""
    return " ".join(re.sub(r"[^a-z0-9' ]+", " ", text.lower().replace("’", "'")).split())


def property_of(tool: ToolSpec, wanted: str, kind: str) -> str:
    """The name of the tool's argument: the wanted one, else the first of that JSON type, else the wanted one."""
    properties = tool.parameters.get("properties")
    if not isinstance(properties, dict) or wanted in properties:
        return wanted
    kinds = {kind, "integer"} if kind == "number" else {kind}
    return next((str(name) for name, spec in properties.items() if _kind(spec) in kinds), wanted)


def choices(tool: ToolSpec, argument: str) -> list[str]:
    """The values an argument may have, where its schema lists them."""
    properties = tool.parameters.get("properties")
    spec = properties.get(argument) if isinstance(properties, dict) else None
    listed = spec.get("enum") if isinstance(spec, dict) else None
    return [str(value) for value in listed] if isinstance(listed, list) else []


def calling(tool: ToolSpec, arguments: dict[str, Any], say: str = "") -> Answer:
    """An answer that calls one tool."""
    return Answer(say=say, calls=(Call(tool.name, msgspec.json.encode(arguments).decode()),))


def _kind(spec: object) -> object:
    return spec.get("type") if isinstance(spec, dict) else None
