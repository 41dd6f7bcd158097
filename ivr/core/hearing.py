"""The caller's side of the dialogue: which items make up the open turn, and the words as they come in.

Transcripts are matched by item id: they come late, out of order, twice, or never (WIRE.md).
"""

from collections import OrderedDict, deque
from collections.abc import Sequence

from ivr.core.media import InboundMedia
from ivr.core.records import Turn
from ivr.core.speaking import SpeakingRate
from ivr.core.voice import pauses_ms, voiced_ms

KEEP_ITEMS = 64
PAUSE_MS = 500
"""The default D_VAD. A silence of this length is between utterances, and no speaking time, even if D_VAD is longer."""
ONSET_MS = 500
"""Speech that began so shortly before may be unknown yet: the padding before it (300 ms), and what a VAD needs."""
REFERENCED_TURNS = 2
"""So many past turns stay in the provider's conversation, to be given again as audio by reference."""


class Hearing:
    """The open turn, and which turn each provider item belongs to."""

    def __init__(self, rate: SpeakingRate, media: InboundMedia, prefix_ms: int) -> None:
        self.open = Turn(1)
        self._rate = rate
        self.last_words_at_ms: float | None = None
        self._media = media
        self._tape = media.tape
        self._prefix_ms = prefix_ms
        self.silent_since_ms: float | None = None
        """Where the caller's last word ended, in the session's audio; `None`: not in this session."""
        self._voice_from_ms = 0.0
        self._turn_of: OrderedDict[str, Turn] = OrderedDict()
        self._start_ms: dict[str, int] = {}
        """Where speech began that is going on, by item."""
        self._wordless_ms: dict[str, int] = {}
        """Where speech began whose words are not known, by item."""
        self._again_from_ms: float | None = None
        """From here on the session is told again what the one before it did not understand."""
        self._stopped_ms = 0.0
        self._speaking_ms: dict[str, float] = {}
        self._past: deque[tuple[str, ...]] = deque()
        self.live_items: set[str] = set()

    # -- the provider's VAD: an event that tells nothing new (late, repeated) returns False -------------------

    def is_new_speech(self, item_id: str) -> bool:
        """Whether speech of this item may begin now: not once it is committed, or belongs to an earlier turn."""
        turn = self._turn_of.get(item_id)
        fresh = item_id not in self.live_items and item_id not in self._start_ms
        return turn is None or (turn is self.open and fresh)

    def speech_started(self, item_id: str, audio_start_ms: int) -> float | None:
        """Speech began; its audio belongs to the open turn. Returns the true gap to the speech before it."""
        self._own(item_id)
        self._start_ms[item_id] = self._voice_from_ms = audio_start_ms
        self._wordless_ms.setdefault(item_id, audio_start_ms)
        self._again_from_ms = None
        self.open.closed = False
        self._keep_tape()
        began_ms = self._media.stream_ms(audio_start_ms + self._prefix_ms)
        ended_ms = self.silent_since_ms
        return None if ended_ms is None else began_ms - self._media.stream_ms(ended_ms)

    def speech_stopped(self, item_id: str, audio_end_ms: int, silence_ms: int, now_ms: float) -> bool:
        """Speech ended: `audio_end_ms` includes D_VAD, the start the prefix padding (WIRE.md)."""
        if item_id in self._turn_of and item_id not in self._start_ms:
            return False
        turn = self._own(item_id)
        start_ms = self._start_ms.pop(item_id, audio_end_ms)
        # Nobody has heard more than we gave.
        self.silent_since_ms = min(audio_end_ms, self._tape.length_ms()) - silence_ms
        # What was cut short of a long hole is part of the true times.
        ended_ms = self._media.stream_ms(self.silent_since_ms)
        self._speaking_ms[item_id] = self._spoke_ms(start_ms + self._prefix_ms, self.silent_since_ms)
        turn.add_audio(item_id, self._tape.cut(start_ms, audio_end_ms))
        self._stopped_ms = audio_end_ms
        # The last word ended as long ago as all that has come since it lasts.
        came_ms = max(0.0, self._media.stream_ms(max(audio_end_ms, self._tape.length_ms())) - ended_ms)
        turn.speech_ended_at_ms = now_ms - came_ms
        self._keep_tape()
        return True

    def _spoke_ms(self, start_ms: float, end_ms: float) -> float:
        """Speaking time between two points of the session's audio: holes in their true length, without pauses."""
        whole_ms = self._media.stream_ms(end_ms) - self._media.stream_ms(start_ms)
        return whole_ms - pauses_ms(self._tape.cut(start_ms, end_ms), PAUSE_MS)

    def voiced_ms(self) -> int:
        """How much of what came since the last speech began is voice, as we measure it."""
        return voiced_ms(self._tape.cut(self._voice_from_ms, self._tape.length_ms()))

    def committed(self, item_id: str, now_ms: float) -> bool:
        """The item exists at the provider: the turn is closed, unless speech goes on."""
        turn = self._own(item_id)
        if turn is not self.open or item_id in self.live_items:
            return False
        self.live_items.add(item_id)
        self.close(now_ms)
        return True

    def close(self, now_ms: float) -> None:
        """The open turn is finished, as far as anybody knows."""
        self.open.closed = True
        self.open.closed_at_ms = now_ms

    # -- words ------------------------------------------------------------------------------------------------

    def partial(self, item_id: str, delta: str) -> Turn | None:
        """More of a transcript. Returns the item's turn, `None` if it is not known (any more)."""
        turn = self._turn_of.get(item_id)
        if turn is not None and item_id not in turn.words:
            turn.partial[item_id] = turn.partial.get(item_id, "") + delta
        return turn

    def words(self, item_id: str, text: str | None, now_ms: float) -> Turn | None:
        """A transcript is final, or has failed (`None`). A repeated one changes nothing."""
        turn = self._turn_of.get(item_id)
        if turn is None or item_id in turn.words:
            return turn
        turn.words[item_id] = text.strip() if text is not None else None
        self._wordless_ms.pop(item_id, None)
        self._keep_tape()
        if turn.words[item_id]:
            self.last_words_at_ms = now_ms
            self._rate.add(text or "", self._speaking_ms.pop(item_id, 0.0))
        return turn

    # -- turns ------------------------------------------------------------------------------------------------

    def take(self) -> Turn:
        """The open turn is being answered; a new one opens."""
        turn = self.open
        self.open = Turn(turn.no + 1)
        return turn

    def go_on(self, turn: Turn | None) -> None:
        """The open turn goes on. `turn` had been taken from it too early: both parts are one."""
        if turn is None:
            self.open.no += 1  # what was recalled for the shorter turn is not for this one
            self.open.window = None
            return
        later = self.open
        was_closed = later.closed
        turn.absorb(later)
        turn.closed = was_closed
        for item in later.items:
            self._turn_of[item] = turn
        self.open = turn

    def drop_open(self) -> list[str]:
        """The open turn was no turn. Returns its items, to be deleted at the provider."""
        items = self.open.items
        self._forget(items)
        self.open = Turn(self.open.no + 1)
        live = [item for item in items if item in self.live_items]
        self.live_items.difference_update(items)
        return live

    def answered(self, turn: Turn) -> list[str]:
        """The turn's exchange is over. Returns items old enough to be deleted at the provider."""
        for item in turn.items:
            self._wordless_ms.pop(item, None)
        self._keep_tape()
        self._past.append(tuple(turn.items))
        if len(self._past) <= REFERENCED_TURNS:
            return []
        old = [i for i in self._past.popleft() if i in self.live_items]
        self.live_items.difference_update(old)
        return old

    def session_lost(self) -> None:
        """Ids die with the session; transcripts that have not come never will."""
        self.cut_short()
        self.silent_since_ms = None
        for item, turn in self._turn_of.items():
            turn.words.setdefault(item, None)
        self.live_items.clear()
        self._past.clear()

    def cut_short(self) -> None:
        """Speech that is going on will not be heard to its end: keep what there is of it."""
        for item, start_ms in self._start_ms.items():
            if item in self._turn_of:
                self._turn_of[item].add_audio(item, self._tape.cut(start_ms, self._tape.length_ms()))
        self._start_ms.clear()
        self._keep_tape()

    # -- what a session did not understand, for the next one ----------------------------------------------------

    def take_unheard(self, longest_ms: float) -> tuple[float, bool]:
        """The session is lost: what of its audio the next one has to hear again.

        Returns from where on, and whether the caller said something there. The open turn keeps what was understood
        of it; the rest is for the next session, unless it is longer than `longest_ms`: then it stays, with the
        words that there are.
        """
        earliest_ms = self._tape.length_ms() - longest_ms
        from_ms = max(self._stopped_ms, self._tape.length_ms() - ONSET_MS)
        first = next((no for no, item in enumerate(self.open.items) if self._is_unheard(item)), None)
        starts_ms = [] if first is None else [float(self._wordless_ms[self.open.items[first]])]
        if self._again_from_ms is not None:
            starts_ms.append(self._again_from_ms)
        has_words = bool(starts_ms) and min(starts_ms) >= earliest_ms
        if has_words:
            from_ms = min(starts_ms)
            if first is not None:
                self._forget(self.open.drop_from(first))
        self._wordless_ms.clear()
        self._again_from_ms = None
        self._stopped_ms = 0.0
        return max(0.0, from_ms), has_words

    def session_ready(self, *, is_told_again: bool) -> None:
        """A new session listens; perhaps it begins with what the last one did not understand."""
        self._again_from_ms = 0.0 if is_told_again else None
        self._keep_tape()

    def heard_nothing_again(self) -> None:
        """It has found no speech in it."""
        self._again_from_ms = None
        self._keep_tape()

    def _is_unheard(self, item: str) -> bool:
        return item in self._wordless_ms and self.open.words.get(item) is None

    def _keep_tape(self) -> None:
        starts_ms: list[float] = [*self._start_ms.values(), *self._wordless_ms.values()]
        if self._again_from_ms is not None:
            starts_ms.append(self._again_from_ms)
        self._tape.keep_from(min(starts_ms, default=None))

    def _forget(self, items: Sequence[str]) -> None:
        for item in items:
            self._turn_of.pop(item, None)
            self._wordless_ms.pop(item, None)
        self._keep_tape()

    def _own(self, item_id: str) -> Turn:
        turn = self._turn_of.get(item_id)
        if turn is None:
            turn = self._turn_of[item_id] = self.open
            turn.is_noise = False
            turn.items.append(item_id)
            if len(self._turn_of) > KEEP_ITEMS:
                oldest, _ = self._turn_of.popitem(last=False)
                self._start_ms.pop(oldest, None)
                self._wordless_ms.pop(oldest, None)
                self._speaking_ms.pop(oldest, None)
        return turn
