"""One simulated call: TwiML, stream, script and handset put together.

Pure: time is counted in frames, I/O is left as effects on the board, answers come in as method calls. The
driver is `ivr.phone.call`.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from urllib.parse import urljoin, urlsplit

from ivr.phone.board import Board, DialOutcome, FetchDocument, Form, Goto, LineOutcome, Next, Notify, Outcome
from ivr.phone.line import FRAME_MS, murmur
from ivr.phone.lines import Bridged, Stay
from ivr.phone.mouth import Mouthful
from ivr.phone.network import Network
from ivr.phone.record import CallEvent, CallRecord, EndReason, EventKind
from ivr.phone.script import BreakStream, CallScript, DropLine, Dtmf, HangUp, Say, ScriptRunner, Step
from ivr.phone.stream import StreamLeg
from ivr.phone.twiml import (
    ConnectStream,
    Dial,
    Enqueue,
    Gather,
    Hangup,
    Leave,
    PauseVerb,
    PlayVerb,
    Record,
    Redirect,
    Reject,
    SayVerb,
    Verb,
    parse_twiml,
)
from ivr.phone.verbs import Activity, Dialling, Fetching, Gathering, Prompting, Recording, Scene, Voice

MAX_DOCUMENTS_PER_SECOND = 10
"""More than this many documents within a second is a redirect loop."""


@dataclass(frozen=True)
class Caller:
    """Who calls. `number` goes into `From` as it is, `stir_verstat` likewise; `name` is the CallerName."""

    number: str
    stir_verstat: str = ""
    name: str = ""
    is_called: bool = False
    """They were called, by REST: `From` and `To` change places."""


@dataclass(frozen=True)
class CallSetup:
    """All a call needs to know beforehand. URLs are the public ones."""

    caller: Caller
    to: str
    voice_url: str
    status_url: str
    account_sid: str
    script: CallScript
    network: Network = field(default_factory=Network)
    dial: DialOutcome = field(default_factory=DialOutcome)
    voice: Voice = murmur
    recordings_url: str = "https://api.twilio.com/recordings"
    line: LineOutcome = field(default_factory=LineOutcome)


@dataclass(frozen=True)
class RestUpdate:
    """What the service asked for by REST: exactly one of the three is not empty."""

    status: str = ""
    twiml: str = ""
    url: str = ""
    method: str = "POST"


class CallMachine:
    """The call. Methods take what the world says; what to do is in `board.take_effects()` afterwards."""

    def __init__(self, setup: CallSetup, new_sid: Callable[[str], str]) -> None:
        self._setup = setup
        self._new_sid = new_sid
        self.board = Board(new_sid("CA"), setup.account_sid)
        self._script = ScriptRunner(setup.script)
        self._scene = Scene(
            setup.voice, setup.dial, setup.recordings_url, new_sid, self._common_form, self._resolve
        )
        self._url = setup.voice_url
        self._verbs: deque[Verb] = deque()
        self._stay: Stay | None = None
        self._activity: Activity = Fetching()
        self._fetch_serial = 0
        self._fetch_url = ""
        self._stream_serial = 0
        self._answered_ms: int | None = None
        self._utterance: CallEvent | None = None
        self._document_times_ms: deque[int] = deque(maxlen=MAX_DOCUMENTS_PER_SECOND)
        self._rejection = "no-answer"
        self.end: EndReason | None = None

    @property
    def status(self) -> str:
        """The call's status as Twilio names it."""
        if self.end is not None:
            return self._rejection if self.end is EndReason.REJECTED else "completed"
        return "ringing" if self._answered_ms is None else "in-progress"

    # -- the world's side ------------------------------------------------------------------------

    def dial(self) -> None:
        """Ask the service for its first document."""
        self._fetch(Goto(self._setup.voice_url))

    def tick(self) -> None:
        """20 ms go by."""
        if self.end is not None:
            return
        self.board.now_ms += FRAME_MS
        if self._answered_ms is not None and not self._act(self.board.now_ms - self._answered_ms):
            return
        board = self.board
        mouthful = board.mouth.frame()
        played = board.playback.advance()
        board.tape.add(mouthful.ulaw, played.ulaw)
        spurt = board.ear.hear(board.now_ms, played.ulaw, board.playback.has_voice)
        if spurt is not None:
            board.note(CallEvent(spurt.from_ms, EventKind.HEARD, until_ms=spurt.until_ms))
        if mouthful.digit:
            board.tell(EventKind.DTMF, mouthful.digit)
        self._follow_utterance(mouthful)
        if isinstance(self._activity, StreamLeg):
            self._activity.played(played.marks)
        if (stay := self._stay) is not None and stay.is_taken(board.now_ms):
            self._activity.cut(hang_up=False)
            self._activity = Bridged(stay.outcome.talk_ms, self._leave_line(stay, "bridged"))
        self._follow(self._activity.tick(mouthful))

    def document_arrived(self, serial: int, status: int, content_type: str, text: str) -> None:
        """The answer to a FetchDocument; status 0 where there was none (`text` says why)."""
        if serial != self._fetch_serial or not isinstance(self._activity, Fetching) or self.end is not None:
            return
        self._url = self._fetch_url
        if status != 200:
            self.board.violation(f"11200: the webhook failed: {status or text}")
            self._finish(EndReason.FAILED)
            return
        self._run(text, content_type)

    def called_arrived(self, serial: int, status: int, content_type: str, text: str) -> None:
        """The answer to a FetchCalled."""
        if isinstance(self._activity, Dialling) and self.end is None:
            self._activity.leg.arrived(serial, status, content_type, text)

    def webhook_answered(self, url: str, status: int) -> None:
        """Any request to the service was answered; status 0 where it was not."""
        self.board.tell(EventKind.WEBHOOK, urlsplit(url).path, status=status)

    def audio_arrived(self, serial: int, ulaw: bytes | None, fault: str) -> None:
        """The answer to a FetchAudio; None and why, where there is none."""
        if ulaw is None:
            self.board.violation(f"11200: the audio of a <Play> could not be had: {fault}")
        if isinstance(self._activity, Prompting | Gathering):
            self._activity.audio_arrived(serial, ulaw)

    def stream(self, serial: int) -> StreamLeg | None:
        """The stream that this serial names, if it is the present one."""
        activity = self._activity
        return activity if isinstance(activity, StreamLeg) and activity.serial == serial else None

    def update(self, update: RestUpdate) -> bool:
        """The service changes the call by REST; False if the call is over."""
        if self.end is not None:
            return False
        self.board.tell(EventKind.REST, update.status or update.url or "twiml")
        self._activity.cut(hang_up=False)
        if update.status:
            self._finish(EndReason.REST_COMPLETED)
        elif update.url:
            self._fetch(Goto(update.url, update.method))
        else:
            self._run(update.twiml, "text/xml")
        return True

    def record(self) -> CallRecord:
        """Everything so far. Raises RuntimeError while the call goes on."""
        if self.end is None:
            raise RuntimeError("the call is not over")
        board = self.board
        events = tuple(sorted(board.events, key=lambda event: event.at_ms))
        return CallRecord(
            call_sid=board.call_sid,
            end=self.end,
            events=events,
            violations=tuple(board.violations),
            said_ulaw=bytes(board.tape.said),
            heard_ulaw=bytes(board.tape.heard),
            max_queued_ms=board.playback.max_queued_ms,
        )

    # -- the caller ------------------------------------------------------------------------------

    def _act(self, since_answer_ms: int) -> bool:
        """Do the step that is due, if any; whether the call goes on."""
        step = self._script.next_step(since_answer_ms, self.board.ear.far, self.board.mouth.busy)
        if step is not None:
            self._do(step)
        return self.end is None

    def _do(self, step: Step) -> None:
        match step:
            case Say(ulaw, text):
                self.board.mouth.say(ulaw, text)
            case Dtmf(digits):
                self.board.mouth.press(digits)
            case HangUp():
                self._activity.cut(hang_up=True)
                self._finish(EndReason.CALLER_HUNG_UP)
            case DropLine():
                self._drop()
            case BreakStream():
                if isinstance(self._activity, StreamLeg):
                    self._activity.break_off()

    def _drop(self) -> None:
        if isinstance(self._activity, StreamLeg):
            self._activity.drop()
        self._close(EndReason.LINE_DROPPED)

    def _follow_utterance(self, mouthful: Mouthful) -> None:
        """Note what the caller says, from its first to its last voiced frame."""
        now_ms = self.board.now_ms
        if mouthful.voiced:
            from_ms = now_ms - FRAME_MS if self._utterance is None else self._utterance.at_ms
            self._utterance = CallEvent(from_ms, EventKind.SAID, mouthful.said, now_ms)
        if mouthful.ends:
            self._note_utterance()

    def _note_utterance(self) -> None:
        if self._utterance is not None:
            self.board.note(self._utterance)
            self._utterance = None

    # -- the telephone company -------------------------------------------------------------------

    def _follow(self, outcome: Outcome | None) -> None:
        match outcome:
            case Next():
                self._advance()
            case Goto():
                self._fetch(outcome)

    def _leave_line(self, stay: Stay, result: str) -> Outcome:
        """The stay is over; the verbs behind `<Enqueue>` are next, unless it named where to go."""
        self._stay, self._verbs = None, stay.rest
        self._url = stay.document_url
        return stay.ended(result, self.board.now_ms)

    def _fetch(self, goto: Goto) -> None:
        if self._stay is not None:
            goto = replace(goto, form=(*goto.form, *self._stay.form(self.board.now_ms)))
        self._fetch_serial += 1
        self._fetch_url = self._resolve(goto.url)
        self._activity = Fetching()
        form = (*self._common_form(), *goto.form)
        self.board.emit(FetchDocument(self._fetch_serial, self._fetch_url, goto.method, form))

    def _run(self, text: str, content_type: str) -> None:
        document = parse_twiml(text, content_type)
        for fault in document.faults:
            self.board.violation(fault)
        times = self._document_times_ms
        looping = len(times) == times.maxlen and self.board.now_ms - times[0] < 1_000
        times.append(self.board.now_ms)
        if looping:
            self.board.violation(f"more than {MAX_DOCUMENTS_PER_SECOND} documents within a second")
        if document.verbs is None or looping:
            self._finish(EndReason.FAILED)
            return
        self._verbs = deque(document.verbs)
        self._advance()

    def _advance(self) -> None:
        """Begin the next verb."""
        verb = self._verbs.popleft() if self._verbs else None
        if verb is not None:
            self.board.tell_verb(verb, " ".join(verb.targets) if isinstance(verb, Dial) else "")
        if isinstance(verb, Reject) and self._answered_ms is None:
            self._rejection = "busy" if verb.reason == "busy" else "no-answer"
            self._finish(EndReason.REJECTED)
            return
        if self._answered_ms is None:
            self._answered_ms = self.board.now_ms
            self.board.tell(EventKind.ANSWERED)
        match verb:
            case None if self._stay is not None:
                self._fetch(Goto(self._stay.verb.wait_url))
            case None:
                self._finish(EndReason.TWIML_ENDED)
            case Enqueue():
                sid, now_ms = self._new_sid("QU"), self.board.now_ms
                self._stay = Stay(verb, self._setup.line, self._verbs, sid, now_ms, self._url)
                self._fetch(Goto(verb.wait_url))
            case Leave() if self._stay is not None:
                self._follow(self._leave_line(self._stay, "leave"))
            case Leave():
                self._advance()
            case Hangup() | Reject():
                self._finish(EndReason.SERVICE_HUNG_UP)
            case Redirect(url, method):
                self._fetch(Goto(url, method))
            case _:
                self._activity = self._activity_for(verb)
                self._activity.begin()

    def _activity_for(
        self, verb: SayVerb | PlayVerb | PauseVerb | ConnectStream | Gather | Dial | Record
    ) -> Activity:
        match verb:
            case ConnectStream():
                self._stream_serial += 1
                return StreamLeg(
                    self.board,
                    verb,
                    self._setup.network,
                    serial=self._stream_serial,
                    stream_sid=self._new_sid("MZ"),
                    common_form=self._common_form,
                    resolve=self._resolve,
                )
            case Gather():
                return Gathering(self.board, self._scene, verb)
            case Dial():
                return Dialling(self.board, self._scene, verb)
            case Record():
                return Recording(self.board, self._scene, verb)
            case _:
                return Prompting(self.board, self._scene, (verb,))

    def _finish(self, reason: EndReason) -> None:
        """The call ends, and the service is told."""
        stay = self._stay
        left = self._leave_line(stay, "hangup") if stay is not None else None
        self._close(reason)
        if isinstance(left, Goto):
            self.board.emit(Notify(self._resolve(left.url), (*self._common_form(), *left.form)))
        duration_s = (
            0 if self._answered_ms is None else (self.board.now_ms - self._answered_ms + 999) // 1_000
        )
        form = (("CallDuration", str(duration_s)), ("SequenceNumber", "0"))
        if self._setup.status_url:
            self.board.emit(Notify(self._setup.status_url, (*self._common_form(), *form)))

    def _close(self, reason: EndReason) -> None:
        spurt = self.board.ear.finish()
        if spurt is not None:
            self.board.note(CallEvent(spurt.from_ms, EventKind.HEARD, until_ms=spurt.until_ms))
        self._note_utterance()
        self._verbs.clear()
        self.end = reason
        self.board.tell(EventKind.ENDED, reason)

    def _resolve(self, url: str) -> str:
        """A URL of a document, relative to that document's own ("" is itself, and so is what is no URL)."""
        try:
            resolved = urljoin(self._url, url)
            urlsplit(resolved).port  # noqa: B018  (raises for a port that cannot be)
        except ValueError:
            self.board.violation("11100: a URL that cannot be read")
            return self._url
        return resolved

    def _common_form(self) -> Form:
        """What every request carries. An empty value counts in the signature too; Twilio sends some."""
        caller = self._setup.caller
        from_, to = caller.number, self._setup.to
        if caller.is_called:
            from_, to = to, from_
        form: Form = (
            ("CallSid", self.board.call_sid),
            ("AccountSid", self._setup.account_sid),
            ("From", from_),
            ("To", to),
            ("Caller", from_),
            ("Called", to),
            ("CallStatus", self.status),
            ("Direction", "outbound-api" if caller.is_called else "inbound"),
            ("ApiVersion", "2010-04-01"),
            ("FromCity", ""),
            ("ToCity", ""),
        )
        if caller.stir_verstat:
            form = (*form, ("StirVerstat", caller.stir_verstat))
        return (*form, ("CallerName", caller.name)) if caller.name else form
