"""Twilio Media Streams messages ↔ core events and commands. Pure; one call costs about two microseconds."""

from binascii import b2a_base64
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec

from ivr.core.commands import LineCommand, SendClear, SendMark, SendMedia
from ivr.core.events import LineDigit, LineFrame, LineMark, LineStopped

MAX_MESSAGE_BYTES = 64 * 1024
"""More than this in one message is refused unread; a real media message has some 400."""


class BadReason(StrEnum):
    """Why a message was not taken. A closed set: it labels a metric, and nothing of the message is in it."""

    TOO_LARGE = "too_large"
    BINARY = "binary"
    MALFORMED = "malformed"
    FORMAT = "format"
    TRACK = "track"
    ORDER = "order"


class Bad(msgspec.Struct, frozen=True):
    """A message that is counted and ignored."""

    reason: BadReason


class Connected(msgspec.Struct, frozen=True):
    """The first message of a connection."""


class StartInfo(msgspec.Struct, frozen=True):
    """What `start` says. `parameters` are the `<Parameter>`s of our TwiML, unchecked."""

    call_sid: str
    account_sid: str
    stream_sid: str
    parameters: dict[str, str]


_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class _Connected(msgspec.Struct, tag_field="event", tag="connected"):
    pass


class _MediaFormat(msgspec.Struct, rename="camel"):
    encoding: str
    sample_rate: int
    channels: int


class _StartBody(msgspec.Struct, rename="camel"):
    call_sid: _Name
    media_format: _MediaFormat
    account_sid: str = ""
    stream_sid: str = ""
    custom_parameters: dict[str, str] | None = None


class _Start(msgspec.Struct, tag_field="event", tag="start", rename="camel"):
    stream_sid: _Name
    start: _StartBody


class _MediaBody(msgspec.Struct):
    payload: Annotated[bytes, msgspec.Meta(min_length=1)]
    # Any of the three counters may be missing: the audio is good all the same, and `core.arrivals` takes 0 for none.
    chunk: _Count | None = 0
    timestamp: _Count | None = 0
    track: str = "inbound"


class _Media(msgspec.Struct, tag_field="event", tag="media", rename="camel"):
    media: _MediaBody
    sequence_number: _Count | None = 0


class _DigitBody(msgspec.Struct):
    digit: Literal["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "*", "#", "A", "B", "C", "D"]


class _Digit(msgspec.Struct, tag_field="event", tag="dtmf"):
    dtmf: _DigitBody


class _MarkBody(msgspec.Struct):
    name: _Name


class _Mark(msgspec.Struct, tag_field="event", tag="mark"):
    mark: _MarkBody


class _Stop(msgspec.Struct, tag_field="event", tag="stop"):
    pass


# strict=False: Twilio's numbers are strings.
_decoder = msgspec.json.Decoder(_Connected | _Start | _Media | _Digit | _Mark | _Stop, strict=False)

Message = Connected | StartInfo | LineFrame | LineDigit | LineMark | LineStopped | Bad


def decode(message: str | bytes) -> Message:
    """One message from Twilio. Never raises: what cannot be read is `Bad`."""
    if len(message) > MAX_MESSAGE_BYTES:
        return Bad(BadReason.TOO_LARGE)
    if not isinstance(message, str):
        return Bad(BadReason.BINARY)
    try:
        wire = _decoder.decode(message)
    except (ValueError, RecursionError):  # msgspec's errors and UnicodeEncodeError are ValueErrors
        return Bad(BadReason.MALFORMED)
    if type(wire) is _Media:
        body = wire.media
        if body.track != "inbound":
            return Bad(BadReason.TRACK)
        return LineFrame(wire.sequence_number or 0, body.chunk or 0, body.timestamp or 0, body.payload)
    return _rare(wire)


def _rare(wire: Any) -> Message:
    match wire:
        case _Mark():
            return LineMark(wire.mark.name)
        case _Digit():
            return LineDigit(wire.dtmf.digit)
        case _Stop():
            return LineStopped()
        case _Start():
            return _start(wire)
        case _:
            return Connected()


def _start(wire: _Start) -> StartInfo | Bad:
    body = wire.start
    if body.media_format != _MediaFormat("audio/x-mulaw", 8000, 1):
        return Bad(BadReason.FORMAT)
    return StartInfo(body.call_sid, body.account_sid, wire.stream_sid, body.custom_parameters or {})


class Encoder:
    """Commands → JSON for one stream."""

    def __init__(self, stream_sid: str) -> None:
        sid = msgspec.json.encode(stream_sid).decode()
        self._media = f'{{"event":"media","streamSid":{sid},"media":{{"payload":"'.encode()
        self._mark = f'{{"event":"mark","streamSid":{sid},"mark":{{"name":'.encode()
        self._clear = f'{{"event":"clear","streamSid":{sid}}}'.encode()

    def encode(self, command: LineCommand) -> bytes:
        """The message for one command, in UTF-8."""
        match command:
            case SendMedia(ulaw):
                return self._media + b2a_base64(ulaw, newline=False) + b'"}}'
            case SendMark(name):
                return self._mark + msgspec.json.encode(name) + b"}}"
            case SendClear():
                return self._clear
