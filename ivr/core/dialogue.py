"""The conversation of one call: shows signs to the turn tables and carries out their acts as commands."""

from collections.abc import Callable

from callflows import engine
from ivr.core.asking import Asking
from ivr.core.commands import (
    CallOutput,
    CancelReply,
    Command,
    EndCall,
    EndReason,
    ForgetItem,
    LeaveCall,
    Recall,
    SaveSnapshot,
    TransferCall,
    UpdateSession,
)
from ivr.core.deadlines import Deadline, Deadlines
from ivr.core.directives import Defer, SetInstruction, SetSilence, SetSpeed
from ivr.core.events import ReplyDone, ReplyStatus
from ivr.core.functions import START_AFRESH, FlowStep, Outcome
from ivr.core.hearing import Hearing
from ivr.core.pages import Pages
from ivr.core.records import Ending, OwnWords, ReplyKind, SpokenReply, Turn, add_usage
from ivr.core.saying import Heard, Saying
from ivr.core.setup import CallSetup, snapshot_of
from ivr.core.turns import Act, Floor, Playout, Reply, Sign, Turns
from memory.model import Window

SAY_AGAIN = OwnWords(ReplyKind.PROMPT, "Sorry, I missed that. Could you say it again?")


class Dialogue:
    """Turn-taking with its records. Methods append to `out`; `CallCore` hands it over after each event."""

    def __init__(self, setup: CallSetup, hearing: Hearing, asking: Asking, deadlines: Deadlines) -> None:
        self._setup = setup
        self._tuning = setup.tuning
        self._hearing = hearing
        self._asking = asking
        self._deadlines = deadlines
        self._pages = Pages(setup.call_id, setup.exchange_no)
        self._answering: Turn | None = None
        self._own_words: OwnWords | None = None
        self._asked_id = ""
        self._replies = 0
        self._failures = 0
        self._held_since_ms = 0.0
        self._farewell: Command | None = None
        self.turns = Turns()
        self.saying = Saying()
        self.out: list[Command] = []
        self.opening_heard = False
        self.is_over = False
        self.spoke_last_at_ms: float | None = None
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
            Act.SETTLE: self._settle,
        }

    def show(self, sign: Sign, now_ms: float) -> None:
        """Show a sign to the machines and do what the tables say."""
        for act in self.turns.show(sign):
            self._acts[act](now_ms)

    def say(self, words: OwnWords, now_ms: float) -> None:
        """Say something of our own as soon as no reply is under way."""
        self._own_words = words
        self.show(Sign.SAY, now_ms)

    # -- the caller ---------------------------------------------------------------------------------------------

    def speech_started(self, now_ms: float) -> None:
        """The caller began to speak."""
        reply = self.saying.reply
        early = self.turns.reply is Reply.ASKED and reply is not None and reply.kind is ReplyKind.OPENING
        self.show(Sign.SPEECH_EARLY if early else Sign.SPEECH_BEGAN, now_ms)

    def words_came(self, turn: Turn, now_ms: float) -> None:
        """Some words of a turn are known, or are known to be none."""
        if turn is self._hearing.open and self.turns.playout is Playout.HELD:
            self._judge_held(turn, now_ms)
        if turn.is_empty() and turn is self._answering and self.turns.reply is Reply.ASKED:
            self.show(Sign.TURN_EMPTY, now_ms)
        elif turn is self._hearing.open and self.turns.reply is Reply.GATHERING:
            self._gather(now_ms)
        self.out += self._pages.take_ready()

    def close_turn(self, now_ms: float) -> None:
        """Answer the open turn, if it is closed and nothing of ours stands in the way."""
        turn = self._hearing.open
        if not turn.closed:
            return
        if self.turns.playout is Playout.PLAYING and turn.is_empty():
            self._drop_turn(now_ms)
        elif self.turns.playout is Playout.SILENT and self.turns.reply in (Reply.NONE, Reply.DEFERRED):
            self.show(Sign.TURN_CLOSED, now_ms)

    def recalled(self, turn_no: int, window: Window, now_ms: float) -> None:
        """The window of a turn came; one for a turn that went on is out of date."""
        turn = self._hearing.open
        if (
            turn.no == turn_no
            and self.turns.reply is Reply.GATHERING
            and self._deadlines.has(Deadline.WINDOW)
        ):
            turn.window = window
            self._deadlines.clear(Deadline.WINDOW)
            self.show(Sign.TURN_READY, now_ms)

    def _judge_held(self, turn: Turn, now_ms: float) -> None:
        if turn.is_empty():
            self.show(Sign.REFUTED, now_ms)
        elif turn.text() or turn.has_all_words():
            self.show(Sign.CONFIRMED, now_ms)

    # -- the model's replies ----------------------------------------------------------------------------------

    def is_current(self, reply_id: str) -> bool:
        """Whether events of this reply still matter."""
        return reply_id == self._asked_id and self.saying.reply is not None

    def reply_audio(self, ulaw: bytes, now_ms: float) -> None:
        """Audio of the current reply."""
        self.show(Sign.AUDIO, now_ms)
        self.saying.audio(ulaw, now_ms, held=self.turns.playout is Playout.HELD)
        self.opening_heard = True

    def reply_done(self, done: ReplyDone, now_ms: float) -> None:
        """The current reply is complete at the provider: functions are answered only now (B029)."""
        reply = self.saying.reply
        assert reply is not None
        self._asked_id = ""
        if self._answering is not None:
            self._answering.usage = add_usage(self._answering.usage, done.usage)
        if done.status is ReplyStatus.FAILED:
            self._complete(reply, now_ms)
            self.show(Sign.FAILED, now_ms)
            return
        self._failures = 0
        sign = self._apply_calls(reply, now_ms)
        self._complete(reply, now_ms)
        self.show(sign, now_ms)

    def _complete(self, reply: SpokenReply, now_ms: float) -> None:
        self.saying.complete(held=self.turns.playout is Playout.HELD)
        if reply.segments:
            segment, playback = reply.segments[-1], self.saying.playback
            left_ms = playback.queued_ms(segment) - playback.heard_ms(segment)
            self._deadlines.set(Deadline.PLAYED, now_ms + left_ms + self._tuning.farewell_slack_ms)

    def _apply_calls(self, reply: SpokenReply, now_ms: float) -> Sign:
        audible = reply.first_audio_at_ms is not None
        sign = Sign.ANSWERED
        for call in reply.calls:
            outcome = self._asking.functions.apply(
                self._asking.flow, call.name, call.arguments, audible=audible
            )
            if self._answering is not None:
                self._answering.outputs.append(
                    CallOutput(call.call_id, call.name, call.arguments, outcome.output)
                )
            self._take_effect(call.name, outcome, reply)
            if not audible and sign is not Sign.DEFER:
                sign = Sign.DEFER if isinstance(outcome.effect, Defer) else Sign.CALLS
        if sign is Sign.DEFER:
            self._deadlines.set(Deadline.RECONSIDER, now_ms + self._tuning.defer_ms)
        if reply.ending is not None and not audible:
            self._own_words = OwnWords(reply.kind, reply.ending.say or "Goodbye.", reply.ending)
        return sign

    def _take_effect(self, name: str, outcome: Outcome, reply: SpokenReply) -> None:
        match outcome.effect:
            case SetSpeed(speed):
                self._asking.speed = speed
                self.out.append(UpdateSession(self._asking.config()))
            case SetSilence(silence_ms):
                self._asking.silence_ms = silence_ms
                self.out.append(UpdateSession(self._asking.config()))
            case SetInstruction(text):
                self._asking.instruction = text
            case FlowStep() as step:
                self._move(name, step, reply)

    def _move(self, name: str, step: FlowStep, reply: SpokenReply) -> None:
        for action in step.actions:
            if isinstance(action, engine.Transfer):
                reply.ending = Ending(
                    EndReason.TRANSFERRED, action.target, action.number, action.say, step.state
                )
            elif isinstance(action, engine.HangUp):
                reply.ending = Ending(EndReason.FINISHED, say=action.say, flow=step.state)
        if reply.ending is None:
            self._asking.flow = step.state
            self._asking.resumed = self._asking.resumed and name != START_AFRESH.name
            self.out.append(self.snapshot())

    # -- acts ---------------------------------------------------------------------------------------------------

    def _hold(self, now_ms: float) -> None:
        self.out += self.saying.hold(now_ms)
        self._held_since_ms = now_ms
        self._deadlines.clear(Deadline.PLAYED)
        self._deadlines.set(Deadline.HELD, now_ms + self._tuning.held_talking_ms)

    def _replay(self, now_ms: float) -> None:
        self._deadlines.clear(Deadline.HELD)
        self.saying.replay()
        if self.saying.reply is not None and self.saying.reply.is_complete:
            self._complete(self.saying.reply, now_ms)
        if self._hearing.open.closed:
            self._drop_turn(now_ms)

    def _cut(self, now_ms: float) -> None:
        self._deadlines.clear(Deadline.HELD)
        self.out += self.saying.clear(now_ms)
        self._close_exchange(now_ms)

    def _finish(self, now_ms: float) -> None:
        reply = self.saying.reply
        ending = reply.ending if reply is not None else None
        self._close_exchange(now_ms)
        if ending is not None:
            self.end(ending, now_ms)

    def _cancel(self, now_ms: float) -> None:
        self._deadlines.clear(Deadline.RETRY)
        if self._asked_id:
            self.out.append(CancelReply(self._asked_id))
            self._asked_id = ""
        self.saying.reply = None

    def _reopen_turn(self, now_ms: float) -> None:
        for name in (Deadline.WORDS, Deadline.WINDOW, Deadline.RECONSIDER):
            self._deadlines.clear(name)
        if self._answering is not None:
            self._hearing.give_back(self._answering)
            self._answering = None

    def _gather(self, now_ms: float) -> None:
        turn = self._hearing.open
        if turn.is_empty():
            self.show(Sign.TURN_EMPTY, now_ms)
        elif turn.has_all_words():
            self._recall(now_ms)
        elif not self._deadlines.has(Deadline.WINDOW):
            self._deadlines.set(Deadline.WORDS, turn.closed_at_ms + self._tuning.transcript_wait_ms)

    def _recall(self, now_ms: float) -> None:
        self._deadlines.clear(Deadline.WORDS)
        turn = self._hearing.open
        if not self._deadlines.has(Deadline.WINDOW):
            live = tuple(sorted(self._hearing.live_items))
            self.out.append(Recall(turn.no, turn.text(), live, self._asking.resumed))
            self._deadlines.set(Deadline.WINDOW, now_ms + self._tuning.window_wait_ms)

    def _ask(self, now_ms: float) -> None:
        if self._own_words is None and self._answering is None:
            self._answering = self._hearing.take()
        self._ask_again(now_ms)

    def _ask_again(self, now_ms: float) -> None:
        self._replies += 1
        reply_id = f"r{self._setup.exchange_no}-{self._replies}"
        words, self._own_words = self._own_words, None
        if words is not None:
            reply = SpokenReply(reply_id, words.kind, exact_text=words.text, ending=words.ending)
            order = self._asking.own_words(reply_id, words)
        else:
            turn = self._answering
            assert turn is not None, "the reply machine asks for an answer only to a turn"
            turn.rounds += 1
            reply = SpokenReply(reply_id, ReplyKind.ANSWER)
            may_call = turn.rounds <= self._tuning.max_rounds
            order = self._asking.answer(reply_id, turn, self._pages.recent, now_ms, may_call=may_call)
        self._asked_id = reply_id
        self.saying.begin(reply)
        self.out.append(order)

    def _drop_turn(self, now_ms: float) -> None:
        if self._answering is not None:
            self._hearing.give_back(self._answering)
            self._answering = None
        self.out += [ForgetItem(item) for item in self._hearing.drop_open()]

    def _retry(self, now_ms: float) -> None:
        self._failures += 1
        if self._failures > self._tuning.max_failures:
            self.fail(now_ms)
        else:
            self._deadlines.set(Deadline.RETRY, now_ms + self._tuning.retry_ms * self._failures)

    def _settle(self, now_ms: float) -> None:
        self._finish(now_ms)

    def _close_exchange(self, now_ms: float) -> None:
        """What was heard is what was said (B048); a prompt of ours is no exchange."""
        self._deadlines.clear(Deadline.PLAYED)
        self.spoke_last_at_ms = now_ms
        reply = self.saying.reply
        heard = self.saying.end() if reply is not None else Heard("", b"", whole=False)
        if reply is not None and reply.kind is ReplyKind.OPENING:
            self._asking.opening_text = heard.text
            self.out.append(self.snapshot())
        turn, self._answering = self._answering, None
        if turn is not None:
            self._keep(turn, heard, reply, now_ms)

    def _keep(self, turn: Turn, heard: Heard, reply: SpokenReply | None, now_ms: float) -> None:
        began_ms, ended_ms = reply.first_audio_at_ms if reply else None, turn.speech_ended_at_ms
        first_audio_ms = None if began_ms is None or ended_ms is None else began_ms - ended_ms
        self.out.append(self._pages.add(turn, heard, self._asking.flow.node, first_audio_ms))
        self.out += self._pages.take_ready()
        if self._pages.is_waiting():
            self._deadlines.set(Deadline.PAGE, now_ms + self._tuning.page_wait_ms)
        self.out += [ForgetItem(item) for item in self._hearing.answered(turn)]
        self.out.append(self.snapshot())

    # -- deadlines, losses, ends --------------------------------------------------------------------------------

    def deadline(self, name: Deadline, now_ms: float) -> None:
        """A wait is over."""
        match name:
            case Deadline.WORDS:
                self._recall(now_ms)
            case Deadline.WINDOW:
                self._hearing.open.window = Window()
                self.show(Sign.TURN_READY, now_ms)
            case Deadline.HELD:
                self._held_long(now_ms)
            case Deadline.RETRY:
                self._ask_after_failure(now_ms)
            case Deadline.RECONSIDER:
                self._tell_not_to_defer()
                self.show(Sign.RECONSIDER, now_ms)
            case Deadline.PLAYED:
                self.show(Sign.PLAYED, now_ms)
            case Deadline.PAGE:
                self.out += self._pages.take_ready(at_once=True)
            case Deadline.LEAVING:
                self._leave()

    def _tell_not_to_defer(self) -> None:
        if self._answering is not None:
            self._answering.rounds = self._tuning.max_rounds  # no functions: it has waited once

    def _ask_after_failure(self, now_ms: float) -> None:
        failed = self.saying.reply
        if failed is not None and failed.exact_text:
            self._own_words = OwnWords(failed.kind, failed.exact_text, failed.ending)
        self._ask_again(now_ms)

    def _held_long(self, now_ms: float) -> None:
        waited_ms = now_ms - self._held_since_ms
        longest_ms = self._tuning.held_talking_ms + self._tuning.held_words_ms
        if self.turns.floor is Floor.TALKING or waited_ms >= longest_ms:
            self.show(Sign.CONFIRMED, now_ms)
        else:
            self._deadlines.set(Deadline.HELD, self._held_since_ms + longest_ms)

    def model_lost(self, now_ms: float) -> None:
        """The session is gone. What was asked for will be asked again; what is playing plays on."""
        reply, self._asked_id = self.saying.reply, ""
        if reply is not None and self.turns.reply is Reply.STREAMING:
            self._complete(reply, now_ms)
        elif reply is not None and self.turns.reply is Reply.ASKED:
            if reply.kind is not ReplyKind.ANSWER or reply.exact_text:
                self._own_words = OwnWords(reply.kind, reply.exact_text, reply.ending)
            self.saying.reply = None
        self._deadlines.clear(Deadline.RETRY)
        self._hearing.session_lost()
        self.show(Sign.MODEL_LOST, now_ms)
        self._reopen_turn(now_ms)

    def model_back(self, now_ms: float) -> None:
        """A new session is ready: nothing is greeted twice; what is lost is asked for again."""
        turn = self._hearing.open
        if self.turns.reply is Reply.GATHERING:
            if self._own_words is None and turn.text():
                self._gather(now_ms)
                return
            self.show(Sign.TURN_EMPTY, now_ms)
        elif turn.items and not turn.text():
            self._drop_turn(now_ms)
        else:
            return
        self.say(self._own_words or SAY_AGAIN, now_ms)

    def fail(self, now_ms: float) -> None:
        """The model cannot speak for us any more."""
        self.end(Ending(EndReason.FAILED, say=self._setup.business.on_model_down.say), now_ms)

    def end(self, ending: Ending, now_ms: float) -> None:
        """End the call: pages first, then the state, then the line."""
        if self.is_over:
            return
        self.is_over = True
        if ending.flow is not None:
            self._asking.flow = ending.flow
        self._keep_rest(now_ms)
        self.out += self._pages.take_ready(at_once=True)
        self.out.append(self.snapshot())
        if ending.reason is EndReason.TRANSFERRED:
            self.out.append(TransferCall(ending.target, ending.number))
        say = ending.say if ending.reason is EndReason.FAILED else ""
        self.out.append(EndCall(ending.reason, say))

    def line_gone(self, now_ms: float, *, hung_up: bool) -> None:
        """The stream is over. `hung_up`: so is the call; else it may come back through the continue URL."""
        if self.is_over:
            return
        self.is_over = True
        reply = self.saying.reply
        leaving = reply is not None and reply.ending is not None and reply.first_audio_at_ms is not None
        reason = reply.ending.reason if leaving and reply is not None and reply.ending else EndReason.DROPPED
        if reason is EndReason.TRANSFERRED:
            reason = EndReason.DROPPED  # they left before they were put through
        self._farewell = EndCall(reason) if hung_up else LeaveCall()
        self._keep_rest(now_ms)
        self._deadlines.set(Deadline.LEAVING, now_ms + 1_500)
        if not self._pages.is_waiting():
            self._leave()

    def leave_if_settled(self) -> None:
        """Once the last words are there, nothing keeps us."""
        if self._farewell is not None and not self._pages.is_waiting():
            self._leave()

    def _keep_rest(self, now_ms: float) -> None:
        """The heard part of the reply under way, and words that nobody has answered yet."""
        if self._answering is not None or self.saying.reply is not None:
            self._close_exchange(now_ms)
        if self._hearing.open.items:
            self._keep(self._hearing.take(), Heard("", b"", whole=False), None, now_ms)

    def _leave(self) -> None:
        self._deadlines.clear(Deadline.LEAVING)
        self.out += self._pages.take_ready(at_once=True)
        if self._farewell is not None:
            self.out += [self.snapshot(), self._farewell]
            self._farewell = None

    def hand_over(self, now_ms: float) -> None:
        """Leave the call to another worker: commit everything, then close the stream."""
        self.line_gone(now_ms, hung_up=False)

    def snapshot(self) -> SaveSnapshot:
        """The state that another worker needs."""
        asking = self._asking
        return SaveSnapshot(
            snapshot_of(asking.flow, self._pages.next_no, asking.speed, resumed=asking.resumed)
        )
