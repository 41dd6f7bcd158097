"""Flow files into businesses, or all that is wrong with them, each fault with its place."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from callflows.document import MAX_BYTES, Document, read_document, short
from callflows.faults import FlowErrors, FlowFault, Severity, in_order
from callflows.fields import closest
from callflows.includes import INCLUDE, as_text, joined
from callflows.model import REFERENCE_ERROR, Business
from callflows.nodes.registry import KINDS
from callflows.references import reference_faults, taken_twice
from callflows.schema import json_schema
from callflows.subflows import expanded

__all__ = [
    "FlowBook",
    "FlowErrors",
    "FlowFault",
    "ParsedFile",
    "Severity",
    "load_folder",
    "parse_text",
    "read_files",
]

_SCHEMA = json_schema()
_LIST_HINT = "one item a line, each after `- `"
_COMMA_HINT = "inside { } a text with a comma needs quotes around it"
_MAPPING_HINT = "lines of `name: value`, indented"
_WORDING: Mapping[str, tuple[str, str]] = {
    "string_type": ("must be text", "write it after the colon, or leave the whole line out"),
    "tuple_type": ("must be a list", _LIST_HINT),
    "dict_type": ("must be a mapping", _MAPPING_HINT),
    "model_type": ("must be a mapping", _MAPPING_HINT),
    "model_attributes_type": ("must be a mapping", _MAPPING_HINT),
    "too_short": ("must not be empty", ""),
    "too_long": ("has too many entries", "at most {max_length}"),
    "string_too_short": ("must not be empty", ""),
    "string_too_long": ("is too long", "at most {max_length} characters"),
    "int_type": ("must be a whole number", ""),
    "int_parsing": ("must be a whole number", ""),
    "int_parsing_size": ("must be a whole number", ""),
    "float_type": ("must be a number", ""),
    "float_parsing": ("must be a number", ""),
    "finite_number": ("must be a number", ""),
    "greater_than_equal": ("is too small", "at least {ge}"),
    "less_than_equal": ("is too large", "at most {le}"),
    "greater_than": ("is too small", "more than {gt}"),
    "enum": ("is not one of the words allowed here", "one of {expected}"),
    "literal_error": ("is not one of the words allowed here", "one of {expected}"),
    "union_tag_invalid": ("is not a kind of node", ""),
    "union_tag_not_found": ("`type` is missing", f"one of {', '.join(KINDS)}"),
}
"""Our words for pydantic's error types: the fault and how to mend it, filled in from the error's context."""


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """One file: its text with all that it includes, what could be read of it, its errors, and the business if there
    are none.
    """

    file: str
    text: str
    document: Document | None
    business: Business | None
    errors: tuple[FlowFault, ...]


@dataclass(frozen=True, slots=True)
class FlowBook:
    """All businesses of a folder. Calls under way keep the `Business` they began with."""

    businesses: Mapping[str, Business]
    _texts: Mapping[str, str]
    _by_number: Mapping[str, str]

    @classmethod
    def of(cls, entries: Iterable[tuple[Business, str]]) -> "FlowBook":
        """From businesses and the text each was read from. Ids and numbers must be unique already."""
        pairs = list(entries)
        return cls(
            MappingProxyType({business.id: business for business, _ in pairs}),
            MappingProxyType({business.id: text for business, text in pairs}),
            MappingProxyType({number: business.id for business, _ in pairs for number in business.numbers}),
        )

    def by_number(self, number: str) -> Business | None:
        """Who answers `number` (E.164), or None."""
        business_id = self._by_number.get(number)
        return None if business_id is None else self.businesses[business_id]

    def hash_of(self, business_id: str) -> str:
        """SHA-256 (hex) of `text_of` in UTF-8. KeyError for an unknown business."""
        return hashlib.sha256(self._texts[business_id].encode()).hexdigest()

    def text_of(self, business_id: str) -> str:
        """The file's text, with what it includes; `parse_text` makes the same business of it. KeyError for an unknown
        business.
        """
        return self._texts[business_id]


def parse_text(text: str, source_name: str) -> Business:
    """The business that `text` describes, which can include no files. `FlowErrors`: all faults, in `source_name`."""
    parsed = _parse(text, source_name, None)
    if parsed.business is None:
        raise FlowErrors(parsed.errors)
    return parsed.business


def load_folder(path: str | Path) -> FlowBook:
    """All `*.yaml` of a folder (or the one file named). `FlowErrors` holds the faults of all files."""
    files, errors = read_files(Path(path))
    if errors:
        raise FlowErrors(errors)
    return FlowBook.of((parsed.business, parsed.text) for parsed in files if parsed.business is not None)


def read_files(path: Path) -> tuple[list[ParsedFile], tuple[FlowFault, ...]]:
    """Every flow file of `path` (a folder without its subfolders, or one file), and all their errors."""
    paths = _flow_files(path) if path.is_dir() else [path]
    files = [_read(file) for file in paths]
    errors = [fault for parsed in files for fault in parsed.errors]
    if not paths:
        hint = "name a folder that holds one .yaml file for each business"
        errors.append(FlowFault(str(path), 1, 1, "no flow files here", hint))
    documents = [parsed.document for parsed in files if parsed.document is not None]
    return files, in_order([*errors, *taken_twice(documents)])


def _flow_files(folder: Path) -> list[Path]:
    """The flow files of a folder: no editor's hidden copies, no `*.test.yaml` (a flow's test scripts)."""
    found = (file for file in folder.glob("*.yaml") if not file.name.startswith("."))
    return sorted(file for file in found if not file.name.endswith(".test.yaml"))


def _read(path: Path) -> ParsedFile:
    file = str(path)
    try:
        return _parse(_text(path, file), file, path.parent)
    except FlowErrors as errors:
        return ParsedFile(file, "", None, None, errors.faults)


def _text(path: Path, file: str) -> str:
    """The text of a file, as much as may be read of it. Raises: `FlowErrors`, placed in `file`."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a path"
        raise FlowErrors([FlowFault(file, 1, 1, f"cannot be read: {reason}")]) from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        good = data[: error.start].decode("utf-8")
        line, column = good.count("\n") + 1, len(good) - good.rfind("\n")
        hint = "save the file as UTF-8"
        raise FlowErrors([FlowFault(file, line, column, "is not UTF-8 text", hint)]) from None


def _parse(text: str, file: str, folder: Path | None) -> ParsedFile:
    """`folder`: where included files are looked for; None: nowhere."""
    try:
        document, faults = read_document(text, file)
    except FlowErrors as stopped:
        return ParsedFile(file, text, None, None, stopped.faults)
    if not isinstance(document.value, dict):
        faults.append(FlowFault(file, 1, 1, "a flow file is a mapping", _MAPPING_HINT))
        return ParsedFile(file, text, document, None, in_order(faults))
    if INCLUDE in document.value:
        faults += joined(document, folder, _text)
        text = text if faults else as_text(document)
    whole = expanded(document)
    document, business = whole.document, None
    faults += whole.faults
    try:
        business = Business.model_validate(document.value, context=whole.names)
    except ValidationError as invalid:
        faults.extend(_told(document, error) for error in _worth_telling(invalid.errors()))
    faults.extend([*reference_faults(document, is_whole=not whole.faults), *taken_twice([document])])
    return ParsedFile(file, text, document, None if faults else business, in_order(faults))


def _worth_telling(errors: list[ErrorDetails]) -> Iterator[ErrorDetails]:
    """Without what others tell better: lost names (told by place), "empty" for a list whose items are bad."""
    above = {error["loc"][:depth] for error in errors for depth in range(len(error["loc"]))}
    for error in errors:
        shortened = error["type"] == "too_short" and error["loc"] in above
        if error["type"] != REFERENCE_ERROR and not shortened:
            yield error


def _told(document: Document, error: ErrorDetails) -> FlowFault:
    """One of pydantic's errors in our words, at its place."""
    kind, context = error["type"], error.get("ctx", {})
    path, fields = _without_tag(document, error["loc"]), error["loc"][:-1]
    last = short(str(path[-1])) if path else ""
    if kind == "missing":
        return document.fault(path, f"`{last}` is missing", at_key=True)
    if kind == "extra_forbidden":
        hint = _COMMA_HINT if " " in last else closest(last, _fields_at(fields))
        return document.fault(path, f"`{last}` is not known here", hint, at_key=True)
    if kind == "flow":
        within = context.get("at", ())
        is_key = last == "[key]" or bool(within)
        return document.fault((*path, *within), error["msg"], str(context.get("hint", "")), at_key=is_key)
    if kind == "union_tag_invalid":
        hint = closest(str(context["tag"]), list(KINDS))
        return document.fault((*path, "type"), _WORDING[kind][0], hint)
    message, hint = _WORDING.get(kind, (error["msg"], ""))
    return document.fault(path, message, hint.format(**context), at_key=kind == "union_tag_not_found")


def _without_tag(document: Document, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """As the file has it: a node's kind is a step of pydantic's, and may be called as one of the node's keys is."""
    is_tagged = len(path) > 2 and path[0] == "nodes" and path[2] == document.at("nodes", path[1], "type")
    return (*path[:2], *path[3:]) if is_tagged else path


def _fields_at(path: tuple[str | int, ...]) -> list[str]:
    """The names of the fields the model knows at `path`, read off its JSON Schema."""
    here: Mapping[str, Any] = _SCHEMA
    for step in path:
        here = _resolved(_step(here, str(step)))
    return list(here.get("properties", {}))


def _step(schema: Mapping[str, Any], step: str) -> Mapping[str, Any]:
    """The schema one step down: a field, a union's member by its tag, or what a mapping or list holds."""
    tagged = schema.get("discriminator", {}).get("mapping", {})
    if step in tagged:
        return {"$ref": tagged[step]}
    named = schema.get("properties", {}).get(step)
    by_pattern: Mapping[str, Any] = next(iter(schema.get("patternProperties", {}).values()), {})
    inner: Mapping[str, Any] = named or by_pattern or schema.get("items") or {}
    return inner


def _resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = str(schema.get("$ref", ""))
    definition: Mapping[str, Any] = _SCHEMA["$defs"].get(reference.removeprefix("#/$defs/"), schema)
    return definition
