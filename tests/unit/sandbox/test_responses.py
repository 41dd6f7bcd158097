"""Responses: order of events, what they wait for, how they end."""

import base64
import json
from typing import Any

import pytest

from ivr.sandbox.outbox import Abort, Close, Listen, Speak
from ivr.sandbox.pcm import Tone
from ivr.sandbox.thinker import Thinker
from tests.unit.sandbox.bench import MS, VOICED, Bench, error, kinds, only, user

OUT: dict[str, Any] = {"conversation": "none"}


def pcm_of(events: list[dict[str, Any]]) -> bytes:
    return b"".join(
        base64.b64decode(e["delta"]) for e in events if e["type"] == "response.output_audio.delta"
    )


def manual(bench: Bench) -> str:
    """A turn without turn detection; returns its item."""
    session = {"type": "realtime", "audio": {"input": {"turn_detection": None}}}
    bench.send("session.update", session=session)
    bench.say(VOICED)
    item: str = bench.send("input_audio_buffer.commit")[0]["item_id"]
    return item


def test_audio_comes_in_chunks_of_200_ms_with_the_words_ahead() -> None:
    bench = Bench.scripted("[{any: true, say: one two three, audio_ms: 500}]")
    events = bench.respond(input=[user("hi")], metadata={"reply": "7"}, **OUT)
    assert kinds(events) == [
        "response.created",
        "response.output_item.added",
        "response.content_part.added",
        *["response.output_audio_transcript.delta", "response.output_audio.delta"] * 3,
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
    ]
    assert pcm_of(events) == Tone(400, 500).pcm24k()
    words = "".join(e["delta"] for e in events if e["type"] == "response.output_audio_transcript.delta")
    assert words == only(events, "response.output_audio_transcript.done")["transcript"] == "one two three"
    created, done = events[0]["response"], events[-1]["response"]
    assert (created["status"], created["output"], created["metadata"]) == ("in_progress", [], {"reply": "7"})
    assert (done["id"], done["status"], done["metadata"]) == (created["id"], "completed", {"reply": "7"})


def test_usage_counts_text_audio_and_the_cached_prefix() -> None:
    bench = Bench.scripted("[{any: true, repeat: true, say: one two, audio_ms: 1000}]")
    item = manual(bench)
    asked = {"input": [{"type": "item_reference", "id": item}], "instructions": "x" * 400, **OUT}
    first = only(bench.respond(**asked), "response.done")["response"]["usage"]
    assert first["input_token_details"]["audio_tokens"] == 13
    assert first["input_token_details"]["text_tokens"] == 100
    assert first["input_token_details"]["cached_tokens"] == 0
    assert first["output_token_details"] == {"text_tokens": 2, "audio_tokens": 20}
    assert first["total_tokens"] == 135
    again = only(bench.respond(**{**asked, "instructions": "x" * 200 + "y" * 200}), "response.done")
    assert again["response"]["usage"]["input_token_details"]["cached_tokens_details"]["text_tokens"] == 50


def test_text_is_answered_as_text_and_uses_up_no_turn_of_a_script() -> None:
    bench = Bench.scripted(
        "[{any: true, say: spoken, audio_ms: 200}, {any: true, text: true, say: written words}]"
    )
    events = bench.respond(input=[user("hi")], output_modalities=["text"], **OUT)
    assert only(events, "response.output_text.done")["text"] == "written words"
    assert pcm_of(events) == b""
    assert pcm_of(bench.respond(input=[user("hi")], **OUT)) != b""


def test_functions_follow_the_audio_and_broken_arguments_are_sent_as_they_are() -> None:
    bench = Bench.scripted(
        """
        - any: true
          say: one moment
          call: [{name: b054, arguments: '{"date": "2026-'}, {name: none_needed}]
        """
    )
    events = bench.respond(input=[user("hi")], **OUT)
    done = [e for e in events if e["type"] == "response.function_call_arguments.done"]
    assert [(e["name"], e["arguments"]) for e in done] == [("b054", '{"date": "2026-'), ("none_needed", "{}")]
    assert [e["output_index"] for e in done] == [1, 2]
    assert kinds(events).index("response.output_audio.done") < kinds(events).index(
        "response.function_call_arguments.delta"
    )


def test_one_reply_in_the_conversation_any_number_beside_it() -> None:
    bench = Bench.scripted("[{any: true, repeat: true, say: a b c, audio_ms: 3000, pace_ms: 50}]")
    first = bench.send("response.create", response={"input": [user("hi")]})
    assert error(bench.send("response.create"))["code"] == "conversation_already_has_active_response"
    beside = [bench.send("response.create", response={"input": [user("hi")], **OUT}) for _ in range(2)]
    assert [events[0]["type"] for events in beside] == ["response.created"] * 2
    # Without an id only the conversation's reply is cancelled.
    assert (
        only(bench.send("response.cancel"), "response.done")["response"]["id"] == first[0]["response"]["id"]
    )
    assert error(bench.send("response.cancel"))["code"] == "response_cancel_not_active"
    assert kinds(bench.run(60_000)).count("response.done") == 2


def test_only_the_conversations_reply_leaves_an_item_there() -> None:
    bench = Bench.scripted("[{any: true, repeat: true, say: a, audio_ms: 200}]")
    assert "conversation.item.added" not in kinds(bench.respond(input=[user("hi")], **OUT))
    events = bench.respond(input=[user("hi")])
    item = only(events, "conversation.item.done")["item"]
    kept = bench.send("conversation.item.retrieve", item_id=item["id"])[0]["item"]
    assert base64.b64decode(kept["content"][0]["audio"]) == pcm_of(events)


def test_a_cancelled_reply_closes_what_is_open() -> None:
    bench = Bench.scripted("[{any: true, say: one two three four, audio_ms: 4000, pace_ms: 100}]")
    created = bench.send("response.create", response={"input": [user("hi")], **OUT})[0]["response"]
    begun = bench.run(250)
    ended = bench.send("response.cancel", response_id=created["id"])
    assert kinds(ended) == [
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
    ]
    done = ended[-1]["response"]
    assert done["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}
    assert done["output"][0]["status"] == "incomplete"
    assert done["usage"]["output_token_details"]["audio_tokens"] == len(pcm_of(begun)) // MS * 20 // 1_000
    assert bench.run(10_000) == []


def test_b032_a_reply_can_be_cancelled_only_once_it_is_created() -> None:
    bench = Bench.scripted(
        "{created_delay_ms: 500, turns: [{any: true, say: a, audio_ms: 900, pace_ms: 50}]}"
    )
    assert bench.send("response.create", response={"input": [user("hi")]}) == []
    assert error(bench.send("response.cancel"))["code"] == "response_cancel_not_active"
    assert error(bench.send("response.create"))["code"] == "conversation_already_has_active_response"
    assert kinds(bench.run(500))[0] == "response.created"
    assert kinds(bench.send("response.cancel"))[-1] == "response.done"


@pytest.mark.parametrize("code", ["rate_limit_exceeded", "server_error"])
def test_b043_a_failed_reply_has_no_output(code: str) -> None:
    bench = Bench.scripted(f"[{{any: true, say: a, fail: {code}}}]")
    done = only(bench.respond(input=[user("hi")], **OUT), "response.done")["response"]
    assert (done["status"], done["output"]) == ("failed", [])
    assert done["status_details"]["error"]["code"] == code


def test_a_reply_can_break_after_some_of_its_audio() -> None:
    closing = Bench.scripted("[{any: true, say: a b, audio_ms: 2000, close: 1011, after_ms: 600}]")
    assert len(pcm_of(closing.respond(input=[user("hi")], **OUT))) == 600 * MS
    assert closing.others == [Close(1011, "the script says so")]
    aborting = Bench.scripted("[{any: true, say: a b, abort: true}]")
    assert kinds(aborting.respond(input=[user("hi")], **OUT)) == ["response.created"]
    assert aborting.others == [Abort()]


@pytest.mark.parametrize(
    ("response", "code", "param"),
    [
        ({"input": [{"type": "item_reference", "id": "item_x"}]}, "invalid_value", "response.input[0].id"),
        (
            {"input": [{"type": "function_call_output", "call_id": "c", "output": "ok"}]},
            "invalid_tool_call_id",
            "response.input[0].call_id",
        ),
        ({"audio": {"output": {"speed": 1.0}}}, "unknown_parameter", "response.audio.output.speed"),
        ({"tool_choice": {"type": "function", "name": "x"}}, "invalid_value", "response.tool_choice"),
        ({"instructions": "x" * 50_000}, "string_above_max_length", "response.instructions"),
        (
            {"input": [{"type": "message", "role": "user", "content": [{"type": "input_text"}]}]},
            "missing_required_parameter",
            "response.input[0].content[0].text",
        ),
    ],
)
def test_a_response_that_cannot_be_is_refused_with_its_path(
    response: dict[str, Any], code: str, param: str
) -> None:
    bench = Bench(Thinker())
    detail = error(bench.send("response.create", response={**OUT, **response}))
    assert (detail["code"], detail["param"]) == (code, param)
    assert bench.run(10_000) == []


@pytest.mark.parametrize("field", [{"conversation": "none"}, {"input": []}])
def test_a_server_without_out_of_band_replies_can_be_played(field: dict[str, Any]) -> None:
    bench = Bench.scripted("{refuse_out_of_band: true}")
    assert error(bench.send("response.create", response=field))["code"] == "unknown_parameter"


# -- the thinking sandbox ----------------------------------------------------------------------------------


def test_a_reply_waits_for_the_words_and_then_for_the_voice() -> None:
    bench = Bench(Thinker())
    item = manual(bench)
    asked = {"input": [{"type": "item_reference", "id": item}], **OUT}
    assert kinds(bench.send("response.create", response=asked)) == ["response.created"]
    assert bench.run(7_000) == []
    bench.heard(item, "Hello!")
    bench.run(0)
    speak = bench.others[-1]
    assert isinstance(speak, Speak)
    assert (speak.text, speak.voice, speak.speed) == ("Hello. How can I help you?", "alloy", 1.0)
    events = [*bench.spoken(speak.response_id, bytes(300 * MS)), *bench.run(1_000)]
    assert events[-1]["response"]["status"] == "completed"
    assert len(pcm_of(events)) == 300 * MS


def test_words_that_do_not_come_are_not_waited_for_for_ever() -> None:
    bench = Bench(Thinker())
    item = manual(bench)
    bench.send("response.create", response={"input": [{"type": "item_reference", "id": item}], **OUT})
    bench.run(8_000)
    bench.run(0)
    speak = bench.others[-1]
    assert isinstance(speak, Speak) and speak.text.startswith("Sorry, I didn't catch that.")


def test_a_voice_that_fails_fails_the_reply() -> None:
    bench = Bench(Thinker())
    created = bench.send("response.create", response={"input": [user("Hello")], **OUT})[0]["response"]
    bench.run(0)
    done = only(bench.spoken(created["id"], None), "response.done")["response"]
    assert done["status_details"]["error"]["code"] == "server_error"


def test_audio_given_in_the_input_is_heard_once() -> None:
    bench = Bench(Thinker())
    audio = base64.b64encode(VOICED).decode()
    message = {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": audio}]}
    bench.send("response.create", response={"input": [message], **OUT})
    bench.send("response.create", response={"input": [message], **OUT})
    (listen,) = bench.others
    assert isinstance(listen, Listen)
    bench.heard(listen.key, "Hello!")
    bench.run(0)
    assert sum(isinstance(other, Speak) for other in bench.others) == 2


def test_turn_detection_replies_by_itself_and_speech_interrupts_it() -> None:
    bench = Bench.scripted(
        "[{any: true, transcript: a, say: x y, audio_ms: 9000, pace_ms: 20}, {any: true, say: z, audio_ms: 200}]"
    )
    assert kinds(bench.say(VOICED))[-1] == "response.created"
    bench.run(100)
    events = bench.say(VOICED)
    assert kinds(events)[0] == "input_audio_buffer.speech_started"
    assert only(events, "response.done")["response"]["status_details"]["reason"] == "turn_detected"
    assert only(bench.run(1_000), "response.done")["response"]["status"] == "completed"


def test_an_out_of_band_reply_is_not_interrupted_by_speech() -> None:
    bench = Bench.scripted(
        "[{any: true, repeat: true, transcript: a, say: x y, audio_ms: 9000, pace_ms: 20}]"
    )
    detection = {"type": "server_vad", "create_response": False}
    bench.send(
        "session.update", session={"type": "realtime", "audio": {"input": {"turn_detection": detection}}}
    )
    bench.send("response.create", response={"input": [user("hi")], **OUT})
    bench.run(100)
    assert "response.done" not in kinds(bench.say(VOICED))


def test_b050_raw_events_come_before_the_answer() -> None:
    bench = Bench.scripted("[{any: true, say: a, raw: [{type: foo.bar}, '{\"x\": 1}']}]")
    events = bench.respond(input=[user("hi")], **OUT)
    assert json.dumps(events[2:4]) == '[{"type": "foo.bar"}, {"x": 1}]'
