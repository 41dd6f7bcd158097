"""One pass over all that a caller ever said at a business: exact, and as columns that numpy reads as they are."""

from collections.abc import Sequence

import numpy as np
from sqlalchemy import text

from memory.database import Database, check_owner, clean_text
from memory.model import Owner
from memory.scan import NO_PAGES, CallerScan, Floats, Ints, Terms
from memory.store_pages import check_vector

# One row: a row a page costs more to carry over and to decode than the whole search does.
# `<#>` is the negative inner product; the vectors are stored with length one.
SCAN = text(
    """
    WITH near AS (
        SELECT page_id,
            max(-(embedding <#> CAST(:asked AS vector))) FILTER (WHERE side = 1) AS user_cosine,
            max(-(embedding <#> CAST(:asked AS vector))) FILTER (WHERE side = 2) AS reply_cosine
        FROM page_vectors
        WHERE CAST(:asked AS text) IS NOT NULL AND side > 0
            AND business_id = :business_id AND caller = :caller AND model = :model
        GROUP BY page_id
    ), mine AS (
        SELECT page_id, hashtext(call_id) AS call, user_cosine, reply_cosine, user_terms, reply_terms
        FROM pages LEFT JOIN near USING (page_id)
        WHERE business_id = :business_id AND caller = :caller
        ORDER BY created_at, page_id
    )
    SELECT string_agg(int8send(page_id), ''::bytea) AS page_ids,
        string_agg(int4send(call), ''::bytea) AS call_ids,
        string_agg(float8send(coalesce(user_cosine, 'NaN')), ''::bytea) AS user_cosines,
        string_agg(float8send(coalesce(reply_cosine, 'NaN')), ''::bytea) AS reply_cosines,
        string_agg(user_terms, ''::bytea) AS user_hashes,
        string_agg(int4send(length(user_terms)), ''::bytea) AS user_sizes,
        string_agg(reply_terms, ''::bytea) AS reply_hashes,
        string_agg(int4send(length(reply_terms)), ''::bytea) AS reply_sizes,
        memory_terms('english', :words) AS asked_hashes
    FROM mine
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
        if row.page_ids is None:
            return NO_PAGES
        return CallerScan(
            page_ids=_ints(row.page_ids, ">i8"),
            call_ids=_ints(row.call_ids, ">i4"),
            user_cosines=np.frombuffer(row.user_cosines, ">f8").astype(np.float64),
            reply_cosines=np.frombuffer(row.reply_cosines, ">f8").astype(np.float64),
            user_terms=Terms(_ints(row.user_hashes, ">i4"), _ints(row.user_sizes, ">i4") // TERM_BYTES),
            reply_terms=Terms(_ints(row.reply_hashes, ">i4"), _ints(row.reply_sizes, ">i4") // TERM_BYTES),
            asked_terms=_ints(row.asked_hashes, ">i4"),
        )


TERM_BYTES = 4


def _ints(raw: bytes, kind: str) -> Ints:
    return np.frombuffer(raw, kind).astype(np.int64)


def _unit(vector: Sequence[float]) -> Floats:
    array = np.asarray(vector, np.float64)
    return array / np.linalg.norm(array)
