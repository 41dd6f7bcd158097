"""TwiML: well-formed whatever the texts, and with a way on after the stream."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivr.wire import twiml

NAME = 'Smith & Sons <"Pipes"> 24/7'


def parse(text: str) -> ET.Element:
    assert text.startswith("<")
    root = ET.fromstring(text)
    assert root.tag == "Response"
    return root


def connect(**kwargs: object) -> ET.Element:
    values: dict[str, object] = {
        "ws_url": "wss://a.test/twilio/media",
        "token": "t",
        "continue_url": "https://a.test/c",
    }
    return parse(twiml.connect_stream(**(values | kwargs)))  # type: ignore[arg-type]  # by keyword, from a dict


def test_b059_after_the_stream_comes_a_redirect_at_once_and_no_pause() -> None:
    root = connect()
    assert [child.tag for child in root] == ["Connect", "Redirect"]
    assert root[1].text == "https://a.test/c"
    assert root[1].attrib == {"method": "POST"}
    assert not list(root.iter("Pause"))


def test_b094_the_token_travels_as_a_parameter() -> None:
    root = connect(parameters={"business": "bloom"}, status_callback_url="https://a.test/s")
    stream = root.find("Connect/Stream")
    assert stream is not None
    assert stream.attrib == {
        "url": "wss://a.test/twilio/media",
        "statusCallback": "https://a.test/s",
        "statusCallbackMethod": "POST",
    }
    assert "?" not in stream.attrib["url"]
    assert {p.attrib["name"]: p.attrib["value"] for p in stream} == {"token": "t", "business": "bloom"}


def test_a_parameter_twilio_would_refuse_is_refused() -> None:
    connect(token="x" * 499)
    with pytest.raises(twiml.ParameterTooLong):
        connect(token="x" * 500)


def test_b102_names_and_parameters_survive_xml() -> None:
    root = connect(
        parameters={"business": NAME, "caller": "O'Neil & Co", "note": "line\nbreak 😀\t."}, say=NAME
    )
    values = {p.attrib["name"]: p.attrib["value"] for p in root.iter("Parameter")}
    assert values == {"token": "t", "business": NAME, "caller": "O'Neil & Co", "note": "line\nbreak 😀\t."}
    assert root[0].text == NAME


def test_b102_characters_that_xml_forbids_are_removed() -> None:
    root = parse(twiml.say_and_hang_up("Leave\u0007 a\x00 message\ufffe\ud800 please 😀"))
    assert root[0].text == "Leave a message please 😀"
    assert [child.tag for child in root] == ["Say", "Hangup"]


@given(st.text(), st.text())
def test_b102_any_text_gives_well_formed_xml(text: str, other: str) -> None:
    root = parse(twiml.say_and_hang_up(text, "en-US"))
    assert root[-1].tag == "Hangup"
    parse(twiml.dial(text or "1", other, say=other, caller_id=text))
    parse(twiml.connect_stream(text, "t", other, parameters={"a": other[:400]}))


def test_say_without_words_is_left_out() -> None:
    assert [child.tag for child in parse(twiml.say_and_hang_up(" \u0007"))] == ["Hangup"]


def test_language_is_said() -> None:
    assert parse(twiml.say_and_hang_up("Hallo", "de-DE"))[0].attrib["language"] == "de-DE"


def test_b061_a_transfer_reports_back() -> None:
    root = parse(twiml.dial("+15550001111", "https://a.test/twilio/transferred", say="One moment."))
    assert [child.tag for child in root] == ["Say", "Dial"]
    dial = root[1]
    assert dial.attrib["action"] == "https://a.test/twilio/transferred"
    assert dial.attrib["method"] == "POST"
    assert (dial.attrib["timeout"], dial.attrib["answerOnBridge"]) == ("20", "true")
    assert [(child.tag, child.text) for child in dial] == [("Number", "+15550001111")]


def test_the_other_answers() -> None:
    assert [child.tag for child in parse(twiml.hang_up())] == ["Hangup"]
    waiting = parse(twiml.wait_and_redirect(2, "https://a.test/c"))
    assert [(c.tag, c.attrib, c.text) for c in waiting] == [
        ("Pause", {"length": "2"}, None),
        ("Redirect", {"method": "POST"}, "https://a.test/c"),
    ]
    said = parse(twiml.say_and_redirect("Sorry.", "https://a.test/c"))
    assert [child.tag for child in said] == ["Say", "Redirect"]


def test_b063_inline_updates_keep_a_way_back_and_twilios_limit() -> None:
    text = twiml.say_and_redirect("Sorry.", "https://a.test/c")
    short = twiml.inline(text)
    assert short.startswith("<Response>")
    assert parse(short)[-1].tag == "Redirect"
    with pytest.raises(twiml.TwimlTooLong):
        twiml.inline(twiml.say_and_hang_up("x" * 4000))
