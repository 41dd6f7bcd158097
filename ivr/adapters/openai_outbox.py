"""What waits to be written to the speech model: commands are never dropped, audio is bounded."""

import asyncio
from collections import deque

MAX_AUDIO_BYTES = 35 * 24_000 * 2 * 4 // 3
"""35 s of PCM16 24 kHz as base64: all that a new session is told of what was said before it (30 s), and 5 s more.

A live session does not meet the bound: a peer that reads nothing for so long has failed its pings first.
"""


class Outbox:
    """A queue of encoded messages with one reader. Order is kept; too much audio drops the oldest audio."""

    def __init__(self, max_audio_bytes: int = MAX_AUDIO_BYTES) -> None:
        self._max_audio_bytes = max_audio_bytes
        self._commands: deque[tuple[int, bytes]] = deque()
        self._audio: deque[tuple[int, bytes]] = deque()
        self._audio_bytes = 0
        self._number = 0
        self._closed = False
        self._filled = asyncio.Event()
        self._is_awaited = False
        self.dropped_audio = 0
        """How many audio messages were thrown away."""

    def put_command(self, message: bytes) -> None:
        """Queue a message that must arrive."""
        self._put(self._commands, message)

    def put_audio(self, message: bytes) -> None:
        """Queue audio; the oldest audio makes room."""
        self._put(self._audio, message)
        self._audio_bytes = 0 if self._closed else self._audio_bytes + len(message)
        while self._audio_bytes > self._max_audio_bytes:
            self._audio_bytes -= len(self._audio.popleft()[1])
            self.dropped_audio += 1

    @property
    def is_idle(self) -> bool:
        """The reader waits for a message: it may as well be written past the outbox."""
        return self._is_awaited and not (self._commands or self._audio or self._closed)

    def close(self) -> None:
        """Forget what waits, and whatever is put from now on."""
        self._closed = True
        self._commands.clear()
        self._audio.clear()
        self._audio_bytes = 0

    async def take(self) -> bytes:
        """The next message in order. Waits for one."""
        while not (self._commands or self._audio):
            self._filled.clear()
            self._is_awaited = True
            await self._filled.wait()
        self._is_awaited = False
        if self._audio and (not self._commands or self._audio[0][0] < self._commands[0][0]):
            message = self._audio.popleft()[1]
            self._audio_bytes -= len(message)
            return message
        return self._commands.popleft()[1]

    def _put(self, queue: deque[tuple[int, bytes]], message: bytes) -> None:
        if self._closed:
            return
        self._number += 1
        queue.append((self._number, message))
        self._filled.set()
