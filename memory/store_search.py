"""One pass over all that a caller ever said at a business: exact, and as columns that numpy reads as they are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import text

from memory.database import Database, check_owner, clean_text
from memory.model import Owner
from memory.scan import NO_COSINES, NO_PAGES, CallerScan, Cosines, Floats, Ints, Terms
from memory.store_pages import Side, check_vector

# One row each: a row a page costs more to carry over and to decode than the whole search does. The pages and their
# vectors are put together by us: the planner, without statistics, would loop over one within the other; and the
# words can be read while the query is still being embedded.
WORDS = text(
    """
    SELECT memory_terms('english', :words) AS asked_hashes,
        string_agg(int8send(page_id), ''::bytea) AS page_ids,
        string_agg(int4send(hashtext(call_id)), ''::bytea) AS call_ids,
        string_agg(user_terms, ''::bytea) AS user_hashes,
        string_agg(int4send(length(user_terms)), ''::bytea) AS user_sizes,
        string_agg(reply_terms, ''::bytea) AS reply_hashes,
        string_agg(int4send(length(reply_terms)), ''::bytea) AS reply_sizes
    FROM (
        SELECT page_id, call_id, user_terms, reply_terms FROM pages
        WHERE business_id = :business_id AND caller = :caller
        ORDER BY created_at, page_id
    ) AS mine
    """
)
# `<#>` is the negative inner product; the vectors are stored with length one.
COSINES = text(
    """
    SELECT string_agg(int8send(page_id), ''::bytea) AS page_ids,
        string_agg(int2send(side), ''::bytea) AS sides,
        string_agg(float8send(-(embedding <#> CAST(:asked AS vector))), ''::bytea) AS cosines
    FROM page_vectors
    WHERE business_id = :business_id AND caller = :caller AND model = :model AND side > 0
    """
)


class SearchStore(Database):
    """The statements behind every recall: exact, one pass over what is the caller's."""

    async def scan(
        self, owner: Owner, query_text: str, query_vector: Sequence[float] | None, model: str
    ) -> CallerScan:
        """Words and cosines together. Empty for nobody. Raises: as `cosines`."""
        scan = await self.scan_words(owner, query_text)
        return (
            scan
            if query_vector is None
            else scan.with_cosines(await self.cosines(owner, query_vector, model))
        )

    async def scan_words(self, owner: Owner, query_text: str) -> CallerScan:
        """The stems of every page of the caller, and of the query; no cosines. Empty for nobody."""
        check_owner(owner)
        if not owner.caller:
            return NO_PAGES
        values = {
            "business_id": owner.business_id,
            "caller": owner.caller,
            "words": clean_text(query_text),
        }
        async with self.transaction() as connection:
            row = (await connection.execute(WORDS, values)).one()
        return _words(row) if row.page_ids is not None else NO_PAGES

    async def cosines(self, owner: Owner, query_vector: Sequence[float], model: str) -> Cosines:
        """The query's cosine with each vector of this model that the caller's pages have. Empty for nobody.

        Raises: `WrongDimension`; `ValueError` for a vector without a direction.
        """
        check_owner(owner)
        check_vector(query_vector, model)
        if not owner.caller:
            return NO_COSINES
        values = {
            "business_id": owner.business_id,
            "caller": owner.caller,
            "model": model,
            "asked": str(_unit(query_vector).tolist()),
        }
        async with self.transaction() as connection:
            row = (await connection.execute(COSINES, values)).one()
        if row.page_ids is None:
            return NO_COSINES
        sides = _ints(row.sides, ">i2") - int(Side.USER)
        return Cosines(
            _ints(row.page_ids, ">i8"), sides, np.frombuffer(row.cosines, ">f8").astype(np.float64)
        )


TERM_BYTES = 4
"""An `int4send`."""


def _words(row: Any) -> CallerScan:
    page_ids = _ints(row.page_ids, ">i8")
    return CallerScan(
        page_ids=page_ids,
        call_ids=_ints(row.call_ids, ">i4"),
        user_cosines=np.full(len(page_ids), np.nan),
        reply_cosines=np.full(len(page_ids), np.nan),
        user_terms=Terms(_ints(row.user_hashes, ">i4"), _ints(row.user_sizes, ">i4") // TERM_BYTES),
        reply_terms=Terms(_ints(row.reply_hashes, ">i4"), _ints(row.reply_sizes, ">i4") // TERM_BYTES),
        asked_terms=_ints(row.asked_hashes, ">i4"),
    )


def _ints(raw: bytes, kind: str) -> Ints:
    return np.frombuffer(raw, kind).astype(np.int64)


def _unit(vector: Sequence[float]) -> Floats:
    array = np.asarray(vector, np.float64)
    return array / np.linalg.norm(array)
