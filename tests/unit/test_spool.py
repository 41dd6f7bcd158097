"""The spool's files: what is in them after a crash, who may take them, how much they may hold."""

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ivr.core.commands import EndReason
from ivr.errors import StorageUnavailable
from ivr.spool import (
    COUNT_EVERY_S,
    ChargeLine,
    EndLine,
    ExchangeLine,
    Line,
    SnapshotLine,
    SpoolFile,
    SpoolFolder,
    StreamHeader,
)
from memory.model import CallSnapshot, Charge, ChargeKind, Exchange

BEGAN_AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
HEADER = StreamHeader("bakery", "+12025550111", "CA1", "MZ1", "+12025550100", "hash", 3, BEGAN_AT)
LINES: list[Line] = [
    ExchangeLine(Exchange("CA1", 1, "Two loaves\nplease", "Right.", b"\xff\x00" * 80, usage={"usd": 0.01})),
    SnapshotLine(CallSnapshot(1, {"flow": {"node": "order"}, "exchange_no": 2})),
    EndLine(EndReason.DROPPED),
    ChargeLine(Charge("one", ChargeKind.SPEECH, "gpt-realtime-2.1", 0.01, BEGAN_AT, is_estimate=True)),
]


def crashed(folder: Path) -> Path:
    """A file with all lines, of a writer that is gone."""
    file = SpoolFile.create(folder, HEADER)
    for line in LINES:
        file.append(line)
    file.release()
    return file.path


def adopt(path: Path) -> SpoolFile:
    adopted = SpoolFile.adopt(path)
    assert adopted is not None
    return adopted


def test_what_was_written_is_read_in_order(tmp_path: Path) -> None:
    adopted = adopt(crashed(tmp_path))
    assert adopted.read() == (HEADER, LINES)
    adopted.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_living_writers_file_is_not_taken(tmp_path: Path) -> None:
    file = SpoolFile.create(tmp_path, HEADER)
    assert SpoolFile.adopt(file.path) is None
    file.release()
    adopt(file.path).release()


@pytest.mark.parametrize("torn", [1, 40, 200])
def test_a_line_cut_off_by_a_crash_is_left_out(tmp_path: Path, torn: int) -> None:
    path = crashed(tmp_path)
    first = path.read_bytes().split(b"\n")
    os.truncate(path, len(first[0]) + 1 + min(torn, len(first[1])))
    adopted = adopt(path)
    assert adopted.read() == (HEADER, [])
    adopted.release()


def test_a_file_without_its_header_holds_nothing(tmp_path: Path) -> None:
    path = crashed(tmp_path)
    os.truncate(path, 10)
    adopted = adopt(path)
    assert adopted.read() == (None, [])
    adopted.release()


def test_what_callers_said_is_for_the_owner_only(tmp_path: Path) -> None:
    path = crashed(tmp_path)
    assert path.stat().st_mode & 0o077 == 0


def test_files_are_listed_oldest_first(tmp_path: Path) -> None:
    made = [crashed(tmp_path) for _ in range(3)]
    assert SpoolFolder(tmp_path).paths() == made


async def test_a_full_spool_says_so(tmp_path: Path) -> None:
    folder = SpoolFolder(tmp_path / "new", limit_bytes=100)
    async with folder.room() as place:
        await asyncio.to_thread(crashed, place)
    folder.wrote(len(crashed(tmp_path / "new").read_bytes()))
    with pytest.raises(StorageUnavailable, match="full"):
        async with folder.room():
            raise AssertionError("there is no room")


async def test_what_is_in_a_spool_is_not_counted_at_each_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    folder = SpoolFolder(tmp_path, limit_bytes=2_000_000, clock=lambda: now)
    counts: list[int] = []
    count = folder._count_bytes

    def counted() -> int:
        counts.append(1)
        return count()

    monkeypatch.setattr(folder, "_count_bytes", counted)
    for _ in range(100):
        async with folder.room():
            folder.wrote(10)
    assert len(counts) == 1
    now = COUNT_EVERY_S
    async with folder.room():
        assert len(counts) == 2


async def test_a_spool_seems_full_only_until_it_is_counted_again(tmp_path: Path) -> None:
    """What was replayed meanwhile is gone from the disk, and not from the running sum."""
    folder = SpoolFolder(tmp_path, limit_bytes=100, clock=lambda: 0.0)
    async with folder.room():
        folder.wrote(1_000)
    async with folder.room():
        pass


async def test_what_another_worker_writes_fills_the_spool_too(tmp_path: Path) -> None:
    now = 0.0
    folder = SpoolFolder(tmp_path, limit_bytes=100, clock=lambda: now)
    async with folder.room():
        pass
    crashed(tmp_path)
    now = COUNT_EVERY_S
    with pytest.raises(StorageUnavailable, match="full"):
        async with folder.room():
            raise AssertionError("there is no room")
