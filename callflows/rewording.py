"""A raw node with other names for its slots and with texts for parameters: a copy of its own for each use."""

import re
from collections.abc import Mapping
from typing import Any

from callflows.document import Path
from callflows.nodes.base import walk
from callflows.patterns import names_of, patterns
from callflows.texts import text_in

_SLOT = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def with_value(value: Any, path: Path, new: Any) -> Any:
    """`value`, nested mappings and lists, with `new` at `path`; what is on the way is copied."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        return {**value, step: with_value(value[str(step)], rest, new)}
    index = int(step)
    return [*value[:index], with_value(value[index], rest, new), *value[index + 1 :]]


def reworded(node: Mapping[str, Any], slots: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
    """The node with slots called as `slots` says, and the texts of `given` for the parameters in its own."""
    made: dict[str, Any] = dict(node)
    if not slots and not given:
        return made
    for which in ("FILLS", "READS"):
        for path, name in names_of(node, which):
            made = with_value(made, path, slots.get(name, name))
    for pattern in patterns(node, "TEXTS"):
        for path, texts in walk(node, pattern):
            made = with_value(made, path, _texts(texts, slots, given))
    if isinstance(node.get("slots"), Mapping):
        made["slots"] = {slots.get(name, name): value for name, value in node["slots"].items()}
    return made


def _texts(texts: Any, slots: Mapping[str, str], given: Mapping[str, Any]) -> Any:
    """A text, or one for each language; it becomes one for each where a parameter's is."""
    for name in sorted(_named(texts) & given.keys()):
        words = given[name]
        if isinstance(words, Mapping) and isinstance(texts, str):
            texts = dict.fromkeys(words, texts)
    if isinstance(texts, Mapping):
        return {language: _text(text, slots, given, language) for language, text in texts.items()}
    return _text(texts, slots, given, "")


def _named(texts: Any) -> set[str]:
    every = texts.values() if isinstance(texts, Mapping) else [texts]
    return {name for text in every if isinstance(text, str) for name in _SLOT.findall(text)}


def _text(text: Any, slots: Mapping[str, str], given: Mapping[str, Any], language: str) -> Any:
    if not isinstance(text, str):
        return text
    return _SLOT.sub(lambda match: _word(match[1], slots, given, language), text)


def _word(name: str, slots: Mapping[str, str], given: Mapping[str, Any], language: str) -> str:
    words = given.get(name)
    if isinstance(words, Mapping):
        words = text_in({str(key): text for key, text in words.items() if isinstance(text, str)}, language)
    return words if isinstance(words, str) else f"{{{slots.get(name, name)}}}"
