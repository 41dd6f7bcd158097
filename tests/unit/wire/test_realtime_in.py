"""Server events: the right values, read beside the SDK's own types; and nothing that raises."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

from ivr.core.events import (
    ReplyStatus,
    SpeechStarted,
    SpeechStopped,
    TranscriptDelta,
    TranscriptDone,
    TranscriptFailed,
    TurnCommitted,
    Usage,
)
from ivr.wire.realtime_in import (
    MAX_EVENT_BYTES,
    AudioDelta,
    CallDone,
    CallerEvent,
    ErrorEvent,
    Ignored,
    ResponseCreated,
    ResponseDone,
    ResponseUsage,
    ServerEvent,
    Session,
    SessionUpdated,
    SpokenDelta,
    Unreadable,
    decode,
)

CAPTURES = Path(__file__).parents[2] / "captures" / "realtime"
TURN = (CAPTURES / "reply_with_calls.jsonl").read_bytes().splitlines()
ODD = (CAPTURES / "odd.jsonl").read_bytes().split(b"\n")[:-1]


def message(kind: str, **fields: Any) -> bytes:
    return json.dumps({"type": kind, "event_id": "e", **fields}).encode()


def read(kind: str, **fields: Any) -> ServerEvent | Ignored | Unreadable:
    return decode(message(kind, **fields))


@pytest.mark.parametrize("line", TURN, ids=[json.loads(line)["type"] for line in TURN])
def test_a_whole_turn_is_read_as_the_sdk_reads_it(line: bytes) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
    theirs = adapter.validate_json(line)
    ours = decode(line)
    assert not isinstance(ours, Unreadable)
    for name in (
        "item_id",
        "response_id",
        "call_id",
        "arguments",
        "audio_start_ms",
        "audio_end_ms",
        "transcript",
    ):
        if hasattr(ours, name):
            assert getattr(ours, name) == getattr(theirs, name)


def test_the_turns_caller_events_are_the_cores() -> None:
    core = [event.core() for event in map(decode, TURN) if isinstance(event, CallerEvent)]
    assert core == [
        SpeechStarted("item_1", 700),
        TranscriptDelta("item_1", "Are you "),
        SpeechStopped("item_1", 2460),
        TurnCommitted("item_1"),
        TranscriptDone("item_1", "Are you open today?"),
    ]


def test_audio_comes_base64_decoded_and_may_be_cut_within_a_sample() -> None:
    deltas = [event.delta for event in map(decode, TURN) if isinstance(event, AudioDelta)]
    assert [len(delta) for delta in deltas] == [101, 59]
    samples = memoryview(b"".join(deltas)).cast("h").tolist()
    assert samples == list(range(-40, 40))


def test_spoken_text_and_calls() -> None:
    events = list(map(decode, TURN))
    assert "".join(event.delta for event in events if isinstance(event, SpokenDelta)) == "One moment."
    assert [event for event in events if isinstance(event, CallDone)] == [
        CallDone("resp_1", "c1", '{"day":"today"}', "look_up_hours")
    ]


def test_usage_counts_cached_tokens_apart_and_among_the_input() -> None:
    done = next(event for event in map(decode, TURN) if isinstance(event, ResponseDone))
    assert done.response.usage is not None
    assert done.response.usage.core() == Usage(
        input_text_tokens=210,
        input_audio_tokens=90,
        cached_text_tokens=100,
        cached_audio_tokens=28,
        output_text_tokens=20,
        output_audio_tokens=30,
    )


def test_usage_of_a_server_that_gives_totals_only() -> None:
    assert ResponseUsage(input_tokens=7, output_tokens=3).core() == Usage(
        input_text_tokens=7, output_text_tokens=3
    )


def test_usage_of_a_server_that_gives_nothing() -> None:
    assert ResponseUsage().core() == Usage()


@pytest.mark.parametrize("line", ODD, ids=range(len(ODD)))
def test_b050_odd_messages_come_back_typed(line: bytes) -> None:
    event = decode(line)
    if b"foo.bar" in line:
        assert event == Ignored("foo.bar")
    else:
        assert isinstance(event, Unreadable)
        assert 0 < len(event.reason) <= 200


@pytest.mark.parametrize(
    "kind", ["rate_limits.updated", "foo.bar", "conversation.item.added", "session.closed"]
)
def test_b050_events_without_use_are_ignored(kind: str) -> None:
    assert read(kind, anything=[1]) == Ignored(kind)


def test_b050_an_error_with_null_code_is_named_by_its_type() -> None:
    event = read("error", error={"type": "weird_error", "code": None, "message": "?", "param": None})
    assert isinstance(event, ErrorEvent)
    assert (event.error.name, event.error.event_id, event.error.passing) == ("weird_error", None, False)


@pytest.mark.parametrize("body", [{}, {"code": None}, {"message": None}])
def test_an_error_without_any_name_still_has_one(body: dict[str, Any]) -> None:
    event = read("error", error=body)
    assert isinstance(event, ErrorEvent)
    assert event.error.name == "unknown_error"


@pytest.mark.parametrize("code", ["rate_limit_exceeded", "server_error", "insufficient_quota"])
def test_errors_that_pass(code: str) -> None:
    event = read("error", error={"code": code})
    assert isinstance(event, ErrorEvent)
    assert event.error.passing


def test_b045_a_failed_transcription_names_its_item() -> None:
    event = read(
        "conversation.item.input_audio_transcription.failed",
        item_id="u1",
        content_index=0,
        error={"type": "transcription_error", "code": "audio_unintelligible", "message": "no"},
    )
    assert isinstance(event, CallerEvent)
    assert event.core() == TranscriptFailed("u1", "audio_unintelligible")


def test_a_transcript_delta_may_have_no_text() -> None:
    event = read("conversation.item.input_audio_transcription.delta", item_id="u1", delta=None)
    assert isinstance(event, CallerEvent)
    assert event.core() == TranscriptDelta("u1", "")


def test_an_unreadable_event_shows_nothing_of_its_content() -> None:
    event = read(
        "conversation.item.input_audio_transcription.completed", item_id="u1", transcript=["my PIN is 4711"]
    )
    assert isinstance(event, Unreadable)
    assert "4711" not in event.reason


def test_too_large_a_message_is_not_parsed() -> None:
    event = decode(b" " * (MAX_EVENT_BYTES + 1))
    assert isinstance(event, Unreadable)


@pytest.mark.parametrize(
    ("status", "details", "end", "code"),
    [
        ("completed", None, ReplyStatus.COMPLETED, ""),
        ("completed", {"type": "completed"}, ReplyStatus.COMPLETED, ""),
        (
            "cancelled",
            {"type": "cancelled", "reason": "client_cancelled"},
            ReplyStatus.CANCELLED,
            "client_cancelled",
        ),
        ("incomplete", {"reason": "max_output_tokens"}, ReplyStatus.INCOMPLETE, "max_output_tokens"),
        (
            "failed",
            {"type": "failed", "error": {"type": "x", "code": "rate_limit_exceeded"}},
            ReplyStatus.FAILED,
            "rate_limit_exceeded",
        ),
        ("failed", None, ReplyStatus.FAILED, "unknown_error"),
        ("exploded", None, ReplyStatus.FAILED, "unknown_error"),
        (None, None, ReplyStatus.FAILED, "unknown_error"),
    ],
)
def test_b043_how_a_reply_ended(status: str | None, details: Any, end: ReplyStatus, code: str) -> None:
    event = read(
        "response.done", response={"id": "r", "status": status, "status_details": details, "output": []}
    )
    assert isinstance(event, ResponseDone)
    assert (event.response.end_status(), event.response.code()) == (end, code)


def test_a_response_without_our_metadata_has_no_reply_id() -> None:
    event = read("response.created", response={"id": "r", "metadata": None})
    assert isinstance(event, ResponseCreated)
    assert event.response.reply_id == ""


# -- what a confirmed session must be ------------------------------------------------------------------------


def settled(path: str = "", value: object = None) -> Session:
    """The session of the capture, with one value replaced."""
    session: dict[str, Any] = json.loads(TURN[1])["session"]
    place = session
    *parents, last = path.split("/") if path else ["note"]
    for name in parents:
        place = place[name]
    place[last] = value
    event = read("session.updated", session=session)
    assert isinstance(event, SessionUpdated)
    return event.session


def test_b041_pcm24k_and_our_turns_are_accepted() -> None:
    assert settled().fault() == ""


def test_the_rate_may_be_left_out() -> None:
    assert settled("audio/input/format/rate").fault() == ""


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("audio/input/format/type", "audio/pcmu", "input audio"),
        ("audio/input/format/rate", 16000, "input audio"),
        ("audio/input/format", None, "input audio"),
        ("audio/output/format/type", "audio/pcma", "output audio"),
        ("audio/output", None, "output audio"),
        ("audio/input/turn_detection", None, "server_vad"),
        ("audio/input/turn_detection/type", "semantic_vad", "server_vad"),
        ("audio/input/turn_detection/create_response", True, "create_response"),
        ("audio/input/turn_detection/create_response", None, "create_response"),
        ("audio", None, "input audio"),
    ],
)
def test_b041_other_settings_are_named(path: str, value: object, words: str) -> None:
    assert words in settled(path, value).fault()


# -- nothing raises ------------------------------------------------------------------------------------------

_TEXT = st.text("ab\x00\u00b5\U0001f600", max_size=4)
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXT
_NAMES = st.sampled_from(["id", "status", "metadata", "output", "usage", "type", "code", "audio", "x"])
_LISTS = st.lists(_LEAVES | st.dictionaries(_NAMES, _LEAVES, max_size=3), max_size=3)
_JSON = _LEAVES | _LISTS | st.dictionaries(_NAMES, _LEAVES | _LISTS, max_size=4)
_quick = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
_KINDS = st.sampled_from(sorted({json.loads(line)["type"] for line in TURN} | {"error"}))
_FIELDS = st.sampled_from(
    [
        "item_id",
        "response_id",
        "delta",
        "response",
        "error",
        "session",
        "audio_start_ms",
        "transcript",
        "call_id",
    ]
)


@_quick
@given(st.binary())
def test_any_bytes_come_back_typed(junk: bytes) -> None:
    assert isinstance(decode(junk), Unreadable | Ignored)


@_quick
@given(_KINDS, st.dictionaries(_FIELDS, _JSON, max_size=3))
def test_any_fields_come_back_typed(kind: str, fields: dict[str, Any]) -> None:
    assert isinstance(decode(message(kind, **fields)), ServerEvent | Ignored | Unreadable)


@_quick
@given(st.sampled_from(TURN), st.data())
def test_a_cut_message_is_unreadable(line: bytes, data: st.DataObject) -> None:
    assert isinstance(decode(line[: data.draw(st.integers(0, len(line) - 1))]), Unreadable)


@_quick
@given(st.binary())
def test_any_audio_survives(pcm: bytes) -> None:
    event = read("response.output_audio.delta", response_id="r", delta=base64.b64encode(pcm).decode())
    assert event == AudioDelta("r", pcm)
