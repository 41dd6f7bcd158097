"""The ledger of erasures, as a file beside the database: a restored backup does not know the latest ones."""

import json
import os
from datetime import datetime
from pathlib import Path

from memory.store_erasure import Erasure


class Ledger:
    """One JSON line an erasure: business, keyed hash, time. Keep the file out of what a restore replaces."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, entry: Erasure) -> None:
        """On disk when this returns. Raises: `OSError`."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = {"business": entry.business_id, "caller": entry.caller_hash, "at": entry.erased_at.isoformat()}
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "a") as file:
            # The newline before it ends a line that a crash cut off.
            file.write(f"\n{json.dumps(line)}\n")
            file.flush()
            os.fsync(file.fileno())

    def entries(self) -> list[Erasure]:
        """All of it; none if there is no file. A line that a crash cut off was not promised to anybody and is left out.

        Raises: `OSError`.
        """
        try:
            text = self._path.read_text()
        except FileNotFoundError:
            return []
        return [entry for line in text.split("\n") if line and (entry := _entry(line)) is not None]


def _entry(line: str) -> Erasure | None:
    try:
        read = json.loads(line)
    except ValueError:
        return None
    return Erasure(str(read["business"]), str(read["caller"]), datetime.fromisoformat(read["at"]))
