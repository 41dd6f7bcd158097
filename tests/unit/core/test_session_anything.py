"""Whatever happens, in whatever order: no exception, no busy loop, no number twice, and one end."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from callflows import engine
from callflows.model import Business
from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.session import CallCore
from ivr.core.setup import CallSetup
from memory.model import Window
from tests.unit.core.flows import bank
from tests.unit.core.harness import clinic

START_MS = 1_000.0
STEPS_MS = (0.0, 1.0, 19.0, 20.0, 200.0, 500.0, 1_500.0, 3_000.0, 8_000.0, 60_000.0)
LATEST = "latest"
"""Stands for the id of the reply asked for last; only the run knows it."""

items = st.sampled_from(["u1", "u2", "u3", "u4"])
replies = st.sampled_from([LATEST, LATEST, LATEST, "r1-1", "r1-2", "nonsense"])
texts = st.sampled_from(["", " ", "yes", "When do you open?", "opening hours", "account", "one two", "help"])
milliseconds = st.integers(-100, 20_000)
calls = st.sampled_from(
    [
        ("hang_up", "{}"),
        ("transfer", '{"target": "desk"}'),
        ("leave_booking", "{}"),
        ("leave_done", "{}"),
        ("leave_back", "{}"),
        ("defer_response", "{}"),
        ("set_response_speed", '{"speed": 1.1}'),
        ("set_vad_silence_duration", '{"silence_ms": 300}'),
        ("set_response_instruction", '{"text": "x"}'),
        ("start_afresh", "{}"),
        ("unknown", "not json"),
    ]
)
audio = st.sampled_from([b"", b"\x01" * 7, b"\x02" * 160, b"\x03" * 4_000, b"\x04" * 40_000])

line_events = st.one_of(
    st.builds(ev.LineFrame, milliseconds, milliseconds, milliseconds, audio),
    st.builds(ev.LineDigit, st.sampled_from("0123456789*#")),
    st.builds(ev.LineMark, st.sampled_from(["0.1", "0.2", "1.1", LATEST, ""])),
)
caller_events = st.one_of(
    st.builds(ev.SpeechStarted, items, milliseconds),
    st.builds(ev.SpeechStopped, items, milliseconds),
    st.builds(ev.TurnCommitted, items),
    st.builds(ev.TranscriptDelta, items, texts),
    st.builds(ev.TranscriptDone, items, texts),
    st.builds(ev.TranscriptFailed, items, st.just("x")),
)
reply_events = st.one_of(
    st.builds(ev.ReplyAudio, replies, audio),
    st.builds(ev.ReplyText, replies, texts),
    st.builds(
        lambda reply, call, call_id: ev.ReplyCall(reply, call_id, *call),
        replies,
        calls,
        st.sampled_from(["c1", "c2"]),
    ),
    st.builds(ev.ReplyDone, replies, st.sampled_from(ev.ReplyStatus)),
)
other_events = st.one_of(
    st.just(ev.ModelReady("s")),
    st.builds(ev.ModelLost, st.just("gone"), st.sampled_from([False] * 9 + [True])),
    st.just(ev.ModelFault("x", "y")),
    st.builds(ev.Recalled, st.integers(0, 6), st.just(Window())),
    st.just(ev.Tick()),
)
steps = st.tuples(
    st.sampled_from(STEPS_MS), st.one_of(line_events, caller_events, reply_events, reply_events, other_events)
)
# What a well-behaved provider sends, broken off anywhere and mixed with anything above: so that runs get far.
Scene = list[tuple[float, ev.Event]]
fresh_items = st.sampled_from([f"t{no}" for no in range(30)])


def _turn(item: str, text: str) -> Scene:
    return [
        (20.0, ev.SpeechStarted(item, 0)),
        (500.0, ev.SpeechStopped(item, 900)),
        (0.0, ev.TurnCommitted(item)),
        (200.0, ev.TranscriptDone(item, text)),
        (1_500.0, ev.Tick()),
    ]


def _answer(ulaw: bytes, call: tuple[str, str] | None, status: ev.ReplyStatus) -> Scene:
    asked = [(0.0, ev.ReplyCall(LATEST, "c1", *call))] if call else []
    return [(20.0, ev.ReplyAudio(LATEST, ulaw)), *asked, (20.0, ev.ReplyDone(LATEST, status))]


def _loss() -> Scene:
    return [(100.0, ev.ModelLost("gone")), (400.0, ev.ModelReady("s"))]


statuses = st.sampled_from([*[ev.ReplyStatus.COMPLETED] * 4, ev.ReplyStatus.FAILED])
turns = st.builds(_turn, fresh_items, texts)
spoken = st.builds(_answer, audio, st.none() | calls, statuses)
called = st.builds(_answer, st.just(b""), calls, statuses)
exchanges = st.builds(lambda turn, answer: turn + answer, turns, spoken | called)
scenes = st.one_of(turns, spoken, called, exchanges, exchanges, st.builds(_loss))
broken_off = st.builds(lambda scene, length: scene[:length], scenes, st.integers(1, 8))
stories = st.lists(st.one_of(steps.map(lambda step: [step]), scenes, broken_off), max_size=40)


class Run:
    """One core, fed with anything; marks come back at once, in order, unless the story says otherwise."""

    make: type[CallCore] = CallCore

    def __init__(self, business: Business | None = None) -> None:
        business = business or clinic()
        self.now_ms = START_MS
        first = engine.begin(business, engine.Moment())
        setup = CallSetup("CA1", business, first.state, business.greeting, first=first.actions, resumed=True)
        self.limit_minutes = business.limits.max_call_minutes
        self.core = self.make(setup, self.now_ms)
        self.commands: list[do.Command] = []
        self.latest = "none"
        self.under_way = ""
        self.marks: list[str] = []

    def happen(self, event: ev.Event) -> None:
        if isinstance(event, ev.ModelLost) or (
            isinstance(event, ev.ReplyDone) and event.reply_id == self.under_way
        ):
            self.under_way = ""
        commands = self.core.receive(event, self.now_ms)
        self.commands += commands
        for command in commands:
            self.note(command)

    def note(self, command: do.Command) -> None:
        """At most one reply is under way: the one before is done, was cancelled, or went with its session."""
        match command:
            case do.StartReply(reply_id) | do.PlayFile(reply_id):
                assert self.under_way == ""
                self.latest = self.under_way = reply_id
            case do.CancelReply(reply_id):
                assert reply_id == self.under_way
                self.under_way = ""
            case do.SendMark(name):
                self.marks.append(name)

    def step(self, wait_ms: float, event: ev.Event) -> None:
        self.wait(wait_ms)
        if getattr(event, "reply_id", "") == LATEST:
            event = _with_reply(event, self.latest)
        if event == ev.LineMark(LATEST):
            event = ev.LineMark(self.marks.pop(0) if self.marks else "none")
        self.happen(event)

    def wait(self, duration_ms: float) -> None:
        """Let time pass, with a tick whenever the core asked for one."""
        end_ms, same = self.now_ms + duration_ms, 0
        while (due_ms := self.core.next_deadline(self.now_ms)) is not None and due_ms <= end_ms:
            same = same + 1 if due_ms <= self.now_ms else 0
            assert same < 20, "a tick at the deadline must move the deadline on"
            self.now_ms = max(self.now_ms, due_ms)
            self.happen(ev.Tick())
        self.now_ms = end_ms

    def of(self, *kinds: type) -> list[do.Command]:
        return [command for command in self.commands if isinstance(command, kinds)]


def _with_reply(event: ev.Event, reply_id: str) -> ev.Event:
    makers: dict[type, Callable[..., ev.Event]] = {
        ev.ReplyAudio: lambda e: ev.ReplyAudio(reply_id, e.ulaw),
        ev.ReplyText: lambda e: ev.ReplyText(reply_id, e.delta),
        ev.ReplyCall: lambda e: ev.ReplyCall(reply_id, e.call_id, e.name, e.arguments),
        ev.ReplyDone: lambda e: ev.ReplyDone(reply_id, e.status),
    }
    return makers[type(event)](event)


def exchange_numbers(run: Run) -> list[int]:
    return [c.exchange.exchange_no for c in run.commands if isinstance(c, do.CommitExchange)]


@given(stories, st.booleans(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_anything_may_happen(story: list[Scene], is_ready: bool, has_menus: bool) -> None:
    run = Run(bank() if has_menus else None)
    if is_ready:
        run.step(300, ev.ModelReady("s"))
    for scene in story:
        for wait_ms, event in scene:
            run.step(wait_ms, event)
    run.happen(ev.LineStopped())
    run.wait(1_500)
    ends = run.of(do.EndCall, do.LeaveCall)
    assert len(ends) == 1
    assert run.commands[-1] is ends[0]
    assert run.core.next_deadline(run.now_ms) is None
    numbers = exchange_numbers(run)
    assert len(numbers) == len(set(numbers))
    assert len({c.reply_id for c in run.commands if isinstance(c, do.StartReply)}) == len(
        run.of(do.StartReply)
    )
    assert all(len(c.ulaw) % 160 == 0 for c in run.commands if isinstance(c, do.SendMedia))


class WithoutShortWay(CallCore):
    """Every frame and every tick goes all the way."""

    def receive(self, event: ev.Event, now_ms: float) -> list[do.Command]:
        self._only_hears = False
        return super().receive(event, now_ms)

    def _is_only_sending(self, now_ms: float) -> bool:
        return False


class LongWay(Run):
    make = WithoutShortWay


@given(stories, st.booleans())
@settings(max_examples=100, deadline=None)
def test_the_short_ways_change_nothing(story: list[Scene], has_menus: bool) -> None:
    runs = [kind(bank() if has_menus else None) for kind in (Run, LongWay)]
    for run in runs:
        run.step(300, ev.ModelReady("s"))
        for scene in story:
            for wait_ms, event in scene:
                run.step(wait_ms, event)
        run.wait(5_000)
    assert runs[0].commands == runs[1].commands


@given(stories, st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_call_left_alone_comes_to_an_end(story: list[Scene], has_menus: bool) -> None:
    """No state holds for ever: with the caller silent and the model dumb, the call's limits end it."""
    run = Run(bank() if has_menus else None)
    run.step(300, ev.ModelReady("s"))
    for scene in story:
        for wait_ms, event in scene:
            run.step(wait_ms, event)
    run.wait((run.limit_minutes + 3) * 60_000)
    assert run.core.is_over
    assert len(run.of(do.EndCall)) == 1


class Paired(Run):
    """Watches that no turn is answered twice over, and that what is asked for comes to an end."""

    def __init__(self) -> None:
        super().__init__()
        self.answered: dict[str, int] = {}

    def note(self, command: do.Command) -> None:
        super().note(command)
        if isinstance(command, do.CommitExchange) and command.exchange.user_item_id:
            item = command.exchange.user_item_id
            self.answered[item] = self.answered.get(item, 0) + 1


def _settle(run: Run) -> None:
    """The caller is silent, the model answers whatever it is asked, the line plays what it is sent."""
    for _ in range(12):
        run.step(300, ev.ModelReady("s"))
        for event in (
            ev.ReplyAudio(LATEST, b"\x05" * 800),
            ev.ReplyDone(LATEST, ev.ReplyStatus.COMPLETED),
        ):
            run.step(20, event)
        for _ in range(40):
            run.step(20, ev.LineMark(LATEST))


@given(stories)
@settings(max_examples=100, deadline=None)
def test_no_turn_is_answered_twice_and_silence_leads_to_rest_or_to_a_deadline(story: list[Scene]) -> None:
    run = Paired()
    run.step(300, ev.ModelReady("s"))
    for scene in story:
        for wait_ms, event in scene:
            run.step(wait_ms, event)
    _settle(run)
    assert all(count == 1 for count in run.answered.values())
    turns = run.core._dialogue.turns
    assert run.core.is_over or turns.is_resting() or run.core.next_deadline(run.now_ms) is not None


@given(turns, st.lists(st.sampled_from([0.0, 100.0, 400.0, 900.0]), max_size=6))
@settings(max_examples=100, deadline=None)
def test_a_turn_with_words_is_answered_once_however_often_it_goes_on(
    turn: Scene, pauses_ms: list[float]
) -> None:
    """Never two replies to one turn, and never a reply lost: the last thing said has exactly one answer."""
    run = Run()
    run.step(300, ev.ModelReady("s"))
    _settle(run)
    for no, pause_ms in enumerate(pauses_ms):
        for wait_ms, event in _turn(f"p{no}", "and")[:-1]:
            run.step(wait_ms, event)
        run.wait(pause_ms)
    for wait_ms, event in _turn("last", "When do you open?"):
        run.step(wait_ms, event)
    for _ in range(6):
        run.step(300, ev.Recalled(_turn_no(run), Window()))
    _settle(run)
    run.happen(ev.LineStopped())
    run.wait(1_500)
    texts = [c.exchange.user_text for c in run.commands if isinstance(c, do.CommitExchange)]
    assert sum("When do you open?" in text for text in texts) == 1
    (last,) = [c.exchange for c in run.commands if isinstance(c, do.CommitExchange)][-1:]
    assert last.reply_ulaw


def _turn_no(run: Run) -> int:
    recalls = [c.turn_no for c in run.commands if isinstance(c, do.Recall)]
    return recalls[-1] if recalls else 0
