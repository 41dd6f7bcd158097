"""A flow as a diagram (Mermaid text), and the difference of two flow files in words."""

from collections.abc import Iterator, Mapping
from typing import Any

from callflows.model import Business
from callflows.nodes.base import walk
from callflows.nodes.flow import FlowNode

_SHAPES = {
    "talk": ("([", "])"),
    "menu": ("{{", "}}"),
    "collect": ("[/", "/]"),
    "branch": ("{", "}"),
    "tool": (">", "]"),
    "hours": ("{", "}"),
    "transfer": ("[[", "]]"),
    "ring": ("[[", "]]"),
    "voicemail": ("[(", ")]"),
    "queue": ("[(", ")]"),
    "take": ("[[", "]]"),
    "hangup": ("((", "))"),
}


def mermaid(business: Business) -> str:
    """A flowchart of all nodes and the ways between them."""
    lines = ["flowchart TD", f"  begin_([{_quoted(business.name)}]) --> {_id(business.start)}"]
    lines += _boxes(business, "", "  ")
    for name, node in business.nodes.items():
        for pattern in node.LINKS:
            for path, target in walk(node.model_dump(by_alias=True), pattern):
                if isinstance(target, str):
                    lines.append(f"  {_id(name)} -->|{_quoted(_label(path))}| {_id(target)}")
    return "\n".join(lines)


def _boxes(business: Business, prefix: str, indent: str) -> Iterator[str]:
    """The nodes themselves; those of a flow within the flow in a box of their own."""
    for name, node in business.nodes.items():
        own = name.removeprefix(prefix)
        if not name.startswith(prefix) or "." in own:
            continue
        opening, closing = _SHAPES.get(node.type, ("[", "]"))
        yield f"{indent}{_id(name)}{opening}{_quoted(f'{own}: {node.type}')}{closing}"
        if isinstance(node, FlowNode):
            yield f"{indent}subgraph in_{_id(name)} [{_quoted(f'{own}: {node.flow}')}]"
            yield from _boxes(business, f"{name}.", f"{indent}  ")
            yield f"{indent}end"


def _id(name: str) -> str:
    return f"n_{name.replace('.', '_IN_')}"  # `end` alone is a word of Mermaid's


def _quoted(text: str) -> str:
    return '"' + text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;") + '"'


def _label(path: tuple[str | int, ...]) -> str:
    """The way's name as the file has it: `exits.booking.to` is booking."""
    steps = [str(step + 1) if isinstance(step, int) else step for step in path]
    kept = [step for step in steps if step not in ("to", "exits", "options", "begins")]
    return " ".join(kept) or "then"


def differences(old: Business, new: Business) -> list[str]:
    """What `new` has added (+), taken out (-) and changed (~), path by path."""
    return list(_compared("", _written(old), _written(new)))


def _written(business: Business) -> Any:
    """As it was written: what stands under `flows` is told there, and not at each use."""
    dumped = business.model_dump(mode="json", by_alias=True)
    dumped["nodes"] = {name: node for name, node in dumped["nodes"].items() if "." not in name}
    for node in dumped["nodes"].values():
        node.pop("begins", None)
    return dumped


def _compared(path: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            here = f"{path}.{key}" if path else str(key)
            if key not in new:
                yield f"- {here}"
            elif key not in old:
                yield f"+ {here}"
            else:
                yield from _compared(here, old[key], new[key])
    elif old != new:
        yield f"~ {path}: {_short(old)} -> {_short(new)}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else f"{text[:120]}…"
