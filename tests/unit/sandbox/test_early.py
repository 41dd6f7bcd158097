"""Words that the sandbox tells while the user still speaks."""

from typing import Any

from ivr.sandbox.outbox import Listen
from ivr.sandbox.pcm import Tone
from ivr.sandbox.thinker import Thinker
from tests.unit.sandbox.bench import MS, Bench

SCRIPT = """
partials_ms: 300
turns:
  - {any: true, transcript: when do you open on Saturday, say: At nine.}
  - {any: true, transcript: thanks, say: You are welcome.}
"""
DELTA = "conversation.item.input_audio_transcription.delta"
DONE = "conversation.item.input_audio_transcription.completed"
TRANSCRIBING = {"type": "realtime", "audio": {"input": {"transcription": {"model": "whisper-1"}}}}


def ready(bench: Bench) -> Bench:
    bench.send("session.update", session=TRANSCRIBING)
    return bench


def voice(bench: Bench, *lasting_ms: int) -> list[dict[str, Any]]:
    return [event for ms in lasting_ms for event in bench.say(Tone(300, ms).pcm24k())]


def deltas(events: list[dict[str, Any]]) -> list[str]:
    return [event["delta"] for event in events if event["type"] == DELTA]


def early_key(bench: Bench) -> str:
    """Of the last question to the ear."""
    question = bench.others[-1]
    assert isinstance(question, Listen)
    return question.key


def test_a_script_s_words_come_one_by_one_while_the_user_speaks() -> None:
    bench = ready(Bench.scripted(SCRIPT))
    spoken = voice(bench, *[100] * 10)
    assert deltas(spoken) == ["when", " do", " you"]
    ended = [*bench.say(bytes(MS * 700)), *bench.run(100)]
    assert ended[0]["type"] == "input_audio_buffer.speech_stopped"
    assert deltas(ended) == [" open on Saturday"]
    (done,) = (event for event in ended if event["type"] == DONE)
    assert done["transcript"] == "when do you open on Saturday"
    assert {e["item_id"] for e in [*spoken, *ended] if e["type"] in (DELTA, DONE)} == {done["item_id"]}


def test_each_speech_gets_its_own_turn_of_the_script() -> None:
    bench = ready(Bench.scripted(SCRIPT))
    for _ in range(2):
        voice(bench, 600)
        events = [*bench.say(bytes(MS * 700)), *bench.run(100)]
    assert [event["transcript"] for event in events if event["type"] == DONE] == ["thanks"]


def test_without_the_setting_or_without_transcription_nothing_is_told_early() -> None:
    assert (
        deltas(voice(ready(Bench.scripted(SCRIPT.replace("partials_ms: 300", "partials_ms: 0"))), 2_000))
        == []
    )
    assert deltas(voice(Bench.scripted(SCRIPT), 2_000)) == []


def test_the_ear_is_believed_as_far_as_two_hearings_agree() -> None:
    bench = ready(Bench(Thinker(partials_ms=500)))
    told: list[str] = []
    for words in ("When", "When do your", "When do you open", None, "Men do you open", "When do you open on"):
        told += deltas(voice(bench, 500))
        told += deltas(bench.heard(early_key(bench), words))
    assert told == ["When", " do"]
    assert deltas(bench.heard(early_key(bench), "When do you open on Sunday")) == [" you open on"]


def test_one_hearing_at_a_time_of_all_that_was_said() -> None:
    bench = ready(Bench(Thinker(partials_ms=200)))
    voice(bench, *[200] * 5)
    (question,) = bench.others
    assert isinstance(question, Listen)
    bench.heard(question.key, "Hello")
    voice(bench, 200)
    _, second = bench.others
    assert isinstance(second, Listen)
    assert len(second.pcm) > len(question.pcm)
    late = [*bench.say(bytes(MS * 700)), *bench.heard(second.key, "Hello there")]
    assert deltas(late) == []
    final = bench.others[-1]
    assert isinstance(final, Listen)
    assert deltas(bench.heard(final.key, "Hello there.")) == ["Hello there."]
