"""A dialogue whose replies outlive their session: what broke off goes on in the next one."""

from dataclasses import replace

from ivr.core.begun import MAX_BREAKS, is_cut, sentences
from ivr.core.deadlines import Deadline
from ivr.core.dialogue import Dialogue
from ivr.core.records import OwnWords, ReplyKind, SpokenReply
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
            lacks = lacks and reply.kind is not ReplyKind.FILLER
            reply.is_broken = lacks and self._breaks(reply) < MAX_BREAKS
        super()._break_off(now_ms)

    def _retry(self, now_ms: float) -> None:
        """An answer has failed: say so, once a turn, before it is asked for again."""
        if self._is_filling():  # the voice fails too
            self._requesting.retry_soon(now_ms)
            return
        super()._retry(now_ms)
        reply, turn = self.saying.reply, self._answering
        is_answer = reply is not None and reply.kind is ReplyKind.ANSWER
        if is_answer and turn is not None and not turn.is_filled and not self.is_over:
            turn.is_filled = True
            self._requesting.hold_back()
            self._own_words = self._asking.filler()
            self._ask_again(now_ms)

    def _cut(self, now_ms: float) -> None:
        """Who speaks over a filler goes on with their turn."""
        if not self._is_filling():
            super()._cut(now_ms)
            return
        self._deadlines.clear(Deadline.HELD)
        self.out += self.saying.clear(now_ms)
        self._end_filler(now_ms)
        self._reopen_turn(now_ms)

    def _is_filling(self) -> bool:
        return self.saying.reply is not None and self.saying.reply.kind is ReplyKind.FILLER

    def _end_filler(self, now_ms: float) -> None:
        self._deadlines.clear(Deadline.PLAYED)
        self.saying.ended_at_ms = now_ms
        self.saying.end()

    def _finish(self, now_ms: float) -> None:
        reply = self.saying.reply
        if self._is_filling():
            self._end_filler(now_ms)
            return
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
        if self._is_due() and self._own_words is None and self.turns.is_resting():
            if self._hearing.open.items:  # the caller has spoken meanwhile: nobody waits for this
                self._reopen_turn(now_ms)
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

    def _is_due(self) -> bool:
        """An answer is to be asked for again: it broke off, or a filler was said before."""
        return self._answering is not None and (self._is_begun() or self._answering.is_filled)

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
    rest = replace(words.spoken(), breaks=words.breaks + 1)
    return replace(rest, text=left, parts=()) if left else rest
