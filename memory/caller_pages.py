"""All that a caller said at a business, as this process knows it: kept up to date by changes, read as columns. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memory.kinds import table_of, wanted_by
from memory.model import Access, Page, Trust, is_since
from memory.scan import CallerScan, Cosines, Ints, Terms

TERM_BYTES = 4
"""Of one hashed stem."""
PAGE_BYTES = 1_000
"""About what a page's texts and objects take."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """What is known: every page up to this revision of the caller's, and up to this page within it."""

    revision: int = 0
    page_id: int = 0


@dataclass(frozen=True, slots=True)
class PageTerms:
    """A page with each side's hashed stems, big-endian, four bytes each."""

    page: Page
    user_terms: bytes
    reply_terms: bytes


@dataclass(frozen=True, slots=True)
class SideVectors:
    """Unit vectors of pages' sides (0 the caller's, 1 the reply's): `values` is (vectors, dimension), float32."""

    page_ids: Ints
    sides: Ints
    values: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Changes:
    """The next pages after a cursor, with all their vectors of one model, as one snapshot of the database.

    `erased_at` is the revision at which a page of the caller's was last deleted; `is_last`: nothing comes after.
    `asked_terms` and `call_ids` answer the question that came along: the query's hashed stems; the call, the one it
    resumed, and so on.
    """

    pages: Sequence[PageTerms]
    vectors: SideVectors
    cursor: Cursor
    is_last: bool
    erased_at: int
    asked_terms: Ints
    call_ids: tuple[str, ...] = ()


class CallerPages:
    """One caller's pages. Feed it the changes after its `cursor`; if `is_void_by` one of them, begin anew."""

    def __init__(self) -> None:
        self.cursor = Cursor()
        self._erased_at: int | None = None
        self._rows: dict[int, PageTerms] = {}
        self._columns = _Columns.of([], {})
        self._calls: dict[str, int] = {}
        self._vectors = _Vectors()

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def size_bytes(self) -> int:
        """About what it takes of memory."""
        return self._vectors.size_bytes + len(self._rows) * PAGE_BYTES

    def is_void_by(self, changes: Changes) -> bool:
        """Whether a page that is known here was deleted, or said something else."""
        if self._erased_at is not None and self._erased_at != changes.erased_at:
            return True
        known = ((self._rows.get(row.page.page_id), row) for row in changes.pages)
        return any(old is not None and _said(old) != _said(new) for old, new in known)

    def apply(self, changes: Changes) -> None:
        """Take in changes that follow on the cursor."""
        latest = next(reversed(self._rows.values()), None)
        known = [row.page.page_id for row in changes.pages if row.page.page_id in self._rows]
        fresh = [row for row in changes.pages if row.page.page_id not in self._rows]
        fresh.sort(key=_time_order)
        self._rows.update((row.page.page_id, row) for row in changes.pages if row.page.page_id in self._rows)
        self._rows.update((row.page.page_id, row) for row in fresh)
        if latest is None or not fresh or _time_order(latest) < _time_order(fresh[0]):
            self._columns = self._columns.joined(_Columns.of(fresh, self._calls))
        else:
            self._rows = {row.page.page_id: row for row in sorted(self._rows.values(), key=_time_order)}
            self._columns = _Columns.of(list(self._rows.values()), self._calls)
        self._vectors.replace(known, changes.vectors)
        self.cursor = changes.cursor
        self._erased_at = changes.erased_at

    def scan(self, asked_terms: Ints, query_vector: Sequence[float] | None, query: str = "") -> CallerScan:
        """The columns that ranking works on; cosines only with a query vector."""
        nothing = np.full(len(self), np.nan)
        columns = self._columns
        scan = CallerScan(
            columns.page_ids,
            columns.calls,
            nothing,
            nothing,
            columns.user_terms,
            columns.reply_terms,
            asked_terms,
            columns.kinds,
            wanted_by(query),
        )
        return scan if query_vector is None else scan.with_cosines(self._vectors.cosines(query_vector))

    def pages(self, page_ids: Iterable[int]) -> list[Page]:
        """These pages, as far as they are the caller's."""
        return [self._rows[page_id].page for page_id in page_ids if page_id in self._rows]

    def seen_with(self, access: Access, call_ids: Sequence[str]) -> "CallerPages":
        """The pages that may be looked at; itself where that is all. `call_ids`: the call, then those it resumes."""
        if access.is_all():
            return self
        numbers = [self._calls.get(call_id, -1) for call_id in call_ids]
        mask = self._columns.mask(access, numbers[:1], numbers[1:])
        if access.after_s:
            mask &= self._since(access.after_s) | np.isin(self._columns.calls, numbers[:1])
        seen = CallerPages()
        seen._calls, seen._vectors = self._calls, self._vectors
        kept = self._columns.page_ids[mask].tolist()
        seen._rows = {page_id: self._rows[page_id] for page_id in kept}
        seen._columns = self._columns.only(mask)
        return seen

    def _since(self, after_s: float) -> NDArray[np.bool_]:
        """Which pages were spoken from then on, in the columns' order."""
        rows = (self._rows[page_id].page for page_id in self._columns.page_ids.tolist())
        return np.array([page.created_at.timestamp() >= after_s for page in rows], np.bool_)

    def holds(self, page_ids: Iterable[int]) -> bool:
        """Whether all of these are among its pages."""
        return all(page_id in self._rows for page_id in page_ids)

    def all(self) -> list[Page]:
        """Every page, oldest first."""
        return [row.page for row in self._rows.values()]

    def latest(self, call_ids: Sequence[str], count: int) -> list[Page]:
        """The last pages of the first call, before them those of the second, and so on; oldest first."""
        back = {call_id: number for number, call_id in enumerate(call_ids)}
        numbers = {self._calls[call_id] for call_id in call_ids if call_id in self._calls}
        mine = np.flatnonzero(np.isin(self._columns.calls, list(numbers)))
        pages = self.pages(self._columns.page_ids[mine].tolist())
        pages.sort(key=lambda page: (-back[page.call_id], page.created_at, page.exchange_no))
        return pages[-count:]


@dataclass(frozen=True, slots=True)
class _Columns:
    """What ranking reads of pages, oldest first. `calls` are numbers that stand for CallSids."""

    page_ids: Ints
    calls: Ints
    user_terms: Terms
    reply_terms: Terms
    kinds: NDArray[np.float32]
    trust: NDArray[np.int8]
    numbers: Ints
    """Of the exchanges within their calls."""

    @classmethod
    def of(cls, rows: Sequence[PageTerms], calls: dict[str, int]) -> "_Columns":
        """`calls` numbers the CallSids; new ones are added."""
        return cls(
            np.array([row.page.page_id for row in rows], np.int64),
            np.array([calls.setdefault(row.page.call_id, len(calls)) for row in rows], np.int64),
            _terms([row.user_terms for row in rows]),
            _terms([row.reply_terms for row in rows]),
            table_of([text for row in rows for text in (row.page.user_text, row.page.reply_text)]),
            np.array([row.page.trust for row in rows], np.int8),
            np.array([row.page.exchange_no for row in rows], np.int64),
        )

    def mask(self, access: Access, own: Sequence[int], resumed: Sequence[int]) -> NDArray[np.bool_]:
        """Which rows may be looked at, if these are the numbers of the call and of those it resumes."""
        is_own, is_resumed = np.isin(self.calls, own), np.isin(self.calls, resumed)
        # A dropped call may be gone on with at less trust than it had; but not with what had to be verified.
        limit = np.where(is_resumed, max(access.trust, Trust.ATTESTED), access.trust)
        least = Trust.VERIFIED if access.only_verified else Trust.NONE
        past = (
            np.where(is_resumed, access.resumed, access.older) & (self.trust <= limit) & (self.trust >= least)
        )
        counts = np.array(
            [is_since(number, access.since_no) for number in self.numbers[is_own].tolist()], np.bool_
        )
        seen = np.asarray(past, np.bool_)
        seen[is_own] = counts
        return seen

    def only(self, mask: NDArray[np.bool_]) -> "_Columns":
        """These rows."""
        return _Columns(
            self.page_ids[mask],
            self.calls[mask],
            _masked(self.user_terms, mask),
            _masked(self.reply_terms, mask),
            self.kinds[np.repeat(mask, 2)],
            self.trust[mask],
            self.numbers[mask],
        )

    def joined(self, later: "_Columns") -> "_Columns":
        if not len(later.page_ids):
            return self
        return _Columns(
            np.concatenate((self.page_ids, later.page_ids)),
            np.concatenate((self.calls, later.calls)),
            _joined(self.user_terms, later.user_terms),
            _joined(self.reply_terms, later.reply_terms),
            np.concatenate((self.kinds, later.kinds)),
            np.concatenate((self.trust, later.trust)),
            np.concatenate((self.numbers, later.numbers)),
        )


class _Vectors:
    """A table that grows by doubling: one turn adds a few rows to thousands."""

    def __init__(self) -> None:
        self._count = 0
        self._page_ids: Ints = np.empty(0, np.int64)
        self._sides: Ints = np.empty(0, np.int64)
        self._values = np.empty((0, 0), np.float32)

    @property
    def size_bytes(self) -> int:
        return self._values.nbytes

    def replace(self, page_ids: Sequence[int], vectors: SideVectors) -> None:
        """Drop the vectors of these pages, and add these."""
        kept = ~np.isin(self._page_ids[: self._count], page_ids)
        if not kept.all():
            self._keep(kept)
        added = len(vectors.page_ids)
        if not added:
            return
        self._make_room(self._count + added, vectors.values.shape[1])
        there = slice(self._count, self._count + added)
        self._page_ids[there], self._sides[there] = vectors.page_ids, vectors.sides
        self._values[there] = vectors.values
        self._count += added

    def cosines(self, query_vector: Sequence[float]) -> Cosines:
        query = np.asarray(query_vector, np.float32)
        query /= np.linalg.norm(query)
        known = slice(0, self._count)
        values = self._values[known] @ query if self._count else np.empty(0, np.float32)
        return Cosines(self._page_ids[known], self._sides[known], values.astype(np.float64))

    def _keep(self, kept: NDArray[np.bool_]) -> None:
        rows = np.flatnonzero(kept)
        for table in (self._page_ids, self._sides, self._values):
            table[: len(rows)] = table[rows]
        self._count = len(rows)

    def _make_room(self, rows: int, dimension: int) -> None:
        if rows <= len(self._page_ids):
            return
        room = max(rows, 2 * len(self._page_ids))
        known = slice(0, self._count)
        page_ids, sides = np.empty(room, np.int64), np.empty(room, np.int64)
        values = np.empty((room, dimension), np.float32)
        page_ids[known], sides[known] = self._page_ids[known], self._sides[known]
        if self._count:
            values[known] = self._values[known]
        self._page_ids, self._sides, self._values = page_ids, sides, values


def _said(row: PageTerms) -> tuple[object, ...]:
    return row.page.user_text, row.page.reply_text, row.user_terms, row.reply_terms, _time_order(row)


def _time_order(row: PageTerms) -> tuple[datetime, int]:
    return row.page.created_at, row.page.page_id


def _terms(sides: Sequence[bytes]) -> Terms:
    hashes = np.frombuffer(b"".join(sides), ">i4").astype(np.int64)
    return Terms(hashes, np.array([len(side) // TERM_BYTES for side in sides], np.int64))


def _masked(terms: Terms, mask: NDArray[np.bool_]) -> Terms:
    return Terms(terms.hashes[np.repeat(mask, terms.counts)], terms.counts[mask])


def _joined(earlier: Terms, later: Terms) -> Terms:
    return Terms(
        np.concatenate((earlier.hashes, later.hashes)), np.concatenate((earlier.counts, later.counts))
    )


def unpacked(blob: bytes, sizes: Iterable[int]) -> list[bytes]:
    """The pieces of these sizes that make up a blob."""
    pieces, start = [], 0
    for size in sizes:
        pieces.append(blob[start : start + size])
        start += size
    return pieces
