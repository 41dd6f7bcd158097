"""Webhooks: who is answered, and that the answer is TwiML whatever is broken."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import structlog
from starlette.testclient import TestClient

from ivr.errors import StorageUnavailable
from ivr.web.deps import (
    AskKeys,
    ByKeys,
    DialReport,
    Ended,
    GoOn,
    OpenResult,
    Readiness,
    RecordingReport,
    RecordMessage,
    StatusReport,
    TransferTo,
    WebLimits,
    Whispered,
)
from ivr.web.routes import create_app
from ivr.wire.tokens import Grant, StreamTokens
from tests.integration.web_kit import (
    BLOOM,
    CALLER,
    NUMBER,
    PUBLIC,
    SID,
    TOKEN,
    World,
    form,
    parameters,
    parse_twiml,
    sign,
    signed_post,
    verbs,
)

POST_PATHS = ["/twilio/voice", "/twilio/continue", "/twilio/transferred", "/twilio/keys", "/twilio/status"]
TWIML_PATHS = POST_PATHS[:4]
POST_PATHS += ["/twilio/whisper", "/twilio/accept", "/twilio/recorded", "/twilio/recording"]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> TestClient:
    return client_of(world)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    structlog.configure(processors=[structlog.processors.JSONRenderer(default=str)], logger_factory=Nothing)
    yield
    structlog.reset_defaults()


class Nothing:
    """A logger that keeps nothing."""

    def __init__(self, *_: object) -> None: ...

    def __getattr__(self, _name: str) -> Any:
        return lambda *_, **__: None


def client_of(world: World) -> TestClient:
    return TestClient(create_app(world.deps()), base_url="http://127.0.0.1:8000")


def post(client: TestClient, path: str = "/twilio/voice", **fields: str) -> Any:
    body, headers = signed_post(path, form(**fields))
    return client.post(path, content=body, headers=headers)


def continue_of(root: Any) -> tuple[int, int]:
    """How many streams the continue URL counts, and how many short ones in a row."""
    url = urlsplit(root[1].text)
    assert f"{url.scheme}://{url.netloc}{url.path}" == PUBLIC + "/twilio/continue"
    query = parse_qs(url.query)
    return int(query["n"][0]), int(query["s"][0])


def test_a_call_gets_a_stream_with_a_token_and_a_way_back(client: TestClient, world: World) -> None:
    answer = post(client)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/xml")
    root = parse_twiml(answer.text)
    assert verbs(root) == ["Connect", "Redirect"]
    stream = root.find("Connect/Stream")
    assert stream is not None
    assert stream.attrib["url"] == "wss://ivr.example.test/twilio/media"
    assert stream.attrib["statusCallback"] == PUBLIC + "/twilio/status"
    assert continue_of(root) == (1, 0)
    grant = StreamTokens(TOKEN).verify(parameters(root)["token"], SID, 0)
    assert isinstance(grant, Grant)
    assert (grant.business_id, grant.caller, grant.to_number) == ("bloom", CALLER, NUMBER)
    assert world.registry.opened == [(SID, "bloom", CALLER, NUMBER)]


def test_b059_no_pause_follows_the_stream(client: TestClient) -> None:
    for path in ("/twilio/voice", "/twilio/continue"):
        root = parse_twiml(post(client, path).text)
        assert verbs(root) == ["Connect", "Redirect"]
        assert not list(root.iter("Pause"))


def test_b059_a_call_ended_by_us_hangs_up_at_once(client: TestClient, world: World) -> None:
    world.registry.next = Ended()
    assert verbs(parse_twiml(post(client, "/twilio/continue").text)) == ["Hangup"]


def test_b094_the_stream_url_has_no_query_and_the_token_is_a_parameter(client: TestClient) -> None:
    root = parse_twiml(post(client).text)
    stream = root.find("Connect/Stream")
    assert stream is not None
    assert stream.attrib["url"].startswith("wss://")
    assert "?" not in stream.attrib["url"]
    assert parameters(root)["token"]


def test_b091_signed_over_the_public_address(client: TestClient, world: World) -> None:
    body, headers = signed_post("/twilio/voice", form())
    right = headers["x-twilio-signature"]
    forwarded = {"x-forwarded-proto": "https", "x-forwarded-host": "evil.test"}
    bad_signatures = [
        right[:-2] + ("A" if right[-2] != "A" else "B") + "=",
        "",
        sign("http://127.0.0.1:8000/twilio/voice", form()),
        sign("https://evil.test/twilio/voice", form()),
    ]
    for path in POST_PATHS:
        for signature in bad_signatures:
            refused = client.post(
                path, content=body, headers={**headers, **forwarded, "x-twilio-signature": signature}
            )
            assert refused.status_code == 403
    assert not world.registry.opened
    assert not world.registry.reports
    assert not world.registry.dials
    assert client.post("/twilio/voice", content=body, headers=headers | forwarded).status_code == 200
    assert post(client, "/twilio/voice?x=1&y=%20").status_code == 200
    assert world.count("webhook_rejected_total", route="voice", reason="signature") == 4


def test_b102_names_and_texts_survive(client: TestClient, world: World) -> None:
    world.flows.business = replace(BLOOM, busy_say=f"{BLOOM.name} is\u0007 busy")
    world.draining = True
    answer = post(client, CallerName="O'Neil & Co")
    assert answer.headers["content-type"].startswith("text/xml")
    assert parse_twiml(answer.text)[0].text == f"{BLOOM.name} is busy"


@pytest.mark.parametrize("path", TWIML_PATHS)
def test_b102_an_internal_error_is_still_twiml(client: TestClient, world: World, path: str) -> None:
    world.registry.fault = ZeroDivisionError("a bug")
    answer = post(client, path)
    assert answer.status_code == 200
    root = parse_twiml(answer.text)
    assert verbs(root) == ["Say", "Hangup"]
    assert root[0].text == "Sorry & bye."
    assert world.count("webhook_failed_total", route=path.rsplit("/", 1)[1]) == 1


@pytest.mark.parametrize("path", TWIML_PATHS)
def test_flows_that_cannot_be_read_are_still_twiml(client: TestClient, world: World, path: str) -> None:
    world.flows.fault = RuntimeError("a bug")
    answer = post(client, path)
    assert answer.status_code == 200
    assert verbs(parse_twiml(answer.text)) == ["Say", "Hangup"]


def test_where_nothing_works_the_caller_is_put_through(client: TestClient, world: World) -> None:
    world.flows.business = replace(BLOOM, down_number="+15550001111")
    world.registry.fault = ZeroDivisionError("a bug")
    root = parse_twiml(post(client).text)
    assert verbs(root) == ["Say", "Dial"]
    assert [number.text for number in root.iter("Number")] == ["+15550001111"]
    # ... but not for ever:
    assert verbs(parse_twiml(post(client, "/twilio/transferred", DialCallStatus="busy").text)) == [
        "Say",
        "Hangup",
    ]


@pytest.mark.parametrize("path", TWIML_PATHS[:3])
def test_the_call_goes_on_while_the_storage_is_down(client: TestClient, world: World, path: str) -> None:
    world.registry.fault = StorageUnavailable("down")
    root = parse_twiml(post(client, path).text)
    assert "Connect" in verbs(root)
    assert isinstance(StreamTokens(TOKEN).verify(parameters(root)["token"], SID, 0), Grant)


@pytest.mark.parametrize("path", TWIML_PATHS[:3])
def test_a_storage_that_hangs_is_not_waited_for(world: World, path: str) -> None:
    world.registry.delay_s = 3600
    world.limits = WebLimits(registry_s=0.02)
    assert "Connect" in verbs(parse_twiml(post(client_of(world), path).text))


def test_the_bounds_together_stay_below_a_second() -> None:
    assert WebLimits().registry_s < WebLimits().answer_s < 1.0


def test_a_repeated_webhook_is_the_same_call_with_a_fresh_token(client: TestClient, world: World) -> None:
    first = parameters(parse_twiml(post(client).text))["token"]
    world.registry.open_result = OpenResult.KNOWN
    second = parameters(parse_twiml(post(client).text))["token"]
    assert first != second
    world.registry.open_result = OpenResult.OVER
    assert verbs(parse_twiml(post(client).text)) == ["Hangup"]


@pytest.mark.parametrize("path", TWIML_PATHS)
def test_an_unknown_number_gets_a_polite_refusal(client: TestClient, world: World, path: str) -> None:
    root = parse_twiml(post(client, path, To="+15550000000").text)
    assert verbs(root) == ["Say", "Hangup"]
    assert not world.registry.opened
    assert world.count("calls_refused_total", reason="unknown_number") == 1


@pytest.mark.parametrize("from_", ["anonymous", "", "+266696687", "sip:anonymous@anonymous.invalid"])
def test_b083_withheld_callers_open_calls_of_nobody(client: TestClient, world: World, from_: str) -> None:
    root = parse_twiml(post(client, From=from_).text)
    assert world.registry.opened == [(SID, "bloom", None, NUMBER)]
    grant = StreamTokens(TOKEN).verify(parameters(root)["token"], SID, 0)
    assert isinstance(grant, Grant)
    assert grant.caller is None


@pytest.mark.parametrize(
    ("from_", "caller"),
    [
        ("sip:+15551230012@evil.example", "sip:+15551230012@evil.example"),
        ("client:ana", "client:ana"),
        ("6175550140", "+16175550140"),
    ],
)
def test_the_stream_is_of_the_caller_that_the_webhook_was_of(
    client: TestClient, world: World, from_: str, caller: str
) -> None:
    """Addresses are themselves and never attested; a number is one of the called number's country."""
    root = parse_twiml(post(client, From=from_, StirVerstat="TN-Validation-Passed-A").text)
    assert world.registry.opened == [(SID, "bloom", caller, NUMBER)]
    grant = StreamTokens(TOKEN).verify(parameters(root)["token"], SID, 0)
    assert isinstance(grant, Grant)
    assert (grant.caller, grant.is_attested) == (caller, caller.startswith("+"))


def test_b100_over_the_limit_the_caller_hears_a_sentence(world: World) -> None:
    world.max_calls = 1
    client = client_of(world)
    assert "Connect" in verbs(parse_twiml(post(client).text))
    busy = parse_twiml(post(client, call_sid="CA2").text)
    assert verbs(busy) == ["Say", "Hangup"]
    assert busy[0].text == "All lines are busy."
    assert [sid for sid, *_ in world.registry.opened] == [SID]
    assert "Connect" in verbs(parse_twiml(post(client).text))  # the same call again has its place
    post(client, "/twilio/status", CallStatus="completed")
    assert "Connect" in verbs(parse_twiml(post(client, call_sid="CA2").text))


def test_b100_over_the_limit_the_caller_is_connected_with_a_person_if_the_business_says_so(
    world: World,
) -> None:
    world.max_calls = 1
    world.flows.business = replace(BLOOM, busy_number="+16175550199", blocked=frozenset({"+12025550166"}))
    client = client_of(world)
    post(client)
    connected = parse_twiml(post(client, call_sid="CA2").text)
    assert (connected[0].tag, connected[0].text) == ("Say", "All lines are busy.")
    assert "".join(connected[1].itertext()) == "+16175550199"
    assert verbs(connected) == ["Say", "Dial"]
    assert verbs(parse_twiml(post(client, call_sid="CA3", From="+12025550166").text)) == ["Say", "Hangup"]
    assert [sid for sid, *_ in world.registry.opened] == [SID]


def test_b109_new_calls_get_a_polite_answer_while_draining(client: TestClient, world: World) -> None:
    assert client.get("/readyz").status_code == 200
    world.draining = True
    root = parse_twiml(post(client).text)
    assert verbs(root) == ["Say", "Hangup"]
    assert not world.registry.opened
    ready = client.get("/readyz")
    assert ready.status_code == 503
    assert ready.json() == {"ready": False, "draining": True, "checks": {"database": True, "flows": True}}
    assert client.get("/healthz").status_code == 200


def test_b109_a_running_call_is_kept_for_another_worker(client: TestClient, world: World) -> None:
    world.draining = True
    root = parse_twiml(post(client, "/twilio/continue?n=4").text)
    assert verbs(root) == ["Pause", "Redirect"]
    assert root[1].text == PUBLIC + "/twilio/continue?n=4"
    world.registry.next = Ended("Goodbye.")
    assert verbs(parse_twiml(post(client, "/twilio/continue?n=4").text)) == ["Say", "Hangup"]


def test_a_stream_that_always_fails_does_not_loop(client: TestClient, world: World) -> None:
    root = parse_twiml(post(client, "/twilio/continue?n=3").text)
    assert continue_of(root) == (4, 0)
    assert verbs(parse_twiml(post(client, "/twilio/continue?n=20").text)) == ["Say", "Hangup"]
    assert "Connect" in verbs(parse_twiml(post(client, "/twilio/continue?n=x").text))
    assert world.registry.given_up == [SID]


def test_three_short_streams_in_a_row_are_the_end(client: TestClient, world: World) -> None:
    root = parse_twiml(post(client).text)
    for short in (1, 2):
        world.time += 4
        root = parse_twiml(post(client, (root[1].text or "").removeprefix(PUBLIC)).text)
        assert continue_of(root) == (short + 1, short)
    world.time += 4
    root = parse_twiml(post(client, (root[1].text or "").removeprefix(PUBLIC)).text)
    assert verbs(root) == ["Say", "Hangup"]
    assert world.registry.given_up == [SID]


def test_a_stream_that_lasted_starts_the_count_anew(client: TestClient, world: World) -> None:
    root = parse_twiml(post(client).text)
    for seconds in (4, 4, 6, 4, 4):
        world.time += seconds
        root = parse_twiml(post(client, (root[1].text or "").removeprefix(PUBLIC)).text)
    assert continue_of(root) == (6, 2)
    assert world.registry.given_up == []


def test_a_call_without_a_model_goes_on_by_keys(client: TestClient, world: World) -> None:
    world.registry.next = ByKeys("Our assistant is away.")
    root = parse_twiml(post(client, "/twilio/continue?n=1").text)
    assert verbs(root) == ["Say", "Redirect"]
    assert root[1].text == PUBLIC + "/twilio/keys?begin=1"
    world.registry.next = AskKeys("Press one & two.", 5, 1)
    root = parse_twiml(post(client, "/twilio/keys?begin=1").text)
    (asked,) = root
    assert (asked.tag, asked[0].text) == ("Gather", "Press one & two.")
    assert asked.attrib == {
        "input": "dtmf",
        "action": PUBLIC + "/twilio/keys",
        "method": "POST",
        "timeout": "5",
        "numDigits": "1",
        "finishOnKey": "",
        "actionOnEmptyResult": "true",
    }
    world.registry.next = TransferTo("+15550001111")
    assert verbs(parse_twiml(post(client, "/twilio/keys", Digits="1").text)) == ["Dial"]
    post(client, "/twilio/keys", Digits="")
    assert world.registry.pressed == [(SID, None), (SID, "1"), (SID, "")]
    world.registry.fault = StorageUnavailable("down")
    assert verbs(parse_twiml(post(client, "/twilio/keys", Digits="1").text)) == ["Say", "Hangup"]


def test_waiting_for_another_worker_is_no_stream(client: TestClient, world: World) -> None:
    now = int(world.time)
    world.draining = True
    root = parse_twiml(post(client, f"/twilio/continue?n=2&s=1&t={now - 2}").text)
    assert root[1].text == PUBLIC + "/twilio/continue?n=2&s=1&t=0"


def test_continue_transfers(client: TestClient, world: World) -> None:
    world.registry.next = TransferTo("+15550001111", "One moment.", 25)
    root = parse_twiml(post(client, "/twilio/continue").text)
    assert verbs(root) == ["Say", "Dial"]
    assert root[1].attrib["action"] == PUBLIC + "/twilio/transferred"
    assert root[1].attrib["timeout"] == "25"


@pytest.mark.parametrize("status", ["busy", "no-answer", "failed", "canceled", ""])
def test_b061_a_transfer_that_fails_says_so_and_goes_on(
    client: TestClient, world: World, status: str
) -> None:
    world.registry.next = GoOn()  # that nobody answered is what the new stream says first
    root = parse_twiml(post(client, "/twilio/transferred?leg=1", DialCallStatus=status).text)
    assert verbs(root) == ["Connect", "Redirect"]
    world.registry.next = TransferTo("+15550002222", "Trying the next.", leg=2)
    root = parse_twiml(post(client, "/twilio/transferred?leg=1", DialCallStatus=status).text)
    assert root[1].attrib["action"] == PUBLIC + "/twilio/transferred?leg=2"
    assert verbs(root) == ["Say", "Dial"]
    world.registry.next = Ended()  # a call nobody knows
    root = parse_twiml(post(client, "/twilio/transferred?leg=1", DialCallStatus=status).text)
    assert verbs(root) == ["Say", "Hangup"]
    assert root[0].text == BLOOM.not_reached_say
    assert world.registry.dials == [DialReport(SID, 1, status)] * 3
    world.registry.fault = StorageUnavailable("down")
    root = parse_twiml(post(client, "/twilio/transferred?leg=1", DialCallStatus=status).text)
    assert verbs(root) == ["Say", "Connect", "Redirect"]
    assert root[0].text == BLOOM.not_reached_say


def test_b061_a_transfer_that_was_taken_ends(client: TestClient, world: World) -> None:
    for outcome in (Ended(), GoOn()):
        world.registry.next = outcome
        answer = post(client, "/twilio/transferred", DialCallStatus="completed")
        assert verbs(parse_twiml(answer.text)) == ["Hangup"]
    assert world.registry.dials == [DialReport(SID, 0, "completed")] * 2


def test_b061_a_transfer_that_was_answered_and_not_taken_goes_on(client: TestClient, world: World) -> None:
    answer = post(client, "/twilio/transferred?leg=3", DialCallStatus="completed", DialBridged="False")
    assert verbs(parse_twiml(answer.text)) == ["Connect", "Redirect"]
    assert world.registry.dials == [DialReport(SID, 3, "completed", "false")]


def test_a_caller_who_is_gone_is_not_taken_back(client: TestClient, world: World) -> None:
    answer = post(client, "/twilio/transferred", DialCallStatus="no-answer", CallStatus="completed")
    assert verbs(parse_twiml(answer.text)) == ["Hangup"]
    assert world.registry.dials == [DialReport(SID, 0, "no-answer", call_over=True)]


def test_who_answers_hears_a_whisper_and_takes_the_call_by_a_key(client: TestClient, world: World) -> None:
    world.registry.next = TransferTo(
        "+15550001111", others=("+15550002222",), whispers=True, leg=1, language="de-DE"
    )
    root = parse_twiml(post(client, "/twilio/continue").text)
    numbers = list(root.iter("Number"))
    assert [number.text for number in numbers] == ["+15550001111", "+15550002222"]
    url = numbers[0].attrib["url"]
    assert url == f"{PUBLIC}/twilio/whisper?call={SID}"
    world.registry.whispers[SID] = Whispered("Tom & Co. Press one.", "1", "en-GB")
    called = {"To": "+15550001111", "call_sid": "CAchild"}
    root = parse_twiml(post(client, url.removeprefix(PUBLIC), **called).text)
    assert verbs(root) == ["Gather", "Hangup"]
    assert [said.text for said in root[0]] == ["Tom & Co. Press one."] * 2
    accept = root[0].attrib["action"].removeprefix(PUBLIC)
    assert verbs(parse_twiml(post(client, accept, Digits="1", **called).text)) == []
    assert verbs(parse_twiml(post(client, accept, Digits="2", **called).text)) == ["Hangup"]


@pytest.mark.parametrize("fault", [None, StorageUnavailable("down"), ZeroDivisionError("a bug")])
def test_without_a_whisper_who_answers_is_connected(
    client: TestClient, world: World, fault: Exception | None
) -> None:
    world.registry.fault = fault
    root = parse_twiml(post(client, "/twilio/whisper?call=CA77", call_sid="CAchild").text)
    assert verbs(root) == []


@pytest.mark.parametrize(("accept", "pressed"), [("*", "*"), ("#", "#"), ("0", "0")])
def test_any_key_may_take_a_call(client: TestClient, world: World, accept: str, pressed: str) -> None:
    world.registry.whispers[SID] = Whispered("Take it?", accept, "en-US")
    root = parse_twiml(post(client, f"/twilio/whisper?call={SID}").text)
    path = root[0].attrib["action"].removeprefix(PUBLIC)
    assert verbs(parse_twiml(post(client, path, Digits=pressed).text)) == []
    assert verbs(parse_twiml(post(client, path, Digits="5").text)) == ["Hangup"]


MESSAGE = RecordMessage("After the tone.", 60, 4, "#", transcribe=True, leg=2, language="en-US")


def test_a_message_is_recorded_and_its_end_comes_back(client: TestClient, world: World) -> None:
    world.registry.next = MESSAGE
    root = parse_twiml(post(client, "/twilio/continue").text)
    assert verbs(root) == ["Say", "Record", "Redirect"]
    record = root[1].attrib
    assert (record["maxLength"], record["timeout"], record["finishOnKey"]) == ("60", "4", "#")
    assert "transcribe" not in record or record["transcribe"] == "false"  # that is ours to do
    world.registry.next = GoOn()
    recording = {"RecordingSid": "RE1", "RecordingDuration": "7"}
    action = record["action"].removeprefix(PUBLIC)
    assert verbs(parse_twiml(post(client, action, **recording).text)) == ["Connect", "Redirect"]
    nothing = root[2].text or ""
    post(client, nothing.removeprefix(PUBLIC))
    gone = post(client, action, CallStatus="completed", Digits="hangup", **recording)
    assert verbs(parse_twiml(gone.text)) == ["Hangup"]
    assert world.registry.messages == [(SID, 2, False, False), (SID, 2, True, False), (SID, 2, False, True)]
    assert world.registry.recordings == [RecordingReport(SID, "RE1", 7, wants_text=True)] * 2


def test_recordings_and_their_words_are_noted(client: TestClient, world: World) -> None:
    world.registry.next = MESSAGE
    record = parse_twiml(post(client, "/twilio/continue").text)[1].attrib
    status = record["recordingStatusCallback"].removeprefix(PUBLIC)
    assert post(client, status, RecordingSid="RE1", RecordingStatus="completed").status_code == 204
    assert post(client, status, RecordingSid="RE1", RecordingStatus="absent").status_code == 204
    assert post(client, status, RecordingSid="no sid", RecordingStatus="completed").status_code == 204
    words = status  # Twilio's own transcripts would come here
    assert post(client, words, RecordingSid="RE1", TranscriptionText="Call me.").status_code == 204
    world.registry.fault = StorageUnavailable("down")
    assert post(client, words, RecordingSid="RE1", TranscriptionText="Call me.").status_code == 204
    assert world.registry.recordings == [
        RecordingReport(SID, "RE1", wants_text=True),
        RecordingReport(SID, "RE1", transcript="Call me.", wants_text=True),
    ]


CALLED_BACK = {"Direction": "outbound-api", "From": NUMBER, "To": CALLER}


def test_a_call_back_is_a_call_of_the_one_who_is_called(client: TestClient, world: World) -> None:
    root = parse_twiml(post(client, **CALLED_BACK, AnsweredBy="human").text)
    assert "Connect" in verbs(root)
    assert world.registry.opened == [(SID, "bloom", CALLER, NUMBER)]
    assert verbs(parse_twiml(post(client, "/twilio/continue?n=1", **CALLED_BACK).text)) == [
        "Connect",
        "Redirect",
    ]


@pytest.mark.parametrize("answered", ["machine_start", "machine_end_beep", "fax"])
def test_a_machine_that_is_called_back_is_left_alone(client: TestClient, world: World, answered: str) -> None:
    root = parse_twiml(post(client, **CALLED_BACK, AnsweredBy=answered).text)
    assert verbs(root) == ["Hangup"]
    assert not world.registry.opened


def test_b063_status_callbacks_are_noted_and_nothing_else(client: TestClient, world: World) -> None:
    for status in ("initiated", "ringing", "in-progress"):
        answer = post(client, "/twilio/status", CallStatus=status)
        assert (answer.status_code, answer.content) == (204, b"")
    stream = {"StreamSid": "MZ1", "StreamEvent": "stream-error", "StreamError": "31921", "CallStatus": ""}
    assert post(client, "/twilio/status", **stream).status_code == 204
    assert world.registry.reports[:3] == [
        StatusReport(SID, s) for s in ("initiated", "ringing", "in-progress")
    ]
    assert world.registry.reports[3] == StatusReport(SID, "", "MZ1", "stream-error", "31921")
    assert "Connect" in verbs(parse_twiml(post(client).text))


@pytest.mark.parametrize("fault", [StorageUnavailable("down"), ZeroDivisionError("a bug")])
def test_a_status_that_cannot_be_noted_is_still_204(
    client: TestClient, world: World, fault: Exception
) -> None:
    world.registry.fault = fault
    assert post(client, "/twilio/status", CallStatus="completed").status_code == 204


@pytest.mark.parametrize("path", POST_PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
def test_other_methods_are_405(client: TestClient, path: str, method: str) -> None:
    assert client.request(method, path).status_code == 405


def test_a_body_too_large_or_unreadable_is_refused(client: TestClient, world: World) -> None:
    body, headers = signed_post("/twilio/voice", form(Extra="x" * 70_000))
    assert client.post("/twilio/voice", content=body, headers=headers).status_code == 413
    fields = "&".join(f"a{n}=1" for n in range(600))
    assert client.post("/twilio/voice", content=fields, headers=headers).status_code == 400
    assert client.post("/twilio/voice", content=b"\xff\xfe=\x00", headers=headers).status_code == 403
    assert not world.registry.opened


@pytest.mark.parametrize("sid", ["", "x" * 65, "CA1 OR 1=1"])
def test_without_a_call_sid_there_is_only_an_apology(client: TestClient, world: World, sid: str) -> None:
    assert verbs(parse_twiml(post(client, call_sid=sid).text)) == ["Say", "Hangup"]
    assert not world.registry.opened


def test_without_an_auth_token_all_is_refused(world: World) -> None:
    world.token = None
    client = client_of(world)
    assert post(client).status_code == 403
    body, headers = signed_post("/twilio/voice", form())
    headers["x-twilio-signature"] = sign(PUBLIC + "/twilio/voice", form(), token="")
    assert client.post("/twilio/voice", content=body, headers=headers).status_code == 403


def test_without_a_public_address_loopback_is_served_over_ws(world: World) -> None:
    world.public_url = None
    client = client_of(world)
    base = "http://127.0.0.1:8000"
    body, headers = signed_post("/twilio/voice", form(), base)
    root = parse_twiml(client.post("/twilio/voice", content=body, headers=headers).text)
    stream = root.find("Connect/Stream")
    assert stream is not None
    assert stream.attrib["url"] == "ws://127.0.0.1:8000/twilio/media"
    body, headers = signed_post("/twilio/voice", form(), "http://evil.test")
    assert (
        client.post("/twilio/voice", content=body, headers={**headers, "host": "evil.test"}).status_code
        == 403
    )


def test_readiness_names_what_fails_and_survives_a_broken_check(world: World) -> None:
    async def not_well() -> Readiness:
        return Readiness({"database": False, "flows": True})

    async def broken() -> Readiness:
        raise RuntimeError("postgresql://u:hush@db")

    world.ready = not_well
    answer = client_of(world).get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"] == {"database": False, "flows": True}
    world.ready = broken
    answer = client_of(world).get("/readyz")
    assert answer.status_code == 503
    assert "hush" not in answer.text


def test_metrics_are_prometheus_text(client: TestClient) -> None:
    post(client)
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert 'callthread_webhooks_total{route="voice"} 1.0' in answer.text
    assert CALLER not in answer.text
