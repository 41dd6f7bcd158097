"""Where the recorded data is. It is not part of the project: `IVR_TEST_DATA` names its folder, and must."""

import os
from collections.abc import Sequence
from pathlib import Path

FRAME_MS = 20


def folder(name: str) -> Path:
    """One of the folders of the recorded data. Raises: `RuntimeError` if it is not there."""
    root = os.environ.get("IVR_TEST_DATA", "")
    if not root:
        raise RuntimeError("IVR_TEST_DATA must name the folder with the recorded data")
    path = Path(root) / name
    if not path.is_dir():
        raise RuntimeError(f"IVR_TEST_DATA: there is no folder {path}")
    return path


def files(name: str, pattern: str) -> list[Path]:
    """Files of a folder of the recorded data. Raises: `RuntimeError` if there are none."""
    found = sorted(folder(name).rglob(pattern))
    if not found:
        raise RuntimeError(f"IVR_TEST_DATA: nothing like {pattern} in {folder(name)}")
    return found


def delays_ms(path: Path) -> list[float]:
    """A trace of delays, a line per packet of 20 ms."""
    return [float(line) for line in path.read_text().split()]


def in_order_ms(delays: Sequence[float]) -> list[float]:
    """When each frame arrives over TCP: a late one holds up those behind it."""
    times: list[float] = []
    for number, delay in enumerate(delays):
        due = number * FRAME_MS + delay
        times.append(max(due, times[-1]) if times else due)
    return times
