"""The webhooks of lines: TwiML as Twilio documents `<Enqueue>`, `<Leave>` and `<Dial><Queue>`."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from ivr.web.deps import (
    DialReport,
    Ended,
    GoOn,
    LeaveLine,
    LineReport,
    MusicPiece,
    PlaceInLine,
    PutInLine,
    TakeFromLine,
    WaitOn,
)
from ivr.web.routes import create_app
from tests.integration.test_web_voice import post
from tests.integration.web_kit import PUBLIC, SID, World, form, parse_twiml, signed_post, verbs

LINE = PutInLine("bloom.line", "Into the line.", 2, "en-US")


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> Iterator[TestClient]:
    with TestClient(create_app(world.deps()), base_url=PUBLIC) as client:
        yield client


def test_a_caller_is_put_into_a_line_and_what_came_of_it_leads_on(client: TestClient, world: World) -> None:
    world.registry.next = LINE
    root = parse_twiml(post(client, "/twilio/continue").text)
    assert verbs(root) == ["Say", "Enqueue"]
    line = root[1]
    assert line.text == "bloom.line"
    assert line.attrib["waitUrl"] == f"{PUBLIC}/twilio/waiting?leg=2"
    assert (line.attrib["method"], line.attrib["waitUrlMethod"]) == ("POST", "POST")
    world.registry.next = GoOn()
    action = line.attrib["action"].removeprefix(PUBLIC)
    left = post(client, action, QueueResult="leave", QueueTime="61", QueueSid="QU1")
    assert verbs(parse_twiml(left.text)) == ["Connect", "Redirect"]
    world.registry.next = Ended()
    gone = post(client, action, QueueResult="hangup", QueueTime="5", CallStatus="completed")
    assert verbs(parse_twiml(gone.text)) == ["Hangup"]
    assert world.registry.lines == [LineReport(SID, 2, "leave", 61), LineReport(SID, 2, "hangup", 5, True)]


def test_who_waits_hears_text_and_music_and_may_press_the_exit_key(client: TestClient, world: World) -> None:
    world.registry.hold = WaitOn("Please hold. You are number 2.", "en-US", True, "1", 25)
    root = parse_twiml(
        post(client, "/twilio/waiting?leg=2", QueuePosition="2", QueueTime="30", CurrentQueueSize="3").text
    )
    assert verbs(root) == ["Gather", "Redirect"]
    gather = root[0]
    assert (gather.attrib["numDigits"], gather.attrib["action"]) == ("1", f"{PUBLIC}/twilio/waiting?leg=2")
    assert gather.attrib["finishOnKey"] == ""
    assert [each.tag for each in gather] == ["Say", "Play"]
    assert gather[1].text == f"{PUBLIC}/twilio/hold?call={SID}&from=30&for=25"
    assert root[1].text == f"{PUBLIC}/twilio/waiting?leg=2"
    post(client, "/twilio/waiting?leg=2", QueuePosition="2", QueueTime="33", Digits="1")
    assert world.registry.places == [PlaceInLine(SID, 2, 2, 30), PlaceInLine(SID, 2, 2, 33, "1")]


def test_without_a_key_or_music_there_is_silence_for_so_long(client: TestClient, world: World) -> None:
    world.registry.hold = WaitOn("Please hold.", "en-US", False, "", 25)
    root = parse_twiml(post(client, "/twilio/waiting?leg=2").text)
    assert verbs(root) == ["Say", "Pause", "Redirect"]
    assert root[1].attrib["length"] == "25"


def test_whoever_is_to_leave_does(client: TestClient, world: World) -> None:
    world.registry.hold = LeaveLine("timeout")
    assert verbs(parse_twiml(post(client, "/twilio/waiting?leg=2").text)) == ["Leave"]


def test_whatever_is_broken_who_waits_waits_on(client: TestClient, world: World) -> None:
    world.registry.fault = RuntimeError("broken")
    root = parse_twiml(post(client, "/twilio/waiting?leg=2").text)
    assert verbs(root) == ["Pause", "Redirect"]


def test_a_line_is_nobody_elses_to_ask_about(client: TestClient, world: World) -> None:
    for path in ("waiting", "queued", "served"):
        assert client.post(f"/twilio/{path}?leg=2", data=form()).status_code == 403
    body, headers = signed_post("/twilio/waiting?leg=1", form())
    assert client.post("/twilio/waiting?leg=2", content=body, headers=headers).status_code == 403
    assert world.registry.places == []


def test_music_comes_in_pieces(client: TestClient, world: World) -> None:
    world.registry.music = b"RIFF"
    answer = client.get(f"/twilio/hold?call={SID}&from=30&for=25")
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, "audio/wav", b"RIFF")
    client.get(f"/twilio/hold?call={SID}&from=30&for=999")
    assert world.registry.pieces == [MusicPiece(SID, 30, 25), MusicPiece(SID, 30, 120)]
    world.registry.music = None
    assert client.get(f"/twilio/hold?call={SID}&from=30&for=25").status_code == 404


@pytest.mark.parametrize(
    "query",
    [
        "",
        "call=&from=0&for=5",
        f"call={SID}&from=-1&for=5",
        f"call={SID}&from=0&for=99999",
        "call=../x&from=0&for=5",
        f"call={'C' * 65}&from=0&for=5",
        f"call={SID}&from=x&for=5",
    ],
)
def test_what_is_no_piece_of_music_is_not_found(client: TestClient, world: World, query: str) -> None:
    assert client.get(f"/twilio/hold?{query}").status_code == 404
    assert world.registry.pieces == []


def test_the_staff_is_connected_with_the_first_who_waits(client: TestClient, world: World) -> None:
    world.registry.next = TakeFromLine("bloom.line", 120, "Here they come.", 3, "en-US")
    root = parse_twiml(post(client, "/twilio/continue").text)
    assert verbs(root) == ["Say", "Dial"]
    dial = root[1]
    assert dial.attrib["timeout"] == "120"
    assert [(each.tag, each.text) for each in dial] == [("Queue", "bloom.line")]
    again = post(client, dial.attrib["action"].removeprefix(PUBLIC), DialCallStatus="completed")
    assert verbs(parse_twiml(again.text)) == ["Say", "Dial"]  # the next one
    assert world.registry.dials == [DialReport(SID, 3, "completed")]
    gone = post(client, "/twilio/served?leg=3", DialCallStatus="completed", CallStatus="completed")
    assert verbs(parse_twiml(gone.text)) == ["Hangup"]
