"""Vectors that earlier benches asked for: an embedding model says the same of a text every time."""

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from memory.embed import Embedder, has_words


class VectorFile:
    """Vectors by model and text, in one file. Holds no text, only its hash."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._rows = sqlite3.connect(path, isolation_level=None)
        # What a crash loses is computed again.
        self._rows.execute("PRAGMA synchronous = off")
        self._rows.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, value BLOB NOT NULL)")

    def find(self, model: str, text: str) -> list[float] | None:
        """The text's vector, if it is known."""
        row = self._rows.execute("SELECT value FROM vectors WHERE key = ?", (_key(model, text),)).fetchone()
        return None if row is None else np.frombuffer(row[0], "<f4").tolist()

    def keep(self, model: str, text: str, vector: Sequence[float]) -> None:
        """Know it from now on."""
        values = (_key(model, text), np.asarray(vector, "<f4").tobytes())
        self._rows.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", values)

    def close(self) -> None:
        """Idempotent."""
        self._rows.close()


class KeptVectors(Embedder):
    """An embedding process's client that asks for no text twice, in this run or a later one."""

    def __init__(self, socket_path: Path, model: str, kept: VectorFile, *, wait_s: float) -> None:
        super().__init__(socket_path, model, wait_s=wait_s)
        self._kept = kept

    async def embed(
        self, texts: Sequence[str], *, urgent: bool = True, wait_s: float | None = None
    ) -> list[list[float]] | None:
        """As `Embedder`'s."""
        looked_up = {text: self._kept.find(self.model, text) for text in texts if has_words(text)}
        found = {text: vector for text, vector in looked_up.items() if vector is not None}
        missing = list(dict.fromkeys(text for text in texts if text not in found))
        made = await super().embed(missing, urgent=urgent, wait_s=wait_s) if missing else []
        if made is None:
            return None
        for text, vector in zip(missing, made, strict=True):
            self._kept.keep(self.model, text, vector)
            found[text] = vector
        return [found[text] for text in texts]


def _key(model: str, text: str) -> bytes:
    return hashlib.sha256(f"{model}\0{text}".encode()).digest()
