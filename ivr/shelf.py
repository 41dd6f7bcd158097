"""The flow files in use: changed files are taken up while the service runs, bad ones are not."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol

import structlog

from callflows.faults import FlowErrors
from callflows.includes import MAX_FOLDERS
from callflows.model import Business
from callflows.parse import load_folder
from memory import errors as faults

LOOK_EVERY_S = 2.0
KEEP_EVERY_S = 24 * 3600
"""Stored flows that nobody says are in use are deleted in the end: `Store.forget_flows`."""

log = structlog.get_logger()


class Flows(Protocol):
    """The businesses now; `callflows.parse.FlowBook` is one."""

    @property
    def businesses(self) -> Mapping[str, Business]:
        """By id."""
        ...

    def by_number(self, number: str) -> Business | None:
        """Who answers `number` (E.164)."""
        ...

    def hash_of(self, business_id: str) -> str:
        """SHA-256 of the file's text. Raises: `KeyError`."""
        ...

    def text_of(self, business_id: str) -> str:
        """The file's text. Raises: `KeyError`."""
        ...


class FlowShelf:
    """A folder's flows, as of the last time that all of its files were good. Raises `FlowErrors` when made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stamp = _stamp(folder)
        self._book = load_folder(folder)
        self.fault = ""
        """What keeps newer files from being used; empty when they are in use."""

    @property
    def businesses(self) -> Mapping[str, Business]:
        """See `Flows`."""
        return self._book.businesses

    def by_number(self, number: str) -> Business | None:
        """See `Flows`."""
        return self._book.by_number(number)

    def hash_of(self, business_id: str) -> str:
        """See `Flows`."""
        return self._book.hash_of(business_id)

    def text_of(self, business_id: str) -> str:
        """See `Flows`."""
        return self._book.text_of(business_id)

    def look(self) -> bool:
        """Take up what has changed. Returns whether anything is new. Reads files: off the event loop."""
        stamp = _stamp(self._folder)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            self._book = load_folder(self._folder)
        except FlowErrors as errors:
            self.fault = str(errors.faults[0])
            return False
        self.fault = ""
        return True

    async def watch(self, keep: Callable[[], Awaitable[None]]) -> None:
        """Look every two seconds, for ever. `keep` stores the flows, new ones and daily; it is tried until it works."""
        is_kept, told, looks = True, "", 0
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            looks += 1
            if await asyncio.to_thread(self.look):
                log.info("flows_changed", businesses=len(self.businesses))
                is_kept = False
            if looks * LOOK_EVERY_S >= KEEP_EVERY_S:
                is_kept, looks = False, 0
            if self.fault and self.fault != told:
                log.error("flows_refused", fault=self.fault, hint="the flows of before stay in use")
            told = self.fault
            if not is_kept:
                is_kept = await _kept(keep)


async def _kept(keep: Callable[[], Awaitable[None]]) -> bool:
    try:
        await keep()
    except faults.MemoryFault as error:
        log.warning("flows_not_stored", error=type(error).__name__)
        return False
    return True


def _stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """What changes when a flow file does, or one that may be included."""
    own, root = (folder.glob("*.yaml"), folder) if folder.is_dir() else ([folder], folder.parent)
    below = (path for depth in range(1, MAX_FOLDERS + 1) for path in root.glob("*/" * depth + "*.yaml"))
    stamps = []
    for path in sorted([*own, *below]):
        try:
            status = path.stat()
        except OSError:
            continue  # taken away this very moment
        stamps.append((str(path), status.st_mtime_ns, status.st_size))
    return tuple(stamps)
