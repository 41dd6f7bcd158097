"""Names in a flow file that must lead somewhere. Works on the raw document, so that a file with other faults
is checked too: a node that does not parse is known by its name, and nothing is concluded from what it holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from callflows.document import Document, Path, short
from callflows.faults import FlowFault
from callflows.fields import closest, e164
from callflows.model import HangUpNode, Node, Talk, TransferNode

_NODE: TypeAdapter[Node] = TypeAdapter(Node)


@dataclass(frozen=True, slots=True)
class _Outline:
    """What of a document is good enough to be checked. `nodes` holds None for a node that does not parse."""

    document: Document
    nodes: dict[str, Node | None]
    targets: list[str]

    def link(self, path: Path, name: str) -> Iterator[FlowFault]:
        if name not in self.nodes:
            yield self.document.fault(
                path, f"no node is called `{short(name)}`", closest(name, list(self.nodes))
            )

    def target(self, path: Path, name: str) -> Iterator[FlowFault]:
        if name not in self.targets:
            hint = closest(name, self.targets) or "add it under `transfers`"
            yield self.document.fault(path, f"no transfer target is called `{short(name)}`", hint)


def reference_faults(document: Document) -> list[FlowFault]:
    """Unknown nodes and targets, a start that cannot start, nodes nothing leads to, transfers to oneself."""
    nodes = {name: _node(raw) for name, raw in document.mapping("nodes").items()}
    outline = _Outline(document, nodes, list(document.mapping("transfers")))
    faults = [*_start(outline), *_fallback(outline), *_own_number(outline), *_unreachable(outline)]
    for name, node in nodes.items():
        faults.extend(_links(outline, ("nodes", name), node))
    return faults


def _node(raw: object) -> Node | None:
    try:
        return _NODE.validate_python(raw)
    except ValidationError:
        return None


def _start(outline: _Outline) -> Iterator[FlowFault]:
    start = outline.document.at("start")
    if not isinstance(start, str):
        return
    yield from outline.link(("start",), start)
    if isinstance(outline.nodes.get(start), TransferNode | HangUpNode):
        hint = "name a node of type talk"
        yield outline.document.fault(
            ("start",), f"a call cannot start at `{short(start)}`: nobody would talk", hint
        )


def _fallback(outline: _Outline) -> Iterator[FlowFault]:
    name = outline.document.at("on_model_down", "transfer")
    if isinstance(name, str):
        yield from outline.target(("on_model_down", "transfer"), name)


def _links(outline: _Outline, path: Path, node: Node | None) -> Iterator[FlowFault]:
    match node:
        case Talk():
            for index, name in enumerate(node.transfers or ()):
                yield from outline.target((*path, "transfers", index), name)
            for exit_name, way in node.exits.items():
                yield from outline.link((*path, "exits", exit_name, "to"), way.to)
        case TransferNode():
            yield from outline.target((*path, "target"), node.target)
        case HangUpNode() | None:
            return


def _unreachable(outline: _Outline) -> Iterator[FlowFault]:
    start = outline.document.at("start")
    if start not in outline.nodes or None in outline.nodes.values():
        return
    reached, ahead = {start}, [start]
    while ahead:
        node = outline.nodes.get(ahead.pop())
        for way in node.exits.values() if isinstance(node, Talk) else ():
            if way.to not in reached:
                reached.add(way.to)
                ahead.append(way.to)
    for name in outline.nodes:
        if name not in reached:
            hint = "add an exit that goes to it, or take it out"
            yield outline.document.fault(
                ("nodes", name), f"nothing leads to `{short(name)}`", hint, at_key=True
            )


def numbers_of(document: Document) -> list[tuple[Path, str]]:
    """The business's own numbers that can be read, as E.164, each with its path."""
    listed = document.at("numbers")
    pairs = enumerate(listed if isinstance(listed, list) else [])
    read = ((index, e164(raw)) for index, raw in pairs if isinstance(raw, str))
    return [(("numbers", index), number) for index, number in read if number is not None]


def _own_number(outline: _Outline) -> Iterator[FlowFault]:
    """A transfer to the business's own number would come back here: a circle of paid calls."""
    own = {number for _, number in numbers_of(outline.document)}
    for name in outline.targets:
        raw = outline.document.at("transfers", name, "number")
        if isinstance(raw, str) and e164(raw) in own:
            path = ("transfers", name, "number")
            hint = "give the number of the people's own telephone"
            yield outline.document.fault(path, "this number is answered by this flow itself", hint)
