"""What we send: held to the SDK's types field by field, and exact where a right value is known."""

import base64
import json
from typing import Any

import pytest

from ivr.core.commands import (
    AssistantText,
    CallOutput,
    FunctionTool,
    ItemRef,
    SessionConfig,
    StartReply,
    SystemText,
    UserText,
)
from ivr.wire.realtime_out import (
    ModelProfile,
    encode_append,
    encode_cancel,
    encode_delete,
    encode_probe,
    encode_reply,
    encode_session,
    reasons,
    reply_event_id,
    reply_of_event,
)
from tests.fake_realtime import check_client_event

TOOL = FunctionTool("look_up", "Looks up.", {"type": "object", "properties": {"day": {"type": "string"}}})
CONFIG = SessionConfig("Be brief.", (TOOL,), "marin", "en-GB", speed=1.1, vad_threshold=0.6, silence_ms=700)
PROFILE = ModelProfile("gpt-realtime-2.1", "gpt-live-transcribe")


def load(message: bytes) -> dict[str, Any]:
    """The message, after the SDK's types have agreed to it."""
    whole: dict[str, Any] = json.loads(message)
    check_client_event(whole)
    return whole


def session(profile: ModelProfile = PROFILE, *, voice: bool = True, speed: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = load(encode_session(CONFIG, profile, "session.1", voice=voice, speed=speed))[
        "session"
    ]
    return found


def test_b040_the_session_has_the_ga_shape() -> None:
    assert load(encode_session(CONFIG, PROFILE, "session.1", voice=True, speed=True)) == {
        "type": "session.update",
        "event_id": "session.1",
        "session": {
            "type": "realtime",
            "instructions": "Be brief.",
            "output_modalities": ["audio"],
            "tools": [
                {
                    "type": "function",
                    "name": "look_up",
                    "description": "Looks up.",
                    "parameters": TOOL.parameters,
                }
            ],
            "tool_choice": "auto",
            "reasoning": {"effort": "minimal"},
            "audio": {
                "input": {
                    "format": {"type": "audio/pcm", "rate": 24000},
                    "transcription": {"model": "gpt-live-transcribe", "language": "en"},
                    "noise_reduction": None,
                    "turn_detection": {
                        "type": "server_vad",
                        "threshold": 0.6,
                        "prefix_padding_ms": 300,
                        "silence_duration_ms": 700,
                        "create_response": False,
                        "interrupt_response": False,
                    },
                },
                "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "marin", "speed": 1.1},
            },
        },
    }


def test_b038_voice_can_be_left_out_and_the_model_always_is() -> None:
    assert "voice" not in session(voice=False)["audio"]["output"]
    assert "model" not in session()


def test_speed_is_kept_within_what_the_protocol_takes() -> None:
    def sent(speed: float) -> float:
        config = SessionConfig("", (), "marin", "en", speed=speed)
        message = encode_session(config, PROFILE, "s", voice=True, speed=True)
        found: float = load(message)["session"]["audio"]["output"]["speed"]
        return found

    assert [sent(0.1), sent(0.9), sent(2.0)] == [0.25, 0.9, 1.5]


def test_without_a_transcription_model_none_is_asked_for() -> None:
    assert session(ModelProfile("gpt-realtime-2.1", ""))["audio"]["input"]["transcription"] is None


def test_without_a_language_none_is_named() -> None:
    message = encode_session(SessionConfig("", (), "marin", ""), PROFILE, "s", voice=True, speed=True)
    assert load(message)["session"]["audio"]["input"]["transcription"] == {"model": "gpt-live-transcribe"}


@pytest.mark.parametrize(
    ("model", "thinks"),
    [
        ("gpt-realtime-2", True),
        ("gpt-realtime-2.1", True),
        ("gpt-realtime-2.1-mini", True),
        ("gpt-realtime-2-2026-05-01", True),
        ("gpt-realtime-3", True),
        ("gpt-realtime", False),
        ("gpt-realtime-1.5", False),
        ("gpt-realtime-mini", False),
        ("gpt-realtime-2025-08-28", False),
        ("gpt-4o-realtime-preview", False),
        ("sandbox", False),
    ],
)
def test_reasoning_goes_to_models_that_reason_only(model: str, thinks: bool) -> None:
    assert reasons(model) is thinks
    assert ("reasoning" in session(ModelProfile(model, "t"))) is thinks


def test_no_effort_means_no_reasoning_field() -> None:
    assert "reasoning" not in session(ModelProfile("gpt-realtime-2.1", "t", ""))


def test_append_carries_the_pcm() -> None:
    pcm = bytes(range(256)) * 4
    message = load(encode_append(pcm))
    assert message.keys() == {"type", "audio"}
    assert message["type"] == "input_audio_buffer.append"
    assert base64.b64decode(message["audio"], validate=True) == pcm


def test_a_reply_is_out_of_band_and_holds_its_whole_context() -> None:
    items = (
        UserText("Earlier: hello"),
        AssistantText("Hello, Smith & Sons."),
        ItemRef("item_7"),
        CallOutput("c1", "look_up", '{"day":"today"}', "open until 17:00"),
        SystemText('State: "greeting" µ'),
    )
    assert load(encode_reply(StartReply("t7.1", "Be brief.", items, (TOOL,)))) == {
        "type": "response.create",
        "event_id": "reply.t7.1",
        "response": {
            "conversation": "none",
            "output_modalities": ["audio"],
            "instructions": "Be brief.",
            "input": [
                {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": "Earlier: hello"}],
                },
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "Hello, Smith & Sons."}],
                },
                {"type": "item_reference", "id": "item_7"},
                {"type": "function_call", "call_id": "c1", "name": "look_up", "arguments": '{"day":"today"}'},
                {"type": "function_call_output", "call_id": "c1", "output": "open until 17:00"},
                {
                    "type": "message",
                    "role": "system",
                    "content": [{"type": "input_text", "text": 'State: "greeting" µ'}],
                },
            ],
            "tools": [
                {
                    "type": "function",
                    "name": "look_up",
                    "description": "Looks up.",
                    "parameters": TOOL.parameters,
                }
            ],
            "tool_choice": "auto",
            "metadata": {"reply_id": "t7.1"},
        },
    }


def test_b030_each_call_goes_back_as_a_pair_with_its_own_id() -> None:
    outputs = (CallOutput("c1", "a", "{}", "1"), CallOutput("c2", "b", "{}", "2"))
    sent = load(encode_reply(StartReply("r", "", outputs, ())))["response"]["input"]
    assert [(item["type"], item["call_id"]) for item in sent] == [
        ("function_call", "c1"),
        ("function_call_output", "c1"),
        ("function_call", "c2"),
        ("function_call_output", "c2"),
    ]


def test_without_tools_none_may_be_called() -> None:
    sent = load(encode_reply(StartReply("r", "", (), ())))["response"]
    assert (sent["tools"], sent["tool_choice"], sent["input"]) == ([], "none", [])


def test_cancel_and_delete_name_their_object() -> None:
    assert load(encode_cancel("resp_1")) == {"type": "response.cancel", "response_id": "resp_1"}
    assert load(encode_delete("item_1")) == {"type": "conversation.item.delete", "item_id": "item_1"}


def test_the_probe_is_out_of_band_and_small() -> None:
    sent = load(encode_probe())["response"]
    assert (sent["conversation"], sent["output_modalities"], sent["metadata"]) == (
        "none",
        ["text"],
        {"reply_id": "probe"},
    )
    assert sent["max_output_tokens"] <= 16
    assert len(sent["input"]) == 1
    assert sent["tools"] == []


def test_event_ids_lead_back_to_replies() -> None:
    assert reply_of_event(reply_event_id("t1.0")) == "t1.0"
    assert [reply_of_event(other) for other in (None, "", "session.1", "event_9")] == ["", "", "", ""]
