"""Media Streams messages as the telephone company writes and reads them (JSON text, numbers as strings).

The service has its own codec; this one is written apart, from the same documents: each checks the other.
"""

from dataclasses import dataclass

import msgspec

UNUSABLE_CODE = 31_924
"""Twilio's number for a message it cannot use."""


class Message(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="event"):
    """What the telephone company sends. `sequenceNumber` counts a connection's messages but `connected`."""


class Connected(Message, tag="connected", frozen=True):
    protocol: str = "Call"
    version: str = "1.0.0"


class MediaFormat(msgspec.Struct, frozen=True, rename="camel"):
    encoding: str = "audio/x-mulaw"
    sample_rate: int = 8_000
    channels: int = 1


class StartBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    account_sid: str
    stream_sid: str
    call_sid: str
    tracks: tuple[str, ...] = ("inbound",)
    media_format: MediaFormat = MediaFormat()
    custom_parameters: dict[str, str]


class Start(Message, tag="start", frozen=True):
    sequence_number: str
    stream_sid: str
    start: StartBody


class MediaBody(msgspec.Struct, frozen=True, kw_only=True):
    track: str = "inbound"
    chunk: str
    timestamp: str
    payload: bytes


class Media(Message, tag="media", frozen=True):
    sequence_number: str
    stream_sid: str
    media: MediaBody


class DtmfBody(msgspec.Struct, frozen=True, kw_only=True):
    track: str = "inbound_track"
    digit: str


class Dtmf(Message, tag="dtmf", frozen=True):
    sequence_number: str
    stream_sid: str
    dtmf: DtmfBody


class MarkBody(msgspec.Struct, frozen=True):
    name: str


class Mark(Message, tag="mark", frozen=True):
    sequence_number: str
    stream_sid: str
    mark: MarkBody


class StopBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    account_sid: str
    call_sid: str


class Stop(Message, tag="stop", frozen=True):
    sequence_number: str
    stream_sid: str
    stop: StopBody


def encode(message: Message) -> str:
    """The message's JSON text."""
    return msgspec.json.encode(message).decode()


class _Received(msgspec.Struct, frozen=True, rename="camel", tag_field="event"):
    stream_sid: str


class _Payload(msgspec.Struct, frozen=True):
    payload: bytes


class PlayAudio(_Received, tag="media", frozen=True):
    """µ-law to play; the payload's base64 is decoded."""

    media: _Payload


class SetMark(_Received, tag="mark", frozen=True):
    """A mark to echo when all audio before it has been played."""

    mark: MarkBody


class Clear(_Received, tag="clear", frozen=True):
    """Throw away what is queued."""


@dataclass(frozen=True)
class Unusable:
    """Why a message of the service was ignored; never its content."""

    reason: str
    code: int = UNUSABLE_CODE


_DECODER = msgspec.json.Decoder(PlayAudio | SetMark | Clear)


def decode(data: str | bytes, stream_sid: str) -> PlayAudio | SetMark | Clear | Unusable:
    """Read a message of the service. Binary messages, unknown types, bad base64, other streams: Unusable."""
    if isinstance(data, bytes):
        return Unusable("a binary message")
    try:
        message = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        return Unusable(f"a message that cannot be read: {error}")
    return message if message.stream_sid == stream_sid else Unusable("a message for another stream")
