"""One pass over all that a caller ever said at a business: exact, and as columns that numpy reads as they are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import text

from memory.database import Database, check_owner, clean_text
from memory.model import Owner
from memory.scan import NO_PAGES, CallerScan, Floats, Ints, Terms
from memory.store_pages import Side, check_vector

# One row: a row a page costs more to carry over and to decode than the whole search does. The pages and their
# vectors are put together by us: the planner, without statistics, would loop over one within the other.
# `<#>` is the negative inner product; the vectors are stored with length one.
SCAN = text(
    """
    SELECT memory_terms('english', :words) AS asked_hashes, page.*, vector.*
    FROM (
        SELECT string_agg(int8send(page_id), ''::bytea) AS page_ids,
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
    ) AS page, (
        SELECT string_agg(int8send(page_id), ''::bytea) AS vector_ids,
            string_agg(int2send(side), ''::bytea) AS vector_sides,
            string_agg(float8send(-(embedding <#> CAST(:asked AS vector))), ''::bytea) AS cosines
        FROM page_vectors
        WHERE business_id = :business_id AND caller = :caller AND model = :model AND side > 0
            AND CAST(:asked AS vector) IS NOT NULL
    ) AS vector
    """
)


class SearchStore(Database):
    """The statement behind every recall."""

    async def scan(
        self, owner: Owner, query_text: str, query_vector: Sequence[float] | None, model: str
    ) -> CallerScan:
        """What every page of the caller has in common with the query. Empty for nobody.

        Raises: `WrongDimension`; `ValueError` for a vector without a direction.
        """
        check_owner(owner)
        if not owner.caller:
            return NO_PAGES
        asked = None
        if query_vector is not None:
            check_vector(query_vector, model)
            asked = str(_unit(query_vector).tolist())
        values = {
            "business_id": owner.business_id,
            "caller": owner.caller,
            "model": model,
            "asked": asked,
            "words": clean_text(query_text),
        }
        async with self.transaction() as connection:
            row = (await connection.execute(SCAN, values)).one()
        return _read(row) if row.page_ids is not None else NO_PAGES


TERM_BYTES = 4
"""An `int4send`."""


def _read(row: Any) -> CallerScan:
    page_ids = _ints(row.page_ids, ">i8")
    cosines = np.full((len(page_ids), 2), np.nan)
    if row.vector_ids is not None:
        order = np.argsort(page_ids, kind="stable")
        # A page that another transaction added in between is in neither: both halves are one snapshot.
        places = order[np.searchsorted(page_ids[order], _ints(row.vector_ids, ">i8"))]
        sides = _ints(row.vector_sides, ">i2") - int(Side.USER)
        # `fmax` knows that NaN is no number: the best chunk of a side stands for it.
        np.fmax.at(cosines, (places, sides), np.frombuffer(row.cosines, ">f8").astype(np.float64))
    return CallerScan(
        page_ids=page_ids,
        call_ids=_ints(row.call_ids, ">i4"),
        user_cosines=cosines[:, 0],
        reply_cosines=cosines[:, 1],
        user_terms=Terms(_ints(row.user_hashes, ">i4"), _ints(row.user_sizes, ">i4") // TERM_BYTES),
        reply_terms=Terms(_ints(row.reply_hashes, ">i4"), _ints(row.reply_sizes, ">i4") // TERM_BYTES),
        asked_terms=_ints(row.asked_hashes, ">i4"),
    )


def _ints(raw: bytes, kind: str) -> Ints:
    return np.frombuffer(raw, kind).astype(np.int64)


def _unit(vector: Sequence[float]) -> Floats:
    array = np.asarray(vector, np.float64)
    return array / np.linalg.norm(array)
