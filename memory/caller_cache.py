"""The pages of the callers who call now, kept in this process. A database round trip a turn brings them up to date.

Exact: each look asks the database, in one snapshot, for whatever of this caller changed since the last one, by
whichever process. One caller of one business is one entry; entries share nothing.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from memory.caller_pages import CallerPages, Changes
from memory.model import Owner
from memory.scan import Ints
from memory.store_search import ENGLISH, SearchStore

CACHE_BYTES = 256 * 1024 * 1024
"""About 80,000 pages: a page's two vectors are 3 kB."""


@dataclass(frozen=True, slots=True)
class Past:
    """A caller's pages as they are now. `asked_terms`: the query's hashed stems; `call_ids`: the call, then those
    that it goes on with, latest first.
    """

    pages: CallerPages
    asked_terms: Ints
    call_ids: tuple[str, ...]


@dataclass(slots=True)
class _Entry:
    pages: CallerPages = field(default_factory=CallerPages)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class CallerCache:
    """The callers last asked for, as many as fit."""

    def __init__(self, store: SearchStore, limit_bytes: int = CACHE_BYTES) -> None:
        """The caller asked for last is kept however much there is of them."""
        self._store = store
        self._limit_bytes = limit_bytes
        self._entries: OrderedDict[tuple[Owner, str], _Entry] = OrderedDict()
        self._held: Counter[Owner] = Counter()

    def hold(self, owner: Owner) -> None:
        """A call of theirs is expected or live; as often as `release` follows."""
        self._held[owner] += 1

    def release(self, owner: Owner) -> None:
        """One call less; after the last nothing of them is kept."""
        self._held[owner] -= 1
        if self._held[owner] <= 0:
            del self._held[owner]
            for key in [key for key in self._entries if key[0] == owner]:
                del self._entries[key]

    async def past(
        self,
        owner: Owner,
        model: str,
        query: str,
        call_id: str,
        resumed_from: str | None = None,
        languages: Sequence[str] = ENGLISH,
    ) -> Past:
        """The caller's pages with this model's vectors, as the database has them now.

        `languages` are those that the pages may be in.

        Raises: `ValueError` for nobody; `StorageUnavailable`, `StorageFault`.
        """
        key = (owner, model)
        entry = self._entries.setdefault(key, _Entry())
        self._entries.move_to_end(key)
        async with entry.lock:
            while True:
                changes = await self._store.changes(
                    owner, entry.pages.cursor, model, query, call_id, resumed_from, languages
                )
                _take_in(entry, changes)
                if changes.is_last and entry.pages.cursor == changes.cursor:
                    break
        self._evict()
        return Past(entry.pages, changes.asked_terms, changes.call_ids)

    def __len__(self) -> int:
        return len(self._entries)

    def _evict(self) -> None:
        total = sum(entry.pages.size_bytes for entry in self._entries.values())
        while total > self._limit_bytes and len(self._entries) > 1:
            _, oldest = self._entries.popitem(last=False)
            total -= oldest.pages.size_bytes


def _take_in(entry: _Entry, changes: Changes) -> None:
    if entry.pages.is_void_by(changes):
        entry.pages = CallerPages()
    else:
        entry.pages.apply(changes)
