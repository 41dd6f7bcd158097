"""The reference of the flow language, as Markdown, out of the model itself: docs/callflows-reference.md."""

from collections.abc import Iterator, Mapping
from typing import Any

from callflows.includes import INCLUDE
from callflows.schema import json_schema

Schema = Mapping[str, Any]
_HEAD = """# Call flows: reference

Every key of a flow file, made from the model by `ivr flows reference`; [callflows.md](callflows.md) is the guide.
A key in **bold** is needed. Texts may be one for all languages, or one for each.
"""
_MAX_DEFAULT = 60


def reference() -> str:
    """The whole page."""
    schema = json_schema()
    parts = schema["$defs"]
    kinds = _mapping_to(schema["properties"]["nodes"], "discriminator")["mapping"]
    nodes = {_name(ref): kind for kind, ref in sorted(kinds.items())}
    sections = [_HEAD, _section("The file", schema)]
    sections += [_section(f"Node `{kind}`", parts[name]) for name, kind in nodes.items()]
    sections += [_section(f"{name}", part) for name, part in sorted(parts.items()) if name not in nodes]
    return "\n".join(sections)


def _section(title: str, part: Schema) -> str:
    lines = [f"## {title}", ""]
    if part.get("description"):
        lines += [_line(part["description"]), ""]
    if "enum" in part:
        return "\n".join([*lines, f"One of {_words(part['enum'])}.", ""])
    needed = set(part.get("required", ())).union(
        *(each.get("required", ()) for each in part.get("anyOf", ()))
    )
    needed -= {INCLUDE}
    lines += ["| key | value | meaning |", "|---|---|---|"]
    for key, value in part.get("properties", {}).items():
        shown = f"**{key}**" if key in needed else key
        told = [_line(value.get("description", "")), _default(value)]
        lines.append(f"| {shown} | {_kind(value)} | {'; '.join(each for each in told if each)} |")
    return "\n".join([*lines, ""])


def _kind(value: Schema) -> str:
    """What may stand there, in a few words."""
    if "$ref" in value:
        return _link(value["$ref"])
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return _words(value["enum"])
    options = value.get("anyOf", ())
    if options:
        return " or ".join(dict.fromkeys(_kind(each) for each in options if each.get("type") != "null"))
    return _of_type(value)


def _of_type(value: Schema) -> str:
    match value.get("type"):
        case "array":
            return f"list of {_kind(value['items'])}" if "items" in value else "list"
        case "object":
            held = _held(value)
            return f"{_kind(held)} by name" if held else "mapping"
        case "string":
            longest = value.get("maxLength")
            return f"text (at most {longest:,})" if longest else "text"
        case "integer" | "number" as word:
            return f"{'whole number' if word == 'integer' else 'number'}{_bounds(value)}"
        case "boolean":
            return "yes or no"
        case _:
            return "a node" if "discriminator" in value else "anything"


def _bounds(value: Schema) -> str:
    low = value.get("minimum", value.get("exclusiveMinimum"))
    high = value.get("maximum")
    if low is None and high is None:
        return ""
    return f" ({low if low is not None else '…'} to {high if high is not None else '…'})"


def _held(value: Schema) -> Schema | None:
    """What a mapping holds by name."""
    patterned: Schema | None = next(iter(value.get("patternProperties", {}).values()), None)
    other = value.get("additionalProperties")
    return patterned or (other if isinstance(other, dict) and other else None)


def _mapping_to(value: Schema, key: str) -> Schema:
    """`key`'s value, wherever below it stands first."""
    for found in _walk(value):
        if key in found:
            inner: Schema = found[key]
            return inner
    raise KeyError(key)


def _walk(value: Any) -> Iterator[Schema]:
    if isinstance(value, Mapping):
        yield value
        for each in value.values():
            yield from _walk(each)


def _default(value: Schema) -> str:
    default = value.get("default")
    if default in (None, "", [], {}, False) or isinstance(default, dict):
        return ""
    text = ("yes" if default else "no") if isinstance(default, bool) else _line(str(default))
    return f"default {text}" if len(text) <= _MAX_DEFAULT else "has a default"


def _words(values: list[Any]) -> str:
    return ", ".join(f"`{each}`" for each in values)


def _name(ref: str) -> str:
    return ref.rpartition("/")[2]


def _link(ref: str) -> str:
    name = _name(ref)
    return f"[{name}](#{name.lower()})"


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").rstrip(".")
