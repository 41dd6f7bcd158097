"""Sounds that were made of texts, as µ-law 8 kHz in files: made once, they are there for every later call."""

import hashlib
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

MAX_BYTES = 256 * 1024 * 1024
"""More than nine hours of prompts."""


class KeptSounds:
    """A folder, which several processes may share. A file is whole or is not there. Reads and writes: slow."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def get(self, key: Sequence[str]) -> bytes | None:
        """The sound that was kept by this key. Raises: `OSError` for anything but its absence."""
        path = self._path(key)
        try:
            ulaw = path.read_bytes()
            os.utime(path)  # what is used stays
        except FileNotFoundError:
            return None
        return ulaw or None

    def has(self, key: Sequence[str]) -> bool:
        """Whether there is one."""
        return self._path(key).is_file()

    def put(self, key: Sequence[str], ulaw: bytes) -> None:
        """Keep a whole sound; what was used longest ago goes when there is too much. Raises: `OSError`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._path(key)
        part = path.with_suffix(f".{secrets.token_hex(4)}.part")
        try:
            part.write_bytes(ulaw)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        self._let_go(path)

    def _let_go(self, newest: Path) -> None:
        files = [(file, file.stat()) for file in self._folder.glob("*.ulaw")]
        size = sum(status.st_size for _, status in files)
        for file, status in sorted(files, key=lambda each: each[1].st_mtime_ns):
            if size <= self._max_bytes:
                return
            if file != newest:
                file.unlink(missing_ok=True)
                size -= status.st_size

    def _path(self, key: Sequence[str]) -> Path:
        digest = hashlib.sha256("\0".join(key).encode()).hexdigest()
        return self._folder / f"{digest}.ulaw"
