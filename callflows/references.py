"""Names in a flow file that must lead somewhere, and claims that may be made once only. Works on the raw document,
so that a file with other faults is checked for these too.
"""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from callflows.document import Document, Path, Place, short
from callflows.faults import FlowFault
from callflows.fields import closest, e164


def reference_faults(document: Document) -> list[FlowFault]:
    """Unknown nodes and targets, a start that cannot start, nodes nothing leads to, transfers to oneself."""
    found = [*_start(document), *_own_number(document), *_unreachable(document)]
    for path, name in _links(document):
        found.extend(_unknown(document, path, name, "node", list(document.mapping("nodes"))))
    for path, name in _targets(document):
        found.extend(_unknown(document, path, name, "transfer target", list(document.mapping("transfers"))))
    return found


def _unknown(document: Document, path: Path, name: str, kind: str, known: list[str]) -> Iterator[FlowFault]:
    if name not in known:
        hint = closest(name, known) or "the file has none yet"
        yield document.fault(path, f"no {kind} is called `{short(name)}`", hint)


def _links(document: Document) -> Iterator[tuple[Path, str]]:
    """Every name of a node that the file refers to, with its place."""
    yield from _texts(document, [("start",)])
    for name in document.mapping("nodes"):
        yield from _exits(document, name)


def _exits(document: Document, node: str) -> Iterator[tuple[Path, str]]:
    names = document.mapping("nodes", node, "exits")
    yield from _texts(document, [("nodes", node, "exits", name, "to") for name in names])


def _targets(document: Document) -> Iterator[tuple[Path, str]]:
    """Every name of a transfer target that the file refers to, with its place."""
    yield from _texts(document, [("on_model_down", "transfer")])
    for name in document.mapping("nodes"):
        allowed = document.at("nodes", name, "transfers")
        count = len(allowed) if isinstance(allowed, list) else 0
        paths: list[Path] = [("nodes", name, "transfers", index) for index in range(count)]
        yield from _texts(document, [("nodes", name, "target"), *paths])


def _texts(document: Document, paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """The texts that stand at `paths`; the model tells of anything else."""
    for path in paths:
        value = document.at(*path)
        if isinstance(value, str):
            yield path, value


def _start(document: Document) -> Iterator[FlowFault]:
    for path, name in _texts(document, [("start",)]):
        if document.at("nodes", name, "type") in ("transfer", "hangup"):
            message = f"a call cannot start at `{short(name)}`: nobody would talk"
            yield document.fault(path, message, "name a node of type talk")


def _unreachable(document: Document) -> Iterator[FlowFault]:
    """Nodes nothing leads to. A misspelt name leads to what it resembles: its own fault is told already."""
    nodes = document.mapping("nodes")
    ahead = [_meant(name, nodes) for _, name in _texts(document, [("start",)])]
    if list(_start(document)):
        return
    if not ahead or None in ahead or not all(isinstance(node, dict) for node in nodes.values()):
        return
    reached: set[str | None] = set()
    while ahead:
        name = ahead.pop()
        if name is not None and name not in reached:
            reached.add(name)
            ahead.extend(_meant(to, nodes) for _, to in _exits(document, name))
    for name in nodes:
        if name not in reached:
            hint = "add an exit that goes to it, or take it out"
            yield document.fault(("nodes", name), f"nothing leads to `{short(name)}`", hint, at_key=True)


def _meant(name: str, nodes: dict[str, object]) -> str | None:
    if name in nodes:
        return name
    return next(iter(get_close_matches(name, nodes, n=1, cutoff=0.7)), None)


def _numbers(document: Document) -> list[tuple[Path, str]]:
    """The business's own numbers that can be read, as E.164, each with its place."""
    listed = document.at("numbers")
    count = len(listed) if isinstance(listed, list) else 0
    read = (
        (path, e164(raw)) for path, raw in _texts(document, [("numbers", index) for index in range(count)])
    )
    return [(path, number) for path, number in read if number is not None]


def _own_number(document: Document) -> Iterator[FlowFault]:
    """A transfer to the business's own number would come back here: a circle of paid calls."""
    own = {number for _, number in _numbers(document)}
    paths: list[Path] = [("transfers", name, "number") for name in document.mapping("transfers")]
    for path, raw in _texts(document, paths):
        if e164(raw) in own:
            hint = "give the number of the people's own telephone"
            yield document.fault(path, "this number is answered by this flow itself", hint)


def taken_twice(documents: Iterable[Document]) -> list[FlowFault]:
    """Numbers and ids claimed more than once, by one business or by two: the later place is at fault."""
    faults: list[FlowFault] = []
    first: dict[tuple[str, str], tuple[str, Place]] = {}
    for document in documents:
        ids = [("id", path, text) for path, text in _texts(document, [("id",)])]
        numbers = [("number", path, number) for path, number in _numbers(document)]
        for kind, path, value in [*ids, *numbers]:
            here = (document.file, document.values[path])
            file, place = first.setdefault((kind, value), here)
            if (file, place) != here:
                hint = f"first in {file}:{place.line}; leave one of them"
                faults.append(document.fault(path, f"{kind} {short(value)} is taken already", hint))
    return faults
