import pytest
from twilio.request_validator import RequestValidator

from ivr.phone.machine import Caller
from ivr.phone.media_socket import MAX_UNSENT, MediaSocket, SocketEvents
from ivr.phone.playback import FarSide
from ivr.phone.run import CallPlan, Utterance
from ivr.phone.script import DropLine, Dtmf, HangUp, Say, ScriptRunner
from ivr.phone.service import Service

LOCAL = Service("http://127.0.0.1:8080", "t", public_url="https://ivr.example.com")


def test_the_webhooks_of_a_service() -> None:
    assert LOCAL.voice_url == "https://ivr.example.com/twilio/voice"
    assert LOCAL.status_url == "https://ivr.example.com/twilio/status"
    assert Service("http://127.0.0.1:8080/", "t").voice_url == "http://127.0.0.1:8080/twilio/voice"
    assert Service("https://h/other/voice", "t").voice_url == "https://h/other/voice"


@pytest.mark.parametrize(
    ("public", "actual"),
    [
        ("https://ivr.example.com/twilio/voice", "http://127.0.0.1:8080/twilio/voice"),
        ("https://ivr.example.com:443/a?b=c", "http://127.0.0.1:8080/a?b=c"),
        ("wss://ivr.example.com/twilio/media", "ws://127.0.0.1:8080/twilio/media"),
        ("https://other.example.com/beep.wav", "https://other.example.com/beep.wav"),
        ("http://ivr.example.com/a", "http://ivr.example.com/a"),
    ],
)
def test_public_addresses_are_reached_at_the_services_own(public: str, actual: str) -> None:
    assert LOCAL.reach(public) == actual


def test_b096_the_signature_is_over_the_address_and_the_form_with_empty_values() -> None:
    form = (("CallSid", "CA1"), ("FromCity", ""))
    validator = RequestValidator("t")

    assert validator.validate(LOCAL.voice_url, dict(form), LOCAL.sign(LOCAL.voice_url, form))
    assert validator.validate("wss://h/m", {}, LOCAL.sign("wss://h/m"))
    assert not validator.validate("https://h/m", {}, LOCAL.sign("wss://h/m"))


def test_a_service_that_does_not_read_loses_the_oldest() -> None:
    lost: list[None] = []
    events = SocketEvents(
        opened=lambda: None,
        refused=lambda _: None,
        received=lambda _: None,
        closed=lambda _: None,
        overflowed=lambda: lost.append(None),
    )
    socket = MediaSocket("ws://127.0.0.1:1", "s", events)
    for _ in range(MAX_UNSENT + 3):
        socket.send("x")

    assert len(lost) == 3


def test_what_ivr_call_asks_for_becomes_steps() -> None:
    caller, words = Caller("+15550100001"), (Utterance(b"\x00", "a"), Utterance(b"\x01", "b"))
    plain = CallPlan(caller, "+15550100002", words, digits="12").script()
    dropped = CallPlan(caller, "+15550100002", words, drop_after_s=1.5).script()

    assert [type(step) for step in plain.steps] == [Say, Say, Dtmf, HangUp]
    assert [type(step) for step in dropped.steps] == [Say, Say]
    assert ScriptRunner(dropped).next_step(1_500, FarSide(), False) == DropLine()
