"""What a response is about: the user's last turn, what came before, what was called since."""

import re
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from ivr.sandbox.brain import Answer, Call, Line, Question, ToolSpec, Who
from ivr.sandbox.extract import state

_YES = re.compile(
    r"^(yes|yeah|yep|yup|sure|please do|go on|go ahead|continue|carry on|of course|right|correct|okay|ok)\b"
)
_NO = re.compile(r"^(no|nope|not really|never mind)\b")
_AFRESH = re.compile(
    r"\b(start over|start (it )?afresh|start again|something else|something new|new (topic|question))\b"
)
_OFFERS_TO_GO_ON = re.compile(r"\b(go on|continue|carry on|pick up|start afresh|where we (left|stopped))\b")
_INTERRUPTED = re.compile(r"\s*(—|-)?\s*\[[^\]]*\]\s*$")
# A message may hold a record of earlier talk, a line each.
_RECORD = re.compile(r"^\s*(?P<who>caller|user|assistant|summary|topic):\s*(?P<text>.*\S)\s*$", re.I | re.M)
_PAPERS = re.compile(r"<documents>(?P<papers>.*?)</documents>", re.I | re.S)
_PASSAGE = re.compile(r"^\s*- (?P<text>.*\S)\s*$", re.M)
_RECORDED = {"caller": Who.USER, "user": Who.USER, "assistant": Who.ASSISTANT}


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
        """Cut the lines at the user's last turn; records of earlier talk count as lines of it."""
        lines = tuple(line for given in question.lines for line in _told_by(given))
        last = max(
            (n for n, line in enumerate(lines) if line.who is Who.USER and not line.recorded), default=-1
        )
        first = last
        while first > 0 and lines[last].item_id and _same_turn(lines[first - 1], lines[last]):
            first -= 1
        spoken = [line.text.strip() for line in lines[max(first, 0) : last + 1]]
        return cls(
            question,
            " ".join(text for text in spoken if text),
            tuple(line for line in lines[: max(first, 0)]) if last >= 0 else lines,
            tuple(line for line in lines[last + 1 :] if line.who is Who.OUTPUT),
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
    def offered_to_go_on(self) -> bool:
        """Whether the last reply asked to take up what broke off."""
        return bool(_OFFERS_TO_GO_ON.search(plain(self.last_reply)))

    @property
    def accepts(self) -> bool:
        """Whether the turn says yes."""
        return bool(_YES.search(plain(self.turn))) and not self.declines

    @property
    def declines(self) -> bool:
        """Whether the turn says no to going on, or asks for something else."""
        said = plain(self.turn)
        return bool(_AFRESH.search(said) or (self.offered_to_go_on and _NO.search(said)))


def _told_by(line: Line) -> tuple[Line, ...]:
    """A line, or the lines of the record it holds; a note on how it was broken off is left out."""
    if line.who is Who.ASSISTANT:
        return (replace(line, text=_INTERRUPTED.sub("", line.text)),)
    papers = _PAPERS.search(line.text)
    if papers is not None:
        return tuple(
            Line(Who.DOCUMENT, one["text"], recorded=True) for one in _PASSAGE.finditer(papers["papers"])
        )
    found = list(_RECORD.finditer(line.text)) if line.who in (Who.USER, Who.SYSTEM) else []
    if not found:
        return (line,)
    return tuple(
        Line(_RECORDED.get(one["who"].lower(), Who.SYSTEM), _INTERRUPTED.sub("", one["text"]), recorded=True)
        for one in found
    )


def _same_turn(before: Line, line: Line) -> bool:
    """Pieces of one turn: user items of the session with nothing between them."""
    return before.who is Who.USER and bool(before.item_id) and bool(line.item_id)


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
