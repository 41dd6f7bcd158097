"""Whether a server tells words early is seen, never assumed."""

from ivr.adapters.openai_early import ENOUGH_TURNS, EarlyWords
from ivr.core.events import ModelEvent, SpeechStarted, SpeechStopped, TranscriptDelta, TranscriptDone


def note(words: EarlyWords, *events: ModelEvent) -> None:
    speaking = ""
    for event in events:
        speaking = words.note(speaking, event)


def utterance(item: str, *, early: bool) -> tuple[ModelEvent, ...]:
    began, ended, delta = SpeechStarted(item, 0), SpeechStopped(item, 900), TranscriptDelta(item, "hello")
    return (began, delta, ended) if early else (began, ended, delta, TranscriptDone(item, "hello"))


def test_nobody_knows_before_enough_was_said() -> None:
    words = EarlyWords()
    for no in range(ENOUGH_TURNS):
        assert words.seen is None
        note(words, *utterance(f"u{no}", early=False))
    assert words.seen is False


def test_words_before_the_end_of_speech_are_early_also_when_they_come_late_in_life() -> None:
    words = EarlyWords()
    for no in range(ENOUGH_TURNS):
        note(words, *utterance(f"u{no}", early=False))
    note(words, *utterance("u9", early=True))
    assert words.seen is True


def test_late_words_of_the_item_before_are_not_early() -> None:
    words = EarlyWords()
    note(words, SpeechStarted("u2", 0), TranscriptDelta("u1", "hello"), SpeechStopped("u2", 900))
    assert words.seen is None
