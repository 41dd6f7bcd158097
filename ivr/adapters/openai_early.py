"""Does a server tell words while the caller still speaks? No document says it of turn detection: it is seen, or not."""

import structlog

from ivr.core.events import ModelEvent, SpeechStarted, SpeechStopped, TranscriptDelta

ENOUGH_TURNS = 3
"""After so many utterances without early words it is taken that there will be none."""

log = structlog.get_logger()


class EarlyWords:
    """What one server was seen to do, over all its sessions; logged once either way, and again if it turns out."""

    def __init__(self) -> None:
        self.seen: bool | None = None
        """`None` while nobody knows. Recall begins on early words wherever they come: nothing depends on this."""
        self._utterances = 0

    def note(self, speaking: str, event: ModelEvent) -> str:
        """Take in an event of a session in which item `speaking` is being spoken; returns which is then."""
        match event:
            case SpeechStarted(item_id):
                return item_id
            case TranscriptDelta(item_id) if item_id == speaking and self.seen is not True:
                self._is(seen=True)
            case SpeechStopped():
                self._utterances += 1
                if self.seen is None and self._utterances >= ENOUGH_TURNS:
                    self._is(seen=False)
                return ""
        return speaking

    def _is(self, *, seen: bool) -> None:
        self.seen = seen
        log.info("model_early_words", seen=seen)
