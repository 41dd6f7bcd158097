"""A business's documents: found by meaning and by words, never another business's, replaced with the flow file."""

from dataclasses import replace

import pytest

from memory.audio_store import AudioStore
from memory.facts import Passage
from memory.jobs import JobTools, run_pending
from memory.model import Exchange, Owner
from memory.service import Memory
from memory.store import Store
from memory.strategies import Policy
from memory.summarise import ExtractiveSummariser
from tests.integration.embed_double import MODEL, EmbedDouble, hashed
from tests.pg import execute

YARD = Passage("House rules", "Bicycles may stand in the yard.")
DOGS = Passage("House rules", "Dogs are welcome.")
MENU = Passage("Speisekarte", "Die Kuchen sind ohne Nüsse.")
WITH_DOCUMENTS = Policy(documents=True)


async def found(store: Store, query: str, business: str = "bakery", count: int = 2) -> list[Passage]:
    return await store.find_facts(business, query, ("en",), hashed(query, 384), MODEL, count)


async def test_facts_are_found_by_words_at_once_and_by_meaning_once_embedded(
    store: Store, service_url: str
) -> None:
    """One job embeds them, whatever there is of them; those of another business do not exist."""
    assert await store.replace_facts("bakery", [YARD, DOGS], "en")
    assert await store.replace_facts("dentist", [Passage("Rules", "Bicycles never.")], "en")
    assert await found(store, "Where do I leave my bicycle?") == [YARD]
    async with EmbedDouble().serve() as embedder:
        await run_pending(service_url, JobTools(store, ExtractiveSummariser(), embedder))
    assert await store.unembedded_facts("bakery", MODEL, 9) == []
    assert await found(store, "dogs are rules") == [DOGS, YARD]
    assert await found(store, "bicycle", "florist") == []


async def test_the_flow_files_newest_documents_stand(store: Store) -> None:
    assert await store.replace_facts("bakery", [YARD, DOGS], "en")
    assert not await store.replace_facts("bakery", [YARD, DOGS], "en")
    assert await store.replace_facts("bakery", [replace(DOGS, text="Dogs wait outside.")], "en")
    assert [each.text for each in await found(store, "dogs, bicycles")] == ["Dogs wait outside."]
    assert await store.replace_facts("bakery", [], "en")
    assert await found(store, "dogs") == []


async def test_a_passage_is_read_in_its_businesss_language(store: Store) -> None:
    await store.replace_facts("bakery", [MENU], "de")
    assert await store.find_facts("bakery", "Nuss im Kuchen?", ("de",), None, "", 3) == [MENU]


@pytest.mark.parametrize("tuples", ["20000", "1"])
async def test_what_the_index_does_not_reach_is_searched_exactly(
    database_url: str, store: Store, tuples: str
) -> None:
    """Forced to its index, and (the second time) kept from looking far: other businesses' are nearer."""
    name = database_url.rpartition("/")[2].partition("?")[0]
    execute(database_url, f"ALTER DATABASE {{}} SET hnsw.max_scan_tuples = {tuples}", name)
    execute(database_url, "ALTER DATABASE {} SET enable_seqscan = off", name)
    execute(database_url, "ALTER DATABASE {} SET enable_sort = off", name)
    await store.close()
    for business, text, number in (("dentist", "bicycle yard", 300), ("bakery", "one dog", 3)):
        await store.replace_facts(business, [Passage("a", f"{text} {n}") for n in range(number)], "en")
        while left := await store.unembedded_facts(business, MODEL, 100):
            vectors = {fact.fact_id: hashed(fact.passage.text, 384) for fact in left}
            await store.save_fact_vectors(business, MODEL, vectors)
    assert len(await found(store, "bicycle yard", count=3)) == 3


async def test_a_recall_brings_facts_along_for_nobody_too(store: Store, tmp_path: object) -> None:
    await store.replace_facts("bakery", [YARD, DOGS], "en")
    memory = Memory(store, AudioStore(f"file://{tmp_path}"), None)
    for owner in (Owner("bakery", "+12025550111"), Owner("bakery", None)):
        window = await memory.recall(owner, "CA1", "Are dogs welcome?", (), policy=WITH_DOCUMENTS)
        assert window.facts == ("House rules: Dogs are welcome.",)
        assert window.tokens == 7
        assert (await memory.recall(owner, "CA1", "?", (), policy=WITH_DOCUMENTS)).facts == ()
        assert (await memory.recall(owner, "CA1", "dogs", ())).facts == ()


async def test_facts_and_pages_share_the_window(store: Store, tmp_path: object) -> None:
    ana = Owner("bakery", "+12025550111")
    await store.replace_facts("bakery", [YARD, DOGS], "en")
    memory = Memory(store, AudioStore(f"file://{tmp_path}"), None)
    await store.open_call("CA1", ana.business_id, ana.caller, "+12025550100", "hash")
    await memory.commit(ana, Exchange("CA1", 1, "My dogs are called Rex and Ann.", "I see."))
    window = await memory.recall(ana, "CA2", "dogs", (), policy=replace(WITH_DOCUMENTS, budget_tokens=60))
    assert len(window.facts) == 1 and len(window.entries) == 1
    assert window.tokens <= window.budget_tokens
