"""A dialogue in which the flow has its say: exact texts, menus and entries beside what the model talks about."""

from dataclasses import replace

from callflows import engine
from ivr.core.deadlines import Deadline
from ivr.core.events import ReplySpoken, ToolAnswered
from ivr.core.goingon import LastingDialogue
from ivr.core.records import OwnWords, ReplyKind, Turn
from ivr.core.turns import Playout, Reply, Sign

FLOW_WORDS_MS = 3_000
"""A menu can do nothing with half a transcript: so long it waits for the whole one at least."""


class FlowDialogue(LastingDialogue):
    """The turn-taking of `LastingDialogue`; what the caller says or presses goes to the flow wherever that listens."""

    # -- what comes from the caller -----------------------------------------------------------------------------

    def is_muted(self) -> bool:
        """Nothing of the caller's may be heard or kept now: a secret is entered, or nobody may talk over this."""
        return self.flowing.hears_secret() or self._is_uninterruptible()

    def key(self, digit: str, now_ms: float) -> None:
        """A key was pressed. One that comes while nobody may interrupt counts afterwards."""
        if self.flowing.is_ending:
            return
        if not self._may_press():
            self.flowing.keep_key(digit)
            return
        awaited = self.flowing.awaited()
        if awaited is not None and awaited.keys:
            self._show(Sign.KEYED, now_ms)
            self.flow_takes(engine.Key(digit), now_ms)

    def flow_takes(self, event: engine.Event | engine.ToolAnswer, now_ms: float) -> None:
        """Let the flow act; what we wanted to say before is out of date."""
        if self._own_words is not None and self._own_words.kind is not ReplyKind.OPENING:
            self._own_words = None
        self.flowing.take(event, now_ms)
        self._await_key(now_ms)
        self.out.append(self._keeping.snapshot())

    def tool_answered(self, event: ToolAnswered, now_ms: float) -> None:
        """A tool that the flow, or the model, has used; or a PIN that was checked."""
        answer = engine.ToolAnswer(event.key, event.body, event.is_failed)
        is_right = engine.verification(self._setup.business, self._asking.flow, answer)
        if is_right is not None and not self._asking.pin_checked(is_right=is_right):
            answer = replace(answer, is_failed=True)  # also a right one, after too many wrong ones
        self.flow_takes(answer, now_ms)

    def move_on(self, now_ms: float) -> None:
        """See `Dialogue`; then tools that are to be used, what the flow has still to say, keys that had to wait."""
        super().move_on(now_ms)
        if tools := self.flowing.take_tools():
            self.out += [self._keeping.snapshot(), *tools]
        if self.is_over or self.turns.reply is Reply.AWAY:
            return
        while self._may_press() and (key := self.flowing.next_key()):
            self.key(key, now_ms)
        if self._own_words is None and self.turns.is_resting() and not self._is_turn_due():
            words = self.flowing.next_words()
            if words is not None and words.told is not None:
                self._tell(words, now_ms)
            else:
                self._own_words = words
                self._say_waiting(now_ms)

    def _tell(self, words: OwnWords, now_ms: float) -> None:
        """Have the model go on with what came of its function: an answer to a turn in which nobody spoke."""
        outputs = [words.told] if words.told is not None else []
        self._answering = Turn(
            self._hearing.open.no, outputs=outputs, may_defer=False, settled=True, told=words
        )
        self._show(Sign.SAY, now_ms)

    def deadline(self, name: Deadline, now_ms: float) -> None:
        """See `Dialogue`."""
        if name is Deadline.KEYS:
            self.flow_takes(engine.KeysDone(), now_ms)
        elif name is Deadline.WORDS and self._is_for_flow():
            self._flow_hears(now_ms)
        else:
            super().deadline(name, now_ms)

    def reply_spoken(self, event: ReplySpoken, now_ms: float) -> None:
        """A reply of our own words comes from the text-to-speech endpoint."""
        if (reply := self._current(event.reply_id, now_ms)) is not None:
            reply.text, reply.is_spoken = event.text, True

    def is_quiet(self) -> bool:
        """Nobody speaks, nothing is due, and nothing the caller said waits for an answer of ours."""
        away = self.turns.reply is Reply.AWAY
        silent = self.turns.playout is Playout.SILENT
        resting = self.turns.is_resting() and not self._hearing.open.items
        return (away and silent) or (resting and not self.flowing.has_words())

    def may_change_session(self) -> bool:
        """It is quiet, and no words of the caller are still to come from the present session."""
        return self.turns.reply is Reply.NONE and self.is_quiet() and not self._keeping.is_waiting()

    def _await_key(self, now_ms: float) -> None:
        awaited = self.flowing.awaited()
        if awaited is not None and self.flowing.has_keys():
            self._deadlines.set(Deadline.KEYS, now_ms + awaited.key_wait_s * 1_000)
        else:
            self._deadlines.clear(Deadline.KEYS)

    def _may_press(self) -> bool:
        must_hear = self._is_uninterruptible() or self.flowing.must_speak()
        return not (must_hear or self._is_opening_due())

    def _is_uninterruptible(self) -> bool:
        reply, waiting = self.saying.reply, self._own_words
        if waiting is not None and not waiting.interruptible:
            return True
        said = reply.words if reply is not None else None
        return said is not None and not said.interruptible

    def _is_opening_due(self) -> bool:
        """The opening has not begun: it is said in any case (B014)."""
        reply = self.saying.reply
        said = reply is not None and reply.kind is ReplyKind.OPENING and reply.first_audio_at_ms is None
        return said or (self._own_words is not None and self._own_words.kind is ReplyKind.OPENING)

    def _is_turn_due(self) -> bool:
        """The caller's words come before what else we have to say."""
        return self._hearing.open.closed

    # -- what the caller says, for the flow -----------------------------------------------------------------------

    def _is_for_flow(self) -> bool:
        return self.flowing.listens() or self.flowing.is_urgent(self._hearing.open.text())

    def _gather(self, now_ms: float) -> None:
        turn = self._hearing.open
        if turn.is_empty() or not self._is_for_flow():
            super()._gather(now_ms)
        elif turn.has_all_words():
            self._flow_hears(now_ms)
        elif not self._deadlines.has(Deadline.WORDS):
            wait_ms = max(self._setup.tuning.transcript_wait_ms, FLOW_WORDS_MS)
            self._deadlines.set(Deadline.WORDS, turn.closed_at_ms + wait_ms)

    def _flow_hears(self, now_ms: float) -> None:
        """The turn's words are the flow's: its answer is ours; where the model is to talk, it answers the turn."""
        awaited = self.flowing.awaited()
        text = self._hearing.open.text()
        self._gathering.stop()
        if self.flowing.listens() and (awaited is None or not awaited.words):
            self._show(Sign.TURN_EMPTY, now_ms)
            return
        self.flow_takes(engine.Words(text), now_ms)
        if self.flowing.begins_next():
            self.flowing.next_words()
            self._patience.begin(self._hearing.open)
            self.out += self._gathering.recall(now_ms)
            return
        self._own_words = self.flowing.next_words()
        if self._own_words is None:
            self._show(Sign.TURN_EMPTY, now_ms)
            return
        self._answering = self._hearing.take()
        self._answering.settled = True
        self._show(Sign.TURN_READY, now_ms)

    # -- acts ---------------------------------------------------------------------------------------------------

    def _reopen_turn(self, now_ms: float) -> None:
        turn = self._answering
        if self._is_begun():
            pass  # it goes on, or is kept as it is
        elif turn is not None and turn.told is not None:
            self._answering = None
            if self.turns.reply is Reply.AWAY:
                self.flowing.put_back(turn.told)
            else:  # the caller speaks first; the model knows the answer when it answers that
                self._hearing.open.outputs += turn.outputs
        elif turn is not None and turn.settled:
            self._answering = None
            self.out += self._keeping.keep_unanswered(turn, now_ms)
        super()._reopen_turn(now_ms)

    def _cancel(self, now_ms: float) -> None:
        reply = self.saying.reply
        words = reply.words if reply is not None else None
        super()._cancel(now_ms)
        if words is not None and not words.interruptible and self.turns.playout is Playout.SILENT:
            self._must_say(words)

    def _must_say(self, words: OwnWords) -> None:
        if self._own_words is None:
            self._own_words = words
        elif self._own_words is not words:
            self.flowing.put_back(words)
