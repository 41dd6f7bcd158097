"""File prompts for the line: any PCM WAV, converted once to µ-law 8 kHz and kept."""

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from ivr.audio.files import read_wav
from ivr.audio.g711 import pcm16_to_ulaw

LINE_RATE_HZ = 8_000
MAX_BYTES = 32 * 1024 * 1024
"""More than an hour of prompts."""


@dataclass(frozen=True, slots=True)
class _Version:
    """What changes when the file does."""

    modified_ns: int
    size_bytes: int


class PromptCache:
    """Prompts by path; the least used go first when there are too many. May be used from several threads.

    The first use of a file reads and converts it (a minute takes some 30 ms): off the event loop.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Path, tuple[_Version, bytes]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def ulaw(self, path: str | Path) -> bytes:
        """The file's sound as raw µ-law 8 kHz mono, no header; read again only if the file has changed.

        Raises: `BadAudioFile`; `OSError` if it cannot be read.
        """
        path = Path(path)
        status = path.stat()
        version = _Version(status.st_mtime_ns, status.st_size)
        with self._lock:
            kept = self._kept.get(path)
            if kept is not None and kept[0] == version:
                self._kept.move_to_end(path)
                return kept[1]
        ulaw = pcm16_to_ulaw(read_wav(path, LINE_RATE_HZ))
        with self._lock:
            self._keep(path, version, ulaw)
        return ulaw

    def _keep(self, path: Path, version: _Version, ulaw: bytes) -> None:
        _, old = self._kept.pop(path, (version, b""))
        self._kept[path] = (version, ulaw)
        self._bytes += len(ulaw) - len(old)
        while self._bytes > self._max_bytes:
            _, (_, dropped) = self._kept.popitem(last=False)
            self._bytes -= len(dropped)
