"""Writes down what a message says: a server with OpenAI's `/audio/transcriptions`, or the sandbox's own Whisper."""

from io import BytesIO
from typing import Protocol

import openai
from openai import AsyncOpenAI

from ivr.audio.files import BadAudioFile, read_wav
from ivr.errors import CallthreadError, PeerError
from ivr.sandbox.ear import Ear
from ivr.sandbox.faults import SandboxMissing
from ivr.sandbox.worker import WorkerFailed
from ivr.settings import ModelSource, Settings

TIMEOUT_S = 60.0
EAR_HZ = 16_000


class NotWritten(PeerError):
    """There is no transcript now: trying again may help."""


class NeverWritten(CallthreadError):
    """There is no transcript, and trying again will not help."""


class Transcriber(Protocol):
    """Makes text of a recording. `model` is its name in the price table; empty where nothing is paid."""

    @property
    def model(self) -> str: ...

    async def text(self, wav: bytes, language: str) -> str:
        """The words of a WAV; `language` is a tag like `en-US`. Raises: `NotWritten`, `NeverWritten`."""
        ...


class ServerTranscriber:
    """A transcription model behind an OpenAI-compatible server."""

    def __init__(self, model: str, api_key: str, base_url: str | None) -> None:
        self.model = model
        self._api_key = api_key
        self._base_url = base_url

    async def text(self, wav: bytes, language: str) -> str:
        """See the protocol."""
        file = ("message.wav", wav, "audio/wav")
        spoken = language.split("-")[0]
        try:
            async with self._client() as client:
                answer = await client.audio.transcriptions.create(
                    model=self.model, file=file, language=spoken, response_format="json"
                )
        except (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError) as error:
            raise NotWritten(type(error).__name__) from error
        except openai.OpenAIError as error:
            raise NeverWritten(type(error).__name__) from error
        return str(answer.text or "").strip()

    def _client(self) -> AsyncOpenAI:
        # The job tries again, later than a client would.
        return AsyncOpenAI(api_key=self._api_key, base_url=self._base_url, timeout=TIMEOUT_S, max_retries=0)


class EarTranscriber:
    """The sandbox's Whisper, which knows English only. Its process lives as long as it works on one message."""

    model = ""

    async def text(self, wav: bytes, language: str) -> str:
        """See the protocol."""
        if language.split("-")[0] != "en":
            raise NeverWritten("the offline model understands English only")
        try:
            pcm = read_wav(BytesIO(wav), EAR_HZ)
            async with Ear() as ear:
                return await ear.hear(pcm, EAR_HZ)
        except WorkerFailed as error:
            raise NotWritten(type(error).__name__) from error
        except (SandboxMissing, BadAudioFile) as error:
            raise NeverWritten(type(error).__name__) from error


def transcriber_of(settings: Settings) -> Transcriber | None:
    """A model where there is a key, or a server that needs none; the sandbox's ear beside the sandbox."""
    key, base_url = settings.openai_api_key, settings.openai_base_url
    if key is not None or base_url is not None:
        secret = key.get_secret_value() if key is not None else "none"
        return ServerTranscriber(settings.voicemail_model, secret, base_url)
    return EarTranscriber() if settings.model_source is ModelSource.SANDBOX else None
