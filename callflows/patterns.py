"""Where names stand in a raw node, whatever else is wrong with it."""

from collections.abc import Iterable, Iterator, Mapping

from callflows.document import Path
from callflows.nodes.base import NodeBase, Pattern, walk
from callflows.nodes.registry import KINDS


def kind_of(node: object) -> type[NodeBase] | None:
    """The kind of a node; None if it is none, or not known."""
    word = node.get("type") if isinstance(node, Mapping) else None
    return KINDS.get(word) if isinstance(word, str) else None


def patterns(node: object, which: str) -> tuple[Pattern, ...]:
    """Where names of a sort stand in a node; a node whose kind is not known is taken for any of them."""
    kind = kind_of(node)
    kinds: Iterable[type[NodeBase]] = KINDS.values() if kind is None else [kind]
    return tuple(dict.fromkeys(pattern for each in kinds for pattern in getattr(each, which)))


def names_of(node: object, which: str) -> Iterator[tuple[Path, str]]:
    """The names of a sort that stand in a node, by their paths in it."""
    for pattern in patterns(node, which):
        for path, value in walk(node, pattern):
            if isinstance(value, str):
                yield path, value
