import pytest

from ivr.phone.twiml import (
    ConnectStream,
    Dial,
    Gather,
    Hangup,
    PauseVerb,
    PlayVerb,
    Record,
    Redirect,
    Reject,
    SayVerb,
    parse_twiml,
)


def test_every_verb_is_read() -> None:
    document = parse_twiml(
        """<?xml version="1.0" encoding="UTF-8"?><Response>
        <Say voice="x">Smith &amp; Sons &lt;"Pipes"&gt;</Say><Play loop="2">/a.wav</Play><Pause length="3"/>
        <Connect action="/after"><Stream url="wss://h/m" name="n" statusCallback="/s">
          <Parameter name="token" value="a&#10;b"/></Stream></Connect>
        <Gather input="dtmf speech" numDigits="4" timeout="3" action="/g" finishOnKey="*"><Say>Key</Say></Gather>
        <Dial action="/d" timeout="9"><Number>+15550100009</Number></Dial><Dial>+15550100008</Dial>
        <Record action="/r" maxLength="30" recordingStatusCallback="/rs"/>
        <Redirect>/c</Redirect><Reject reason="busy"/><Hangup/></Response>""",
        "text/xml; charset=utf-8",
    )

    assert document.faults == ()
    assert document.verbs == (
        SayVerb('Smith & Sons <"Pipes">'),
        PlayVerb("/a.wav", 2),
        PauseVerb(3),
        ConnectStream("wss://h/m", (("token", "a\nb"),), "n", "/s", "/after"),
        Gather((SayVerb("Key"),), "/g", "POST", 4, 3, "*", takes_speech=True),
        Dial(("+15550100009",), "/d", "POST", 9),
        Dial(("+15550100008",)),
        Record("/r", max_length_s=30, status_callback="/rs"),
        Redirect("/c"),
        Reject("busy"),
        Hangup(),
    )


@pytest.mark.parametrize(
    ("text", "content_type", "fault"),
    [
        ("<Response><Hangup/></Response>", "application/json", "12300"),
        (" <Response><Hangup/></Response>", "text/xml", "12100"),
        ("<Response><Sing/><Hangup/></Response>", "text/xml", "12200"),
        ("<Response><hangup/><Hangup/></Response>", "text/xml", "12200"),
        ("<Response><Connect/><Hangup/></Response>", "text/xml", "12200"),
        ('<Response><Gather><Pause length="x"/></Gather><Hangup/></Response>', "text/xml", "12200"),
        ("<Response><Gather><Dial>+1</Dial></Gather><Hangup/></Response>", "text/xml", "12200"),
        ("<Response><Dial/><Hangup/></Response>", "text/xml", "13201"),
        ('<Response><Redirect method="PUT">/x</Redirect><Hangup/></Response>', "text/xml", "12200"),
    ],
)
def test_a_fault_is_told_and_the_rest_is_run(text: str, content_type: str, fault: str) -> None:
    document = parse_twiml(text, content_type)

    assert document.verbs is not None
    assert document.verbs[-1] == Hangup()
    assert len(document.faults) == 1
    assert document.faults[0].startswith(fault)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "oops",
        "<Response>",
        "<html></html>",
        "<Response><Say>a & b</Say></Response>",
        "<!DOCTYPE r [<!ENTITY a 'b'>]><Response>&a;</Response>",
    ],
)
def test_b102_what_is_not_a_document_cannot_be_run(text: str) -> None:
    document = parse_twiml(text, "text/xml")

    assert document.verbs is None
    assert document.faults


def test_b094_a_parameter_of_500_characters_is_too_long() -> None:
    def read(value: str) -> tuple[str, ...]:
        parameter = f'<Parameter name="token" value="{value}"/>'
        text = f'<Response><Connect><Stream url="wss://h/m">{parameter}</Stream></Connect></Response>'
        return parse_twiml(text, "text/xml").faults

    assert read("x" * 494) == ()
    assert len(read("x" * 495)) == 1
