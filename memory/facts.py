"""A business's documents in passages short enough to be shown for a question. Pure."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memory.costs import word_count

PASSAGE_WORDS = 60
"""A paragraph at most, unless one sentence is longer: a few of them fit beside what the caller said."""

_PARAGRAPH = re.compile(r"\n\s*\n")
_WORD_CHARACTER = re.compile(r"\w")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of the document of this title, words unchanged."""

    title: str
    text: str

    def __str__(self) -> str:
        return f"{self.title}: {self.text}"


@dataclass(frozen=True, slots=True)
class Document:
    """A text of a business."""

    title: str
    text: str


def passages(documents: Iterable[Document]) -> list[Passage]:
    """Whole sentences of one paragraph, as many as fit; in the documents' order."""
    return [
        Passage(" ".join(document.title.split()), piece)
        for document in documents
        for paragraph in _PARAGRAPH.split(document.text)
        for piece in _pieces(paragraph)
    ]


def digest_of(pieces: Sequence[Passage], language: str) -> str:
    """The same for the same passages in the same language."""
    parts = (language, *(part for piece in pieces for part in (piece.title, piece.text)))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()


def _pieces(paragraph: str) -> Iterator[str]:
    held: list[str] = []
    count = 0
    for said in _sentences(paragraph):
        words = word_count(said)
        if held and count + words > PASSAGE_WORDS:
            yield " ".join(held)
            held, count = [], 0
        held.append(said)
        count += words
    if held:
        yield " ".join(held)


def _sentences(paragraph: str) -> Iterator[str]:
    """What has a word in it; one that is too long (a list without full stops) in parts."""
    for sentence in _SENTENCE.split(paragraph):
        words = sentence.split()
        for start in range(0, len(words), PASSAGE_WORDS):
            said = " ".join(words[start : start + PASSAGE_WORDS])
            if _WORD_CHARACTER.search(said):
                yield said
