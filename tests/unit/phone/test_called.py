"""Who is called by a `<Dial>` and asked first: hears it alone, and takes the call by a key or is left."""

import pytest

from ivr.phone.board import DialOutcome
from ivr.phone.record import EventKind
from tests.unit.phone.harness import HANGUP, Bench

DIAL = '<Response><Dial action="/next"><Number url="/whisper?call=1">+15550100009</Number></Dial></Response>'
ASK = '<Response><Gather numDigits="1" timeout="3" action="/accept"><Say>Take it?</Say></Gather><Hangup/></Response>'
CONNECT = "<Response/>"


def dialled(key: str, accept: str = CONNECT, whisper: str = ASK) -> Bench:
    dial = DialOutcome(ring_ms=400, talk_ms=2_000, key=key)
    documents = {"/twilio/voice": [DIAL], "/whisper": [whisper], "/accept": [accept], "/next": [HANGUP]}
    bench = Bench(documents, changes={"dial": dial})
    bench.run(20_000)
    return bench


@pytest.mark.parametrize(
    ("key", "accept", "bridged", "over_at_ms"),
    [("1", CONNECT, "true", 2_400), ("2", HANGUP, "false", 420), ("", CONNECT, "false", 3_400)],
)
def test_the_key_decides_what_becomes_of_the_dial(
    key: str, accept: str, bridged: str, over_at_ms: int
) -> None:
    bench = dialled(key, accept)
    form = bench.fetched[-1][1]
    assert (form["DialCallStatus"], form["DialBridged"]) == ("completed", bridged)
    assert abs(bench.now_ms - over_at_ms) <= 20
    assert [event.text for event in bench.record().of(EventKind.WHISPERED)] == ["Take it?"]
    assert bench.record().violations == ()


def test_requests_of_this_leg_are_its_own() -> None:
    bench = dialled("1")
    (_, voice), (whisper_url, whisper), (accept_url, accept), (_, after) = bench.fetched
    assert (whisper_url, accept_url) == (
        "https://ivr.example.com/whisper?call=1",
        "https://ivr.example.com/accept",
    )
    assert whisper["CallSid"] == accept["CallSid"] == after["DialCallSid"] != voice["CallSid"]
    assert (whisper["To"], accept["Digits"]) == ("+15550100009", "1")


def test_where_the_document_fails_they_are_connected() -> None:
    bench = dialled("", whisper="")
    assert bench.fetched[-1][1]["DialBridged"] == "true"
    assert bench.record().violations == ("11200: the document for who was called failed: 500",)
