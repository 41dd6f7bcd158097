"""Where a call is taken up when the node that it stood at is not in the flow any more."""

from collections.abc import Mapping
from typing import Any

from callflows.model import Business
from callflows.nodes.base import walk


def taken_up(state: dict[str, Any] | None, old: Business, new: Business) -> dict[str, Any] | None:
    """A journalled state of the flow `old`, at a node that `new` has."""
    node = state.get("node") if state is not None else None
    if state is None or not isinstance(node, str) or node in new.nodes:
        return state
    # What was said or keyed half within a node that is gone means nothing at another.
    rest = {name: value for name, value in state.items() if name not in ("progress", "using")}
    return {**rest, "node": surviving(old, new, node)}


def surviving(old: Business, new: Business, node: str) -> str:
    """`node` if it is still there and waits; else the nearest node that led to it in `old` and does; else the start."""
    ahead, seen = [node], {node}
    parents = _parents(old)
    while ahead:
        name = ahead.pop(0)
        there = new.node(name)
        if there is not None and there.WAITS:
            return name
        for parent in parents.get(name, []):
            if parent not in seen:
                seen.add(parent)
                ahead.append(parent)
    return new.start


def _parents(business: Business) -> Mapping[str, list[str]]:
    """The nodes that lead to each node, in the file's order."""
    found: dict[str, list[str]] = {}
    for name, node in business.nodes.items():
        dumped = node.model_dump(by_alias=True)
        for pattern in node.LINKS:
            for _, to in walk(dumped, pattern):
                if isinstance(to, str) and name not in found.setdefault(to, []):
                    found[to].append(name)
    return found
