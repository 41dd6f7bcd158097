"""Session settings, the conversation and errors, as a client sees them."""

import base64
import json
from typing import Any

import pytest

from ivr.sandbox.outbox import Close, Listen
from ivr.sandbox.thinker import Thinker
from tests.unit.sandbox.bench import MS, VOICED, Bench, error, kinds, only, user

SPEAKS = "[{any: true, repeat: true, say: one two three, audio_ms: 1000}]"


def update(bench: Bench, **session: Any) -> list[dict[str, Any]]:
    return bench.send("session.update", session={"type": "realtime", **session})


def test_a_session_introduces_itself_and_its_model_is_no_language_model() -> None:
    (event,) = Bench(Thinker()).hello
    assert event["type"] == "session.created"
    assert event["session"]["model"] == "sandbox"
    assert event["session"]["expires_at"] == 1_000 + 3_600
    assert event["session"]["audio"]["input"]["turn_detection"]["silence_duration_ms"] == 500


def test_an_update_is_merged_and_echoed_whole() -> None:
    bench = Bench(Thinker())
    update(bench, instructions="Be kind.", audio={"output": {"voice": "marin"}})
    session = only(update(bench, audio={"output": {"speed": 0.8}}), "session.updated")["session"]
    assert session["instructions"] == "Be kind."
    assert session["audio"]["output"] == {
        "format": {"type": "audio/pcm", "rate": 24000},
        "voice": "marin",
        "speed": 0.8,
    }


def test_null_switches_turn_detection_off_and_an_object_replaces_it() -> None:
    bench = Bench(Thinker())
    detection = {"type": "server_vad", "silence_duration_ms": 900}
    event = only(update(bench, audio={"input": {"turn_detection": detection}}), "session.updated")
    assert event["session"]["audio"]["input"]["turn_detection"]["silence_duration_ms"] == 900
    update(bench, audio={"input": {"turn_detection": {"type": "server_vad", "threshold": 0.6}}})
    event = only(update(bench), "session.updated")
    assert event["session"]["audio"]["input"]["turn_detection"]["silence_duration_ms"] == 500
    update(bench, audio={"input": {"turn_detection": None}})
    assert bench.say(VOICED) == []


@pytest.mark.parametrize(
    ("session", "code", "param"),
    [
        ({"voice": "marin"}, "unknown_parameter", "session.voice"),
        ({"audio": {"input": {"formt": 1}}}, "unknown_parameter", "session.audio.input.formt"),
        ({"audio": {"output": {"speed": 2}}}, "invalid_value", "session.audio.output.speed"),
        ({"audio": {"output": {"speed": "fast"}}}, "invalid_type", "session.audio.output.speed"),
        (
            {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 8000}}}},
            "invalid_value",
            "session.audio.input.format.rate",
        ),
        (
            {"audio": {"input": {"format": {"type": "audio/opus"}}}},
            "invalid_value",
            "session.audio.input.format.type",
        ),
        ({"tools": [{"type": "function", "name": "a b"}]}, "invalid_value", "session.tools[0].name"),
        ({"model": "another"}, "invalid_value", "session.model"),
        ({"tool_choice": {"type": "function", "name": "none_such"}}, "invalid_value", "session.tool_choice"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_path(session: dict[str, Any], code: str, param: str) -> None:
    detail = error(update(Bench(Thinker()), **session))
    assert (detail["code"], detail["param"], detail["event_id"]) == (code, param, "e1")
    assert detail["type"] == "invalid_request_error"


def test_b038_a_voice_sent_after_it_has_spoken_is_refused_with_everything_beside_it() -> None:
    bench = Bench.scripted(SPEAKS)
    bench.respond(input=[user("hi")], conversation="none")
    refused = update(bench, instructions="New.", audio={"output": {"voice": "alloy"}})
    assert error(refused)["code"] == "cannot_update_voice"
    assert error(update(bench, model="sandbox"))["param"] == "session.model"
    session = only(update(bench, instructions="Newer."), "session.updated")["session"]
    assert (session["instructions"], session["audio"]["output"]["voice"]) == ("Newer.", "alloy")


def test_speed_cannot_change_under_a_reply_but_may_be_repeated() -> None:
    bench = Bench.scripted("[{any: true, say: a b, audio_ms: 5000, pace_ms: 50}]")
    bench.send("response.create", response={"input": [user("hi")], "conversation": "none"})
    bench.run(100)
    assert error(update(bench, audio={"output": {"speed": 1.2}}))["param"] == "session.audio.output.speed"
    assert kinds(update(bench, audio={"output": {"speed": 1.0}})) == ["session.updated"]


@pytest.mark.parametrize("text", ["x", "字"])
def test_b058_instructions_and_tools_over_the_limit_are_refused(text: str) -> None:
    bench = Bench(Thinker())
    tools = [{"type": "function", "name": "note", "description": "d" * 300}]
    assert error(update(bench, instructions=text * 49_000, tools=tools))["param"] == "session.instructions"
    assert kinds(update(bench, instructions=text * 48_500, tools=tools)) == ["session.updated"]


@pytest.mark.parametrize(
    ("text", "code", "event_id"),
    [
        ("{", "invalid_json", None),
        ("[1]", "invalid_event", None),
        (b"\xff\xfe", "invalid_json", None),
        ('{"event_id": "mine"}', "missing_required_parameter", "mine"),
        ('{"type": "session.close", "event_id": "mine"}', "invalid_value", "mine"),
        ('{"type": "input_audio_buffer.append", "audio": "?", "event_id": "mine"}', "invalid_value", "mine"),
    ],
)
def test_a_bad_message_is_an_error_and_the_session_goes_on(
    text: str | bytes, code: str, event_id: str | None
) -> None:
    bench = Bench(Thinker())
    detail = error(bench.raw(text))
    assert (detail["code"], detail["event_id"]) == (code, event_id)
    assert kinds(update(bench)) == ["session.updated"]


def test_b041_the_answer_to_an_update_can_be_late_or_refused() -> None:
    late = Bench.scripted("{before_ready_ms: 1000}")
    assert update(late) == []
    assert late.run(999) == []
    assert kinds(late.run(1)) == ["session.updated"]
    assert error(update(Bench.scripted("{refuse_update: true}")))["param"] == "session"


def test_b034_a_session_ends_after_its_lifetime() -> None:
    bench = Bench(Thinker())
    assert bench.run(3_599_999) == []
    assert error(bench.run(1))["code"] == "session_expired"
    assert bench.others == [Close(1001, "session expired")]
    assert error(Bench.scripted("{lifetime_ms: 5000}").run(5_000))["code"] == "session_expired"


# -- the user's audio --------------------------------------------------------------------------------------


def test_a_turn_is_committed_and_heard() -> None:
    bench = Bench(Thinker())
    update(bench, audio={"input": {"transcription": {"model": "m"}, "turn_detection": _quiet()}})
    events = bench.say(VOICED)
    assert kinds(events) == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
    ]
    item_id = events[0]["item_id"]
    (listen,) = bench.others
    assert isinstance(listen, Listen)
    assert (listen.key, len(listen.pcm), listen.rate_hz) == (item_id, 1_100 * MS, 24_000)
    completed = only(bench.heard(item_id, "Hello."), "conversation.item.input_audio_transcription.completed")
    assert (completed["transcript"], completed["item_id"]) == ("Hello.", item_id)
    assert completed["usage"] == {"type": "duration", "seconds": 1.1}
    assert bench.heard(item_id, "Hello.") == []


def test_without_transcription_nothing_is_told_but_words_are_found_all_the_same() -> None:
    bench = Bench(Thinker())
    update(bench, audio={"input": {"turn_detection": _quiet()}})
    item_id = bench.say(VOICED)[0]["item_id"]
    assert bench.heard(item_id, "Hello.") == []
    bench.send(
        "response.create",
        response={"input": [{"type": "item_reference", "id": item_id}], "conversation": "none"},
    )
    bench.run(1)
    assert [other.text for other in bench.others if not isinstance(other, Listen | Close)] == [  # type: ignore[union-attr]
        "Hello. How can I help you?"
    ]


def test_b045_a_transcription_can_fail_stay_away_or_be_empty_or_come_twice() -> None:
    bench = Bench.scripted(
        """
        - {any: true, no_transcript: fail}
        - {any: true, no_transcript: never}
        - {any: true, no_transcript: empty, transcript_delay_ms: 400}
        - {hear: hello there, transcript_times: 2}
        """
    )
    update(bench, audio={"input": {"transcription": {"model": "m"}, "turn_detection": _quiet()}})
    bench.say(VOICED)
    failed = only(bench.run(0), "conversation.item.input_audio_transcription.failed")
    assert failed["error"]["code"] == "audio_unintelligible"
    bench.say(VOICED)
    assert bench.run(10_000) == []
    bench.say(VOICED)
    assert bench.run(399) == []
    assert [event["transcript"] for event in bench.run(1)] == [""]
    bench.say(VOICED)
    assert [event.get("transcript") for event in bench.run(0)] == [None, "hello there", None, "hello there"]


def test_manual_turns_need_100_ms() -> None:
    bench = Bench(Thinker())
    update(bench, audio={"input": {"turn_detection": None}})
    bench.say(bytes(99 * MS))
    assert error(bench.send("input_audio_buffer.commit"))["code"] == "input_audio_buffer_commit_empty"
    bench.say(bytes(1 * MS))
    assert kinds(bench.send("input_audio_buffer.commit"))[0] == "input_audio_buffer.committed"
    bench.say(bytes(500 * MS))
    assert kinds(bench.send("input_audio_buffer.clear")) == ["input_audio_buffer.cleared"]
    assert error(bench.send("input_audio_buffer.commit"))["code"] == "input_audio_buffer_commit_empty"


# -- conversation ------------------------------------------------------------------------------------------


def test_items_are_chained_and_given_back_with_their_audio() -> None:
    bench = Bench(Thinker())
    audio = base64.b64encode(VOICED).decode()
    spoken = {
        "type": "message",
        "role": "user",
        "id": "u1",
        "content": [{"type": "input_audio", "audio": audio}],
    }
    assert (
        only(bench.send("conversation.item.create", item=spoken), "conversation.item.added")[
            "previous_item_id"
        ]
        is None
    )
    second = only(bench.send("conversation.item.create", item=user("and")), "conversation.item.done")
    assert second["previous_item_id"] == "u1"
    first = {**user("before"), "id": "u0"}
    event = only(
        bench.send("conversation.item.create", item=first, previous_item_id="root"), "conversation.item.done"
    )
    assert event["previous_item_id"] is None
    assert "audio" not in json.dumps(event)
    item = only(bench.send("conversation.item.retrieve", item_id="u1"), "conversation.item.retrieved")["item"]
    assert item["content"][0]["audio"] == audio


@pytest.mark.parametrize(
    ("kind", "fields", "code"),
    [
        ("conversation.item.delete", {"item_id": "x"}, "item_delete_invalid_item_id"),
        ("conversation.item.retrieve", {"item_id": "x"}, "item_retrieve_invalid_item_id"),
        (
            "conversation.item.truncate",
            {"item_id": "x", "content_index": 0, "audio_end_ms": 1},
            "item_truncate_invalid_item_id",
        ),
        (
            "conversation.item.create",
            {"item": user("x"), "previous_item_id": "x"},
            "item_create_invalid_previous_item_id",
        ),
        (
            "conversation.item.create",
            {"item": {"type": "function_call_output", "call_id": "c9", "output": "ok"}},
            "invalid_tool_call_id",
        ),
        (
            "conversation.item.create",
            {"item": {"type": "message", "role": "user", "content": [{"type": "output_text", "text": "x"}]}},
            "invalid_value",
        ),
        (
            "conversation.item.create",
            {
                "item": {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_audio", "audio": "AAAA"}],
                }
            },
            "invalid_value",
        ),
        ("response.cancel", {}, "response_cancel_not_active"),
        ("response.cancel", {"response_id": "resp_x"}, "response_cancel_not_active"),
    ],
)
def test_what_does_not_exist_or_fit_is_refused(kind: str, fields: dict[str, Any], code: str) -> None:
    detail = error(Bench(Thinker()).send(kind, **fields))
    assert (detail["code"], detail["event_id"]) == (code, "e1")


@pytest.mark.parametrize(
    ("end_ms", "code"),
    [(1_001, "invalid_value"), (0, "unsupported_content_type"), (1_000, None), (300, None)],
)
def test_b026_audio_is_cut_within_its_length_only(end_ms: int, code: str | None) -> None:
    bench = Bench.scripted(SPEAKS)
    bench.send("conversation.item.create", item=user("hi"))
    done = only(bench.respond(), "response.done")["response"]
    events = bench.send(
        "conversation.item.truncate", item_id=done["output"][0]["id"], content_index=0, audio_end_ms=end_ms
    )
    assert kinds(events) == ["error" if code else "conversation.item.truncated"]
    assert code is None or error(events)["code"] == code


def test_a_users_item_cannot_be_cut() -> None:
    bench = Bench(Thinker())
    bench.send("conversation.item.create", item={**user("hi"), "id": "u1"})
    events = bench.send("conversation.item.truncate", item_id="u1", content_index=0, audio_end_ms=10)
    assert error(events)["code"] == "unsupported_content_type"


def _quiet() -> dict[str, Any]:
    return {"type": "server_vad", "create_response": False, "interrupt_response": False}
