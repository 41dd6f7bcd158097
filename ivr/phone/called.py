"""Who is called by a `<Dial>` and asked first: the TwiML of `<Number url>`, run on their own leg.

Pure. They hear it alone. It may connect them (it ends), or leave them (`<Hangup>`); a `<Gather>` takes the one key
that they press, if any.
"""

from collections import deque
from enum import Enum, auto
from urllib.parse import urljoin

from ivr.phone.board import Board, FetchCalled, Form
from ivr.phone.line import FRAME_MS
from ivr.phone.record import EventKind
from ivr.phone.twiml import Gather, Hangup, PauseVerb, Prompt, Redirect, SayVerb, Verb, parse_twiml


class Answered(Enum):
    """How the leg of who was called stands."""

    ASKED = auto()
    CONNECTED = auto()
    LEFT = auto()


class CalledLeg:
    """`form` is what every request of this leg carries; `key` what they press, "" for nothing."""

    def __init__(self, board: Board, form: Form, key: str) -> None:
        self._board = board
        self._form = form
        self._key = key
        self._url = ""
        self._serial = 0
        self._verbs: deque[Verb] = deque()
        self._wait_ms: int | None = None
        """For a key; None: for the service's answer."""
        self.state = Answered.ASKED

    def ask(self, url: str, form: Form = ()) -> None:
        """Fetch the document of this leg."""
        self._url, self._wait_ms = urljoin(self._url, url), None
        self._serial += 1
        self._board.emit(FetchCalled(self._serial, self._url, (*self._form, *form)))

    def arrived(self, serial: int, status: int, content_type: str, text: str) -> None:
        """The service's answer. Twilio connects the two where it fails."""
        if serial != self._serial or self.state is not Answered.ASKED:
            return
        document = parse_twiml(text, content_type) if status == 200 else None
        if document is None or document.verbs is None:
            self._board.violation(f"11200: the document for who was called failed: {status}")
            self.state = Answered.CONNECTED
            return
        for fault in document.faults:
            self._board.violation(fault)
        self._verbs = deque(document.verbs)
        self._advance()

    def tick(self) -> None:
        """20 ms go by."""
        if self._wait_ms is None or self.state is not Answered.ASKED:
            return
        self._wait_ms -= FRAME_MS
        if self._wait_ms <= 0:
            self._advance()

    def _advance(self) -> None:
        self._wait_ms = None
        match self._verbs.popleft() if self._verbs else None:
            case None:
                self.state = Answered.CONNECTED
            case Hangup():
                self.state = Answered.LEFT
            case Redirect(url):
                self.ask(url)
            case Gather() as gather:
                self._told(gather.prompts)
                if self._key and gather.takes_dtmf:
                    self.ask(gather.action, (("Digits", self._key),))
                else:
                    self._wait_ms = gather.timeout_s * 1_000
            case SayVerb() as said:
                self._told((said,))
                self._advance()
            case PauseVerb(length_s):
                self._wait_ms = length_s * 1_000
            case other:
                self._board.violation(f"13227: <{type(other).__name__}> on the leg of who was called")
                self._advance()

    def _told(self, prompts: tuple[Prompt, ...]) -> None:
        for prompt in prompts:
            if isinstance(prompt, SayVerb):
                self._board.tell(EventKind.WHISPERED, prompt.text)
