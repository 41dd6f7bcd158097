"""Passages of businesses' documents: replaced with the flow file, found by meaning and by words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import delete, func, insert, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import Database, check_business, clean_text
from memory.facts import Passage, digest_of
from memory.jobqueue import enqueue_facts
from memory.languages import configuration_of
from memory.schema import business_facts, businesses, fact_sets
from memory.store_pages import check_vector

RANK_DAMPING = 60
"""Reciprocal rank fusion's usual constant (Cormack, Clarke, Büttcher 2009)."""

# The index is of all businesses. It looks further while it finds too few of ours, and gives up somewhere.
NEARER = text("SET LOCAL hnsw.iterative_scan = 'strict_order'")
EXACTLY = text("SET LOCAL enable_indexscan = off")
BY_MEANING = text(
    """
    SELECT fact_id FROM business_facts
    WHERE business_id = :business_id AND model = :model
    ORDER BY embedding <=> CAST(:asked AS vector), fact_id LIMIT :count
    """
)
OF_MODEL = text("SELECT count(*) FROM business_facts WHERE business_id = :business_id AND model = :model")
# Rare words of the query count more, and words of short passages: as in BM25, with each word once.
BY_WORDS = text(
    """
    WITH asked AS (
        SELECT DISTINCT hash FROM unnest(CAST(:configs AS text[])) AS named,
            unnest(memory_term_set(memory_config(named), :words)) AS hash
    ), mine AS MATERIALIZED (
        SELECT fact_id, terms, cardinality(terms) AS size FROM business_facts WHERE business_id = :business_id
    ), held AS MATERIALIZED (
        SELECT fact_id, size, hash FROM mine, unnest(terms) AS hash JOIN asked USING (hash)
    ), rarity AS (
        SELECT hash, ln(1 + (SELECT count(*) FROM mine)::float8 / count(*)) AS weight FROM held GROUP BY hash
    )
    SELECT fact_id FROM held JOIN rarity USING (hash)
    GROUP BY fact_id, size
    ORDER BY sum(weight) / (1 + size / (SELECT 1 + avg(size) FROM mine)) DESC, fact_id
    LIMIT :count
    """
)


@dataclass(frozen=True, slots=True)
class UnembeddedFact:
    """A passage that a model has not embedded."""

    fact_id: int
    passage: Passage


class FactStore(Database):
    """Every statement about business facts."""

    async def replace_facts(self, business_id: str, pieces: Sequence[Passage], language: str) -> bool:
        """Make these the business's passages, and queue their embedding. False if they are already."""
        check_business(business_id)
        digest = digest_of(pieces, language)
        known = select(fact_sets.c.digest).where(fact_sets.c.business_id == business_id)
        config = func.memory_config(configuration_of(language))
        rows = [
            {"business_id": business_id, "title": clean_text(each.title), "passage": clean_text(each.text)}
            for each in pieces
        ]
        async with self.transaction(business_id) as connection:
            if (await connection.execute(known)).scalar() == digest:
                return False
            # Waits for another worker that does the same; then this one's are the last.
            row = upsert(fact_sets).values(business_id=business_id, digest=digest)
            await connection.execute(
                row.on_conflict_do_update(
                    index_elements=["business_id"], set_={"digest": digest, "changed_at": func.now()}
                )
            )
            mine = business_facts.c.business_id == business_id
            await connection.execute(delete(business_facts).where(mine))
            if rows:
                await connection.execute(insert(business_facts).values(text_config=config), rows)
                await connection.execute(
                    upsert(businesses).values(business_id=business_id).on_conflict_do_nothing()
                )
                await enqueue_facts(connection)
        return True

    async def unembedded_facts(self, business_id: str, model: str, limit: int) -> list[UnembeddedFact]:
        """Passages of the business that this model has not embedded."""
        check_business(business_id)
        query = (
            select(business_facts.c.fact_id, business_facts.c.title, business_facts.c.passage)
            .where(
                business_facts.c.business_id == business_id,
                or_(business_facts.c.model.is_(None), business_facts.c.model != model),
            )
            .order_by(business_facts.c.fact_id)
            .limit(limit)
        )
        async with self.transaction(business_id) as connection:
            return [
                UnembeddedFact(row.fact_id, Passage(row.title, row.passage))
                for row in await connection.execute(query)
            ]

    async def save_fact_vectors(
        self, business_id: str, model: str, vectors: Mapping[int, Sequence[float]]
    ) -> None:
        """Keep these passages' vectors; of one that was replaced meanwhile nothing.

        Raises: `WrongDimension`; `ValueError` for a vector without a direction.
        """
        check_business(business_id)
        for vector in vectors.values():
            check_vector(vector, model)
        async with self.transaction(business_id) as connection:
            for fact_id, vector in vectors.items():
                await connection.execute(
                    update(business_facts)
                    .where(business_facts.c.business_id == business_id, business_facts.c.fact_id == fact_id)
                    .values(model=model, embedding=list(vector))
                )

    async def find_facts(
        self,
        business_id: str,
        query_text: str,
        languages: Sequence[str],
        query_vector: Sequence[float] | None,
        model: str,
        count: int,
    ) -> list[Passage]:
        """The business's passages that fit a query best, by meaning and by words, best first.

        Raises: `WrongDimension`; `ValueError` for a vector without a direction.
        """
        check_business(business_id)
        if query_vector is not None:
            check_vector(query_vector, model)
        configs = list(dict.fromkeys(map(configuration_of, languages)))
        words = {
            "business_id": business_id,
            "configs": configs,
            "words": clean_text(query_text),
            "count": count,
        }
        async with self.transaction(business_id) as connection:
            by_words = list((await connection.execute(BY_WORDS, words)).scalars())
            by_meaning: list[int] = []
            if query_vector is not None:
                by_meaning = await _nearest(connection, business_id, query_vector, model, count)
            ids = _fused([by_words, by_meaning])[:count]
            query = select(business_facts.c.fact_id, business_facts.c.title, business_facts.c.passage).where(
                business_facts.c.business_id == business_id, business_facts.c.fact_id.in_(ids)
            )
            found = {row.fact_id: row for row in await connection.execute(query)}
        return [Passage(found[fact_id].title, found[fact_id].passage) for fact_id in ids]


async def _nearest(
    connection: AsyncConnection, business_id: str, vector: Sequence[float], model: str, count: int
) -> list[int]:
    """By the index as far as it reaches; exactly, among all of the business's, where it gave too few."""
    asked = {"business_id": business_id, "model": model}
    nearest = {**asked, "asked": str(list(vector)), "count": count}
    await connection.execute(NEARER)
    found = list((await connection.execute(BY_MEANING, nearest)).scalars())
    if len(found) < count and len(found) < (await connection.execute(OF_MODEL, asked)).scalar_one():
        await connection.execute(EXACTLY)
        found = list((await connection.execute(BY_MEANING, nearest)).scalars())
    return found


def _fused(rankings: Sequence[Sequence[int]]) -> list[int]:
    """Reciprocal rank fusion; of equals the one that was first in the file."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, fact_id in enumerate(ranking):
            scores[fact_id] = scores.get(fact_id, 0.0) + 1.0 / (RANK_DAMPING + rank)
    return sorted(scores, key=lambda fact_id: (-scores[fact_id], fact_id))
