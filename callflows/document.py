"""A flow file's YAML, read into plain values that remember where they stood.

Every scalar stays text (an empty or `null` one is None), so `no`, `+16175550123` and `08:30` mean what they
look like; the model turns text into numbers where it wants them.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.reader import Reader

from callflows.faults import FlowErrors, FlowFault

MAX_BYTES = 1_000_000
MAX_DEPTH = 32
MAX_NODES = 20_000
"""Values in one document, aliases counted as often as they are used."""

_YAML = "tag:yaml.org,2002:"
_KINDS = ("str", "int", "float", "bool", "timestamp", "merge", "value")
_SCALARS = frozenset(f"{_YAML}{kind}" for kind in _KINDS)
_UNSPEAKABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_YAML_HINT = "check the indentation; put texts that hold `: ` or ` #` in quotes"

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a file, both from 1."""

    line: int
    column: int
    file: str


@dataclass(slots=True)
class Document:
    """One file's values (`dict`, `list`, `str`, `None`) and the places of its keys and values, by path.

    With what it includes: those places name other files.
    """

    file: str
    value: Any = None
    keys: dict[Path, Place] = field(default_factory=dict)
    values: dict[Path, Place] = field(default_factory=dict)

    def known(self, path: Path) -> Path:
        """The part of `path` that exists here: without a union's tag, without a missing field."""
        found: Path = ()
        for step in path:
            found = (*found, step) if (*found, step) in self.values else found
        return found

    def fault(self, path: Path, message: str, hint: str = "", *, at_key: bool = False) -> FlowFault:
        """An error at the value (or the key) that `path` leads to, or at what is nearest above it."""
        known = self.known(path)
        places = self.keys if at_key or known != path else self.values
        place = places.get(known, self.values.get(known, Place(1, 1, self.file)))
        return FlowFault(place.file, place.line, place.column, message, hint)

    def is_own(self, path: Path) -> bool:
        """Whether what stands at `path` was written in this file, not in one that it includes."""
        place = self.values.get(path)
        return place is None or place.file == self.file

    def at(self, *path: str | int) -> Any:
        """The value at `path`, or None."""
        value = self.value
        for step in path:
            if isinstance(value, dict):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                return None
        return value

    def mapping(self, *path: str | int) -> dict[str, Any]:
        """The mapping at `path`; empty if something else, or nothing, stands there."""
        value = self.at(*path)
        return value if isinstance(value, dict) else {}


class _TooMuch(Exception):
    """The document is larger than may be walked; never leaves this module."""

    def __init__(self, fault: FlowFault) -> None:
        self.fault = fault


class _Composer(yaml.SafeLoader):
    """Composes the node tree within bounds: the parser below neither recurses nor keeps anything, this does."""

    depth = 0
    count = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.depth += 1
        self.count += 1
        if self.depth > MAX_DEPTH or self.count > MAX_NODES:
            problem = "nested too deeply" if self.depth > MAX_DEPTH else f"more than {MAX_NODES} values"
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Walk:
    """Turns the node tree into values, noting places and faults on the way."""

    def __init__(self, file: str) -> None:
        self.document = Document(file)
        self.faults: list[FlowFault] = []
        self._seen = 0

    def value(self, node: yaml.Node, path: Path) -> Any:
        self._seen += 1
        if self._seen > MAX_NODES or len(path) > MAX_DEPTH:
            raise _TooMuch(self._at(node, "too much is nested or repeated here", "use no aliases (`*name`)"))
        self.document.values[path] = self._place(node)
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_YAML}map":
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_YAML}seq":
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        self._fault(node, "tags are not understood here", "leave out the word that starts with `!`")
        return None

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            if key is None:
                self._fault(key_node, "a key must be plain text", "write `key: value`")
                continue
            here = (*path, key)
            if key in values:
                first = self.document.keys[here].line
                self._fault(
                    key_node, f"`{short(key)}` is given twice", f"first in line {first}; leave one of them"
                )
                continue
            self.document.keys[here] = self._place(key_node)
            values[key] = self.value(value_node, here)
        return values

    def _scalar(self, node: yaml.ScalarNode) -> str | None:
        if node.tag == f"{_YAML}null":
            return None
        if node.tag not in _SCALARS:
            self._fault(node, "tags are not understood here", "leave out the word that starts with `!`")
            return None
        text: str = node.value
        if _UNSPEAKABLE.search(text):
            self._fault(node, "holds a control character or half a character", "write plain text")
            return ""
        return text

    def _place(self, node: yaml.Node) -> Place:
        return Place(node.start_mark.line + 1, node.start_mark.column + 1, self.document.file)

    def _at(self, node: yaml.Node, message: str, hint: str) -> FlowFault:
        mark = node.start_mark
        return FlowFault(self.document.file, mark.line + 1, mark.column + 1, message, hint)

    def _fault(self, node: yaml.Node, message: str, hint: str) -> None:
        self.faults.append(self._at(node, message, hint))


def short(text: str) -> str:
    """`text`, cut to what fits a message."""
    return text if len(text) <= 40 else f"{text[:40]}…"


def _place_of(text: str, offset: int, file: str) -> Place:
    return Place(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset), file)


def _compose(text: str, file: str) -> yaml.Node:
    """The node tree of the one document in `text`, or `FlowErrors` with the place where reading stopped."""
    odd = Reader.NON_PRINTABLE.search(text)
    if odd:
        place = _place_of(text, odd.start(), file)
        message = "holds a character that cannot be in a text file"
        raise FlowErrors([FlowFault(file, place.line, place.column, message, "save the file as UTF-8 text")])
    composer = _Composer(text)
    try:
        node = composer.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark or composer.get_mark()
        told = ", ".join(part for part in (error.context, error.problem) if part)
        problem = f"not readable as YAML: {told}"
        raise FlowErrors([FlowFault(file, mark.line + 1, mark.column + 1, problem, _YAML_HINT)]) from None
    except (ValueError, OverflowError):  # an escape or a version number out of range
        mark = composer.get_mark()
        problem = "not readable as YAML: an impossible escape or number"
        raise FlowErrors([FlowFault(file, mark.line + 1, mark.column + 1, problem, _YAML_HINT)]) from None
    finally:
        composer.dispose()
    if node is None:
        raise FlowErrors([FlowFault(file, 1, 1, "the file is empty", "see docs/callflows.md for an example")])
    return node


def read_document(text: str, file: str) -> tuple[Document, list[FlowFault]]:
    """Read `text`. Faults returned leave a usable document; those that do not are raised as `FlowErrors`."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise FlowErrors(
            [FlowFault(file, 1, 1, "the file is larger than 1 MB", "give each business its own file")]
        )
    node = _compose(text, file)
    walk = _Walk(file)
    try:
        walk.document.value = walk.value(node, ())
    except _TooMuch as stop:
        raise FlowErrors([*walk.faults, stop.fault]) from None
    return walk.document, walk.faults
