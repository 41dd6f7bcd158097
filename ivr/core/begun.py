"""A reply whose session was lost while it was being said: what was heard of it, and where it goes on.

It goes on with the sentence that was under way: what came of the text may run ahead of what came of the sound, and
half a sentence makes no sense without its beginning.
"""

import re
from dataclasses import dataclass

from ivr.core.heard import Heard

MAX_BREAKS = 2
"""So often one reply goes on; what sessions come and go under for longer is cut where it is."""
ENOUGH = 12
"""So many letters in which two texts agree make them one sentence."""
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")

_ENDS = re.compile(r"[.!?…。！？][\"'”’)]*\s*$")


@dataclass(frozen=True, slots=True)
class Begun:
    """The heard part. `said`: its whole sentences; `cut`: the one under way, to be said again."""

    said: str
    cut: str
    ulaw: bytes
    received_ms: float
    audio_at_ms: float | None
    breaks: int = 1
    """How often it broke off."""

    def order(self) -> str:
        """What the model is told, so that it goes on."""
        if not self.cut:
            return ""
        before = f'The caller has heard: "{self.said}" ' if self.said else ""
        return (
            f"Your reply to this was cut off while you spoke. {before}Go on with the sentence that was cut off, "
            f'from its beginning: "{self.cut}". Do not greet, do not apologise, repeat nothing before it.'
        )


def sentences(text: str) -> list[str]:
    """The sentences of a text, the last one perhaps unfinished."""
    return [one for one in (part.strip() for part in _SENTENCE.split(text)) if one]


def is_cut(text: str) -> bool:
    """Its last sentence has no end."""
    return not _ENDS.search(text)


def begun(before: Begun | None, heard: Heard, audio_at_ms: float | None) -> Begun:
    """A reply has broken off, perhaps for the second time."""
    *whole, cut = sentences(heard.text) or [before.cut if before is not None else ""]
    if before is None:
        return Begun(" ".join(whole), cut, heard.ulaw, heard.received_ms, audio_at_ms)
    return Begun(
        _after(before, " ".join(whole)) if whole else before.said,
        cut,
        before.ulaw + heard.ulaw,
        before.received_ms + heard.received_ms,
        before.audio_at_ms,
        before.breaks + 1,
    )


def joined(before: Begun | None, rest: Heard) -> Heard:
    """All that was heard of a reply, once its rest is over too; without a rest it was cut where it broke off."""
    if before is None:
        return rest
    text = _after(before, rest.text)
    whole = rest.whole and bool(rest.text)
    return Heard(text, before.ulaw + rest.ulaw, whole, before.received_ms + rest.received_ms)


def _after(before: Begun, rest: str) -> str:
    """What was heard, then the rest: the sentence that was cut off once, if the rest begins with it."""
    again = _letters(rest).startswith(_letters(before.cut)[:ENOUGH])
    return " ".join(part for part in (before.said, "" if again else before.cut, rest) if part)


def _letters(text: str) -> str:
    return "".join(re.findall(r"\w", text.casefold()))
