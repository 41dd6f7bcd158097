"""What a caller heard of a reply, as text: an estimate that never claims too much."""

import re
from dataclasses import dataclass

# A script written without spaces has no other edge than the character.
_WORD = re.compile(r"[぀-ヿ㐀-鿿豈-﫿가-힣]|[^\s぀-ヿ㐀-鿿豈-﫿가-힣]+")


@dataclass(frozen=True, slots=True)
class Heard:
    """What of a reply the caller heard; `ulaw` and `text` agree to a word's edge.

    Not `whole`: the text is an estimate, cut in the proportion of heard to received audio.
    """

    text: str
    ulaw: bytes
    whole: bool
    received_ms: float = 0.0


def heard_text(text: str, heard_ms: float, total_ms: float) -> str:
    """The beginning of `text` that `heard_ms` of `total_ms` of its audio carried, cut after a whole word.

    Speech is taken to run evenly over the characters; a word that was not heard to its end is left out.
    """
    if not (total_ms > 0 and heard_ms > 0):
        return ""
    if heard_ms >= total_ms:
        return text
    text = text.strip()
    limit = len(text) * heard_ms / total_ms
    end = 0
    for word in _WORD.finditer(text):
        if word.end() > limit:
            break
        end = word.end()
    return text[:end]
