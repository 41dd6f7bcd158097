"""Twilio's messages in, ours out."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivr.core.commands import SendClear, SendMark, SendMedia
from ivr.core.events import LineDigit, LineFrame, LineMark, LineStopped
from ivr.wire.twilio import MAX_MESSAGE_BYTES, Bad, BadReason, Connected, Encoder, StartInfo, decode

START: dict[str, Any] = {
    "event": "start",
    "sequenceNumber": "1",
    "streamSid": "MZ1",
    "start": {
        "accountSid": "AC1",
        "callSid": "CA1",
        "streamSid": "MZ1",
        "tracks": ["inbound"],
        "customParameters": {"token": "t"},
        "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
    },
}


def media(payload: str = "//8=", **body: object) -> str:
    fields = {"track": "inbound", "chunk": "1", "timestamp": "5", "payload": payload} | body
    return json.dumps({"event": "media", "sequenceNumber": "3", "streamSid": "MZ1", "media": fields})


def start(**body: object) -> str:
    return json.dumps(START | {"start": START["start"] | body})


def test_each_message_of_twilio() -> None:
    assert decode('{"event":"connected","protocol":"Call","version":"1.0.0"}') == Connected()
    assert decode(json.dumps(START)) == StartInfo("CA1", "AC1", "MZ1", {"token": "t"})
    assert decode(media()) == LineFrame(3, 1, 5, b"\xff\xff")
    digit = (
        '{"event":"dtmf","streamSid":"MZ1","sequenceNumber":"5","dtmf":{"track":"inbound_track","digit":"#"}}'
    )
    assert decode(digit) == LineDigit("#")
    mark = '{"event":"mark","sequenceNumber":"4","streamSid":"MZ1","mark":{"name":"r1.3"}}'
    assert decode(mark) == LineMark("r1.3")
    stop = (
        '{"event":"stop","sequenceNumber":"9","streamSid":"MZ1","stop":{"accountSid":"AC1","callSid":"CA1"}}'
    )
    assert decode(stop) == LineStopped()


def test_numbers_may_be_numbers_too() -> None:
    assert decode(media(chunk=7, timestamp=140)) == LineFrame(3, 7, 140, b"\xff\xff")


def test_sound_whose_counters_are_missing_is_sound_all_the_same() -> None:
    assert decode(media(chunk=None)) == LineFrame(3, 0, 5, b"\xff\xff")
    bare = '{"event":"media","streamSid":"MZ1","media":{"payload":"//8="}}'
    assert decode(bare) == LineFrame(0, 0, 0, b"\xff\xff")


@pytest.mark.parametrize("parameters", [{}, None])
def test_start_without_parameters(parameters: object) -> None:
    assert decode(start(customParameters=parameters)) == StartInfo("CA1", "AC1", "MZ1", {})


B010_BAD: list[str | bytes] = [
    "not json",
    "[]",
    "{}",
    '{"event":"media","sequenceNumber":"3","streamSid":"MZ1"}',
    media("!!!"),
    media("//8"),
    '{"event":"foo"}',
    b"\x00\x01",
]


def test_b010_every_malformed_message_is_bad_and_the_good_ones_around_it_are_untouched() -> None:
    good = [media(base64.b64encode(bytes([n]) * 160).decode(), chunk=str(n)) for n in range(1, 21)]
    messages: list[str | bytes] = [*good[:10], *B010_BAD, *good[10:]]
    decoded = [decode(message) for message in messages]
    frames = [event for event in decoded if isinstance(event, LineFrame)]
    assert [frame.ulaw for frame in frames] == [bytes([n]) * 160 for n in range(1, 21)]
    assert sum(isinstance(event, Bad) for event in decoded) == len(B010_BAD)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"{}", BadReason.BINARY),
        ("x" * (MAX_MESSAGE_BYTES + 1), BadReason.TOO_LARGE),
        (b"x" * (MAX_MESSAGE_BYTES + 1), BadReason.TOO_LARGE),
        ("", BadReason.MALFORMED),
        ("\ud800", BadReason.MALFORMED),
        ("[" * 60_000, BadReason.MALFORMED),
        ('{"event":"media","x":' + "[" * 60_000, BadReason.MALFORMED),
        (media(""), BadReason.MALFORMED),
        (media(timestamp="-1"), BadReason.MALFORMED),
        (media(timestamp="99999999999999999999"), BadReason.MALFORMED),
        (media(timestamp="1.5"), BadReason.MALFORMED),
        (media(chunk="first"), BadReason.MALFORMED),
        (media(track="outbound"), BadReason.TRACK),
        ('{"event":"dtmf","dtmf":{"digit":"12"}}', BadReason.MALFORMED),
        ('{"event":"mark","mark":{"name":""}}', BadReason.MALFORMED),
        ('{"event":7}', BadReason.MALFORMED),
        (start(mediaFormat={"encoding": "audio/l16", "sampleRate": 8000, "channels": 1}), BadReason.FORMAT),
        (
            start(mediaFormat={"encoding": "audio/x-mulaw", "sampleRate": 16000, "channels": 1}),
            BadReason.FORMAT,
        ),
        (start(callSid=""), BadReason.MALFORMED),
        (start(customParameters={"a": 1}), BadReason.MALFORMED),
    ],
)
def test_what_is_refused_and_why(message: str | bytes, reason: BadReason) -> None:
    assert decode(message) == Bad(reason)


@given(st.text() | st.binary())
def test_nothing_makes_the_decoder_raise(message: str | bytes) -> None:
    assert decode(message) is not None


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)))
def test_nor_does_a_strange_media_body(body: object) -> None:
    assert isinstance(decode(json.dumps({"event": "media", "sequenceNumber": "1", "media": body})), Bad)


@given(st.binary(min_size=1, max_size=400))
def test_media_out_is_what_media_in_would_read(ulaw: bytes) -> None:
    sent = json.loads(Encoder("MZ1").encode(SendMedia(ulaw)))
    assert sent == {
        "event": "media",
        "streamSid": "MZ1",
        "media": {"payload": base64.b64encode(ulaw).decode()},
    }


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.text(alphabet='"\\\n\x00aé😀'))
def test_mark_and_clear_are_json_whatever_the_names(sid: str, name: str) -> None:
    encoder = Encoder(sid)
    assert json.loads(encoder.encode(SendMark(name))) == {
        "event": "mark",
        "streamSid": sid,
        "mark": {"name": name},
    }
    assert json.loads(encoder.encode(SendClear())) == {"event": "clear", "streamSid": sid}
