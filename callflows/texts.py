"""Texts to be said: one for all languages or one for each, with `{slot}` where a value belongs."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from callflows.fields import SpokenNow, fault, language_tag

ANY_LANGUAGE = ""
"""The key of a text that serves every language."""

_SLOT = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_MAX_VALUE = 200
_TEXT = {"type": "string", "minLength": 1, "maxLength": 4096}


def _template(text: str) -> str:
    if re.search(r"[{}]", _SLOT.sub("", text)):
        raise fault("only the name of a slot may stand in braces here", "like {order_number}")
    return text


def _slotless(text: str) -> str:
    if re.search(r"[{}]", text):
        raise fault("nothing that was gathered can be said here", "write the words without braces")
    return text


def _by_language(value: Any) -> Any:
    if isinstance(value, str):
        return {ANY_LANGUAGE: value}
    if isinstance(value, dict):
        return value
    raise fault("must be text, or a text for each language", "like `say: Hello` or `say: {en-US: Hello}`")


def _key(language: str) -> str:
    return language_tag(language) if language else ANY_LANGUAGE


Template = Annotated[SpokenNow, AfterValidator(_template)]
"""Said word for word; `{slot}` stands for what was gathered."""
Texts = Annotated[
    dict[Annotated[str, AfterValidator(_key)], Template],
    BeforeValidator(_by_language),
    WithJsonSchema({"anyOf": [_TEXT, {"type": "object", "additionalProperties": _TEXT}]}),
]
"""By language tag; a plain text in the file is the text of every language."""


FixedTexts = Annotated[
    dict[Annotated[str, AfterValidator(_key)], Annotated[SpokenNow, AfterValidator(_slotless)]],
    BeforeValidator(_by_language),
    WithJsonSchema({"anyOf": [_TEXT, {"type": "object", "additionalProperties": _TEXT}]}),
]
"""The same where nothing that was gathered can be said."""


def text_in(texts: Mapping[str, str], language: str) -> str:
    """The text for `language`: its own, one of the same tongue, the one for all, else the first. May be empty."""
    if language in texts:
        return texts[language]
    tongue = language.split("-")[0]
    near = next((text for key, text in texts.items() if key.split("-")[0] == tongue), None)
    if near is not None:
        return near
    return texts.get(ANY_LANGUAGE) or next(iter(texts.values()), "")


def lacks(texts: Mapping[str, str], language: str) -> bool:
    """Whether there is no text in that language, nor one for all."""
    tongue = language.split("-")[0]
    return ANY_LANGUAGE not in texts and all(key.split("-")[0] != tongue for key in texts)


def slots_in(texts: Iterable[str]) -> set[str]:
    """The names of the slots that the texts hold."""
    return {name for text in texts for name in _SLOT.findall(text)}


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with each `{slot}` replaced by its value, on one line and cut short; unknown ones by nothing."""

    def value(match: re.Match[str]) -> str:
        raw = values.get(match[1], "")
        printable = "".join(character if character.isprintable() else " " for character in raw)
        return " ".join(printable.split())[:_MAX_VALUE]

    return " ".join(_SLOT.sub(value, text).split())
