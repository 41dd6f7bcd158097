"""Sound over our reply: whether it is an interruption, a sign of listening, a noise, or ourselves.

Speech over a reply silences us at once (the playout is *held*); what it was is decided afterwards, by what comes
first: its words, how much of it was voiced, or how long it lasts. Until then nothing is lost.
"""

from ivr.core.backchannels import is_backchannel, is_echo
from ivr.core.deadlines import Deadline, Deadlines
from ivr.core.hearing import Hearing
from ivr.core.records import ReplyKind, SpokenReply, Turn
from ivr.core.setup import Tuning
from ivr.core.turns import Sign

VOICED_MS = 240
"""Less voice than that is a cough or a knock; the shortest words by which somebody interrupts have more."""
ECHO_MS = 700
"""So long after our first sound its echo may come back: two syllables, and the way there and back."""


class Interrupting:
    """Decides; the tables act. One held reply at a time."""

    def __init__(self, hearing: Hearing, deadlines: Deadlines, tuning: Tuning, language: str) -> None:
        self._hearing = hearing
        self._deadlines = deadlines
        self._tuning = tuning
        self._language = language
        self._since_ms = 0.0
        self._is_doubted = False
        self._over_id = ""
        """The reply over which speech began last."""

    # -- speech begins ------------------------------------------------------------------------------------------

    def began(self, reply: SpokenReply | None, now_ms: float, *, is_asked: bool) -> Sign:
        """What speech that begins now is a sign of. `is_asked`: the reply was asked for, nothing of it is heard."""
        is_opening = is_asked and reply is not None and reply.kind is ReplyKind.OPENING
        first_ms = reply.first_audio_at_ms if reply is not None else None
        self._over_id = reply.reply_id if reply is not None and first_ms is not None else ""
        self._is_doubted = first_ms is not None and now_ms - first_ms <= ECHO_MS
        return Sign.SPEECH_EARLY if is_opening or self._is_doubted else Sign.SPEECH_BEGAN

    def is_certain_now(self) -> bool:
        """Speech that might have been our echo has gone on for too long to be it."""
        if not self._is_doubted or self._hearing.voiced_ms() < VOICED_MS:
            return False
        self._is_doubted = False
        return True

    def hold(self, silence_ms: int, now_ms: float) -> None:
        """We fell silent for it."""
        self._since_ms = now_ms
        # Speech counts as going on until the silence after it has lasted D_VAD.
        self._deadlines.set(Deadline.HELD, now_ms + self._tuning.held_talking_ms + silence_ms)

    # -- what it was --------------------------------------------------------------------------------------------

    def ended(self) -> Sign | None:
        """It ended: too little of it was voiced to be an interruption, or its words have to tell."""
        return Sign.REFUTED if self._hearing.voiced_ms() < VOICED_MS else None

    def lasted(self, now_ms: float, *, is_talking: bool) -> Sign | None:
        """It goes on, or nobody can say what it was: then it is believed."""
        longest_ms = self._tuning.held_talking_ms + self._tuning.held_words_ms
        if is_talking or now_ms - self._since_ms >= longest_ms:
            return Sign.CONFIRMED
        self._deadlines.set(Deadline.HELD, self._since_ms + longest_ms)
        return None

    def worded(self, turn: Turn, reply: SpokenReply | None) -> Sign | None:
        """What its words say, as far as they are known. A turn that asked for nothing is marked as noise."""
        if reply is None or reply.reply_id != self._over_id:
            return None
        said = reply.text
        text, is_final = turn.text(), turn.has_all_words()
        # To what the flow says, "yes" is an answer.
        asked = "?" in said or reply.kind is ReplyKind.STEP
        asks_nothing = is_backchannel(text, self._language, asked=asked)
        turn.is_noise = is_final and (asks_nothing or (self._is_doubted and is_echo(text, said)))
        if turn.is_empty():
            return Sign.REFUTED
        if is_final or (text and not asks_nothing):
            return Sign.CONFIRMED
        return None
