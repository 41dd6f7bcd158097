"""What our own voice says word for word and always alike, so that it can be made into sound before anybody calls."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from callflows import offers
from callflows.model import Business, Talk
from callflows.moving import at_node
from callflows.nodes.base import NodeBase, walk
from callflows.nodes.prompts import Asks
from callflows.stock import (
    CALLED_BACK_ALREADY,
    NOBODY_WAITS,
    NOT_REACHED,
    NOTED_ALREADY,
    OURS,
    SHALL_WE,
    TRYING_NEXT,
    WHAT_ELSE,
    phrase,
)
from callflows.texts import filled, slots_in, text_in

_PHRASES = (
    *(NOT_REACHED, TRYING_NEXT, WHAT_ELSE, NOBODY_WAITS, NOTED_ALREADY, CALLED_BACK_ALREADY),
    *(SHALL_WE, *OURS),
)


@dataclass(frozen=True, slots=True)
class Fixed:
    """One such text, by the voice of its language."""

    text: str
    voice: str
    language: str


def fixed_texts(business: Business) -> frozenset[Fixed]:
    """All of them."""
    return frozenset(
        Fixed(" ".join(text.split()), business.voice_of(language), language)
        for language in (business.language, *business.languages)
        for text in _in_language(business, language)
        if text.strip()
    )


def unrecorded(business: Business) -> list[str]:
    """Nodes with words of their own for which there is no sound file."""
    return [
        name
        for name, node in business.nodes.items()
        if any(_of_node(node, business.language, has_slots=True))
    ]


def _in_language(business: Business, language: str) -> Iterator[str]:
    yield from _openings(business)
    for node in business.nodes.values():
        yield from _of_node(node, language)
    mappings = [business.callers.say, *(target.say for target in business.transfers.values())]
    mappings += [each.say for each in business.emergency]
    mappings += [tool.say for tool in business.tools.values()]
    yield from _fixed(text_in(each, language) for each in mappings)
    yield business.spending.say_in(language)
    yield business.on_model_down.filler_in(language)
    yield from (phrase(each, language) for each in _PHRASES)


def _openings(business: Business) -> Iterator[str]:
    """The greeting, and the offers to go on where a call broke off."""
    yield offers.first_words(business)
    yield offers.generic_opening(business)
    for name, node in business.nodes.items():
        asks = business.resume.greeting == "offer"
        state = offers.offered(business, at_node(business, name), asks=asks, is_old=False)
        yield offers.opening(business, state, node.topic if isinstance(node, Talk) else "")


def _of_node(node: NodeBase, language: str, *, has_slots: bool = False) -> Iterator[str]:
    """Its texts, without those that have a file, or (unless `has_slots`) hold what was gathered."""
    has_file = isinstance(node, Asks) and bool(node.file_for(language))
    texts = (
        text_in(value, language)
        for pattern in node.TEXTS
        if pattern not in node.UNSPOKEN and not (has_file and pattern == ("say",))
        for _, value in _texts(node, pattern)
    )
    yield from ((text for text in texts if text) if has_slots else _fixed(texts))


def _texts(node: NodeBase, pattern: tuple[str, ...]) -> Iterator[tuple[Any, Mapping[str, str]]]:
    for path, value in walk(node.model_dump(by_alias=True), pattern):
        if isinstance(value, dict):
            yield path, value


def _fixed(texts: Iterable[str]) -> Iterator[str]:
    yield from (filled(text, {}) for text in texts if text and not slots_in([text]))
