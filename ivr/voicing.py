"""Exact words as sound: by the text-to-speech endpoint, and from files where a text was spoken before.

Only texts of the flow files are kept: what holds something of a caller is made each time, and left nowhere.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing

import structlog

from callflows.model import Business
from callflows.spoken import fixed_texts
from ivr.adapters.openai_speech import SpeechEndpoint
from ivr.audio.kept import KeptSounds
from ivr.audio.outbound import Outbound
from ivr.core.commands import ExactWords
from ivr.errors import SpeechUnavailable
from ivr.ports import Sound
from memory.costs import spoken_ms

REST_S = 60.0
"""After a failure the endpoint is left alone for so long: callers do not wait for it one after the other."""
FIRST_S = 10.0
"""A service waits so long for its prompts when it starts."""
AT_ONCE = 4
"""Texts that are made at the same time ahead of calls."""

log = structlog.get_logger()


class Voicing:
    """`ivr.ports.Speech` on an endpoint."""

    def __init__(
        self, endpoint: SpeechEndpoint, kept: KeptSounds, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._endpoint = endpoint
        self._kept = kept
        self._now_s = now_s
        self._fixed: frozenset[tuple[str, ...]] = frozenset()
        self._rests_until_s = 0.0

    @property
    def rests(self) -> bool:
        """It has just failed: until it is tried again the speech model says our words."""
        return self._now_s() < self._rests_until_s

    async def speak(self, words: ExactWords) -> AsyncGenerator[Sound]:
        """See the port."""
        for text in words.texts:
            key = self._key(text, words.voice, words.language)
            kept = await self._find(key)
            if kept is not None:
                yield Sound(kept)
                continue
            made_ms = spoken_ms(text)
            async with aclosing(self._make(text, words.voice, key)) as pieces:
                async for ulaw in pieces:
                    yield Sound(ulaw, made_ms)
                    made_ms = 0.0

    async def prepare(self, wanted: Iterable[ExactWords]) -> bool:
        """Make what is not there yet of texts that are always the same. Returns whether all of it is there now."""
        items = {
            self._key(text, words.voice, words.language): (text, words.voice)
            for words in wanted
            for text in words.texts
        }
        self._fixed = frozenset(items)
        missing = await asyncio.to_thread(lambda: [key for key in items if not self._kept.has(key)])
        if not missing:
            return True
        gate = asyncio.Semaphore(AT_ONCE)
        made = await asyncio.gather(*(self._prepare(gate, *items[key], key) for key in missing))
        log.info("prompts_made", made=sum(made), missing=made.count(False), model=self._endpoint.model)
        return all(made)

    async def _prepare(self, gate: asyncio.Semaphore, text: str, voice: str, key: tuple[str, ...]) -> bool:
        async with gate:
            try:
                async with aclosing(self._make(text, voice, key)) as pieces:
                    async for _ in pieces:
                        pass
            except SpeechUnavailable:
                return False
        return True

    async def _make(self, text: str, voice: str, key: tuple[str, ...]) -> AsyncGenerator[bytes]:
        """The text's sound from the endpoint; kept when it is whole, if the text is one of the files'."""
        if self.rests:
            raise SpeechUnavailable("resting after a failure")
        outbound, whole = Outbound(), bytearray()
        try:
            async with aclosing(self._endpoint.speak(text, voice)) as chunks:
                async for pcm24k in chunks:
                    ulaw = outbound.feed(pcm24k)
                    whole += ulaw
                    yield ulaw
        except SpeechUnavailable as error:
            self._fail(error)
            raise
        tail = outbound.flush()
        if key in self._fixed:
            await self._keep(key, bytes(whole + tail))
        yield tail

    def _fail(self, error: SpeechUnavailable) -> None:
        if error.is_refusal:
            hint = "does the endpoint know the model and the voice, and is no text too long?"
            log.warning("speech_refused", reason=str(error), model=self._endpoint.model, hint=hint)
            return
        if not self.rests:
            hint = "the speech model says exact words meanwhile, as well as it can"
            log.warning("speech_endpoint_failed", reason=str(error), again_in_s=REST_S, hint=hint)
        self._rests_until_s = self._now_s() + REST_S

    def _key(self, text: str, voice: str, language: str) -> tuple[str, ...]:
        return (self._endpoint.address, self._endpoint.model, voice, language, text)

    async def _find(self, key: Sequence[str]) -> bytes | None:
        if key not in self._fixed:
            return None
        try:
            return await asyncio.to_thread(self._kept.get, key)
        except OSError as error:
            log.warning("prompt_unreadable", error=type(error).__name__)
            return None

    async def _keep(self, key: Sequence[str], ulaw: bytes) -> None:
        try:
            await asyncio.to_thread(self._kept.put, key, ulaw)
        except OSError as error:
            log.warning("prompt_not_kept", error=type(error).__name__)


class Prepared:
    """Keeps the sounds of all texts of the flow files at hand, also of files that change."""

    def __init__(self, voicing: Voicing, wanted: Callable[[], Sequence[ExactWords]]) -> None:
        """`wanted` is asked in a thread."""
        self._voicing = voicing
        self._wanted = wanted
        self._changed = asyncio.Event()
        self._first = asyncio.Event()

    def look_again(self) -> None:
        """Flow files have changed."""
        self._changed.set()

    async def first(self) -> None:
        """Wait until everything is there that can be had, but not for ever: the rest is made as it is said."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_S):
                await self._first.wait()

    async def run(self) -> None:
        """For ever: once for each change, and again while something could not be made."""
        while True:
            self._changed.clear()
            # Going through all flows takes long enough to be heard in the calls under way.
            is_all = await self._voicing.prepare(await asyncio.to_thread(self._wanted))
            self._first.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if is_all else REST_S):
                    await self._changed.wait()


def words_of(businesses: Iterable[Business]) -> list[ExactWords]:
    """What their callers may hear word for word and always alike."""
    texts = {fixed for business in businesses for fixed in fixed_texts(business)}
    return [ExactWords((each.text,), each.voice, each.language) for each in texts]
