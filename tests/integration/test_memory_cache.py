"""The pages that a process keeps of a caller are those that the database has, whoever changed them."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

import memory.store_search as store_search
from memory.audio_store import AudioStore
from memory.caller_cache import CallerCache
from memory.caller_pages import Changes
from memory.embedded import conninfo_of
from memory.errors import StorageFault, StorageUnavailable
from memory.model import Exchange, Owner
from memory.scan import CallerScan
from memory.service import Memory
from memory.store import AudioPaths, PageVectors, Store

ANA = Owner("bakery", "+12025550111")
BEN = Owner("bakery", "+12025550122")
ANA_AT_THE_DENTIST = Owner("dentist", "+12025550111")
MODEL = "test-model"
QUERY = "Which bread did I order?"
WORDS = "two loaves of rye bread and a cake for friday".split()  # noqa: SIM905 - a sentence


@pytest.fixture
async def other(database_url: str) -> AsyncIterator[Store]:
    """Another process's store, as far as the first can tell."""
    opened = Store(database_url)
    yield opened
    await opened.close()


class Changer:
    """Changes a caller's pages in every way there is, at random."""

    def __init__(self, store: Store, database_url: str, owner: Owner, seed: int) -> None:
        self._store, self._url, self._owner = store, database_url, owner
        self._rng = random.Random(seed)
        self._ids: list[int] = []
        self._number = 0

    def vector(self) -> list[float]:
        return [self._rng.gauss(0.0, 1.0) for _ in range(384)]

    async def step(self) -> None:
        roll = self._rng.random()
        if not self._ids or roll < 0.5:
            await self._commit()
        elif roll < 0.9:
            await self._embed()
        elif roll < 0.95:
            await self._store.save_summary(self._rng.choice(self._ids), f"summary {roll}")
        else:
            await self._delete()

    async def _commit(self) -> None:
        self._number += 1
        call_id = f"CA-{self._owner.business_id}-{self._owner.caller}-{self._rng.randrange(3)}"
        await self._store.open_call(call_id, self._owner.business_id, self._owner.caller, "+1", "hash")
        user, reply = (" ".join(self._rng.choices(WORDS, k=self._rng.randrange(9))) for _ in range(2))
        exchange = Exchange(call_id, self._number, user, reply)
        page_id = await self._store.commit_page(self._owner, exchange, AudioPaths())
        assert page_id is not None
        self._ids.append(page_id)

    async def _embed(self) -> None:
        chunks = [[self.vector() for _ in range(self._rng.randrange(3))] for _ in range(3)]
        model = self._rng.choice([MODEL, MODEL, "another-model"])
        await self._store.save_vectors(self._owner, self._rng.choice(self._ids), model, PageVectors(*chunks))

    async def _delete(self) -> None:
        gone = self._rng.choice(self._ids)
        self._ids.remove(gone)
        async with await psycopg.AsyncConnection.connect(conninfo_of(self._url)) as connection:
            await connection.execute("DELETE FROM pages WHERE page_id = %s", (gone,))


def assert_same(kept: CallerScan, stored: CallerScan) -> None:
    assert kept.page_ids.tolist() == stored.page_ids.tolist()
    for name in ("user_cosines", "reply_cosines"):
        np.testing.assert_allclose(getattr(kept, name), getattr(stored, name), atol=1e-6)
    for name in ("user_terms", "reply_terms"):
        assert getattr(kept, name).hashes.tolist() == getattr(stored, name).hashes.tolist()
        assert getattr(kept, name).counts.tolist() == getattr(stored, name).counts.tolist()
    if len(stored):
        assert kept.asked_terms.tolist() == stored.asked_terms.tolist()
    for one in range(len(kept)):
        same = kept.call_ids == kept.call_ids[one]
        assert (same == (stored.call_ids == stored.call_ids[one])).all()


async def assert_exact(cache: CallerCache, store: Store, owner: Owner, query: list[float]) -> None:
    past = await cache.past(owner, MODEL, QUERY, "CA")
    assert_same(past.pages.scan(past.asked_terms, query), await store.scan(owner, QUERY, query, MODEL))
    ids = [int(page_id) for page_id in past.pages.scan(past.asked_terms, None).page_ids]
    assert past.pages.pages(sorted(ids)) == await store.pages_by_id(owner, ids)


@pytest.mark.parametrize("batch", [1, 3, 200])
async def test_kept_pages_are_the_stored_ones_after_any_change(
    store: Store, other: Store, database_url: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_search, "BATCH_PAGES", batch)
    owners = (ANA, BEN, ANA_AT_THE_DENTIST)
    changers = [
        Changer(other, database_url, owner, seed) for seed, owner in enumerate(owners, start=10 * batch)
    ]
    cache = CallerCache(store)
    for number in range(60):
        await asyncio.gather(*(changer.step() for changer in changers))
        if number % 3 == 0:
            for owner, changer in zip(owners, changers, strict=True):
                await assert_exact(cache, store, owner, changer.vector())
    fresh = CallerCache(store)
    for owner, changer in zip(owners, changers, strict=True):
        await assert_exact(cache, store, owner, changer.vector())
        await assert_exact(fresh, store, owner, changer.vector())


async def test_a_page_that_commits_late_is_not_missed(store: Store, database_url: str) -> None:
    """Its transaction began before another's: revisions of a caller come in the order of commits."""
    cache = CallerCache(store)
    await store.open_call("CA1", "bakery", ANA.caller, "+1", "hash")
    insert = "INSERT INTO pages (business_id, caller, call_id, exchange_no, user_text) VALUES (%s, %s, 'CA1', %s, %s)"
    async with await psycopg.AsyncConnection.connect(conninfo_of(database_url)) as early:
        await early.execute(insert, (ANA.business_id, ANA.caller, 1, "early"))
        later = asyncio.create_task(
            store.commit_page(ANA, Exchange("CA1", 2, "later", "reply"), AudioPaths())
        )
        seen = await cache.past(ANA, MODEL, QUERY, "CA1")
        assert len(seen.pages) == 0
        await early.commit()
    await later
    past = await cache.past(ANA, MODEL, QUERY, "CA1")
    assert [page.user_text for page in past.pages.latest(past.call_ids, 9)] == ["early", "later"]


async def test_an_erased_caller_who_calls_again_is_new(store: Store, database_url: str) -> None:
    """Also where nothing of them was left, not even how often they changed."""
    cache = CallerCache(store)
    changer = Changer(store, database_url, ANA, 1)
    for _ in range(20):
        await changer.step()
    await assert_exact(cache, store, ANA, changer.vector())
    async with await psycopg.AsyncConnection.connect(conninfo_of(database_url)) as connection:
        await connection.execute("DELETE FROM calls WHERE caller = %s", (ANA.caller,))
        await connection.execute("DELETE FROM caller_revisions WHERE caller = %s", (ANA.caller,))
    again = Changer(store, database_url, ANA, 2)
    for _ in range(30):
        await again.step()
    await assert_exact(cache, store, ANA, changer.vector())


async def test_callers_who_do_not_fit_are_dropped_the_oldest_first(store: Store, database_url: str) -> None:
    cache = CallerCache(store, limit_bytes=0)
    for owner in (ANA, BEN):
        changer = Changer(store, database_url, owner, 3)
        for _ in range(10):
            await changer.step()
        await assert_exact(cache, store, owner, changer.vector())
        assert len(cache) == 1
    await assert_exact(cache, store, ANA, changer.vector())


async def test_several_calls_of_a_caller_look_at_once(store: Store, database_url: str) -> None:
    changer = Changer(store, database_url, ANA, 4)
    for _ in range(20):
        await changer.step()
    cache = CallerCache(store)
    await asyncio.gather(*(assert_exact(cache, store, ANA, changer.vector()) for _ in range(8)))


async def test_nobody_has_no_past(store: Store) -> None:
    for owner in (Owner("bakery", None), Owner("bakery", ""), Owner("", "+12025550111")):
        with pytest.raises(ValueError, match=r"nobody|business_id"):
            await CallerCache(store).past(owner, MODEL, QUERY, "CA1")


async def test_dead_connections_are_replaced(store: Store, database_url: str) -> None:
    cache = CallerCache(store)
    await cache.past(ANA, MODEL, QUERY, "CA1")
    async with await psycopg.AsyncConnection.connect(conninfo_of(database_url)) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    await cache.past(ANA, MODEL, QUERY, "CA1")


async def test_faults_of_the_database_are_told_apart(store: Store, database_url: str, tmp_path: str) -> None:
    away = Store(f"postgresql://postgres@/ivr?host={tmp_path}")
    with pytest.raises(StorageUnavailable):
        await CallerCache(away).past(ANA, MODEL, QUERY, "CA1")
    await away.close()
    async with await psycopg.AsyncConnection.connect(conninfo_of(database_url)) as connection:
        await connection.execute("DROP TABLE caller_revisions CASCADE")
    with pytest.raises(StorageFault):
        await CallerCache(store).past(ANA, MODEL, QUERY, "CA1")


async def test_what_was_read_at_the_webhook_is_not_read_again_and_goes_with_the_last_call(
    store: Store, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changer = Changer(store, database_url, ANA, 5)
    for _ in range(20):
        await changer.step()
    memory = Memory(store, AudioStore(f"file://{tmp_path}"), None)
    read: list[tuple[Owner, int]] = []
    changes = store.changes

    async def noted(owner: Owner, *rest: Any) -> Changes:
        found = await changes(owner, *rest)
        read.append((owner, len(found.pages)))
        return found

    monkeypatch.setattr(store, "changes", noted)
    for call in (1, 2):
        memory.callers.hold(ANA)
        await memory.warm(ANA)
        assert read[-1] == (ANA, 0 if call == 2 else read[0][1])
    assert read[0][1] > 0
    for owner in (ANA, BEN, ANA_AT_THE_DENTIST):
        await memory.recall(owner, "CA9", QUERY, ())
    assert [one for one in read[2:] if one[1]] == []  # nothing anew for her, nothing of hers for the others
    memory.callers.release(ANA)
    await memory.recall(ANA, "CA9", QUERY, ())
    assert read[-1] == (ANA, 0)  # another call of hers is live
    memory.callers.release(ANA)
    await memory.recall(ANA, "CA9", QUERY, ())
    assert read[-1] == read[0]


async def test_nobody_and_a_store_that_is_down_are_no_fault(store: Store, tmp_path: Path) -> None:
    audio = AudioStore(f"file://{tmp_path}")
    await Memory(store, audio, None).warm(Owner("bakery", None))
    away = Store(f"postgresql://postgres@/ivr?host={tmp_path}")
    await Memory(away, audio, None).warm(ANA)
    await away.close()
