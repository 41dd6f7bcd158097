"""`CallCore`: one call as a pure function of what happens to it. Events and `now_ms` in, commands out."""

from collections.abc import Callable
from dataclasses import replace

from callflows import engine
from ivr.core.asking import Asking
from ivr.core.commands import Command, EndReason, ReopenModel, SessionConfig
from ivr.core.deadlines import Deadline, Deadlines
from ivr.core.events import (
    CeilingReached,
    Event,
    Handover,
    HoursByHand,
    LineClosed,
    LineDigit,
    LineFrame,
    LineMark,
    LineStopped,
    ModelFault,
    ModelLost,
    ModelReady,
    Recalled,
    ReplyAudio,
    ReplyCall,
    ReplyDone,
    ReplySpoken,
    ReplyStatus,
    ReplyText,
    SpeechStarted,
    SpeechStopped,
    Tick,
    ToolAnswered,
    TranscriptDelta,
    TranscriptDone,
    TranscriptFailed,
    TurnCommitted,
)
from ivr.core.flowtalk import FlowDialogue
from ivr.core.hearing import Hearing
from ivr.core.media import AGAIN_MAX_MS, InboundMedia
from ivr.core.network import LONGEST_WINDOW_MS, NetworkState, Reception, ended_by
from ivr.core.patience import Patience
from ivr.core.records import Ending, OwnWords, ReplyKind
from ivr.core.sessions import Sessions
from ivr.core.setup import CallSetup
from ivr.core.speaking import Delivery

LIMIT_GRACE_MS = 60_000
"""So long after its limit a call ends whatever is being said."""
LIMIT_STEP_MS = 1_000
UNSETTLED_MS = 3_000
"""So long after speech ended it is waited for the provider to make a turn of it."""

_WORDS = (TranscriptDelta, TranscriptDone, TranscriptFailed)
_OF_A_SESSION = (
    SpeechStarted,
    SpeechStopped,
    TurnCommitted,
    *_WORDS,
    ReplyAudio,
    ReplyText,
    ReplySpoken,
    ReplyCall,
    ReplyDone,
)


class CallCore:
    """Feed it events in the order they happen; carry its commands out in the order it gives them."""

    def __init__(self, setup: CallSetup, now_ms: float) -> None:
        self._setup = setup
        self._media = InboundMedia(setup.tuning.silence_ms, setup.tuning.longest_insert_ms)
        self._deadlines = Deadlines()
        delivery = Delivery(setup.business.language, setup.voice, setup.speed)
        self._hearing = Hearing(delivery.rate, self._media, setup.tuning.prefix_ms)
        patience = Patience(setup, self._hearing, self._media.silence, self._deadlines)
        self._asking = Asking(setup, self._hearing, delivery, patience.threshold, self._network, now_ms)
        self._dialogue = FlowDialogue(setup, self._hearing, self._asking, patience, self._deadlines)
        self._playback = self._dialogue.saying.playback
        self._limit_ms = now_ms + setup.business.limits.max_call_minutes * 60_000
        self._deadlines.set(Deadline.LIMIT, self._limit_ms)
        self._last_words: OwnWords | None = None
        """What ends the call at its ceiling, or at the longest time that a call may take."""
        self._sessions = Sessions(setup.tuning, self._deadlines, now_ms)
        self._prompts = 0
        self._stirred_at_ms = now_ms
        """When the caller last pressed a key, or a session was ready to hear them."""
        self._is_handing_over = False
        self._is_told_again = False
        """The next session has to find words in what this one did not understand."""
        self._only_hears = self._is_muted = False
        """What a frame does until something else happens: it is but heard, or not even that."""
        if setup.is_spent:
            self._ceiling(CeilingReached(), now_ms)
        elif setup.opening:
            self._dialogue.say(_opening(setup), now_ms)
        self._playback.start(now_ms)
        self._handlers = self._handler_table()

    def _handler_table(self) -> dict[type, Callable[..., None]]:
        return {
            LineFrame: self._line_frame,
            LineDigit: self._line_digit,
            LineMark: self._line_mark,
            LineStopped: self._line_stopped,
            LineClosed: self._line_closed,
            ModelReady: self._model_ready,
            SpeechStarted: self._speech_started,
            SpeechStopped: self._speech_stopped,
            TurnCommitted: self._turn_committed,
            TranscriptDelta: self._transcript_delta,
            TranscriptDone: self._transcript_done,
            TranscriptFailed: self._transcript_failed,
            ReplyAudio: self._reply_audio,
            ReplyText: self._reply_text,
            ReplySpoken: self._dialogue.reply_spoken,
            ReplyCall: self._reply_call,
            ReplyDone: self._reply_done,
            ModelFault: self._ignore,
            ModelLost: self._model_lost,
            Recalled: self._dialogue.recalled,
            CeilingReached: self._ceiling,
            ToolAnswered: self._dialogue.tool_answered,
            HoursByHand: self._hours_by_hand,
            Tick: self._ignore,
            Handover: self._handover,
        }

    def config(self) -> SessionConfig:
        """What to open the model session with."""
        return self._asking.config()

    def receive(self, event: Event, now_ms: float) -> list[Command]:
        """Take an event in; returns what is to be done, in order."""
        dialogue = self._dialogue
        if type(event) is LineFrame and self._only_hears:
            hear = self._media.receive(event, now_ms, muted=self._is_muted)
            return [] if hear is None else [hear]  # most frames; what is due by the clock is for a tick to do
        if type(event) is Tick and dialogue.turns.is_only_playing() and self._is_only_sending(now_ms):
            return [*self._playback.tick(now_ms)]  # nearly all ticks of a reply
        if not self._is_stale(event):
            self._handlers[type(event)](event, now_ms)
        while (name := self._deadlines.take_due(now_ms)) is not None:
            self._deadline(name, now_ms)
        if not dialogue.is_over:
            dialogue.move_on(now_ms)
        if not dialogue.is_over:
            self._move_on(now_ms)
        dialogue.leave_if_settled()
        commands, dialogue.out = dialogue.out, []
        self._only_hears = not dialogue.turns.hangs_on_frames() and not dialogue.is_over
        self._is_muted = dialogue.is_muted()
        return commands

    def _is_only_sending(self, now_ms: float) -> bool:
        """By the clock no more is due than the next of a reply's sound."""
        due_ms = self._deadlines.next_ms()
        return self._playback.has_more() and (due_ms is None or now_ms < due_ms) and not self.is_over

    def _is_stale(self, event: Event) -> bool:
        """Of a session that is gone, or of a call that is over: then only the last words matter."""
        if self.is_over:
            return not isinstance(event, _WORDS)
        return isinstance(event, _OF_A_SESSION) and not self._sessions.is_ready

    def next_deadline(self, now_ms: float) -> float | None:
        """When to send a `Tick` at the latest, on the clock of `now_ms`."""
        if self.is_over:
            return self._deadlines.at_ms(Deadline.LEAVING)
        due_ms, sending_ms = self._deadlines.next_ms(), self._playback.next_deadline(now_ms)
        if due_ms is None or sending_ms is None:
            return sending_ms if due_ms is None else due_ms
        return min(due_ms, sending_ms)

    @property
    def is_over(self) -> bool:
        """No more is said or heard; the last commands have been given, or follow by a deadline."""
        return self._dialogue.is_over

    @property
    def reception(self) -> Reception:
        """What the network did to the caller's audio, so far."""
        return self._media.reception

    @property
    def transitions(self) -> tuple[str, ...]:
        """The last transitions of the turn machines, for the log of a call that went wrong."""
        return tuple(self._dialogue.turns.history)

    def _move_on(self, now_ms: float) -> None:
        self._media.expect_silence(self._asking.silence_ms)  # whatever may have changed it
        self._watch_silence(now_ms)
        self._dialogue.out += self._playback.tick(now_ms)
        if self._is_handing_over and self._dialogue.is_quiet():
            self._dialogue.line_gone(now_ms, by=None)

    # -- the line -----------------------------------------------------------------------------------------------

    def _line_frame(self, frame: LineFrame, now_ms: float) -> None:
        if not self._dialogue.is_over:
            hear = self._media.receive(frame, now_ms, muted=self._dialogue.is_muted())
            self._dialogue.out += [] if hear is None else [hear]

    def _line_digit(self, digit: LineDigit, now_ms: float) -> None:
        """A key shows that somebody is there, whether or not the flow waits for one."""
        self._prompts = 0
        self._deadlines.clear(Deadline.SILENCE)
        self._stirred_at_ms = now_ms
        if not self._dialogue.is_over:
            self._dialogue.key(digit.digit, now_ms)

    def _line_mark(self, mark: LineMark, now_ms: float) -> None:
        self._playback.mark(mark.name, now_ms)

    def _line_stopped(self, _: LineStopped, now_ms: float) -> None:
        self._dialogue.line_gone(now_ms, by=ended_by(self._media.network(now_ms, LONGEST_WINDOW_MS)))

    def _line_closed(self, _: LineClosed, now_ms: float) -> None:
        self._dialogue.line_gone(now_ms, by=None)

    # -- the model ----------------------------------------------------------------------------------------------

    def _model_ready(self, ready: ModelReady, now_ms: float) -> None:
        if self._sessions.is_ready:
            return
        self._sessions.ready(ready.lifetime_ms, now_ms)
        self._stirred_at_ms = now_ms
        self._dialogue.out += self._media.ready()
        self._hearing.session_ready(is_told_again=self._is_told_again)
        if self._is_told_again:
            self._is_told_again = False
            self._deadlines.set(Deadline.AGAIN, now_ms + UNSETTLED_MS)
        self._dialogue.model_ready(now_ms)

    def _model_lost(self, lost: ModelLost, now_ms: float) -> None:
        delay_ms = self._sessions.lost(now_ms)
        self._without_session(now_ms)
        if lost.permanent or delay_ms is None:
            self._dialogue.fail(now_ms)
        else:
            self._dialogue.out.append(ReopenModel(delay_ms))

    def _rollover(self, now_ms: float) -> None:
        """The provider will end this session: change it while nobody says anything."""
        if self._sessions.rolls_over(is_quiet=self._dialogue.may_change_session(), now_ms=now_ms):
            self._without_session(now_ms)
            self._dialogue.out.append(ReopenModel(0))

    def _without_session(self, now_ms: float) -> None:
        self._dialogue.model_lost(now_ms)
        from_ms, has_words = self._hearing.take_unheard(AGAIN_MAX_MS)
        self._media.lost(from_ms)
        self._is_told_again = self._is_told_again or has_words

    def _speech_started(self, event: SpeechStarted, now_ms: float) -> None:
        if self._hearing.is_new_speech(event.item_id):
            # The sign first: it may give the turn back to which this speech belongs.
            was_believed = self._dialogue.speech_started(now_ms)
            gap_ms = self._hearing.speech_started(event.item_id, event.audio_start_ms)
            if was_believed and gap_ms is not None:
                self._dialogue.went_on(gap_ms, now_ms)

    def _speech_stopped(self, event: SpeechStopped, now_ms: float) -> None:
        silence_ms = self._asking.silence_ms
        if self._hearing.speech_stopped(event.item_id, event.audio_end_ms, silence_ms, now_ms):
            self._dialogue.speech_ended(now_ms)

    def _turn_committed(self, event: TurnCommitted, now_ms: float) -> None:
        self._hearing.committed(event.item_id, now_ms)

    def _transcript_delta(self, event: TranscriptDelta, now_ms: float) -> None:
        turn = self._hearing.partial(event.item_id, event.delta)
        if turn is not None and event.delta.strip():
            self._dialogue.words_came(turn, now_ms)

    def _transcript_done(self, event: TranscriptDone, now_ms: float) -> None:
        self._words(event.item_id, event.text, now_ms)

    def _transcript_failed(self, event: TranscriptFailed, now_ms: float) -> None:
        self._words(event.item_id, None, now_ms)

    def _words(self, item_id: str, text: str | None, now_ms: float) -> None:
        turn = self._hearing.words(item_id, text, now_ms)
        if turn is None:
            return
        if text and text.strip():
            self._prompts = 0
        self._dialogue.words_came(turn, now_ms)

    def _reply_audio(self, event: ReplyAudio, now_ms: float) -> None:
        self._dialogue.reply_audio(event.reply_id, event.ulaw, now_ms)

    def _reply_text(self, event: ReplyText, now_ms: float) -> None:
        self._dialogue.reply_text(event.reply_id, event.delta, now_ms)

    def _reply_call(self, event: ReplyCall, now_ms: float) -> None:
        self._dialogue.reply_call(event, now_ms)

    def _reply_done(self, event: ReplyDone, now_ms: float) -> None:
        self._dialogue.reply_done(event, now_ms)
        if event.status is ReplyStatus.COMPLETED:
            self._sessions.answered()

    # -- our own side -------------------------------------------------------------------------------------------

    def _handover(self, _: Handover, now_ms: float) -> None:
        self._is_handing_over = True

    def _hours_by_hand(self, event: HoursByHand, now_ms: float) -> None:
        self._asking.overrides = event.overrides

    def _ceiling(self, _: CeilingReached, now_ms: float) -> None:
        """Like the longest time that a call may take, but with the business's own words, or a transfer."""
        spending, ending = self._setup.business.spending, Ending(EndReason.FINISHED)
        say = spending.say_in(self._asking.language)
        if self._setup.was_transferred:
            say = self._asking.ours(engine.stock.MONEY_IS_SPENT)
        elif (name := spending.transfer) is not None:
            flow = replace(self._asking.flow, ended="transferred", target=name)
            number = self._setup.business.transfers[name].number
            ending = Ending(EndReason.TRANSFERRED, name, number, flow=flow)
        self._last_words = OwnWords(ReplyKind.PROMPT, say, ending)
        self._limit_ms = min(self._limit_ms, now_ms)
        self._deadlines.set(Deadline.LIMIT, now_ms)

    def _ignore(self, _: Event, now_ms: float) -> None:
        """Nothing but what `receive` does after every event."""

    def _network(self, now_ms: float) -> NetworkState:
        return self._media.network(now_ms, max(1_000, self._asking.silence_ms))

    def _deadline(self, name: Deadline, now_ms: float) -> None:
        if self.is_over and name is not Deadline.LEAVING:
            return
        if name is Deadline.SILENCE:
            self._silence(now_ms)
        elif name is Deadline.LIMIT:
            self._limit(now_ms)
        elif name is Deadline.ROLLOVER:
            self._rollover(now_ms)
        elif name is Deadline.OUTAGE:
            self._dialogue.fail(now_ms)
        else:
            self._dialogue.deadline(name, now_ms)

    def _watch_silence(self, now_ms: float) -> None:
        """The caller's silence counts from our last word or theirs, and only while nothing is due (B022, B052).

        Noise without words does not start the count anew.
        """
        if not self._dialogue.turns.is_resting() or self._dialogue.flowing.awaits_tool():
            self._deadlines.clear(Deadline.SILENCE)
        elif not self._deadlines.has(Deadline.SILENCE):
            # What was just said is not yet a turn, or not yet known to be none.
            unsettled_ms = now_ms + UNSETTLED_MS if self._hearing.open.items else now_ms
            marks_ms = (
                self._dialogue.saying.ended_at_ms,
                self._hearing.last_words_at_ms,
                self._stirred_at_ms,
            )
            since_ms = max(at_ms for at_ms in marks_ms if at_ms is not None)
            awaited = self._dialogue.flowing.awaited()
            silence_s = self._setup.business.limits.silence_s if awaited is None else awaited.silence_s
            due_ms = since_ms + silence_s * 1_000
            self._deadlines.set(Deadline.SILENCE, max(due_ms, unsettled_ms))

    def _silence(self, now_ms: float) -> None:
        if not self._dialogue.turns.is_resting() or self._hearing.open.closed:
            return  # the caller began, or ended, a turn at this very moment
        if self._dialogue.flowing.awaited() is not None:
            self._dialogue.flow_takes(engine.Silence(), now_ms)
            return
        self._prompts += 1
        words = OwnWords(ReplyKind.PROMPT, self._asking.ours(engine.stock.STILL_THERE))
        if self._prompts > self._setup.business.limits.reprompts:
            nobody = self._asking.ours(engine.stock.NOBODY_THERE)
            words = OwnWords(ReplyKind.PROMPT, nobody, Ending(EndReason.DROPPED))
        self._dialogue.say(words, now_ms)

    def _limit(self, now_ms: float) -> None:
        finished = Ending(EndReason.FINISHED)
        last = self._last_words or OwnWords(
            ReplyKind.PROMPT, self._asking.ours(engine.stock.TIME_IS_UP), finished
        )
        if now_ms - self._limit_ms >= LIMIT_GRACE_MS:
            self._dialogue.end(last.ending or finished, now_ms)
            return
        if self._dialogue.turns.is_resting():
            self._dialogue.say(last, now_ms)
        # Whether it is heard or talked over: look again.
        self._deadlines.set(Deadline.LIMIT, now_ms + LIMIT_STEP_MS)


def _opening(setup: CallSetup) -> OwnWords:
    """What is said first. That calls are recorded must be heard before anything of the caller is."""
    told = setup.business.announcement
    return OwnWords(ReplyKind.OPENING, setup.opening, interruptible=not told or told not in setup.opening)
