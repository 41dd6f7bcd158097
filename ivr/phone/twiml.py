"""TwiML as data: what a document tells the telephone company to do, and what is wrong with it.

Pure. Verbs that this network does not simulate, and attributes it cannot read, are faults and are skipped.
"""

import re
from dataclasses import dataclass, field
from xml.etree import ElementTree

MAX_PARAMETER_CHARS = 500
MAX_LINE_CHARS = 64
_CONTENT_TYPES = frozenset({"text/xml", "application/xml"})


@dataclass(frozen=True)
class SayVerb:
    text: str
    loop: int = 1


@dataclass(frozen=True)
class PlayVerb:
    url: str
    loop: int = 1


@dataclass(frozen=True)
class PauseVerb:
    length_s: int = 1


Prompt = SayVerb | PlayVerb | PauseVerb


@dataclass(frozen=True)
class ConnectStream:
    """`<Connect><Stream>`. `action` is the Connect's: where to go after the stream, else the next verb."""

    url: str
    parameters: tuple[tuple[str, str], ...] = ()
    name: str = ""
    status_callback: str = ""
    action: str = ""


@dataclass(frozen=True)
class Gather:
    prompts: tuple[Prompt, ...] = ()
    action: str = ""
    method: str = "POST"
    num_digits: int = 0
    timeout_s: int = 5
    finish_on_key: str = "#"
    takes_dtmf: bool = True
    takes_speech: bool = False
    action_on_empty: bool = False


@dataclass(frozen=True)
class Dial:
    targets: tuple[str, ...] = ()
    action: str = ""
    method: str = "POST"
    timeout_s: int = 30
    called_url: str = ""
    """Where the TwiML is that who answers hears before being connected; the first one's for all."""


@dataclass(frozen=True)
class Record:
    action: str = ""
    method: str = "POST"
    max_length_s: int = 3_600
    timeout_s: int = 5
    finish_on_key: str = "1234567890*#"
    status_callback: str = ""


@dataclass(frozen=True)
class Redirect:
    url: str
    method: str = "POST"


@dataclass(frozen=True)
class Hangup:
    pass


@dataclass(frozen=True)
class Reject:
    reason: str = "rejected"


@dataclass(frozen=True)
class Enqueue:
    """`<Enqueue>`: a line by its name, what is heard there, where to go after it (else to the next verb)."""

    line: str
    action: str = ""
    wait_url: str = ""


@dataclass(frozen=True)
class Leave:
    """`<Leave>`: out of the line."""


Verb = Prompt | ConnectStream | Gather | Dial | Record | Enqueue | Leave | Redirect | Hangup | Reject


@dataclass(frozen=True)
class Document:
    """`verbs` is None where there is nothing to run: the document is unreadable, and Twilio ends the call."""

    verbs: tuple[Verb, ...] | None
    faults: tuple[str, ...] = ()


def parse_twiml(text: str, content_type: str) -> Document:
    """Read a webhook's answer. Every deviation is a fault; what can be run is run all the same."""
    faults: list[str] = []
    if content_type.split(";")[0].strip().lower() not in _CONTENT_TYPES:
        faults.append(f"12300: content type {content_type!r}, not text/xml")
    if not text.startswith("<"):
        faults.append("12100: the document does not begin with '<'")
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        return Document(None, (*faults, "12100: a document type declaration"))
    try:
        root = ElementTree.fromstring(text.encode())  # noqa: S314  (no DTD: refused above)
    except ElementTree.ParseError as error:
        return Document(None, (*faults, f"12100: not well-formed: {error}"))
    if root.tag != "Response":
        return Document(None, (*faults, f"12100: the root is <{root.tag}>, not <Response>"))
    reader = _Reader(faults)
    verbs = tuple(verb for element in root if (verb := reader.verb(element)) is not None)
    return Document(verbs, tuple(faults))


@dataclass
class _Reader:
    """Turns elements into verbs, noting what does not fit."""

    faults: list[str] = field(default_factory=list)

    def verb(self, element: ElementTree.Element) -> Verb | None:
        read = self._VERBS.get(element.tag)
        if read is None:
            self.faults.append(f"12200: <{element.tag}> is not a verb this network knows")
            return None
        return read(self, element)

    def _prompt(self, element: ElementTree.Element) -> Prompt | None:
        verb = self.verb(element) if element.tag in {"Say", "Play", "Pause"} else None
        if isinstance(verb, SayVerb | PlayVerb | PauseVerb):
            return verb
        self.faults.append(f"12200: <{element.tag}> inside <Gather>")
        return None

    def _number(self, element: ElementTree.Element, name: str, default: int) -> int:
        value = element.get(name)
        if value is None or value == "auto":
            return default
        if not re.fullmatch(r"\d{1,6}", value):
            self.faults.append(f"12200: {name} of <{element.tag}> is not a whole number")
            return default
        return int(value)

    def _method(self, element: ElementTree.Element) -> str:
        method = element.get("method", "POST").upper()
        if method not in {"GET", "POST"}:
            self.faults.append(f"12200: method of <{element.tag}> is neither GET nor POST")
            return "POST"
        return method

    def _say(self, element: ElementTree.Element) -> Verb:
        return SayVerb(_text(element), self._number(element, "loop", 1))

    def _play(self, element: ElementTree.Element) -> Verb:
        return PlayVerb(_text(element), self._number(element, "loop", 1))

    def _pause(self, element: ElementTree.Element) -> Verb:
        return PauseVerb(self._number(element, "length", 1))

    def _connect(self, element: ElementTree.Element) -> Verb | None:
        streams = [child for child in element if child.tag == "Stream"]
        if len(streams) != 1 or len(element) != 1:
            self.faults.append("12200: <Connect> must hold exactly one <Stream>")
            return None
        stream = streams[0]
        parameters = tuple(
            (child.get("name", ""), child.get("value", "")) for child in stream if child.tag == "Parameter"
        )
        for name, value in parameters:
            if not name or len(name) + len(value) >= MAX_PARAMETER_CHARS:
                self.faults.append(
                    f"a <Parameter> without a name, or of {MAX_PARAMETER_CHARS} characters or more"
                )
        return ConnectStream(
            url=stream.get("url", ""),
            parameters=parameters,
            name=stream.get("name", ""),
            status_callback=stream.get("statusCallback", ""),
            action=element.get("action", ""),
        )

    def _gather(self, element: ElementTree.Element) -> Verb:
        prompts = tuple(prompt for child in element if (prompt := self._prompt(child)) is not None)
        inputs = element.get("input", "dtmf").split()
        return Gather(
            prompts=prompts,
            action=element.get("action", ""),
            method=self._method(element),
            num_digits=self._number(element, "numDigits", 0),
            timeout_s=self._number(element, "timeout", 5),
            finish_on_key=element.get("finishOnKey", "#"),
            takes_dtmf="dtmf" in inputs,
            takes_speech="speech" in inputs,
            action_on_empty=element.get("actionOnEmptyResult", "false").lower() == "true",
        )

    def _dial(self, element: ElementTree.Element) -> Verb | None:
        nouns = tuple(_text(child) for child in element if child.tag in {"Number", "Sip", "Client", "Queue"})
        targets = nouns or tuple(text for text in [_text(element)] if text)
        if not targets:
            self.faults.append("13201: <Dial> without anybody to call")
            return None
        timeout_s = self._number(element, "timeout", 30)
        asked = next((url for child in element if (url := child.get("url"))), "")
        return Dial(targets, element.get("action", ""), self._method(element), timeout_s, asked)

    def _record(self, element: ElementTree.Element) -> Verb:
        return Record(
            action=element.get("action", ""),
            method=self._method(element),
            max_length_s=self._number(element, "maxLength", 3_600),
            timeout_s=self._number(element, "timeout", 5),
            finish_on_key=element.get("finishOnKey", "1234567890*#"),
            status_callback=element.get("recordingStatusCallback", ""),
        )

    def _enqueue(self, element: ElementTree.Element) -> Verb | None:
        if not (line := _text(element)) or len(line) > MAX_LINE_CHARS:
            self.faults.append(
                f"<Enqueue> without the name of a line, or one over {MAX_LINE_CHARS} characters"
            )
            return None
        return Enqueue(line, element.get("action", ""), element.get("waitUrl", ""))

    def _leave(self, element: ElementTree.Element) -> Verb:
        return Leave()

    def _redirect(self, element: ElementTree.Element) -> Verb:
        return Redirect(_text(element), self._method(element))

    def _hangup(self, element: ElementTree.Element) -> Verb:
        return Hangup()

    def _reject(self, element: ElementTree.Element) -> Verb:
        return Reject(element.get("reason", "rejected"))

    _VERBS = {  # noqa: RUF012  (a table, never changed)
        "Say": _say,
        "Play": _play,
        "Pause": _pause,
        "Connect": _connect,
        "Gather": _gather,
        "Dial": _dial,
        "Record": _record,
        "Enqueue": _enqueue,
        "Leave": _leave,
        "Redirect": _redirect,
        "Hangup": _hangup,
        "Reject": _reject,
    }


def _text(element: ElementTree.Element) -> str:
    """The element's own text, outer blanks removed. Markup inside a Say (SSML) is read as its text."""
    return "".join(element.itertext()).strip()
