"""Names in a flow file that must lead somewhere, and claims that may be made once only. Works on the raw document,
so that a file with other faults is checked for these too.
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from callflows.document import Document, Path, Place, short
from callflows.faults import FlowFault
from callflows.fields import closest, e164
from callflows.nodes.base import NodeBase, Pattern, walk
from callflows.patterns import kind_of, names_of, patterns
from callflows.subflows import plain
from callflows.texts import slots_in
from callflows.tools import CALLER, host_of, slots_of

Named = Iterator[tuple[Path, str]]


ENTRIES: tuple[Path, ...] = (("start",), ("on_model_down", "keys"))
"""Where the names of nodes stand at which a caller may enter the flow."""
_SAID_ANYWHERE: tuple[Pattern, ...] = (
    *(("tools", "*", "say"), ("transfers", "*", "say"), ("emergency", "*", "say"), ("callers", "say")),
    *(("on_model_down", each) for each in ("say", "voicemail", "filler")),
    *((part, "say") for part in ("spending", "on_busy")),
)
"""Where texts by language stand outside the nodes."""
_NAMED_TARGETS: tuple[Path, ...] = (
    *((part, "transfer") for part in ("on_model_down", "on_busy", "spending")),
    ("operator",),
)


def reference_faults(document: Document, *, is_whole: bool = True) -> list[FlowFault]:
    """Unknown names of all kinds, a start that cannot start, nodes nothing leads to, transfers to oneself.

    `is_whole`: no flow within the flow has faults of its own, which would cut it off from the rest.
    """
    found = [*_start(document), *_own_number(document), *_circles(document)]
    found += _unreachable(document) if is_whole else ()
    found += [*_hosts(document), *_unverified(document)]
    for kind, claims, known in _kinds_of_name(document):
        for path, name in claims:
            found.extend(_unknown(document, path, name, kind, known))
    return found


def _kinds_of_name(document: Document) -> Iterator[tuple[str, Named, list[str]]]:
    """What a name may be of, where such names stand, and which there are."""
    nodes, targets = list(document.mapping("nodes")), list(document.mapping("transfers"))
    hours, slots = list(document.mapping("hours")), sorted({name for _, name in fills(document)})
    tools = list(document.mapping("tools"))
    own = document.at("language")
    languages = [own if isinstance(own, str) else "en-US", *document.mapping("languages")]
    folded = [each.casefold() for each in languages]
    spoken = ((path, tag) for path, tag in _from_nodes(document, "LANGUAGES") if tag.casefold() not in folded)
    yield "node", _links(document) if nodes else iter(()), nodes
    yield "transfer target", _targets(document), targets
    yield "schedule", schedules(document), hours
    lines = [name for name in nodes if document.at("nodes", name, "type") == "queue"]
    yield "node of type queue", _from_nodes(document, "QUEUES"), lines
    yield "rota", rotas(document), list(document.mapping("rotas"))
    yield "language of the business", spoken, languages
    yield "tool", _from_nodes(document, "TOOLS"), tools
    yield "slot", reads(document), slots
    yield "slot", _in_texts(document), slots


def _unknown(document: Document, path: Path, name: str, kind: str, known: list[str]) -> Iterator[FlowFault]:
    if name not in known and not (kind == "node" and "." in name):  # those are told where they were written
        hint = closest(name, known) or "the file has none yet"
        yield document.fault(path, f"no {kind} is called `{short(name)}`", hint)


def _kind(document: Document, node: str) -> type[NodeBase] | None:
    return kind_of(document.at("nodes", node))


def _of_node(document: Document, node: str, which: str) -> Named:
    for path, name in names_of(document.at("nodes", node), which):
        yield ("nodes", node, *path), name


def _from_nodes(document: Document, which: str) -> Named:
    for node in document.mapping("nodes"):
        yield from _of_node(document, node, which)


def fills(document: Document) -> Named:
    """Every name of a slot that some node, or tool, fills."""
    yield from _from_nodes(document, "FILLS")
    for node in document.mapping("nodes"):
        yield from (
            (("nodes", node, "slots", name), name) for name in document.mapping("nodes", node, "slots")
        )
    for tool in document.mapping("tools"):
        for part in ("parameters", "result"):
            yield from ((("tools", tool, part, name), name) for name in document.mapping("tools", tool, part))


def reads(document: Document) -> Named:
    """Every name of a slot that some condition looks at, or some tool sends."""
    yield from _from_nodes(document, "READS")
    for tool in document.mapping("tools"):
        for part in ("url", "body"):
            names = slots_of(document.at("tools", tool, part)) - {CALLER}
            yield from ((("tools", tool, part), name) for name in sorted(names))


def schedules(document: Document) -> Named:
    """Every name of a schedule that something looks at."""
    yield from _from_nodes(document, "SCHEDULES")
    name = document.at("resume", "call_back", "hours")
    if isinstance(name, str):
        yield ("resume", "call_back", "hours"), name


def texts_of(value: Any) -> list[str]:
    """The texts in a text, or in a mapping of texts by language."""
    each = value.values() if isinstance(value, dict) else [value]
    return [text for text in each if isinstance(text, str)]


def _in_texts(document: Document) -> Named:
    """Every `{slot}` of the texts."""
    for path, text in single_texts(document):
        yield from ((path, name) for name in sorted(slots_in([text])))


def single_texts(document: Document) -> Named:
    """Every text by itself, those of a mapping by language too."""
    for path, value in texts_at(document):
        if isinstance(value, dict):
            yield from (((*path, tag), text) for tag, text in value.items() if isinstance(text, str))
        elif isinstance(value, str):
            yield path, value


def texts_at(document: Document) -> Iterator[tuple[Path, Any]]:
    """Every text, or mapping of texts by language."""
    for node in document.mapping("nodes"):
        for pattern in patterns(document.at("nodes", node), "TEXTS"):
            for path, value in walk(document.at("nodes", node), pattern):
                yield ("nodes", node, *path), value
    for pattern in _SAID_ANYWHERE:
        yield from walk(document.value, pattern)


def _links(document: Document) -> Named:
    """Every name of a node that the file refers to, with its place."""
    yield from _texts(document, ENTRIES)
    yield from _from_nodes(document, "LINKS")


def _targets(document: Document) -> Named:
    """Every name of a transfer target that the file refers to, with its place."""
    emergencies = document.at("emergency")
    count = len(emergencies) if isinstance(emergencies, list) else 0
    paths: list[Path] = [("emergency", index, "transfer") for index in range(count)]
    yield from _texts(document, [*_NAMED_TARGETS, *paths])
    yield from rota_targets(document)
    yield from _from_nodes(document, "TARGETS")


def rota_targets(document: Document) -> Named:
    """Every name of a transfer target that a rota has on duty."""
    for rota, value in document.mapping("rotas").items():
        for pattern in (("shifts", "*", "who", "*"), ("dates", "*", "*")):
            for path, name in walk(value, pattern):
                if isinstance(name, str):
                    yield ("rotas", rota, *path), name


def rotas(document: Document) -> Named:
    """Every name of a rota that some node looks at."""
    yield from _from_nodes(document, "ROTAS")


def _texts(document: Document, paths: Iterable[Path]) -> Named:
    """The texts that stand at `paths`; the model tells of anything else."""
    for path in paths:
        value = document.at(*path)
        if isinstance(value, str):
            yield path, value


def _start(document: Document) -> Iterator[FlowFault]:
    for path, name in _texts(document, [("start",)]):
        kind = _kind(document, name)
        if kind is not None and not kind.CAN_START:
            message = f"a call cannot start at `{short(plain(name))}`: nobody would talk"
            yield document.fault(path, message, "name a node that speaks or waits, like talk, menu or say")


def _unreachable(document: Document) -> Iterator[FlowFault]:
    """Nodes nothing leads to. A misspelt name leads to what it resembles: its own fault is told already."""
    nodes = document.mapping("nodes")
    ahead = [_meant(name, nodes) for _, name in _texts(document, ENTRIES)]
    if list(_start(document)):
        return
    if not ahead or None in ahead or not all(isinstance(node, dict) for node in nodes.values()):
        return
    reached: set[str | None] = set()
    while ahead:
        name = ahead.pop()
        if name is not None and name not in reached:
            reached.add(name)
            ahead.extend(_meant(to, nodes) for _, to in _of_node(document, name, "LINKS"))
    lost = {
        name: [to for _, to in _of_node(document, name, "LINKS")]
        for name in nodes
        if name not in reached and document.is_own(("nodes", name))
    }
    for name in _first_of(lost):
        hint = "add an exit that goes to it, or take it out"
        yield document.fault(("nodes", name), f"nothing leads to `{short(plain(name))}`", hint, at_key=True)


def _first_of(lost: Mapping[str, list[str]]) -> Iterator[str]:
    """Of nodes that nothing leads to those from which the others are reached: with them in, all are."""
    covered: set[str] = set()
    led_to = {to for name, links in lost.items() for to in links if to != name}
    for name in [*(each for each in lost if each not in led_to), *lost]:
        if name not in covered:
            covered |= _reached([name], lost)
            yield name


def _circles(document: Document) -> Iterator[FlowFault]:
    """Nodes that lead back to themselves without the caller: such a call would never end, or end at once."""
    passed = {name: kind for name in document.mapping("nodes") if (kind := _kind(document, name)) is not None}
    ahead = {
        name: [to for _, to in _of_node(document, name, "LINKS") if to in passed and not _stops(passed[to])]
        for name, kind in passed.items()
        if not _stops(kind)
    }
    told: set[str] = set()
    for name in ahead:
        circle = _back_to(name, ahead)
        if circle and not told & circle:
            told |= circle
            message = f"`{short(plain(name))}` leads back to itself without waiting for the caller"
            names = ", ".join(sorted(map(plain, circle))[:6])
            hint = f"put a menu, collect or talk node into the circle of {names}"
            yield document.fault(("nodes", name), message, hint, at_key=True)


def _stops(kind: type[NodeBase]) -> bool:
    """Whether nothing but the caller leads on from a node of this kind."""
    return kind.WAITS and kind.NEEDS_CALLER


def _back_to(name: str, ahead: Mapping[str, list[str]]) -> set[str]:
    """The nodes on ways from `name` back to it; none if there is no such way."""
    after = _reached(ahead[name], ahead)
    return {each for each in after if name in _reached([each], ahead)} if name in after else set()


def _reached(first: list[str], ahead: Mapping[str, list[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(first)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(ahead.get(name, []))
    return seen


def _unverified(document: Document) -> Iterator[FlowFault]:
    """Nodes that need a PIN and can be reached without one: by the ways that do not go through `verify`'s `to`."""
    start = document.at("start")
    ahead: list[str] = [start] if isinstance(start, str) else []
    reached: set[str] = set()
    while ahead:
        name = ahead.pop()
        if name in reached or name not in document.mapping("nodes"):
            continue
        reached.add(name)
        is_check = document.at("nodes", name, "type") == "verify"
        links = _of_node(document, name, "LINKS")
        ahead += [to for path, to in links if not (is_check and path[-2:] == (name, "to"))]
    for name in reached:
        kind = _kind(document, name)
        if kind is not None and kind.NEEDS_PIN:
            hint = "let only the `to` of a node of type verify lead to it, or to the menu before it"
            message = f"`{short(plain(name))}` can be reached without a PIN"
            yield document.fault(("nodes", name), message, hint, at_key=True)


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


def _hosts(document: Document) -> Iterator[FlowFault]:
    """Requests go to the hosts that the file allows, and to no other."""
    listed = document.at("allow_hosts")
    allowed = (
        [each.casefold() for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    )
    hooks = document.at("webhooks")
    paths: list[Path] = [("tools", name, "url") for name in document.mapping("tools")]
    paths += [("webhooks", index, "url") for index in range(len(hooks) if isinstance(hooks, list) else 0)]
    for path, url in _texts(document, paths):
        try:
            host = host_of(url)
        except ValueError:
            continue  # told as a fault of the URL
        if host and host not in allowed:
            message = f"`{short(host)}` is not among allow_hosts"
            yield document.fault(path, message, closest(host, allowed) or f"add it: allow_hosts: [{host}]")


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
