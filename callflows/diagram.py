"""A flow as a diagram (Mermaid text), and the difference of two flow files in words."""

from collections.abc import Iterator, Mapping
from typing import Any

from callflows.model import Business
from callflows.nodes.base import walk

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
    for name, node in business.nodes.items():
        opening, closing = _SHAPES.get(node.type, ("[", "]"))
        lines.append(f"  {_id(name)}{opening}{_quoted(f'{name}: {node.type}')}{closing}")
        for pattern in node.LINKS:
            for path, target in walk(node.model_dump(by_alias=True), pattern):
                if isinstance(target, str):
                    lines.append(f"  {_id(name)} -->|{_quoted(_label(path))}| {_id(target)}")
    return "\n".join(lines)


def _id(name: str) -> str:
    return f"n_{name}"  # `end` alone is a word of Mermaid's


def _quoted(text: str) -> str:
    return '"' + text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;") + '"'


def _label(path: tuple[str | int, ...]) -> str:
    """The way's name as the file has it: `exits.booking.to` is booking."""
    steps = [str(step + 1) if isinstance(step, int) else step for step in path]
    kept = [step for step in steps if step not in ("to", "exits", "options")]
    return " ".join(kept) or "then"


def differences(old: Business, new: Business) -> list[str]:
    """What `new` has added (+), taken out (-) and changed (~), path by path."""
    return list(
        _compared("", old.model_dump(mode="json", by_alias=True), new.model_dump(mode="json", by_alias=True))
    )


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
