"""One pass over all that a caller ever said at a business: exact, and as columns that numpy reads as they are."""

from collections.abc import Sequence
from typing import Any, LiteralString

import msgspec
import numpy as np
from sqlalchemy import text

from memory.caller_pages import Changes, Cursor, PageTerms, SideVectors, unpacked
from memory.database import Database, check_owner, clean_text
from memory.languages import configuration_of
from memory.model import Owner, Page
from memory.scan import NO_COSINES, NO_PAGES, CallerScan, Cosines, Floats, Ints, Terms
from memory.schema import VECTOR_DIMENSION
from memory.store_pages import RESUME_CHAIN_MAX, Side, check_vector

# One row each: a row a page costs more to carry over and to decode than the whole search does. The pages and their
# vectors are put together by us: the planner, without statistics, would loop over one within the other; and the
# words can be read while the query is still being embedded.
WORDS = text(
    """
    SELECT memory_asked(:configs, :words) AS asked_hashes,
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
SENT_VECTOR = np.dtype([("dimension", ">i2"), ("unused", ">i2"), ("values", ">f4", (VECTOR_DIMENSION,))])
"""pgvector's `vector_send`."""
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


# All a turn needs, in one snapshot: the pages since a cursor with their vectors, the query's stems, the resumed calls.
CHANGES: LiteralString = """
    WITH RECURSIVE changed AS MATERIALIZED (
        SELECT * FROM pages
        WHERE business_id = %(business_id)s AND caller = %(caller)s
            AND (revision, page_id) > (%(revision)s, %(page_id)s)
        ORDER BY revision, page_id LIMIT %(batch)s
    ), vectors AS (
        SELECT string_agg(int8send(page_id), ''::bytea) AS page_ids,
            string_agg(int2send(side), ''::bytea) AS sides,
            string_agg(vector_send(embedding), ''::bytea) AS embeddings
        FROM changed JOIN page_vectors USING (business_id, caller, page_id)
        WHERE model = %(model)s AND side > 0
    ), chain AS (
        SELECT start.call_sid, start.back
        FROM (VALUES (%(call_id)s::text, 0), (%(resumed_from)s::text, 1)) AS start (call_sid, back)
        WHERE start.call_sid IS NOT NULL
        UNION
        SELECT calls.resumed_from, chain.back + 1
        FROM chain JOIN calls USING (call_sid)
        WHERE business_id = %(business_id)s AND caller = %(caller)s
            AND resumed_from IS NOT NULL AND chain.back < %(chain_max)s
            -- Of the call itself it is given; of those before, only what they were offered and went on with.
            AND chain.back > 0 AND snapshot -> 'state' -> 'resumed' = 'true'::jsonb
    )
    SELECT memory_asked(%(configs)s, %(words)s),
        (SELECT array_agg(call_sid ORDER BY back) FROM chain),
        (SELECT ARRAY[revision, erased_at] FROM caller_revisions
            WHERE business_id = %(business_id)s AND caller = %(caller)s),
        convert_to(json_agg(json_build_object(
            'page_id', page_id, 'call_id', call_id, 'exchange_no', exchange_no, 'user_text', user_text,
            'reply_text', reply_text, 'summary', summary, 'user_audio_path', user_audio_path,
            'reply_audio_path', reply_audio_path, 'user_audio_ms', user_audio_ms, 'reply_audio_ms', reply_audio_ms,
            'interrupted', interrupted, 'user_item_id', user_item_id, 'created_at', created_at, 'trust', trust
        ))::text, 'UTF8'),
        max(revision),
        string_agg(user_terms, ''::bytea), string_agg(int4send(length(user_terms)), ''::bytea),
        string_agg(reply_terms, ''::bytea), string_agg(int4send(length(reply_terms)), ''::bytea),
        (SELECT page_ids FROM vectors), (SELECT sides FROM vectors), (SELECT embeddings FROM vectors)
    FROM changed
"""
ENGLISH = ("en",)
BATCH_PAGES = 200
"""Pages a round trip: taking in more at once would hold up the calls beside it."""


class SearchStore(Database):
    """The statements behind every recall: exact, one pass over what is the caller's."""

    async def changes(
        self,
        owner: Owner,
        since: Cursor,
        model: str,
        query_text: str,
        call_id: str,
        resumed_from: str | None,
        languages: Sequence[str] = ENGLISH,
    ) -> Changes:
        """What of the caller's pages changed since, at most `BATCH_PAGES` of them; what the query's stems are; which
        call was resumed by this one, and so on. `languages` are tags of those that the pages may be in.

        Raises: `ValueError` for nobody, who owns no pages.
        """
        check_owner(owner)
        if not owner.caller:
            raise ValueError("nobody owns no pages")
        values = {
            "business_id": owner.business_id,
            "caller": owner.caller,
            "revision": since.revision,
            "page_id": since.page_id,
            "batch": BATCH_PAGES,
            "model": model,
            "words": clean_text(query_text),
            "configs": _configurations(languages),
            "call_id": call_id,
            "resumed_from": resumed_from,
            "chain_max": RESUME_CHAIN_MAX,
        }
        return _changes(await self.read_row(owner.business_id, CHANGES, values), since)

    async def scan(
        self,
        owner: Owner,
        query_text: str,
        query_vector: Sequence[float] | None,
        model: str,
        languages: Sequence[str] = ENGLISH,
    ) -> CallerScan:
        """Words and cosines together. Empty for nobody. Raises: as `cosines`."""
        scan = await self.scan_words(owner, query_text, languages)
        return (
            scan
            if query_vector is None
            else scan.with_cosines(await self.cosines(owner, query_vector, model))
        )

    async def scan_words(
        self, owner: Owner, query_text: str, languages: Sequence[str] = ENGLISH
    ) -> CallerScan:
        """The stems of every page of the caller, and of the query; no cosines. Empty for nobody."""
        check_owner(owner)
        if not owner.caller:
            return NO_PAGES
        values = {
            "business_id": owner.business_id,
            "caller": owner.caller,
            "words": clean_text(query_text),
            "configs": _configurations(languages),
        }
        async with self.transaction(owner.business_id) as connection:
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
        async with self.transaction(owner.business_id) as connection:
            row = (await connection.execute(COSINES, values)).one()
        if row.page_ids is None:
            return NO_COSINES
        sides = _ints(row.sides, ">i2") - int(Side.USER)
        return Cosines(
            _ints(row.page_ids, ">i8"), sides, np.frombuffer(row.cosines, ">f8").astype(np.float64)
        )


TERM_BYTES = 4
"""An `int4send`."""
LAST_PAGE_ID = 2**63 - 1
_pages = msgspec.json.Decoder(list[Page])


def _configurations(languages: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(map(configuration_of, languages)))


def _changes(row: tuple[Any, ...], since: Cursor) -> Changes:
    asked, chain, reached, raw_pages, revision, *terms = row[:9]
    last_revision, erased_at = reached or (0, 0)
    pages = _pages.decode(raw_pages) if raw_pages is not None else []
    is_last = len(pages) < BATCH_PAGES
    # What was changed in one transaction has one revision, and is seen all at once.
    cursor = Cursor(last_revision, LAST_PAGE_ID) if is_last else Cursor(revision, pages[-1].page_id)
    return Changes(
        pages=_with_terms(pages, *terms) if pages else [],
        vectors=_vectors(*row[9:]),
        cursor=cursor,
        is_last=is_last,
        erased_at=erased_at,
        asked_terms=_ints(asked, ">i4"),
        call_ids=tuple(dict.fromkeys(chain)),
    )


def _with_terms(
    pages: Sequence[Page], user: bytes, user_sizes: bytes, reply: bytes, reply_sizes: bytes
) -> list[PageTerms]:
    sides = (
        unpacked(blob, np.frombuffer(sizes, ">i4").tolist())
        for blob, sizes in ((user, user_sizes), (reply, reply_sizes))
    )
    return [PageTerms(page, *terms) for page, *terms in zip(pages, *sides, strict=True)]


def _vectors(page_ids: bytes | None, sides: bytes | None, embeddings: bytes | None) -> SideVectors:
    if page_ids is None or sides is None or embeddings is None:
        return SideVectors(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 0), np.float32))
    values = np.frombuffer(embeddings, SENT_VECTOR)["values"].astype(np.float32)
    return SideVectors(_ints(page_ids, ">i8"), _ints(sides, ">i2") - int(Side.USER), values)


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
