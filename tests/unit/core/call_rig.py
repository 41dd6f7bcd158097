"""A `Call` between fakes that implement its ports, on an event loop whose clock jumps instead of waiting."""

import asyncio
import selectors
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import numpy as np

from callflows import engine
from callflows.model import Business
from ivr.audio.outbound import Outbound
from ivr.call import Call, CallEnd, Surroundings
from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.session import CallCore
from ivr.core.setup import CallSetup
from ivr.core.units import ULAW_SILENCE
from ivr.errors import StorageUnavailable
from ivr.ports import Bill, FreeOfCharge, Speech
from memory.model import Access, CallSnapshot, Charge, EndedBy, Exchange, Window
from tests.unit.core.harness import clinic

T = TypeVar("T")


class JumpingSelector(selectors.SelectSelector):
    """Instead of waiting for a timer, it is that time."""

    now_s = 1_000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everybody waits for nothing")
        self.now_s += 0 if ready else timeout or 0
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.jumping = JumpingSelector()
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.now_s


def play(scene: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a scene in no time; one that does not end within ten minutes of its own time fails."""

    async def bounded() -> T:
        async with asyncio.timeout(600):
            return await scene()

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(bounded())


class FakeClock:
    def now_ms(self) -> float:
        return asyncio.get_running_loop().time() * 1_000


class FakeLine:
    def __init__(self) -> None:
        self.incoming: asyncio.Queue[ev.LineEvent | Exception] = asyncio.Queue()
        self.sent: list[do.LineCommand] = []
        self.closed = 0

    async def listen(self, receive: Callable[[ev.LineEvent], None]) -> None:
        event: ev.LineEvent | None = None
        while not isinstance(event, ev.LineClosed):
            came = await self.incoming.get()
            if isinstance(came, Exception):
                raise came
            event = came
            receive(event)

    def send(self, command: do.LineCommand) -> None:
        self.sent.append(command)

    async def close(self) -> None:
        self.closed += 1

    def sound(self) -> bytes:
        return b"".join(c.ulaw for c in self.sent if isinstance(c, do.SendMedia))


class FakeModel:
    """`fault` is raised by `open`."""

    def __init__(self, fault: Exception | None = None, lifetime_ms: float = ev.SESSION_MS) -> None:
        self.fault = fault
        self.lifetime_ms = lifetime_ms
        self.incoming: asyncio.Queue[ev.ModelEvent | ev.ReplyPcm | Exception | None] = asyncio.Queue()
        self.sent: list[do.ModelCommand] = []
        self.heard: list[bytes] = []
        self.on_heard: Callable[[], None] = lambda: None
        self.config: do.SessionConfig | None = None
        self.closed = 0

    async def open(self, config: do.SessionConfig) -> None:
        self.config = config
        await asyncio.sleep(0.1)
        if self.fault is not None:
            raise self.fault
        self.incoming.put_nowait(ev.ModelReady("s", self.lifetime_ms))

    async def events(self) -> AsyncIterator[ev.ModelEvent | ev.ReplyPcm]:
        while (event := await self.incoming.get()) is not None:
            if isinstance(event, Exception):
                raise event
            yield event
            if isinstance(event, ev.ModelLost):
                return

    def hear(self, pcm24k: bytes) -> None:
        self.heard.append(pcm24k)
        self.on_heard()

    def send(self, command: do.ModelCommand) -> None:
        self.sent.append(command)

    async def close(self) -> None:
        self.closed += 1
        self.incoming.put_nowait(None)

    def asked(self) -> list[do.StartReply]:
        return [command for command in self.sent if isinstance(command, do.StartReply)]


Written = Exchange | CallSnapshot | do.EndReason | Charge


class FakeJournal:
    """`faults` are raised by the next writes, one each; `void` by the next that are no charges."""

    def __init__(self) -> None:
        self.written: list[Written] = []
        self.attempts = 0
        self.faults: deque[Exception] = deque()
        self.void: deque[Exception] = deque()
        self.is_down = False

    async def commit_exchange(self, exchange: Exchange) -> None:
        await self._write(exchange)

    async def save_snapshot(self, snapshot: CallSnapshot) -> None:
        await self._write(snapshot)

    async def end(self, reason: do.EndReason, by: EndedBy | None) -> None:
        await self._write(reason)

    async def _write(self, what: Written) -> None:
        await asyncio.sleep(0.01)
        self.attempts += 1
        if self.is_down:
            raise StorageUnavailable("down")
        if self.faults:
            raise self.faults.popleft()
        if self.void and not isinstance(what, Charge):
            raise self.void.popleft()
        self.written.append(what)

    async def charge(self, charge: Charge) -> None:
        await self._write(charge)

    def exchanges(self) -> list[Exchange]:
        return [w for w in self.written if isinstance(w, Exchange)]


async def at_once(query: str, live_items: tuple[str, ...]) -> Window:
    return Window()


class FakeRecall:
    def __init__(self) -> None:
        self.answer: Callable[[str, tuple[str, ...]], Awaitable[Window]] = at_once
        self.queries: list[str] = []

    async def recall(self, query: str, live_items: tuple[str, ...], access: Access) -> Window:
        self.queries.append(query)
        return await self.answer(query, live_items)


class FakeTools:
    """Answers after a second, or `takes_s`; `used` are the keys, in order."""

    def __init__(self) -> None:
        self.used: list[str] = []
        self.body: object = {}
        self.takes_s = 1.0

    async def use(self, order: do.UseTool) -> ev.ToolAnswered:
        self.used.append(order.key)
        await asyncio.sleep(self.takes_s)
        return ev.ToolAnswered(order.key, self.body)


class Rig:
    """A call between fakes. `models` are handed out in order; then working ones."""

    def __init__(
        self,
        *models: FakeModel,
        business: Business | None = None,
        bill: Bill | None = None,
        speech: Speech | None = None,
    ) -> None:
        business = business or clinic("silence_s: 8", "silence_s: 60")
        begun = engine.begin(business, engine.Moment(call_id="CA1"))
        self.line, self.journal, self.recall = FakeLine(), FakeJournal(), FakeRecall()
        self.waiting = deque(models)
        self.tools = FakeTools()
        self.models: list[FakeModel] = []
        self.turns: list[do.ReportTurn] = []
        self.charges: list[Charge] = []
        self.subscribers: list[Callable[[float], None]] = []
        self.clock = FakeClock()
        setup = CallSetup("CA1", business, begun.state, business.greeting, begun.actions)
        self.core = CallCore(setup, self.clock.now_ms())
        around = Surroundings(
            self.line,
            self._new_model,
            self.recall,
            self.journal,
            self.clock,
            self._subscribe,
            self.turns.append,
            tools=self.tools,
            bill=bill or FreeOfCharge(),
            speech=speech,
            on_charge=self.charges.append,
        )
        self.call = Call(self.core, around)
        self.running = asyncio.create_task(self.call.run())
        self.pacing = asyncio.create_task(self._pace())

    @property
    def model(self) -> FakeModel:
        return self.models[-1]

    def _new_model(self) -> FakeModel:
        self.models.append(self.waiting.popleft() if self.waiting else FakeModel())
        return self.models[-1]

    def _subscribe(self, on_tick: Callable[[float], None]) -> Callable[[], None]:
        self.subscribers.append(on_tick)
        return lambda: self.subscribers.remove(on_tick)

    async def _pace(self) -> None:
        while True:
            await asyncio.sleep(0.02)
            for on_tick in tuple(self.subscribers):
                on_tick(self.clock.now_ms())

    async def ended(self) -> CallEnd:
        """How `run` ended; nothing of the call is left behind."""
        try:
            return await self.running
        finally:
            self.pacing.cancel()
            assert self.line.closed >= 1  # closing is idempotent (ports.CallerLink)
            assert self.subscribers == []
            assert all(model.closed >= 1 for model in self.models)
            rest = asyncio.all_tasks() - {asyncio.current_task(), self.pacing}
            assert rest == set()

    async def speak(self, text: str, pcm24k: bytes) -> str:
        """The model gives the reply it was asked for last; the line plays it. Returns the reply's id."""
        reply_id = self.model.asked()[-1].reply_id
        for event in (
            ev.ReplyText(reply_id, text),
            ev.ReplyPcm(reply_id, pcm24k),
            ev.ReplyDone(reply_id, ev.ReplyStatus.COMPLETED),
        ):
            self.model.incoming.put_nowait(event)
        await asyncio.sleep(len(pcm24k) / 48_000 + 0.5)
        for command in tuple(self.line.sent):
            if isinstance(command, do.SendMark):
                self.line.incoming.put_nowait(ev.LineMark(command.name))
        await asyncio.sleep(0.1)
        return reply_id

    async def greet(self) -> None:
        await asyncio.sleep(0.2)
        await self.speak("Hello.", tone(500))

    async def ask(self, words: str, item: str = "u1") -> None:
        """The caller's turn, up to the question to the model."""
        for event in (
            ev.SpeechStarted(item, 0),
            ev.SpeechStopped(item, 1_000),
            ev.TurnCommitted(item),
            ev.TranscriptDone(item, words),
        ):
            self.model.incoming.put_nowait(event)
        await asyncio.sleep(0.05)


def tone(duration_ms: int) -> bytes:
    """A 400 Hz tone, PCM16 24 kHz."""
    samples = np.arange(duration_ms * 24)
    sine = 8_000 * np.sin(samples * (2 * np.pi * 400 / 24_000))
    return bytes(sine.astype("<i2").tobytes())


def converted(pcm24k: bytes) -> bytes:
    outbound = Outbound()
    return outbound.feed(pcm24k) + outbound.flush()


def in_frames(ulaw: bytes) -> bytes:
    return ulaw + ULAW_SILENCE * (-len(ulaw) % 160)
