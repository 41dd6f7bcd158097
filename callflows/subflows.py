"""Flows within a flow: each use of a group of nodes becomes a copy of them, named `USE.NODE`.

Done on the raw document, before anything else is checked: the places stay those of what was written, and all that
reasons about the flow (ways, circles, PINs, where a call is taken up) sees plain nodes. A call's state within a
group is the name of a node, as anywhere else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from callflows.document import Document, Path, Place, short
from callflows.faults import FlowFault
from callflows.fields import closest
from callflows.patterns import names_of
from callflows.rewording import reworded, with_value

RETURN = "return"
BEGINS = "begins"
MAX_DEPTH = 4
MAX_NODES = 500
"""Nodes of a flow, those of groups counted as often as they are used."""
MAX_VALUES = 200_000
"""Values in them all."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """A document without groups: `names` are those of the copies."""

    document: Document
    names: frozenset[str]
    faults: tuple[FlowFault, ...]


def plain(name: str) -> str:
    """A node's name as it was written: without the uses it stands in."""
    return name.rpartition(".")[2]


def expanded(document: Document) -> Expanded:
    """The document with every group in place of its uses. `document` itself stays as it is."""
    nodes = document.mapping("nodes")
    if not any(_is_use(node) for node in nodes.values()):
        return Expanded(document, frozenset(), ())
    work = _Work(document)
    scope = _Scope((), "", frozenset(name for name in nodes if isinstance(name, str)))
    work.place(("nodes",), nodes, scope)
    value = {**document.value, "nodes": work.nodes}
    whole = Document(document.file, value, work.keys, work.values)
    return Expanded(whole, frozenset(work.names), tuple(work.faults))


@dataclass(frozen=True, slots=True)
class _Scope:
    """What names mean where a node is written."""

    uses: tuple[str, ...]
    """The groups that are being copied, the innermost last."""
    prefix: str
    nodes: frozenset[str]
    ways: Mapping[str, str] = field(default_factory=dict)
    """Where `return` and the exits lead, in the flow as a whole."""
    slots: Mapping[str, str] = field(default_factory=dict)
    """What slots are called outside; the same where they are not named."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """The texts of the parameters."""


@dataclass(slots=True)
class _Work:
    source: Document
    nodes: dict[str, Any] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    faults: list[FlowFault] = field(default_factory=list)
    keys: dict[Path, Place] = field(default_factory=dict)
    values: dict[Path, Place] = field(default_factory=dict)
    _by_node: dict[Path, list[Path]] = field(default_factory=dict)
    _filled_by: dict[tuple[str, int], frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Places are found by node: each group is copied once for each of its uses."""
        self.keys = {path: at for path, at in self.source.keys.items() if path[:1] != ("nodes",)}
        self.values = {
            path: at for path, at in self.source.values.items() if len(path) < 2 or path[0] != "nodes"
        }
        for path in self.source.values:
            depth = 2 if path[:1] == ("nodes",) else 4
            if len(path) >= depth and path[:1] in (("nodes",), ("flows",)):
                self._by_node.setdefault(path[:depth], []).append(path)

    def place(self, path: Path, nodes: Mapping[str, Any], scope: _Scope) -> None:
        """Copy the nodes that are written at `path`."""
        for name, node in nodes.items():
            full = f"{scope.prefix}{name}"
            if full in self.nodes:
                message = f"`{short(full)}` is the name of a node inside `{short(full.partition('.')[0])}`"
                self._fault((*path, name), message, "a name has no dots", at_key=True)
                continue
            if len(self.nodes) >= MAX_NODES or len(self.values) >= MAX_VALUES:
                self._too_many(path)
                return
            at = (*path, name)
            self._copy_places(at, full)
            if scope.prefix:
                self.names.add(full)
            self.nodes[full] = None  # stands before those inside it
            self.nodes[full] = self._node(node, at, full, scope)

    def _too_many(self, path: Path) -> None:
        if not any("too many nodes" in fault.message for fault in self.faults):
            message = f"too many nodes: more than {MAX_NODES} with those of flows, or too long ones"
            self._fault(path, message, "use flows less often", at_key=True)

    def _copy_places(self, at: Path, full: str) -> None:
        for path in self._by_node.get(at, ()):
            to: Path = ("nodes", full, *path[len(at) :])
            self.values[to] = self.source.values[path]
            if path in self.source.keys:
                self.keys[to] = self.source.keys[path]

    def _node(self, node: Any, at: Path, full: str, scope: _Scope) -> Any:
        """The node with its names and texts as they are in the flow as a whole."""
        if not isinstance(node, dict):
            return node
        made = reworded(node, scope.slots, scope.given)
        if _is_use(node):
            if BEGINS in node:
                self._fault((*at, BEGINS), f"`{BEGINS}` is not known here", "take it out", at_key=True)
            return {**made, BEGINS: self._use(made, at, full, scope)}
        for path, name in names_of(node, "LINKS"):
            made = with_value(made, path, self._way(name, (*at, *path), scope))
        # Its own lines by their full names; others' are known as they are.
        for path, name in names_of(node, "QUEUES"):
            made = with_value(made, path, f"{scope.prefix}{name}" if name in scope.nodes else name)
        return made

    def _way(self, name: str, at: Path, scope: _Scope, *, leaves: bool = False) -> str:
        """Where a link leads. One that leads nowhere is told once; nobody tells of what it becomes then.

        `leaves`: it is where a group leads: it would else be told at each of the group's links, too.
        """
        if name in scope.nodes:
            return f"{scope.prefix}{name}"
        if name in scope.ways:
            return scope.ways[name]
        if not scope.uses and not leaves and "." not in name:
            return name
        where = f"in the flow `{scope.uses[-1]}` " if scope.uses else ""
        hint = closest(name, sorted({*scope.nodes, *scope.ways}))
        self._fault(at, f"no node {where}is called `{short(name)}`", hint)
        near = get_close_matches(name, scope.nodes, n=1, cutoff=0.7)
        return f"{scope.prefix}{near[0]}" if near else self._lost(name)

    def _lost(self, name: str) -> str:
        lost = f"lost.{name}"
        self.names.add(lost)
        return lost

    def _fault(self, at: Path, message: str, hint: str = "", *, at_key: bool = False) -> None:
        self.faults.append(self.source.fault(at, message, hint, at_key=at_key))

    def _use(self, node: Mapping[str, Any], at: Path, full: str, scope: _Scope) -> str:
        """Copy the group that a node uses. Returns the name of the copy's first node."""
        name, groups = node.get("flow"), self.source.mapping("flows")
        if not isinstance(name, str):
            return self._lost("flow")
        if name not in groups:
            self._fault(
                (*at, "flow"), f"no flow is called `{short(name)}`", closest(name, list(groups)) or _NONE
            )
            near = get_close_matches(name, groups, n=1, cutoff=0.7)
            if not near:
                return self._lost("flow")
            name = near[0]
        if name in scope.uses or len(scope.uses) >= MAX_DEPTH:
            within = " → ".join((*scope.uses, name))
            message = f"flows within flows without end: {within}" if name in scope.uses else _DEEP
            self._fault((*at, "flow"), message, "go on by `then` or an exit instead")
            return self._lost("flow")
        group = self.source.mapping("flows", name)
        inner = self._scope(Group.of(group), node, at, replace(scope, uses=(*scope.uses, name)), f"{full}.")
        self.place(("flows", name, "nodes"), self.source.mapping("flows", name, "nodes"), inner)
        first = group.get("start")
        if not isinstance(first, str):
            return self._lost("start")
        return self._way(first, ("flows", name, "start"), replace(inner, ways={}))

    def _scope(self, group: "Group", node: Mapping[str, Any], at: Path, outer: _Scope, prefix: str) -> _Scope:
        """What names mean inside a use; tells what it lacks and what is too much in it."""
        outside = replace(outer, uses=outer.uses[:-1])
        ways = {}
        if isinstance(node.get("then"), str):
            ways[RETURN] = self._way(node["then"], (*at, "then"), outside, leaves=True)
        elif group.returns:
            self._fault(
                at,
                f"where does `{outer.uses[-1]}` return to?",
                "give `then:`, the node to go on with",
                at_key=True,
            )
            ways[RETURN] = self._lost(RETURN)
        exits, given, fills = (_mapping(node, key) for key in ("exits", "with", "fills"))
        for part, has, wanted in (("exits", exits, group.exits), ("with", given, group.parameters)):
            self._fitting(part, has, wanted, at)
        ways |= {
            name: self._way(exits[name], (*at, "exits", name), outside, leaves=True)
            if isinstance(exits.get(name), str)
            else self._lost(name)
            for name in group.exits
        }
        self._filled(fills, outer.uses[-1], at)
        slots = {
            **outer.slots,
            **{name: outer.slots.get(to, to) for name, to in fills.items() if isinstance(to, str)},
        }
        given = {**dict.fromkeys(group.parameters, ""), **given}
        return _Scope(outer.uses, prefix, frozenset(group.nodes), ways, slots, given)

    def _fitting(self, part: str, has: Mapping[str, Any], wanted: tuple[str, ...], at: Path) -> None:
        for name in has:
            if name not in wanted:
                known = closest(name, list(wanted)) or "the flow has none"
                self._fault(
                    (*at, part, name),
                    f"the flow has no `{short(name)}` among its {_PARTS[part]}",
                    known,
                    at_key=True,
                )
        lacking = [name for name in wanted if name not in has]
        if lacking:
            self._fault(
                (*at, part), f"`{part}` lacks {', '.join(lacking)}", "the flow needs them", at_key=True
            )

    def _filled(self, fills: Mapping[str, Any], name: str, at: Path) -> None:
        known = sorted(self._fills(name, MAX_DEPTH)) if fills else []
        for slot in fills:
            if slot not in known:
                message = f"no node of the flow `{short(name)}` fills a slot `{short(slot)}`"
                self._fault((*at, "fills", slot), message, closest(slot, known), at_key=True)

    def _fills(self, name: str, depth: int) -> frozenset[str]:
        """The slots that nodes of a group fill, and of those in it, by the names they have there."""
        if (name, depth) in self._filled_by:
            return self._filled_by[name, depth]
        found: set[str] = set()
        for node in self.source.mapping("flows", name, "nodes").values():
            found |= {slot for _, slot in names_of(node, "FILLS")}
            found |= set(_mapping(node, "slots"))
            inner = node.get("flow") if _is_use(node) else None
            if isinstance(inner, str) and depth:
                fills = _mapping(node, "fills")
                found |= {str(fills.get(slot, slot)) for slot in self._fills(inner, depth - 1)}
        self._filled_by[name, depth] = frozenset(found)
        return self._filled_by[name, depth]


_NONE = "the file has no `flows` yet"
_DEEP = f"flows within flows, more than {MAX_DEPTH} deep"
_PARTS = {"exits": "exits", "with": "parameters"}


@dataclass(frozen=True, slots=True)
class Group:
    """What a use must know of a group, as far as it can be read."""

    nodes: tuple[str, ...]
    parameters: tuple[str, ...]
    exits: tuple[str, ...]
    returns: bool

    @classmethod
    def of(cls, group: Mapping[str, Any]) -> "Group":
        """Of a raw group."""
        nodes = _mapping(group, "nodes")
        links = {name for node in nodes.values() for _, name in names_of(node, "LINKS")}
        links |= {name for node in nodes.values() if _is_use(node) for name in _leads(node)}
        return cls(tuple(nodes), _listed(group, "parameters"), _listed(group, "exits"), RETURN in links)


def _leads(node: Mapping[str, Any]) -> set[str]:
    """Where a use leads."""
    ways = [node.get("then"), *_mapping(node, "exits").values()]
    return {name for name in ways if isinstance(name, str)}


def _is_use(node: Any) -> bool:
    return isinstance(node, dict) and node.get("type") == "flow"


def _mapping(value: Any, key: str) -> Mapping[str, Any]:
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _listed(value: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = value.get(key)
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()
