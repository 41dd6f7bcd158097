import json

import pytest

from ivr.phone import messages
from ivr.phone.messages import Clear, PlayAudio, SetMark, Unusable, decode


def test_what_is_sent_is_shaped_as_twilio_shapes_it() -> None:
    body = messages.MediaBody(chunk="1", timestamp="135", payload=b"\xff\xff\xff")
    media = messages.Media(sequence_number="2", stream_sid="MZ1", media=body)
    start = messages.Start(
        sequence_number="1",
        stream_sid="MZ1",
        start=messages.StartBody(
            account_sid="AC1", stream_sid="MZ1", call_sid="CA1", custom_parameters={"token": "é"}
        ),
    )

    assert json.loads(messages.encode(messages.Connected())) == {
        "event": "connected",
        "protocol": "Call",
        "version": "1.0.0",
    }
    assert json.loads(messages.encode(media)) == {
        "event": "media",
        "sequenceNumber": "2",
        "streamSid": "MZ1",
        "media": {"track": "inbound", "chunk": "1", "timestamp": "135", "payload": "////"},
    }
    assert json.loads(messages.encode(start)) == {
        "event": "start",
        "sequenceNumber": "1",
        "streamSid": "MZ1",
        "start": {
            "accountSid": "AC1",
            "streamSid": "MZ1",
            "callSid": "CA1",
            "tracks": ["inbound"],
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
            "customParameters": {"token": "é"},
        },
    }


def test_what_the_service_may_send_is_read() -> None:
    play = decode('{"event":"media","streamSid":"MZ1","media":{"payload":"/w=="},"more":1}', "MZ1")
    mark = decode('{"event":"mark","streamSid":"MZ1","mark":{"name":"a"}}', "MZ1")
    clear = decode('{"event":"clear","streamSid":"MZ1"}', "MZ1")

    assert isinstance(play, PlayAudio)
    assert play.media.payload == b"\xff"
    assert isinstance(mark, SetMark)
    assert mark.mark.name == "a"
    assert isinstance(clear, Clear)


@pytest.mark.parametrize(
    "data",
    [
        "not json",
        "[]",
        "{}",
        b'{"event":"clear","streamSid":"MZ1"}',
        '{"event":"foo","streamSid":"MZ1"}',
        '{"event":"media","streamSid":"MZ1"}',
        '{"event":"media","streamSid":"MZ1","media":{"payload":"!!!"}}',
        '{"event":"media","streamSid":"MZ1","media":{"payload":"//8"}}',
        '{"event":"media","streamSid":null,"media":{"payload":"/w=="}}',
        '{"event":"clear","streamSid":"MZ2"}',
        '{"event":"mark","streamSid":"MZ1","mark":{}}',
        '{"event":"clear","streamSid":"\ud800"}',
    ],
)
def test_anything_else_is_unusable_and_not_an_exception(data: str | bytes) -> None:
    assert isinstance(decode(data, "MZ1"), Unusable)
