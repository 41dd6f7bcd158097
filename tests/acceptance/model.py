"""The speech model of these tests: the scripted sandbox, which keeps what it was asked."""

import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

import yaml
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as serve_websocket

from ivr.sandbox.brain import Answer, HearPlan, Manners, Question
from ivr.sandbox.script import parse_script
from ivr.sandbox.scripted import ScriptedBrain, Stage
from ivr.sandbox.server import Sandbox
from ivr.sandbox.speech import NoSpeech

Json = dict[str, Any]
GREETING: Json = {"start": True, "repeat": True, "say": "Hello there", "audio_ms": 400}
"""What the model answers to words of our own. The script does not repeat them: `Model.own_words` has them."""


def turn(hear: str, say: str, audio_ms: int = 500, **more: Any) -> Json:
    """The caller says `hear` and is answered `say`."""
    return {"any": True, "transcript": hear, "say": say, "audio_ms": audio_ms, **more}


def calls(name: str, **arguments: Any) -> Json:
    """A function call for a turn."""
    return {"call": {"name": name, "arguments": arguments}}


class _NotingBrain:
    """A scripted brain whose questions are kept."""

    def __init__(self, brain: ScriptedBrain, questions: list[Question]) -> None:
        self._brain = brain
        self._questions = questions

    @property
    def manners(self) -> Manners:
        return self._brain.manners

    def hear(self, item_id: str) -> HearPlan:
        return self._brain.hear(item_id)

    def answer(self, question: Question) -> Answer:
        if not question.text_only:  # the probe
            self._questions.append(question)
        return self._brain.answer(question)


class _NotingStage(Stage):
    """A script whose brains keep their questions."""

    questions: list[Question]

    def brain(self) -> ScriptedBrain:
        return _NotingBrain(super().brain(), self.questions)  # type: ignore[return-value]  # the same protocol


class Model(Sandbox):
    """The scripted sandbox, which counts its sessions and keeps what it was asked."""

    def __init__(self, script: Json | list[Json]) -> None:
        stage = _NotingStage(parse_script(yaml.safe_dump(script, sort_keys=False), "script.yaml"))
        self.questions: list[Question] = []
        stage.questions = self.questions
        super().__init__(NoSpeech(), stage)
        self.open_sessions = 0
        self.sessions = 0

    async def handle(self, socket: ServerConnection) -> None:
        """See `Sandbox`."""
        self.sessions += 1
        self.open_sessions += 1
        try:
            await super().handle(socket)
        finally:
            self.open_sessions -= 1

    def own_words(self) -> list[str]:
        """Everything the model was told to say word for word, in order."""
        asked = [q.instructions.partition("Say exactly: ") for q in self.questions]
        return [words for _, told, words in asked if told]

    def answered(self) -> list[Question]:
        """The questions that were turns of the caller."""
        return [q for q in self.questions if "Say exactly: " not in q.instructions]


def told(question: Question) -> str:
    """Everything a question told the model, as one text."""
    return "\n".join([question.instructions, *(line.text for line in question.lines)])


@contextlib.asynccontextmanager
async def model_server(script: Json | list[Json]) -> AsyncIterator[tuple[Model, str]]:
    """A scripted model on a port of its own; its Realtime address."""
    model = Model(script)
    quiet = logging.getLogger("tests.model")  # a call that ends before its session is open is no news
    quiet.disabled = True
    server = serve_websocket(
        model.handle, "127.0.0.1", 0, process_request=model.admit, compression=None, logger=quiet
    )
    async with server as listening:
        port = next(iter(listening.sockets)).getsockname()[1]
        yield model, f"ws://127.0.0.1:{port}/v1"
