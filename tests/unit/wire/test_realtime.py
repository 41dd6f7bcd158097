"""Replies bound by id, each ended once; and session updates that no server refuses."""

import json
from typing import Any

import pytest

from ivr.core.commands import SessionConfig, StartReply, UserText
from ivr.core.events import ModelFault, ReplyCall, ReplyDone, ReplyPcm, ReplyStatus, ReplyText, Usage
from ivr.wire.realtime import NOTHING, Outcome, Replies, SessionSettings
from ivr.wire.realtime_in import ErrorEvent, ReplyEvent, decode
from ivr.wire.realtime_out import ModelProfile, encode_cancel
from tests.fake_realtime import call_done, call_item, response

CONFIG = SessionConfig("Be brief.", (), "marin", "en")
COMPLETED = ReplyStatus.COMPLETED


class Conversation:
    """A `Replies` with a server's voice."""

    def __init__(self) -> None:
        self.replies = Replies()
        self._creates: dict[str, dict[str, Any]] = {}

    def start(self, reply_id: str) -> None:
        self._creates[reply_id] = json.loads(
            self.replies.start(StartReply(reply_id, "", (UserText("Hi"),), ()))
        )

    def created(self, reply_id: str, response_id: str) -> Outcome:
        return self.event("response.created", response=response(response_id, self._creates[reply_id]))

    def done(self, reply_id: str, response_id: str, status: str = "completed", **fields: Any) -> Outcome:
        whole = response(response_id, self._creates[reply_id], status=status, **fields)
        return self.event("response.done", response=whole)

    def audio(self, response_id: str, base64_pcm: str = "AAEC") -> Outcome:
        return self.event("response.output_audio.delta", response_id=response_id, delta=base64_pcm)

    def text(self, response_id: str, delta: str) -> Outcome:
        return self.event("response.output_audio_transcript.delta", response_id=response_id, delta=delta)

    def call(self, response_id: str, call_id: str) -> Outcome:
        return self.event(
            "response.function_call_arguments.done", **call_done(response_id, call_id, "look_up", "{}")
        )

    def event(self, kind: str, **fields: Any) -> Outcome:
        event = decode(json.dumps({"type": kind, **fields}).encode())
        assert isinstance(event, ReplyEvent)
        return self.replies.receive(event)

    def error(self, code: str, event_id: str | None = None) -> Outcome:
        event = decode(
            json.dumps(
                {"type": "error", "error": {"code": code, "message": "no", "event_id": event_id}}
            ).encode()
        )
        assert isinstance(event, ErrorEvent)
        return self.replies.refused(event)


@pytest.fixture
def talk() -> Conversation:
    return Conversation()


def test_a_reply_from_start_to_end(talk: Conversation) -> None:
    talk.start("a")
    assert talk.created("a", "r1") == NOTHING
    assert talk.audio("r1") == Outcome((ReplyPcm("a", b"\x00\x01\x02"),))
    assert talk.text("r1", "Hello.") == Outcome((ReplyText("a", "Hello."),))
    usage = {"input_tokens": 5, "output_tokens": 2}
    assert talk.done("a", "r1", usage=usage) == Outcome(
        (ReplyDone("a", COMPLETED, "", Usage(input_text_tokens=5, output_text_tokens=2)),)
    )
    assert not talk.replies.busy


def test_two_replies_at_once_are_told_apart(talk: Conversation) -> None:
    talk.start("a")
    talk.start("b")
    talk.created("b", "r1")
    talk.created("a", "r2")
    assert talk.audio("r1").events == (ReplyPcm("b", b"\x00\x01\x02"),)
    assert talk.audio("r2").events == (ReplyPcm("a", b"\x00\x01\x02"),)
    talk.done("b", "r1")
    assert talk.replies.busy


def test_a_response_nobody_asked_for_is_dropped(talk: Conversation) -> None:
    talk.start("a")
    assert talk.event("response.created", response={"id": "r9", "metadata": None}) == NOTHING
    assert talk.audio("r9") == NOTHING
    assert talk.call("r9", "c1") == NOTHING
    assert talk.event("response.done", response={"id": "r9", "status": "completed"}) == NOTHING
    assert talk.replies.busy


def test_a_second_response_for_one_reply_is_dropped(talk: Conversation) -> None:
    talk.start("a")
    talk.created("a", "r1")
    assert talk.created("a", "r2") == NOTHING
    assert talk.audio("r2") == NOTHING
    assert talk.done("a", "r2") == NOTHING
    assert talk.done("a", "r1").events == (ReplyDone("a", COMPLETED),)


def test_a_reply_whose_creation_was_not_read_still_ends(talk: Conversation) -> None:
    talk.start("a")
    assert talk.done("a", "r1").events == (ReplyDone("a", COMPLETED),)
    assert not talk.replies.busy


def test_cancelling_sends_the_response_id_once_and_drops_the_rest(talk: Conversation) -> None:
    talk.start("a")
    talk.created("a", "r1")
    assert talk.replies.cancel("a") == (encode_cancel("r1"),)
    assert talk.replies.cancel("a") == ()
    assert talk.audio("r1") == NOTHING
    assert talk.text("r1", "x") == NOTHING
    assert talk.call("r1", "c1") == NOTHING
    output = [call_item("c1", "look_up", "{}")]
    details = {"type": "cancelled", "reason": "client_cancelled"}
    assert talk.done("a", "r1", "cancelled", output=output, status_details=details) == Outcome(
        (ReplyDone("a", ReplyStatus.CANCELLED, "client_cancelled"),)
    )


def test_b032_cancelled_before_it_exists(talk: Conversation) -> None:
    talk.start("a")
    assert talk.replies.cancel("a") == ()
    talk.start("b")
    assert talk.created("a", "r1") == Outcome(send=(encode_cancel("r1"),))
    assert talk.audio("r1") == NOTHING
    talk.created("b", "r2")
    assert talk.audio("r2").events == (ReplyPcm("b", b"\x00\x01\x02"),)
    assert talk.done("a", "r1", "cancelled").events == (ReplyDone("a", ReplyStatus.CANCELLED),)


def test_cancelling_what_is_over_or_unknown_does_nothing(talk: Conversation) -> None:
    talk.start("a")
    talk.created("a", "r1")
    talk.done("a", "r1")
    assert talk.replies.cancel("a") == ()
    assert talk.replies.cancel("never") == ()


def test_an_end_comes_once(talk: Conversation) -> None:
    talk.start("a")
    talk.created("a", "r1")
    talk.done("a", "r1")
    assert talk.done("a", "r1") == NOTHING
    assert talk.audio("r1") == NOTHING


def test_b029_a_call_is_told_at_once_and_the_end_only_at_the_end(talk: Conversation) -> None:
    talk.start("a")
    talk.created("a", "r1")
    assert talk.call("r1", "c1").events == (ReplyCall("a", "c1", "look_up", "{}"),)
    assert talk.audio("r1").events == (ReplyPcm("a", b"\x00\x01\x02"),)
    output = [call_item("c1", "look_up", "{}")]
    assert talk.done("a", "r1", output=output).events == (ReplyDone("a", COMPLETED),)


def test_b030_each_call_runs_once(talk: Conversation) -> None:
    talk.start("a")
    talk.created("a", "r1")
    events = (*talk.call("r1", "c1").events, *talk.call("r1", "c1").events)
    output = [
        {"type": "message", "role": "assistant"},
        call_item("c1", "x", "{}"),
        call_item("c2", "y", "[]"),
    ]
    events += talk.done("a", "r1", output=output).events
    assert events == (
        ReplyCall("a", "c1", "look_up", "{}"),
        ReplyCall("a", "c2", "y", "[]"),
        ReplyDone("a", COMPLETED),
    )


def test_a_call_without_a_name_waits_for_the_end(talk: Conversation) -> None:
    talk.start("a")
    talk.created("a", "r1")
    nameless = {**call_done("r1", "c1", "", "{}"), "name": None}
    assert talk.event("response.function_call_arguments.done", **nameless) == NOTHING
    output = [call_item("c1", "look_up", "{}")]
    assert talk.done("a", "r1", output=output).events == (
        ReplyCall("a", "c1", "look_up", "{}"),
        ReplyDone("a", COMPLETED),
    )


def test_a_call_broken_off_in_the_end_is_none(talk: Conversation) -> None:
    talk.start("a")
    talk.created("a", "r1")
    output = [{**call_item("c1", "look_up", '{"da'), "status": "incomplete"}]
    done = ReplyDone("a", ReplyStatus.INCOMPLETE, "max_output_tokens")
    details = {"reason": "max_output_tokens"}
    assert talk.done("a", "r1", "incomplete", output=output, status_details=details).events == (done,)


def test_b043_a_failed_reply_says_why(talk: Conversation) -> None:
    talk.start("a")
    talk.created("a", "r1")
    details = {"type": "failed", "error": {"type": "requests", "code": "rate_limit_exceeded"}}
    assert talk.done("a", "r1", "failed", status_details=details).events == (
        ReplyDone("a", ReplyStatus.FAILED, "rate_limit_exceeded"),
    )


def test_a_refused_request_ends_its_reply(talk: Conversation) -> None:
    talk.start("a")
    talk.start("b")
    assert talk.error("item_not_found", "reply.a").events == (
        ReplyDone("a", ReplyStatus.FAILED, "item_not_found"),
    )
    assert talk.error("item_not_found", "reply.a").events == (ModelFault("item_not_found", "no"),)
    assert talk.created("b", "r1") == NOTHING
    assert talk.replies.busy


def test_an_error_after_creation_leaves_the_end_to_the_server(talk: Conversation) -> None:
    talk.start("a")
    talk.created("a", "r1")
    assert talk.error("server_error", "reply.a").events == (ModelFault("server_error", "no"),)
    assert talk.done("a", "r1", "failed").events == (ReplyDone("a", ReplyStatus.FAILED, "unknown_error"),)


def test_a_cancel_that_came_too_late_is_harmless(talk: Conversation) -> None:
    assert talk.error("response_cancel_not_active") == NOTHING


def test_b050_other_errors_are_faults_the_session_survives(talk: Conversation) -> None:
    assert talk.error("who_knows").events == (ModelFault("who_knows", "no"),)


# -- settings ------------------------------------------------------------------------------------------------


def output(message: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(message)["session"]["audio"]["output"]
    return found


@pytest.fixture
def settings() -> SessionSettings:
    return SessionSettings(ModelProfile("gpt-realtime-2.1", "gpt-live-transcribe"))


def test_b038_the_voice_goes_out_until_a_reply_is_asked_for(settings: SessionSettings) -> None:
    assert output(settings.update(CONFIG, busy=False))["voice"] == "marin"
    assert output(settings.update(CONFIG, busy=False))["voice"] == "marin"
    settings.reply_asked()
    message = settings.update(SessionConfig("Other.", (), "cedar", "de"), busy=False)
    assert "voice" not in output(message)
    assert json.loads(message)["session"]["instructions"] == "Other."


def test_speed_goes_out_when_it_changes(settings: SessionSettings) -> None:
    fast = SessionConfig("", (), "marin", "en", speed=1.2)
    sent = [
        output(settings.update(config, busy=False)).get("speed") for config in (CONFIG, CONFIG, fast, fast)
    ]
    assert sent == [1.0, None, 1.2, None]


def test_speed_waits_for_the_end_of_the_reply(settings: SessionSettings) -> None:
    settings.update(CONFIG, busy=False)
    fast = SessionConfig("", (), "marin", "en", speed=1.2)
    assert "speed" not in output(settings.update(fast, busy=True))
    (late,) = settings.at_rest()
    assert output(late)["speed"] == 1.2
    assert settings.at_rest() == ()


def test_at_rest_before_any_settings_there_is_nothing_to_send(settings: SessionSettings) -> None:
    assert settings.at_rest() == ()


def test_updates_are_numbered(settings: SessionSettings) -> None:
    ids = [json.loads(settings.update(CONFIG, busy=False))["event_id"] for _ in range(2)]
    assert ids == ["session.1", "session.2"]
    assert settings.event_id == "session.2"
