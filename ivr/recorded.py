"""What a caller hears that is not the speech model's voice: sound files, and words by the text-to-speech endpoint."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any

import structlog

from ivr.audio.files import BadAudioFile
from ivr.core import commands as do
from ivr.core import events as ev
from ivr.errors import SpeechUnavailable
from ivr.ports import Speech

Work = Coroutine[Any, Any, None]

log = structlog.get_logger()


def no_prompts(path: str) -> bytes:
    """There are no sound files. Raises: `OSError`."""
    raise FileNotFoundError(path)


class Recorded:
    """At most one reply at a time; it is told of by the events of a reply."""

    def __init__(
        self,
        receive: Callable[[ev.Event], None],
        ask_model: Callable[[do.StartReply], None],
        paid: Callable[[float], None],
    ) -> None:
        """`paid` is told how much sound, in ms, the endpoint has made."""
        self._receive = receive
        self._ask_model = ask_model
        self._paid = paid
        self._reply_id = ""

    def cancel(self, reply_id: str = "") -> bool:
        """Nothing more of this reply (or of any) is to be heard. Returns whether it was one of ours."""
        if not self._reply_id or reply_id not in ("", self._reply_id):
            return False
        self._reply_id = ""
        return True

    def play(self, command: do.PlayFile, read: Callable[[str], bytes]) -> Work:
        """Play a sound file; one that cannot be read is a failed reply."""
        self._reply_id = command.reply_id
        return self._play(command, read)

    def speak(self, command: do.StartReply, words: do.ExactWords, speech: Speech) -> Work:
        """Say our words; as long as nothing of them was heard, the model says them where the endpoint fails."""
        self._reply_id = command.reply_id
        return self._speak(command, words, speech)

    async def _play(self, command: do.PlayFile, read: Callable[[str], bytes]) -> None:
        try:
            ulaw = await asyncio.to_thread(read, command.path)
        except (OSError, BadAudioFile) as error:
            log.warning("prompt_unreadable", error=type(error).__name__)
            ulaw = b""
        if self._reply_id == command.reply_id:
            self._audio(command.reply_id, ulaw)
            self._done(command.reply_id, is_whole=bool(ulaw))

    async def _speak(self, command: do.StartReply, words: do.ExactWords, speech: Speech) -> None:
        reply_id, has_begun, fault = command.reply_id, False, ""
        try:
            async with aclosing(speech.speak(words)) as sounds:
                async for sound in sounds:
                    if sound.made_ms:
                        self._paid(sound.made_ms)
                    # Also for one that was cancelled meanwhile: the model is owed nothing for it.
                    if not has_begun:
                        self._receive(ev.ReplySpoken(reply_id, " ".join(words.texts)))
                    has_begun = True
                    if self._reply_id != reply_id:
                        return
                    self._audio(reply_id, sound.ulaw)
        except SpeechUnavailable as error:
            fault = str(error)
        if self._reply_id != reply_id:
            return
        if has_begun:
            self._done(reply_id, is_whole=not fault)
        else:
            self._reply_id = ""
            self._ask_model(command)

    def _audio(self, reply_id: str, ulaw: bytes) -> None:
        if ulaw:
            self._receive(ev.ReplyAudio(reply_id, ulaw))

    def _done(self, reply_id: str, *, is_whole: bool) -> None:
        self._reply_id = ""
        status = ev.ReplyStatus.COMPLETED if is_whole else ev.ReplyStatus.FAILED
        self._receive(ev.ReplyDone(reply_id, status))
