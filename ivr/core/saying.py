"""Our side of the dialogue: the reply being spoken, what of it was heard, and what is kept while it is held."""

from collections.abc import Iterator

from ivr.core.commands import SendClear
from ivr.core.heard import Heard, heard_text
from ivr.core.playback import Playback
from ivr.core.records import OwnWords, ReplyKind, SpokenReply
from ivr.core.units import LINE_RATE_HZ, ulaw_ms
from ivr.core.voice import word_edge


class Saying:
    """At most one reply is being said; its audio may be split in several playback items."""

    def __init__(self) -> None:
        self.playback = Playback()
        self.reply: SpokenReply | None = None
        self.ended_at_ms: float | None = None
        """When our last word ended."""

    def begin(self, reply: SpokenReply) -> None:
        """A new reply; nothing of it is audible yet."""
        self.reply = reply

    def audio(self, ulaw: bytes, now_ms: float, *, held: bool) -> None:
        """Some of the reply's audio: to be played, or kept with the unheard part while we are held."""
        reply = self._current()
        if reply.first_audio_at_ms is None:
            reply.first_audio_at_ms = now_ms
            reply.segments.append(reply.reply_id)
        reply.audio_ms += ulaw_ms(ulaw)
        if held:
            reply.held += ulaw
            reply.held_late_bytes += len(ulaw)
        else:
            self.playback.queue(reply.segments[-1], ulaw)

    def keep_back(self, ulaw: bytes) -> None:
        """Audio that is not to be heard yet: nothing of the reply is audible."""
        self._current().held += ulaw

    def is_kept_back(self) -> bool:
        """Some of a reply waits, and nothing of it is audible."""
        return self.reply is not None and not self.reply.segments and bool(self.reply.held)

    def forget_kept_back(self) -> None:
        """The reply has failed before a word of it was heard."""
        if self.is_kept_back():
            self._current().held.clear()

    def release(self, now_ms: float) -> None:
        """Let what was kept back be heard."""
        reply = self._current()
        ulaw = bytes(reply.held)
        reply.held.clear()
        self.audio(ulaw, now_ms, held=False)

    def complete(self, *, held: bool) -> None:
        """The provider has sent all of it."""
        reply = self._current()
        reply.is_complete = True
        if reply.segments and not held:
            self.playback.finish(reply.segments[-1])

    def hold(self, now_ms: float) -> list[SendClear]:
        """Stop at once and keep what was not heard."""
        reply = self._current()
        orders = self.playback.clear(now_ms)
        reply.held += self.playback.unheard(reply.segments[-1])
        return orders

    def replay(self) -> None:
        """It was no interruption: say the rest, from the edge of the word that was cut."""
        reply = self._current()
        heard = self.playback.heard_bytes(reply.segments[-1])
        edge = reply.edges[reply.segments[-1]] = word_edge(heard)
        segment = f"{reply.reply_id}~{len(reply.segments)}"
        reply.segments.append(segment)
        rest = heard[edge:] + bytes(reply.held)
        if rest:
            self.playback.queue(segment, rest)
        reply.held.clear()
        reply.held_late_bytes = 0
        if reply.is_complete:
            self.playback.finish(segment)

    def clear(self, now_ms: float) -> list[SendClear]:
        """Silence whatever is still queued."""
        return self.playback.clear(now_ms)

    def own_words(self) -> OwnWords | None:
        """What of our own is being said, to be said again; `None` for an answer. A file is spoken then."""
        reply = self.reply
        if reply is None or reply.kind in (ReplyKind.ANSWER, ReplyKind.FILLER) or reply.words is None:
            return None
        return reply.words.spoken()

    def left_ms(self) -> float:
        """How much of what has come has not been heard."""
        segment = self._current().segments[-1]
        return self.playback.queued_ms(segment) - self.playback.heard_ms(segment)

    def is_played(self) -> bool:
        """All of a complete reply was heard (the last segment's end mark came back)."""
        reply = self.reply
        if reply is None or not reply.is_complete or reply.held or not reply.segments:
            return False
        return self.playback.played_to_end(reply.segments[-1])

    def end(self) -> Heard:
        """The reply is over: what was heard of it. Its audio is forgotten here."""
        reply = self._current()
        ulaw = b"".join(self._heard_once(reply))
        heard_ms = ulaw_ms(ulaw)
        whole = self.is_played()
        total_ms = self._total_ms(reply)
        text = reply.text.strip()
        for segment in reply.segments:
            self.playback.drop(segment)
        self.reply = None
        return Heard(text if whole else heard_text(text, heard_ms, total_ms), ulaw, whole, total_ms)

    def _heard_once(self, reply: SpokenReply) -> Iterator[bytes]:
        """What was heard of each segment, without the beginning of a word that the next one repeats."""
        for segment in reply.segments:
            yield self.playback.heard_bytes(segment)[: reply.edges.get(segment)]

    def _total_ms(self, reply: SpokenReply) -> float:
        # A segment that was held was queued in part twice: heard parts of all but the last, then all of the last.
        if not reply.segments:
            return 0.0
        before_ms = sum(ulaw_ms(part) for part in list(self._heard_once(reply))[:-1])
        late_ms = reply.held_late_bytes * 1_000 / LINE_RATE_HZ
        return before_ms + self.playback.queued_ms(reply.segments[-1]) + late_ms

    def _current(self) -> SpokenReply:
        assert self.reply is not None, "the reply machine lets audio through only while a reply is being said"
        return self.reply
