"""The verbs that take time, but for the stream: each is told of every 20 ms frame and says when it is done.

Pure.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ivr.phone.board import Board, DialOutcome, FetchAudio, Form, Goto, Next, Notify, Outcome
from ivr.phone.called import Answered, CalledLeg
from ivr.phone.line import FRAME_MS, silence_ulaw
from ivr.phone.mouth import Mouthful
from ivr.phone.record import EventKind
from ivr.phone.twiml import Dial, Gather, PauseVerb, PlayVerb, Prompt, Record, SayVerb

Voice = Callable[[str], bytes]
"""Words to µ-law 8 kHz: how the network says a `<Say>`."""

MAX_LOOPS = 5
"""`loop="0"` means for ever; this is enough of it."""


class Activity(Protocol):
    """A verb under way."""

    def begin(self) -> None:
        """Called once, before the first frame."""

    def tick(self, mouthful: Mouthful) -> Outcome | None:
        """One frame has gone by; an outcome when the verb is done."""

    def cut(self, *, hang_up: bool) -> None:
        """The call is over (`hang_up`: the caller did it) or has been given other TwiML."""


@dataclass(frozen=True)
class Scene:
    """What the network's own part in a call needs: its voice, how dials end, where recordings are to be had,
    how ids are made."""

    voice: Voice
    dial: DialOutcome
    recordings_url: str
    new_sid: Callable[[str], str]
    common_form: Callable[[], Form]
    resolve: Callable[[str], str]


class Prompting:
    """Say, Play, Pause: one after the other into the playback queue."""

    def __init__(self, board: Board, scene: Scene, prompts: tuple[Prompt, ...]) -> None:
        self._board = board
        self._scene = scene
        self._prompts = deque(_unrolled(prompts))
        self._awaited: int | None = None
        self._serial = 0

    def begin(self) -> None:
        self._load()

    def tick(self, mouthful: Mouthful) -> Outcome | None:
        if self._awaited is not None or self._board.playback.queued_ms > 0:
            return None
        if self._prompts:
            self._load()
            return None
        return Next()

    def cut(self, *, hang_up: bool) -> None:
        self._prompts.clear()
        self._awaited = None
        self._board.playback.clear()

    def audio_arrived(self, serial: int, ulaw: bytes | None) -> None:
        """The file of a Play: None where it could not be had, which is noted by whoever fetched it."""
        if serial == self._awaited:
            self._awaited = None
            self._board.playback.push(ulaw or b"")

    def _load(self) -> None:
        while self._prompts and self._awaited is None:
            self._load_one(self._prompts.popleft())

    def _load_one(self, prompt: Prompt) -> None:
        match prompt:
            case SayVerb(text):
                self._board.tell(EventKind.PROMPT, text)
                self._board.playback.push(self._scene.voice(text))
            case PauseVerb(length_s):
                self._board.playback.push(silence_ulaw(length_s * 1_000))
            case PlayVerb(url):
                self._serial += 1
                self._awaited = self._serial
                self._board.emit(FetchAudio(self._serial, self._scene.resolve(url)))


def _unrolled(prompts: tuple[Prompt, ...]) -> list[Prompt]:
    unrolled: list[Prompt] = []
    for prompt in prompts:
        times = 1 if isinstance(prompt, PauseVerb) else min(prompt.loop or MAX_LOOPS, MAX_LOOPS)
        unrolled += [prompt] * times
    return unrolled


class Gathering:
    """Keys, or words as the script has them (nothing is recognised: the caller's text is taken as heard)."""

    def __init__(self, board: Board, scene: Scene, verb: Gather) -> None:
        self._verb = verb
        self._prompting = Prompting(board, scene, verb.prompts)
        self._prompts_done = False
        self._digits = ""
        self._quiet_ms = 0

    def begin(self) -> None:
        self._prompting.begin()

    def tick(self, mouthful: Mouthful) -> Outcome | None:
        if not self._prompts_done and self._prompting.tick(mouthful) is not None:
            self._prompts_done = True
        if mouthful.digit and self._verb.takes_dtmf:
            return self._pressed(mouthful.digit)
        if mouthful.ends and mouthful.said and self._verb.takes_speech:
            return self._goto((("SpeechResult", mouthful.said), ("Confidence", "0.9")))
        if not self._prompts_done or (mouthful.voiced and self._verb.takes_speech):
            return None
        self._quiet_ms += FRAME_MS
        return self._timed_out() if self._quiet_ms >= self._verb.timeout_s * 1_000 else None

    def cut(self, *, hang_up: bool) -> None:
        self._prompting.cut(hang_up=hang_up)

    def audio_arrived(self, serial: int, ulaw: bytes | None) -> None:
        self._prompting.audio_arrived(serial, ulaw)

    def _pressed(self, digit: str) -> Outcome | None:
        self._prompting.cut(hang_up=False)
        self._prompts_done = True
        self._quiet_ms = 0
        if digit == self._verb.finish_on_key:
            return self._timed_out()
        self._digits += digit
        if self._verb.num_digits and len(self._digits) >= self._verb.num_digits:
            return self._goto((("Digits", self._digits),))
        return None

    def _timed_out(self) -> Outcome:
        if self._digits or self._verb.action_on_empty:
            return self._goto((("Digits", self._digits),))
        return Next()

    def _goto(self, form: Form) -> Goto:
        self._prompting.cut(hang_up=False)
        return Goto(self._verb.action, self._verb.method, form)


class Dialling:
    """Somebody else is rung, asked first where the service wants that, and talks or not, as the scene has it.

    Of several who are rung at once the first who answers is called.
    """

    def __init__(self, board: Board, scene: Scene, verb: Dial) -> None:
        self._verb = verb
        self._scene = scene
        answers = [each for each in verb.targets if scene.dial.of(each).status == "completed"]
        number = next(iter(answers), verb.targets[0])
        self._dial = scene.dial.of(number)
        self._sid = scene.new_sid("CA")
        self._answered = bool(answers)
        ring_ms = min(self._dial.ring_ms, verb.timeout_s * 1_000)
        self._ring_ms, self._talk_ms = ring_ms, self._dial.talk_ms if self._answered else 0
        form = {**dict(scene.common_form()), "CallSid": self._sid, "To": number, "Called": number}
        self.leg = CalledLeg(board, tuple(form.items()), self._dial.key)

    def begin(self) -> None:
        """Ringing is not played."""

    def tick(self, mouthful: Mouthful) -> Outcome | None:
        if self._ring_ms > 0:
            self._ring_ms -= FRAME_MS
            return self._rung() if self._ring_ms <= 0 else None
        self.leg.tick()
        if self._is_asked() and self.leg.state is Answered.ASKED:
            return None
        if self._is_asked() and self.leg.state is Answered.LEFT:
            self._talk_ms = 0
        self._talk_ms -= FRAME_MS
        return None if self._talk_ms > 0 else self._over()

    def _rung(self) -> Outcome | None:
        if not self._answered:
            return self._over()
        if self._is_asked():
            self.leg.ask(self._scene.resolve(self._verb.called_url))
        return None

    def _is_asked(self) -> bool:
        return self._answered and bool(self._verb.called_url)

    def _over(self) -> Outcome:
        if not self._verb.action:
            return Next()
        form: Form = (("DialCallStatus", self._dial.status), ("DialCallSid", self._sid))
        if self._answered:
            is_bridged = not self._is_asked() or self.leg.state is Answered.CONNECTED
            talk_s = self._dial.talk_ms // 1_000 if is_bridged else 0
            form = (*form, ("DialCallDuration", str(talk_s)), ("DialBridged", str(is_bridged).lower()))
        return Goto(self._verb.action, self._verb.method, form)

    def cut(self, *, hang_up: bool) -> None:
        """The other leg ends with the call."""


class Recording:
    """Voicemail: the caller's side until silence, a key, the length's end, or the hang-up."""

    def __init__(self, board: Board, scene: Scene, verb: Record) -> None:
        self._board = board
        self._scene = scene
        self._verb = verb
        self._length_ms = 0
        self._quiet_ms = 0
        self._voiced = False

    def begin(self) -> None:
        """The beep is not played."""

    def tick(self, mouthful: Mouthful) -> Outcome | None:
        self._length_ms += FRAME_MS
        self._voiced = self._voiced or mouthful.voiced
        self._quiet_ms = 0 if mouthful.voiced else self._quiet_ms + FRAME_MS
        if mouthful.digit and mouthful.digit in self._verb.finish_on_key:
            return self._finish(mouthful.digit)
        full = self._length_ms >= self._verb.max_length_s * 1_000
        return self._finish("") if full or self._quiet_ms >= self._verb.timeout_s * 1_000 else None

    def cut(self, *, hang_up: bool) -> None:
        """Who hangs up has left a message all the same: the action is told; its answer does not run."""
        outcome = self._finish("hangup") if hang_up else None
        if isinstance(outcome, Goto):
            form = (*self._scene.common_form(), *outcome.form)
            self._board.emit(Notify(self._scene.resolve(outcome.url), form))

    def _finish(self, digits: str) -> Outcome:
        if not self._voiced:
            return Next()  # an empty recording is thrown away, and the action not asked
        sid = self._scene.new_sid("RE")
        form: Form = (
            ("RecordingSid", sid),
            ("RecordingUrl", f"{self._scene.recordings_url}/{sid}"),
            ("RecordingDuration", str(self._length_ms // 1_000)),
        )
        if self._verb.status_callback:
            url = self._scene.resolve(self._verb.status_callback)
            self._board.emit(
                Notify(url, (*self._scene.common_form(), *form, ("RecordingStatus", "completed")))
            )
        return Goto(self._verb.action, self._verb.method, (*form, ("Digits", digits)))


class Fetching:
    """The service is being asked; the line is silent."""

    def begin(self) -> None:
        """The request is already on its way."""

    def tick(self, mouthful: Mouthful) -> Outcome | None:
        return None

    def cut(self, *, hang_up: bool) -> None:
        """The answer will be stale."""
