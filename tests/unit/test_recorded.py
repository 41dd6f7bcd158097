"""A call whose exact words another voice says than the model's."""

import asyncio
from collections.abc import AsyncGenerator

from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.units import ULAW_SILENCE
from ivr.errors import SpeechUnavailable
from ivr.ports import Sound
from tests.unit.core.call_rig import Rig, in_frames, play
from tests.unit.core.harness import clinic

LOUD = b"\x10"


class FakeSpeech:
    """Says one second for each text. `good_for`: so many pieces of sound come, then it fails."""

    def __init__(self, good_for: int = 1_000) -> None:
        self.asked: list[do.ExactWords] = []
        self.good_for = good_for

    async def speak(self, words: do.ExactWords) -> AsyncGenerator[Sound]:
        self.asked.append(words)
        for _ in words.texts:
            await asyncio.sleep(0.2)
            for no in range(2):
                if not self.good_for:
                    raise SpeechUnavailable("gone")
                self.good_for -= 1
                yield Sound(LOUD * 4_000, 1_000.0 if no == 0 else 0.0)


async def played(rig: Rig) -> None:
    """All that was sent is heard."""
    await asyncio.sleep(1.5)
    for command in tuple(rig.line.sent):
        if isinstance(command, do.SendMark):
            rig.line.incoming.put_nowait(ev.LineMark(command.name))
    await asyncio.sleep(0.1)


async def over(rig: Rig) -> None:
    rig.line.incoming.put_nowait(ev.LineStopped())
    await rig.ended()


def test_the_greeting_is_spoken_by_the_endpoint_and_the_model_is_not_asked() -> None:
    async def scene() -> None:
        speech = FakeSpeech()
        rig = Rig(speech=speech)
        await asyncio.sleep(0.2)
        await played(rig)
        greeting = clinic().greeting
        assert [each.texts for each in speech.asked] == [(greeting,)]
        assert (speech.asked[0].voice, speech.asked[0].language) == (clinic().voice, "en-US")
        assert rig.model.asked() == []
        assert rig.line.sound() == LOUD * 8_000
        await rig.ask("When do you open?")
        (asked,) = rig.model.asked()
        assert do.AssistantText(greeting) in asked.input  # the model knows what was said
        await over(rig)

    play(scene)


def test_where_the_endpoint_fails_the_model_says_the_words() -> None:
    async def scene() -> None:
        rig = Rig(speech=FakeSpeech(good_for=0))
        await asyncio.sleep(0.5)
        (asked,) = rig.model.asked()
        assert asked.instructions.endswith(f"Say exactly: {clinic().greeting}")
        await over(rig)

    play(scene)


def test_what_breaks_off_in_the_middle_is_kept_as_far_as_it_was_heard() -> None:
    """As a reply of the model that breaks off is: what is heard is what was said."""

    async def scene() -> None:
        rig = Rig(speech=FakeSpeech(good_for=1))
        await asyncio.sleep(0.5)
        await played(rig)
        assert rig.line.sound() == in_frames(LOUD * 4_000)
        await rig.ask("When do you open?")
        assert len(rig.model.asked()) == 1  # the call goes on
        await over(rig)

    play(scene)


def test_words_that_are_cancelled_while_they_are_made_are_not_heard() -> None:
    async def scene() -> None:
        speech = FakeSpeech()
        rig = Rig(speech=speech)
        await asyncio.sleep(0.15)  # asked for, nothing audible yet
        rig.model.incoming.put_nowait(ev.SpeechStarted("u1", 0))
        await asyncio.sleep(0.05)
        rig.line.incoming.put_nowait(ev.LineStopped())
        await rig.ended()
        assert LOUD not in rig.line.sound().replace(ULAW_SILENCE, b"")

    play(scene)
