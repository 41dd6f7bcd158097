"""The conversation of one call: shows signs to the turn tables and carries out their acts as commands."""

from collections.abc import Callable

from callflows import engine
from ivr.core.asking import Asking
from ivr.core.commands import CancelReply, Command, EndReason, ForgetItem, UpdateSession
from ivr.core.deadlines import Deadline, Deadlines
from ivr.core.events import Recalled, ReplyCall, ReplyDone, ReplyStatus
from ivr.core.flowing import Flowing
from ivr.core.gathering import Gathering
from ivr.core.hearing import Hearing
from ivr.core.interrupting import Interrupting
from ivr.core.keeping import Keeping
from ivr.core.leaving import Leaving
from ivr.core.patience import Patience
from ivr.core.records import Ending, OwnWords, ReplyKind, SpokenReply, Turn, add_usage
from ivr.core.requesting import Requesting
from ivr.core.saying import Saying
from ivr.core.setup import CallSetup
from ivr.core.steering import Steering
from ivr.core.turns import Act, Floor, Playout, Reply, Sign, Turns
from memory.model import EndedBy


class Dialogue:
    """Turn-taking with its records. Methods append to `out`; `CallCore` hands it over after each event."""

    def __init__(
        self, setup: CallSetup, hearing: Hearing, asking: Asking, patience: Patience, deadlines: Deadlines
    ) -> None:
        self._setup = setup
        self._hearing = hearing
        self._asking = asking
        self._patience = patience
        self._deadlines = deadlines
        self.turns = Turns()
        self.saying = Saying()
        self._keeping = Keeping(setup, hearing, asking, self.saying, deadlines)
        self._leaving = Leaving(self._keeping, asking, deadlines)
        self._gathering = Gathering(hearing, deadlines, setup.tuning, asking.access)
        self.flowing = Flowing(setup, asking)
        self._steering = Steering(asking, self.flowing)
        self._interrupting = Interrupting(hearing, deadlines, setup.tuning, setup.business.language)
        self._answering: Turn | None = None
        self._own_words: OwnWords | None = None
        self._requesting = Requesting(setup, asking, deadlines)
        self.out: list[Command] = []
        self._acts: dict[Act, Callable[[float], None]] = {
            Act.HOLD: self._hold,
            Act.CUT: self._cut,
            Act.REPLAY: self._replay,
            Act.FINISH: self._finish,
            Act.CANCEL: self._cancel,
            Act.REOPEN_TURN: self._reopen_turn,
            Act.GATHER: self._gather,
            Act.ASK: self._ask,
            Act.ASK_AGAIN: self._ask_again,
            Act.DROP_TURN: self._drop_turn,
            Act.RETRY: self._retry,
            Act.WAIT: self._wait,
            Act.SETTLE: self._finish,
            Act.PUT_OFF: self._put_off,
            Act.BREAK_OFF: self._break_off,
        }

    @property
    def is_over(self) -> bool:
        """The call, or our part in it, has ended."""
        return self._leaving.is_over

    def say(self, words: OwnWords, now_ms: float) -> None:
        """Say something of our own as soon as nobody speaks and no reply is under way."""
        self._own_words = words
        self._say_waiting(now_ms)

    def move_on(self, now_ms: float) -> None:
        """What follows from where things stand, whatever the event was."""
        if self.turns.playout is Playout.PLAYING and self.saying.is_played():
            self._show(Sign.PLAYED, now_ms)
        elif self.turns.is_talked_over() and self._interrupting.is_certain_now():
            self._show(Sign.SPEECH_BEGAN, now_ms)
        if not self.is_over:
            self._say_waiting(now_ms)
            self._close_turn(now_ms)
            self._go_on_if_heard(now_ms)

    def _show(self, sign: Sign, now_ms: float) -> None:
        """Show a sign to the machines and do what the tables say."""
        for act in self.turns.show(sign):
            self._acts[act](now_ms)

    def _show_any(self, sign: Sign | None, now_ms: float) -> None:
        if sign is not None:
            self._show(sign, now_ms)

    def _say_waiting(self, now_ms: float) -> None:
        if self._own_words is not None and self.turns.is_resting():
            self._show(Sign.SAY, now_ms)

    # -- the caller ---------------------------------------------------------------------------------------------

    def speech_started(self, now_ms: float) -> bool:
        """The caller began to speak. Returns whether that proves wrong a boundary that we had believed."""
        self._deadlines.clear(Deadline.AGAIN)
        words, reply = self._own_words, self.saying.reply
        if words is not None and words.kind is ReplyKind.PROMPT:
            self._own_words = None  # whatever we wanted to ask, it is the caller's turn
        is_due = self.turns.reply is Reply.GATHERING or self._answering is not None
        was_believed = is_due and self._patience.has_believed(self.turns.reply, now_ms)
        is_asked = self.turns.reply is Reply.ASKED
        self._show(self._interrupting.began(reply, now_ms, is_asked=is_asked), now_ms)
        return was_believed

    def went_on(self, gap_ms: float, now_ms: float) -> None:
        """Speech continued a turn that we had taken for finished, after a true gap of so many ms."""
        if self._patience.went_on(gap_ms, now_ms):
            self.out.append(UpdateSession(self._asking.config()))

    def speech_ended(self, now_ms: float) -> None:
        """The caller stopped speaking, for now."""
        self._show(Sign.SPEECH_ENDED, now_ms)
        if self.turns.playout is Playout.HELD:
            self._show_any(self._interrupting.ended(), now_ms)

    def words_came(self, turn: Turn, now_ms: float) -> None:
        """Some words of a turn are known, or are known to be none."""
        if not self.is_over:
            self.out += self._gathering.early(now_ms)
            self._judge(turn, now_ms)
        self.out += self._keeping.take_ready()

    def _judge(self, turn: Turn, now_ms: float) -> None:
        """What a turn's words mean for turn-taking: a held reply, a reply to noise, a turn being gathered."""
        is_open, reply = turn is self._hearing.open, self.turns.reply
        if is_open and self.turns.playout is not Playout.SILENT:
            self._show_any(self._interrupting.worded(turn, self.saying.reply), now_ms)
        elif is_open and reply is Reply.GATHERING:
            self._gather(now_ms)
        elif turn is self._answering and turn.is_empty() and reply in (Reply.ASKED, Reply.DEFERRED):
            self._show(Sign.TURN_EMPTY, now_ms)

    def _close_turn(self, now_ms: float) -> None:
        """Answer the open turn, if it is closed and nothing of ours stands in the way."""
        turn = self._hearing.open
        if not turn.closed:
            return
        if self.turns.playout is Playout.PLAYING and turn.is_empty():
            self._drop_open()
        elif self.turns.playout is Playout.SILENT:
            self._show(Sign.TURN_CLOSED, now_ms)

    def recalled(self, event: Recalled, now_ms: float) -> None:
        """The window of a turn came."""
        self._gathering.take_window(event.turn_no, event.query, event.window, now_ms)

    def _go_on_if_heard(self, now_ms: float) -> None:
        """What waits for a silence that was really heard, or for its deadline."""
        match self.turns.reply:
            case Reply.GATHERING if self._hearing.open.window is not None and self._patience.may_ask(now_ms):
                self._show(Sign.TURN_READY, now_ms)
            case Reply.ASKED if self.saying.is_kept_back() and self._patience.may_speak(now_ms):
                self._release(now_ms)
            case Reply.DEFERRED if self._patience.may_reconsider(now_ms):
                if self._answering is not None:
                    self._answering.may_defer = False
                self._show(Sign.RECONSIDER, now_ms)

    # -- the model's replies ----------------------------------------------------------------------------------

    def _current(self, reply_id: str, now_ms: float) -> SpokenReply | None:
        """The reply under way, if an event is about it: a sign of life."""
        return self.saying.reply if self._requesting.is_alive(reply_id, now_ms) else None

    def reply_audio(self, reply_id: str, ulaw: bytes, now_ms: float) -> None:
        """Some of a reply's audio."""
        reply = self._current(reply_id, now_ms) if ulaw else None
        if reply is None:
            return
        early = self.turns.reply is Reply.ASKED and reply.kind is ReplyKind.ANSWER
        if early and not self._patience.may_speak(now_ms):
            self.saying.keep_back(ulaw)
            return
        if self.saying.is_kept_back():
            self._release(now_ms)
        self._show(Sign.AUDIO, now_ms)
        self.saying.audio(ulaw, now_ms, held=self.turns.playout is Playout.HELD)

    def _release(self, now_ms: float) -> None:
        """The line is heard again: what was kept back may be heard too."""
        self._show(Sign.AUDIO, now_ms)
        self.saying.release(now_ms)
        reply = self.saying.reply
        if reply is not None and reply.is_complete:
            self._complete(reply, now_ms)
            self._show(Sign.ANSWERED, now_ms)

    def reply_text(self, reply_id: str, delta: str, now_ms: float) -> None:
        """Some of what a reply says."""
        if (reply := self._current(reply_id, now_ms)) is not None:
            reply.text += delta

    def reply_call(self, call: ReplyCall, now_ms: float) -> None:
        """A reply calls a function."""
        reply = self._current(call.reply_id, now_ms)
        if reply is not None:
            reply.note(call)

    def reply_done(self, done: ReplyDone, now_ms: float) -> None:
        """A reply is complete at the provider: functions are answered only now (B029)."""
        if (reply := self._current(done.reply_id, now_ms)) is None:
            return
        self._requesting.end()
        if self._answering is not None:
            self._answering.usage = add_usage(self._answering.usage, done.usage)
        steered = self._steering.apply(reply, done.status, self._answering, now_ms)
        if steered.sign is not Sign.FAILED and reply.kind is not ReplyKind.FILLER:
            self._requesting.succeeded()
        if done.status is ReplyStatus.COMPLETED and not reply.is_recorded():
            self._asking.delivery.spoke(reply.text, reply.audio_ms, reply.speed)
        self.out += steered.orders
        self._patience.watch(now_ms)
        if steered.moved:
            self.out.append(self._keeping.snapshot())
        if steered.words is not None:
            self._own_words = steered.words
        self._complete(reply, now_ms)
        if steered.sign is not Sign.ANSWERED or not self.saying.is_kept_back():
            self._show(steered.sign, now_ms)

    def _complete(self, reply: SpokenReply, now_ms: float) -> None:
        self.saying.complete(held=self.turns.playout is Playout.HELD)
        if reply.segments:
            slack_ms = self._setup.tuning.farewell_slack_ms
            self._deadlines.set(Deadline.PLAYED, now_ms + self.saying.left_ms() + slack_ms)

    # -- acts: the playout --------------------------------------------------------------------------------------

    def _hold(self, now_ms: float) -> None:
        self.out += self.saying.hold(now_ms)
        self._deadlines.clear(Deadline.PLAYED)
        self._interrupting.hold(self._asking.silence_ms, now_ms)

    def _replay(self, now_ms: float) -> None:
        self._deadlines.clear(Deadline.HELD)
        self.saying.replay()
        if self.saying.reply is not None and self.saying.reply.is_complete:
            self._complete(self.saying.reply, now_ms)

    def _cut(self, now_ms: float) -> None:
        self._deadlines.clear(Deadline.HELD)
        self.out += self.saying.clear(now_ms)
        self._close_exchange(now_ms)

    def _finish(self, now_ms: float) -> None:
        ending = self.saying.reply.ending if self.saying.reply is not None else None
        self._close_exchange(now_ms)
        if ending is not None:
            self.end(ending, now_ms)

    def _close_exchange(self, now_ms: float) -> None:
        self.out += self._keeping.close_exchange(self._take_answering(), now_ms)

    # -- acts: the reply ----------------------------------------------------------------------------------------

    def _cancel(self, now_ms: float) -> None:
        self.out += self._requesting.cancel()
        self.saying.reply = None

    def _put_off(self, now_ms: float) -> None:
        """The session died before a word was audible: the answer is asked for again, our own words too."""
        self._own_words = self.saying.own_words() or self._own_words
        self._requesting.end()
        self._cancel(now_ms)

    def _break_off(self, now_ms: float) -> None:
        """The session died in mid-reply: what has come of it is all there is."""
        self._requesting.end()
        if self.saying.reply is not None and not self.saying.reply.is_complete:
            self._complete(self.saying.reply, now_ms)

    def _reopen_turn(self, now_ms: float) -> None:
        self._gathering.stop()
        self._patience.stop()
        self._hearing.go_on(self._answering)
        self._answering = None

    def _drop_turn(self, now_ms: float) -> None:
        """What was taken for a turn, answered already or not, was none."""
        self._reopen_turn(now_ms)
        self._drop_open()

    def _drop_open(self) -> None:
        self.out += [ForgetItem(item) for item in self._hearing.drop_open()]

    def _gather(self, now_ms: float) -> None:
        if self._hearing.open.is_empty():
            self._show(Sign.TURN_EMPTY, now_ms)
            return
        self._patience.begin(self._hearing.open)
        self.out += self._gathering.go_on(now_ms)

    def _ask(self, now_ms: float) -> None:
        if self._own_words is None and self._answering is None:
            self._answering = self._hearing.take()
            self._answering.may_defer = self._patience.may_defer(now_ms)
        self._ask_again(now_ms)

    def _ask_again(self, now_ms: float) -> None:
        words, self._own_words = self._own_words, None
        recent = self._keeping.recent
        reply, orders = self._requesting.ask(words or self._answering, recent, now_ms)
        self.saying.begin(reply)
        self.out += orders

    def _retry(self, now_ms: float) -> None:
        self.saying.forget_kept_back()
        if not self._requesting.failed(now_ms):
            self.fail(now_ms)

    def _wait(self, now_ms: float) -> None:
        self._patience.defer(now_ms)

    # -- deadlines ----------------------------------------------------------------------------------------------

    def deadline(self, name: Deadline, now_ms: float) -> None:
        """A wait is over."""
        match name:
            case Deadline.WORDS:
                self.out += self._gathering.recall(now_ms)
            case Deadline.WINDOW:
                self._gathering.give_up(now_ms)
            case Deadline.ANSWER:
                reply_id = self._requesting.reply_id
                self.out.append(CancelReply(reply_id))
                self.reply_done(ReplyDone(reply_id, ReplyStatus.FAILED, "no_answer"), now_ms)
            case Deadline.HELD:
                talking = self.turns.floor is Floor.TALKING
                self._show_any(self._interrupting.lasted(now_ms, is_talking=talking), now_ms)
            case Deadline.RETRY:
                self._own_words = self.saying.own_words() or self._own_words
                self._ask_again(now_ms)
            case Deadline.RESTORE if self._patience.restore(now_ms):
                self.out.append(UpdateSession(self._asking.config()))
            case Deadline.PLAYED:
                self._show(Sign.PLAYED, now_ms)
            case Deadline.AGAIN:
                self._hearing.heard_nothing_again()
                self._own_words = self._own_words or self._say_again()
            case Deadline.PAGE:
                self.out += self._keeping.take_ready(at_once=True)
            case Deadline.LEAVING:
                self.out += self._leaving.leave()

    # -- losses and ends ----------------------------------------------------------------------------------------

    def model_lost(self, now_ms: float) -> None:
        """The session is gone. What was asked for will be asked again; what is playing plays on."""
        self._hearing.session_lost()
        self._show(Sign.MODEL_LOST, now_ms)
        self.out += self._keeping.take_ready()

    def model_ready(self, now_ms: float) -> None:
        """A session is ready: what waits is said or asked for, and nothing is greeted twice.

        What the last session did not understand the new one is told again; what was too long for that must be said
        again. A turn that was being spoken counts as finished, unless the new session hears it going on.
        """
        turn = self._hearing.open
        if turn.text():
            self._hearing.close(now_ms)
        elif turn.items:
            was_noise = turn.is_empty()
            self._drop_open()
            self._own_words = self._own_words or (None if was_noise else self._say_again())
        self._show(Sign.MODEL_READY, now_ms)

    def _say_again(self) -> OwnWords:
        return OwnWords(ReplyKind.PROMPT, self._asking.ours(engine.stock.SAY_AGAIN))

    def fail(self, now_ms: float) -> None:
        """The model cannot speak for us any more."""
        self.end(Ending(EndReason.FAILED, say=self._asking.down()), now_ms)

    def end(self, ending: Ending, now_ms: float) -> None:
        """End the call."""
        self.out += self._leaving.end(ending, self._take_answering(), now_ms)

    def line_gone(self, now_ms: float, *, by: EndedBy | None) -> None:
        """The stream is over. `by` whom the call is, too; `None`: it may come back through the continue URL."""
        reply, turn = self.saying.reply, self._take_answering()
        self.out += self._leaving.line_gone(reply, turn, now_ms, by=by)

    def _take_answering(self) -> Turn | None:
        turn, self._answering = self._answering, None
        return turn

    def leave_if_settled(self) -> None:
        """Once the last words are there, nothing keeps us."""
        self.out += self._leaving.settled()
