"""Scripts: what is refused, and which turn is chosen."""

from typing import Any

import pytest

from ivr.sandbox.script import ScriptError, parse_script
from tests.unit.sandbox.bench import VOICED, Bench, only, user

OUT: dict[str, Any] = {"conversation": "none"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("- {any: true}\n- {any: true, sya: x}\n", r"s\.yaml:2: turns\[1\]\.sya: unknown key"),
        ("turns:\n  - any: true\n    audio_ms: long\n", r"s\.yaml:3: turns\[0\]\.audio_ms: Expected"),
        ("refuse_updates: true\n", r"s\.yaml:1: refuse_updates: unknown key"),
        ("- {any: true}\n- say: x\n", r"s\.yaml:2: turns\[1\]: needs exactly one of"),
        ("- {any: true, hear: x}\n", r"s\.yaml:1: turns\[0\]: needs exactly one of"),
        ("- {any: true, fail: x, abort: true}\n", r"s\.yaml:1: .* exclude each other"),
        ("- {any: true, transcript: x, no_transcript: never}\n", r"s\.yaml:1: .* exclude each other"),
        ("- {any: true, close: 99}\n", r"s\.yaml:1: turns\[0\]\.close"),
        ("a: [\n", r"s\.yaml:2: "),
        ("just text", r"s\.yaml:1: script: Expected"),
    ],
)
def test_a_fault_is_told_with_file_and_line(text: str, fault: str) -> None:
    with pytest.raises(ScriptError, match=fault):
        parse_script(text, "s.yaml")


def said(bench: Bench, *lines: dict[str, Any]) -> str:
    events = bench.respond(input=list(lines), **OUT)
    text: str = only(events, "response.output_audio_transcript.done")["transcript"]
    return text


def test_turns_are_used_in_order_and_matched_by_words() -> None:
    bench = Bench.scripted(
        """
        - {start: true, say: welcome}
        - {hear: book table, say: which day}
        - {any: true, say: anything}
        - {hear: bye, say: goodbye}
        """
    )
    assert said(bench) == "welcome"
    assert said(bench, user("Bye now")) == "anything"
    assert said(bench, user("I'd like to BOOK, a table.")) == "which day"
    assert said(bench, user("bye")) == "goodbye"
    assert said(bench, user("bye")) == "The script has no turn for this."


def test_a_turn_after_a_function_waits_for_its_output() -> None:
    bench = Bench.scripted(
        """
        - {output: note, say: noted}
        - {output: true, say: some output}
        - {any: true, call: {name: note}, say: one moment}
        """
    )
    pair = [
        {"type": "function_call", "call_id": "c1", "name": "note", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    ]
    state = {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "speed=1"}]}
    assert said(bench, user("hello"), state) == "one moment"
    assert said(bench, user("hello"), *pair, state) == "noted"
    assert said(bench, user("hello"), *pair, state) == "some output"


def test_each_piece_of_audio_keeps_its_turn() -> None:
    bench = Bench.scripted(
        "[{any: true, transcript: first, say: one}, {any: true, transcript: second, say: two}]"
    )
    detection = {"type": "server_vad", "create_response": False}
    bench.send(
        "session.update", session={"type": "realtime", "audio": {"input": {"turn_detection": detection}}}
    )
    first, second = bench.say(VOICED)[0]["item_id"], bench.say(VOICED)[0]["item_id"]
    bench.run(0)
    assert said(bench, {"type": "item_reference", "id": second}) == "two"
    assert said(bench, {"type": "item_reference", "id": first}) == "one"


def test_each_turn_has_its_own_tone_unless_told() -> None:
    bench = Bench.scripted(
        """
        - {any: true, say: a b}
        - {any: true, say: a b, speech: {hz: 1000, ms_per_word: 100, level_dbfs: -30}}
        """
    )
    sizes = []
    for _ in range(2):
        events = bench.respond(input=[user("hi")], **OUT)
        sizes.append(sum(e["type"] == "response.output_audio.delta" for e in events))
    assert sizes == [3, 1]
