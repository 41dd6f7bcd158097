"""Who has the floor, in three small coupled machines: the caller's floor, the model's reply, our playout.

The machines never look at each other. Each sign is shown to all three; every (state, sign) pair is decided in a
table, and the acts they answer are carried out by `CallCore` in the order floor, playout, reply.
"""

from dataclasses import dataclass, field
from enum import StrEnum


class Floor(StrEnum):
    """What the caller does, as the provider's VAD tells it."""

    QUIET = "quiet"
    TALKING = "talking"


class Reply(StrEnum):
    """Where the model's answer stands."""

    AWAY = "away"
    """No session is ready: nothing can be asked for."""
    NONE = "none"
    GATHERING = "gathering"
    """The turn is closed; its words and its window are awaited."""
    ASKED = "asked"
    """Asked for; nothing of it is audible."""
    STREAMING = "streaming"
    """Audio has come and more may."""
    DEFERRED = "deferred"
    """The model held the boundary for provisional: wait (paper, deferral)."""


class Playout(StrEnum):
    """What the caller hears of us."""

    SILENT = "silent"
    PLAYING = "playing"
    HELD = "held"
    """Speech began over us: cleared, the unheard part kept, until it is known to be speech or noise."""


class Sign(StrEnum):
    """What happened, as far as turn-taking cares."""

    SPEECH_BEGAN = "speech_began"
    SPEECH_EARLY = "speech_early"
    """Speech began that stops nothing yet: before our opening was audible (it is said all the same, B014), or so
    early in a reply that it may be our echo.
    """
    SPEECH_ENDED = "speech_ended"
    TURN_CLOSED = "turn_closed"
    TURN_READY = "turn_ready"
    TURN_EMPTY = "turn_empty"
    SAY = "say"
    AUDIO = "audio"
    CALLS = "calls"
    DEFER = "defer"
    RECONSIDER = "reconsider"
    ANSWERED = "answered"
    FAILED = "failed"
    PLAYED = "played"
    KEYED = "keyed"
    """A key that the flow waits for: what is being said, or asked for, is over."""
    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    MODEL_READY = "model_ready"
    MODEL_LOST = "model_lost"


class Act(StrEnum):
    """What is to be done about it."""

    HOLD = "hold"
    CUT = "cut"
    REPLAY = "replay"
    FINISH = "finish"
    CANCEL = "cancel"
    REOPEN_TURN = "reopen_turn"
    GATHER = "gather"
    ASK = "ask"
    ASK_AGAIN = "ask_again"
    DROP_TURN = "drop_turn"
    RETRY = "retry"
    WAIT = "wait"
    SETTLE = "settle"
    PUT_OFF = "put_off"
    BREAK_OFF = "break_off"


F, R, P, S, A = Floor, Reply, Playout, Sign, Act

FLOOR: dict[tuple[Floor, Sign], Floor] = {
    (F.QUIET, S.SPEECH_BEGAN): F.TALKING,
    (F.QUIET, S.SPEECH_EARLY): F.TALKING,
    (F.TALKING, S.SPEECH_ENDED): F.QUIET,
    (F.TALKING, S.TURN_CLOSED): F.QUIET,  # a committed turn whose speech_stopped was lost
    (F.TALKING, S.MODEL_LOST): F.QUIET,  # the new session's VAD starts from silence
}
"""Signs not named leave the floor as it is."""

PLAYOUT: dict[tuple[Playout, Sign], tuple[Playout, tuple[Act, ...]]] = {
    (P.SILENT, S.AUDIO): (P.PLAYING, ()),
    (P.PLAYING, S.SPEECH_BEGAN): (P.HELD, (A.HOLD,)),
    (P.PLAYING, S.CONFIRMED): (P.SILENT, (A.CUT,)),
    (P.PLAYING, S.KEYED): (P.SILENT, (A.CUT,)),
    (P.PLAYING, S.PLAYED): (P.SILENT, (A.FINISH,)),
    (P.HELD, S.CONFIRMED): (P.SILENT, (A.CUT,)),
    (P.HELD, S.KEYED): (P.SILENT, (A.CUT,)),
    (P.HELD, S.REFUTED): (P.PLAYING, (A.REPLAY,)),
    (P.HELD, S.MODEL_LOST): (P.PLAYING, (A.REPLAY,)),  # nobody will tell us any more whether it was speech
}
"""Signs not named leave the playout as it is. Audio that comes while held is kept with the unheard part."""

REPLY: dict[tuple[Reply, Sign], tuple[Reply, tuple[Act, ...]]] = {
    (R.AWAY, S.MODEL_READY): (R.NONE, ()),
    (R.NONE, S.TURN_CLOSED): (R.GATHERING, (A.GATHER,)),
    (R.NONE, S.SAY): (R.ASKED, (A.ASK,)),
    (R.NONE, S.MODEL_LOST): (R.AWAY, ()),
    (R.GATHERING, S.SPEECH_BEGAN): (R.NONE, (A.REOPEN_TURN,)),
    (R.GATHERING, S.TURN_READY): (R.ASKED, (A.ASK,)),
    (R.GATHERING, S.TURN_EMPTY): (R.NONE, (A.DROP_TURN,)),
    (R.GATHERING, S.MODEL_LOST): (R.AWAY, (A.REOPEN_TURN,)),
    (R.GATHERING, S.KEYED): (R.NONE, (A.DROP_TURN,)),
    (R.ASKED, S.KEYED): (R.NONE, (A.CANCEL, A.REOPEN_TURN)),
    (R.STREAMING, S.KEYED): (R.NONE, (A.CANCEL,)),
    (R.DEFERRED, S.KEYED): (R.NONE, (A.DROP_TURN,)),
    (R.ASKED, S.SPEECH_BEGAN): (R.NONE, (A.CANCEL, A.REOPEN_TURN)),
    (R.ASKED, S.TURN_EMPTY): (R.NONE, (A.CANCEL, A.DROP_TURN)),
    (R.ASKED, S.AUDIO): (R.STREAMING, ()),
    (R.ASKED, S.CALLS): (R.ASKED, (A.ASK_AGAIN,)),
    (R.ASKED, S.DEFER): (R.DEFERRED, (A.WAIT,)),
    (R.ASKED, S.ANSWERED): (R.NONE, (A.SETTLE,)),
    (R.ASKED, S.FAILED): (R.ASKED, (A.RETRY,)),
    (R.ASKED, S.MODEL_LOST): (R.AWAY, (A.PUT_OFF, A.REOPEN_TURN)),
    (R.STREAMING, S.CONFIRMED): (R.NONE, (A.CANCEL,)),
    (R.STREAMING, S.ANSWERED): (R.NONE, ()),
    (R.STREAMING, S.FAILED): (R.NONE, (A.BREAK_OFF,)),
    (R.STREAMING, S.MODEL_LOST): (R.AWAY, (A.BREAK_OFF,)),  # what there is plays on
    (R.DEFERRED, S.SPEECH_BEGAN): (R.NONE, (A.REOPEN_TURN,)),
    (R.DEFERRED, S.TURN_CLOSED): (R.GATHERING, (A.REOPEN_TURN, A.GATHER)),
    (R.DEFERRED, S.RECONSIDER): (R.ASKED, (A.ASK_AGAIN,)),
    (R.DEFERRED, S.TURN_EMPTY): (R.NONE, (A.DROP_TURN,)),
    (R.DEFERRED, S.MODEL_LOST): (R.AWAY, (A.REOPEN_TURN,)),
}
"""Signs not named leave the reply as it is: they are stale, and `tests/unit/core/test_turns.py` lists them all."""


# Asked with every frame: a name of the module is found faster than a member of an enum, and a set would hash it.
_GATHERING, _ASKED, _DEFERRED = Reply.GATHERING, Reply.ASKED, Reply.DEFERRED
_PLAYING, _TALKING = Playout.PLAYING, Floor.TALKING


@dataclass(slots=True)
class Turns:
    """The three machines. `history` keeps the last transitions for the log of a call that went wrong."""

    floor: Floor = Floor.QUIET
    reply: Reply = Reply.AWAY
    playout: Playout = Playout.SILENT
    history: list[str] = field(default_factory=list)

    def show(self, sign: Sign) -> tuple[Act, ...]:
        """Show a sign to all three machines; returns what to do, in order."""
        before = (self.floor, self.playout, self.reply)
        self.floor = FLOOR.get((self.floor, sign), self.floor)
        self.playout, playout_acts = PLAYOUT.get((self.playout, sign), (self.playout, ()))
        self.reply, reply_acts = REPLY.get((self.reply, sign), (self.reply, ()))
        after = (self.floor, self.playout, self.reply)
        if before != after:
            self._note(f"{'/'.join(before)} --{sign}--> {'/'.join(after)}")
        return playout_acts + reply_acts

    def is_resting(self) -> bool:
        """Nobody speaks and nothing is due: only here may the caller's silence be counted (B022, B052)."""
        resting = (Floor.QUIET, Playout.SILENT, Reply.NONE)
        return (self.floor, self.playout, self.reply) == resting

    def is_talked_over(self) -> bool:
        """The caller speaks, and we speak on."""
        return self.playout is _PLAYING and self.floor is _TALKING

    def hangs_on_frames(self) -> bool:
        """The caller's next frame may decide something: a silence that has to be heard, speech over our own."""
        reply = self.reply
        if reply is _GATHERING or reply is _ASKED or reply is _DEFERRED:
            return True
        return self.playout is _PLAYING and self.floor is _TALKING

    def is_only_playing(self) -> bool:
        """We speak, nobody else does, and nothing is due but the next of our sound."""
        return self.playout is _PLAYING and not self.hangs_on_frames()

    def _note(self, transition: str) -> None:
        self.history.append(transition)
        del self.history[:-50]
