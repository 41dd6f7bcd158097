"""A dialogue whose replies outlive their session: what broke off goes on in the next one."""

from dataclasses import replace

from ivr.core.begun import MAX_BREAKS, is_cut, sentences
from ivr.core.dialogue import Dialogue
from ivr.core.records import OwnWords, SpokenReply
from ivr.core.turns import Reply, Sign

FASTEST_CHARS_S = 30
"""No voice speaks faster: 300 words a minute are 25 to 30 characters a second. With less sound some is missing."""


class LastingDialogue(Dialogue):
    """The turn-taking of `Dialogue`. What has come of a broken reply is heard first; then the rest is asked for."""

    def _break_off(self, now_ms: float) -> None:
        reply = self.saying.reply
        if reply is not None:
            # A session that lives, and tells no more, may well have said all that it had to say.
            lacks = not _is_whole(reply) if self.turns.reply is Reply.AWAY else is_cut(reply.text)
            reply.is_broken = lacks and self._breaks(reply) < MAX_BREAKS
        super()._break_off(now_ms)

    def _finish(self, now_ms: float) -> None:
        reply = self.saying.reply
        if reply is None or not reply.is_broken:
            super()._finish(now_ms)
            return
        heard = self._keeping.keep_part(self._answering, now_ms)
        words = reply.words
        if words is None:
            return
        if words.begins or words.told is not None:
            self._own_words = replace(words, said=f"{words.said} {heard}".strip(), breaks=words.breaks + 1)
        else:
            self._own_words = _rest_of(words, heard)

    def _say_waiting(self, now_ms: float) -> None:
        super()._say_waiting(now_ms)
        if self._is_begun() and self._own_words is None and self.turns.is_resting():
            if self._hearing.open.items:  # the caller has spoken meanwhile: they do not wait for the rest
                self._close_exchange(now_ms)
            else:
                self._show(Sign.SAY, now_ms)

    def _reopen_turn(self, now_ms: float) -> None:
        """A turn whose answer was heard in part is no part of what the caller says now."""
        if self._is_begun() and self.turns.reply is Reply.AWAY:
            self._gathering.stop()
            self._patience.stop()
            return
        if self._is_begun():
            self._close_exchange(now_ms)
        super()._reopen_turn(now_ms)

    def _is_begun(self) -> bool:
        return self._answering is not None and self._answering.begun is not None

    def _breaks(self, reply: SpokenReply) -> int:
        if reply.words is not None:
            return reply.words.breaks
        turn = self._answering
        return turn.begun.breaks if turn is not None and turn.begun is not None else 0


def _is_whole(reply: SpokenReply) -> bool:
    """All of our own words has come, and only the word that it was all has not: nothing is greeted twice."""
    text, wanted = " ".join(reply.text.split()), " ".join(reply.exact_text.split())
    return bool(wanted) and text == wanted and reply.audio_ms >= len(text) * 1_000 / FASTEST_CHARS_S


def _rest_of(words: OwnWords, heard: str) -> OwnWords:
    """Words of ours, from the sentence that was cut off on."""
    said = max(0, len(sentences(heard)) - 1)
    left = " ".join(sentences(words.text)[said:])
    return replace(words.spoken(), text=left or words.text, breaks=words.breaks + 1)
