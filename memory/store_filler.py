"""Many made-up pages at once, for measuring: made inside the database, past every job."""

from collections.abc import Sequence

from sqlalchemy import text

from memory.database import Database, check_owner
from memory.model import Owner

CALL_PAGES = 20

CALLS = text(
    """
    INSERT INTO calls (business_id, call_sid, caller, to_number, flow_hash)
    SELECT :business_id, :caller || '-' || number, :caller, '', ''
    FROM generate_series(0, (CAST(:count AS integer) - 1) / :call_pages) AS number
    """
)
PAGES = text(
    """
    INSERT INTO pages (business_id, caller, call_id, exchange_no, user_text, reply_text, embedded_with)
    SELECT :business_id, :caller, :caller || '-' || number / :call_pages, number,
        texts[1 + (number * 7919 + :seed) % cardinality(texts)],
        texts[1 + (number * 104729 + :seed) % cardinality(texts)], :model
    FROM generate_series(0, CAST(:count AS integer) - 1) AS number, (SELECT CAST(:texts AS text[]) AS texts) AS pool
    """
)
VECTORS = text(
    """
    WITH pool AS MATERIALIZED (
        SELECT number, l2_normalize(CAST((
            SELECT array_agg(random() - 0.5) FROM generate_series(1, 384) WHERE number IS NOT NULL
        ) AS vector)) AS embedding
        FROM generate_series(0, 499) AS number
    )
    INSERT INTO page_vectors (business_id, caller, page_id, model, side, chunk, embedding)
    SELECT pages.business_id, pages.caller, pages.page_id, :model, side, 0, pool.embedding
    FROM pages CROSS JOIN generate_series(0, 2) AS side
    JOIN pool ON pool.number = (pages.page_id * 7919 + side * 104729) % 500
    WHERE pages.business_id = :business_id
    """
)


class Filler(Database):
    """Fills a bench's database. Give it a long timeout."""

    async def fill(self, sizes: Sequence[tuple[Owner, int]], model: str, texts: Sequence[str]) -> None:
        """So many pages for each caller, all of one business, with three vectors each of no meaning."""
        async with self.transaction(sizes[0][0].business_id) as connection:
            for seed, (owner, count) in enumerate(sizes):
                check_owner(owner)
                values = {
                    "business_id": owner.business_id,
                    "caller": owner.caller,
                    "count": count,
                    "call_pages": CALL_PAGES,
                }
                await connection.execute(CALLS, values)
                await connection.execute(
                    PAGES, {**values, "texts": list(texts), "seed": seed, "model": model}
                )
            # Without statistics the planner would go through the whole pool for every vector.
            await connection.execute(text("SET LOCAL enable_nestloop = off"))
            business_id = sizes[0][0].business_id
            await connection.execute(VECTORS, {"business_id": business_id, "model": model})
        async with self.transaction(sizes[0][0].business_id) as connection:
            await connection.execute(text("ANALYZE"))
