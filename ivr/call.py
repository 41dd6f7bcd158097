"""One call: joins the caller's line, the speech model and the core. The only place that carries commands out.

Readers hand events to the core and carry out what it answers, without waiting; whatever may be slow (database,
recall, opening a session) runs in tasks of its own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import structlog

from ivr.audio.inbound import Inbound
from ivr.audio.outbound import Outbound
from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.session import CallCore
from ivr.errors import ModelUnavailable, ModelUnsuitable
from ivr.ports import Bill, CallerLink, Clock, FreeOfCharge, Journal, ModelLink, Recall, Speech, Tools
from ivr.recorded import Recorded, no_prompts
from ivr.writing import JournalWriter
from memory.model import Charge, Window

RECALL_TIMEOUT_S = 1.2
GOING_AWAY = 1001
LINE_WAITS_S = 2.0
"""How long the line stays open for the last writes."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How `Call.run` ended. `reason` is `None` when only the stream did: the call may come back."""

    reason: do.EndReason | None
    say: str = ""
    target: str = ""
    left: do.TransferCall | None = field(default=None, compare=False)
    """With it, where the flow of a transferred call stands."""


class NoTools:
    """`ivr.ports.Tools` where there are none: nothing answers."""

    async def use(self, order: do.UseTool) -> ev.ToolAnswered:
        """See the port."""
        return ev.ToolAnswered(order.key, None, is_failed=True)


async def no_hours(_: do.SetHours) -> None:
    """Nothing can be set here."""


async def nobody_enrolled(_: str) -> bool:
    """Nobody has a PIN."""
    return False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a call is joined to. `on_turn` is told the figures of each turn, `on_end` the end before it is written;
    `subscribe` is the worker's pacer.
    """

    line: CallerLink
    new_model: Callable[[], ModelLink]
    recall: Recall
    journal: Journal
    clock: Clock
    subscribe: Callable[[Callable[[float], None]], Callable[[], None]]
    on_turn: Callable[[do.ReportTurn], None] = field(default=lambda _: None)
    on_end: Callable[[CallEnd], None] = field(default=lambda _: None)
    prompt: Callable[[str], bytes] = field(default=no_prompts)
    """A sound file of the business as µ-law 8 kHz, by its path in the flow file; slow. Raises: see `PlayFile`."""
    speech: Speech | None = None
    """Who says our exact words; without it, and when it fails, the model does."""
    tools: Tools = field(default_factory=NoTools)
    check_pin: Callable[[str], Awaitable[bool]] = field(default=nobody_enrolled)
    """Whether this is the caller's PIN. Never raises."""
    set_hours: Callable[[do.SetHours], Coroutine[Any, Any, None]] = field(default=no_hours)
    """Sets hours by hand. Raises: `StorageUnavailable`."""
    bill: Bill = field(default_factory=FreeOfCharge)
    on_charge: Callable[[Charge], None] = field(default=lambda _: None)


class Call:
    """Runs once. `run` returns when the call, or our part in it, is over and everything is written."""

    def __init__(self, core: CallCore, around: Surroundings) -> None:
        self._core = core
        self._around = around
        self._inbound = Inbound()
        self._outbound = Outbound()
        self._speaking_id = ""
        self._recorded = Recorded(self.receive, self._ask_model, self._spoken)
        self._model: ModelLink | None = None
        self._writer = JournalWriter(around.journal, around.clock, lambda: self._finish(CallEnd(None)))
        self._ended: asyncio.Future[CallEnd] = asyncio.get_running_loop().create_future()
        self._transfer_to: do.TransferCall | None = None
        self._used: set[str] = set()
        """Keys of tools that were used here: each counts once."""
        self._group: asyncio.TaskGroup | None = None
        self._handlers: dict[type, Callable[[Any], None]] = {
            do.StartReply: self._start_reply,
            do.PlayFile: self._play_file,
            do.CancelReply: self._cancel_reply,
            do.UpdateSession: self._to_model,
            do.ForgetItem: self._to_model,
            do.SendMedia: around.line.send,
            do.SendMark: around.line.send,
            do.SendClear: around.line.send,
            do.ReopenModel: self._reopen,
            do.Recall: self._recall,
            do.CommitExchange: self._commit,
            do.SaveSnapshot: self._save,
            do.TransferCall: self._transfer,
            do.EndCall: self._end_call,
            do.LeaveCall: self._leave,
            do.ReportTurn: around.on_turn,
            do.UseTool: self._use_tool,
            do.CheckPin: self._check_pin,
            do.SetHours: self._set_hours,
        }

    def receive(self, event: ev.Event) -> None:
        """Let something happen to the call."""
        bill = self._around.bill
        if type(event) is not ev.LineFrame:
            event, due = bill.event(event)
            self._charge(due)
        for command in self._core.receive(event, self._around.clock.now_ms()):
            if type(command) is do.Hear:  # the sound of the line costs nothing
                self._hear(command)
            else:
                bill.command(command)
                self._handlers[type(command)](command)

    def hand_over(self) -> None:
        """This worker stops: leave at the next quiet moment, everything written, for another to go on."""
        self.receive(ev.Handover())

    def leave(self) -> None:
        """A newer stream holds the call: keep what was said, and go."""
        self._receive(ev.LineClosed(GOING_AWAY))

    def hours_by_hand(self, event: ev.HoursByHand) -> None:
        """Somebody opened or closed the business."""
        self._receive(event)

    async def run(self) -> CallEnd:
        """Carry the call to its end. Raises: an `ExceptionGroup` for a bug of ours, with everything closed."""
        unsubscribe = self._around.subscribe(self._on_tick)
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                journal = group.create_task(self._writer.run())
                media = group.create_task(self._carry_media())
                end = await self._ended
                media.cancel()
                self._around.on_end(end)
                self._charge(self._around.bill.close())
                self._writer.close()
                # Twilio asks what is next as soon as the line is closed, so the end is written first; but nobody
                # is kept in silence for a database that is down.
                await asyncio.wait({journal}, timeout=LINE_WAITS_S)
                await self._around.line.close()
                await journal
            return end
        finally:
            unsubscribe()
            await self._around.line.close()

    async def _carry_media(self) -> None:
        """Everything that stops with the call, in a group of its own."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            group.create_task(self._around.line.listen(self._receive))
            group.create_task(self._run_model(0))

    # -- what comes in ------------------------------------------------------------------------------------------

    def _on_tick(self, now_ms: float) -> None:
        deadline_ms = self._core.next_deadline(now_ms)
        if deadline_ms is not None and deadline_ms <= now_ms and not self._ended.done():
            self._receive(ev.Tick())

    def _receive(self, event: ev.Event) -> None:
        """`receive` for the pacer and the line's socket, which are not ours to stop: `run` raises the bug."""
        try:
            self.receive(event)
        except Exception as bug:
            if self._ended.done():
                log.exception("bug_after_the_end")
            else:
                self._ended.set_exception(bug)

    async def _run_model(self, delay_ms: int) -> None:
        """One model session, from opening to loss."""
        await asyncio.sleep(delay_ms / 1_000)
        link = self._around.new_model()
        try:
            await link.open(self._core.config())
            self._model = link
            async for event in link.events():
                if self._model is not link:
                    break  # changed for a new one
                self._from_model(event)
        except ModelUnsuitable as error:
            log.error("model_unsuitable", reason=str(error))  # noqa: TRY400 - the text is the whole story
            self.receive(ev.ModelLost(str(error), permanent=True))
        except ModelUnavailable as error:
            log.warning("model_unavailable", reason=str(error))
            self.receive(ev.ModelLost(str(error)))
        finally:
            if self._model is link:
                self._model = None
            await link.close()

    def _from_model(self, event: ev.ModelEvent | ev.ReplyPcm) -> None:
        match event:
            case ev.ReplyPcm(reply_id, pcm24k):
                if reply_id == self._speaking_id:
                    self._audio(reply_id, self._outbound.feed(pcm24k))
                return
            case ev.ReplyDone(reply_id) if reply_id == self._speaking_id:
                self._audio(reply_id, self._outbound.flush())
            case ev.ModelLost(reason):
                log.warning("model_lost", reason=reason)
                self._outbound.drop()
                self._model = None
            case ev.ModelFault(code):
                log.warning("model_fault", code=code)
        self.receive(event)

    def _audio(self, reply_id: str, ulaw: bytes) -> None:
        if ulaw:
            self.receive(ev.ReplyAudio(reply_id, ulaw))

    # -- what goes out ------------------------------------------------------------------------------------------

    def _hear(self, command: do.Hear) -> None:
        if self._model is not None:
            self._model.hear(self._inbound.frame(command.ulaw, command.missing_ms))

    def _to_model(self, command: do.ModelCommand) -> None:
        if self._model is not None:  # else its loss is on its way to the core, which will ask again
            self._model.send(command)

    def _start_reply(self, command: do.StartReply) -> None:
        self._outbound.drop()
        self._speaking_id = ""
        self._recorded.cancel()
        if command.exact is not None and self._around.speech is not None:
            self._spawn(self._recorded.speak(command, command.exact, self._around.speech))
        else:
            self._ask_model(command)

    def _ask_model(self, command: do.StartReply) -> None:
        self._speaking_id = command.reply_id
        self._to_model(command)

    def _play_file(self, command: do.PlayFile) -> None:
        self._outbound.drop()
        self._speaking_id = ""
        self._spawn(self._recorded.play(command, self._around.prompt))

    def _cancel_reply(self, command: do.CancelReply) -> None:
        self._outbound.drop()
        self._speaking_id = ""
        if not self._recorded.cancel(command.reply_id):
            self._to_model(command)

    def _reopen(self, command: do.ReopenModel) -> None:
        if self._model is not None:  # changed before the provider ends it
            log.info("model_session_changed")
            self._outbound.drop()
            self._spawn(self._model.close())
            self._model = None
        self._spawn(self._run_model(command.delay_ms))

    def _recall(self, command: do.Recall) -> None:
        self._spawn(self._recall_window(command))

    async def _recall_window(self, command: do.Recall) -> None:
        try:
            async with asyncio.timeout(RECALL_TIMEOUT_S):
                window = await self._around.recall.recall(command.query, command.live_items, command.access)
        except TimeoutError:
            log.warning("recall_timed_out", after_s=RECALL_TIMEOUT_S)
            window = Window()
        self.receive(ev.Recalled(command.turn_no, window, command.query))

    def _use_tool(self, order: do.UseTool) -> None:
        if order.key not in self._used:
            self._used.add(order.key)
            self._spawn(self._use(order))

    def _set_hours(self, order: do.SetHours) -> None:
        self._writer.other(lambda: self._around.set_hours(order))

    def _check_pin(self, order: do.CheckPin) -> None:
        self._spawn(self._check(order))

    async def _check(self, order: do.CheckPin) -> None:
        self.receive(ev.ToolAnswered(order.key, await self._around.check_pin(order.pin)))

    async def _use(self, order: do.UseTool) -> None:
        self.receive(await self._around.tools.use(order))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        if self._group is None or self._ended.done():
            work.close()
        else:
            self._group.create_task(work)

    # -- the journal, and the end ---------------------------------------------------------------------------------

    def _commit(self, command: do.CommitExchange) -> None:
        self._writer.exchange(command.exchange)

    def _charge(self, due: tuple[Charge, ...]) -> None:
        for charge in due:
            self._writer.charge(charge)
            self._around.on_charge(charge)

    def _spoken(self, audio_ms: float) -> None:
        self._charge(self._around.bill.spoken(audio_ms))

    def _save(self, command: do.SaveSnapshot) -> None:
        self._writer.snapshot(command.snapshot)

    def _transfer(self, command: do.TransferCall) -> None:
        self._transfer_to = command

    def _end_call(self, command: do.EndCall) -> None:
        self._writer.end(command.reason, command.by)
        left = self._transfer_to
        self._finish(CallEnd(command.reason, command.say, left.target if left is not None else "", left))

    def _leave(self, _: do.LeaveCall) -> None:
        self._finish(CallEnd(None))

    def _finish(self, end: CallEnd) -> None:
        if not self._ended.done():
            self._writer.ended()
            self._ended.set_result(end)
