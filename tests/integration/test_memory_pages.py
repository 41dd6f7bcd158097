"""Pages in a real database: committed once, found exactly, within one caller of one business."""

import math
import random
from collections.abc import Sequence

import numpy as np
import psycopg
import pytest
from pgvector.psycopg import register_vector

from memory.calls import CallStatus
from memory.embedded import conninfo_of
from memory.errors import StaleEpoch, StorageFault, StorageUnavailable, UnknownCall, WrongDimension
from memory.fusion import load_weights, utterance_logits
from memory.model import CallSnapshot, Exchange, Owner
from memory.scan import CallerScan
from memory.store import AudioPaths, PageVectors, Store

ANA = Owner("bakery", "+12025550111")
NOBODY = Owner("bakery", None)
TO = "+12025550100"
MODEL = "test-model"


def axis(number: int, tilt: float = 0.0) -> list[float]:
    """A unit vector along one axis, turned a little towards the next."""
    vector = [0.0] * 384
    vector[number], vector[number + 1] = math.cos(tilt), math.sin(tilt)
    return vector


def asked_for(scan: CallerScan) -> list[int]:
    """The pages that have a stem of the query's in them, oldest first."""
    sides = (scan.user_terms, scan.reply_terms)
    held = [np.isin(side.hashes, scan.asked_terms) for side in sides]
    owners = [np.repeat(scan.page_ids, side.counts) for side in sides]
    return sorted({int(page) for owner, hit in zip(owners, held, strict=True) for page in owner[hit]})


def nearest(scan: CallerScan) -> list[int]:
    """The pages that have a vector, nearest first."""
    cosine = np.fmax(scan.user_cosines, scan.reply_cosines)
    return [int(scan.page_ids[row]) for row in np.argsort(-cosine) if np.isfinite(cosine[row])]


def said(*vectors: Sequence[float]) -> PageVectors:
    """The caller's chunks."""
    return PageVectors(user=vectors)


async def commit(
    store: Store, owner: Owner, call_id: str, number: int, user: str, reply: str = "Fine."
) -> int | None:
    await store.open_call(call_id, owner.business_id, owner.caller, TO, "hash")
    return await store.commit_page(owner, Exchange(call_id, number, user, reply), AudioPaths())


async def queued(url: str) -> list[tuple[str, dict[str, int]]]:
    async with await psycopg.AsyncConnection.connect(conninfo_of(url)) as connection:
        rows = await connection.execute("SELECT task_name, args FROM procrastinate_jobs ORDER BY id")
        return [(name, args) for name, args in await rows.fetchall()]


async def test_an_exchange_is_committed_once_with_its_job(store: Store, database_url: str) -> None:
    page_id = await commit(store, ANA, "CA1", 1, "Two loaves of rye, no nuts.")
    assert page_id is not None
    assert await commit(store, ANA, "CA1", 1, "Something else.") is None
    assert await queued(database_url) == [("memory.process_page", {"page_id": page_id})]
    pages = await store.recent_pages(ANA, "CA1", 5)
    assert [(page.user_text, page.exchange_no) for page in pages] == [("Two loaves of rye, no nuts.", 1)]


async def test_everything_an_exchange_holds_is_kept(store: Store) -> None:
    await store.open_call("CA1", "bakery", ANA.caller, TO, "hash")
    epoch = await store.claim_stream("CA1", "MZ1")
    exchange = Exchange(
        "CA1",
        1,
        "One\x00two",
        "Heard part",
        b"\xff" * 16_000,
        b"\xff" * 8_000,
        True,
        "item_1",
        "order",
        {"input_text_tokens": 12},
        {"speed": 1.1},
    )
    page_id = await store.commit_page(
        ANA, exchange, AudioPaths("u.wav", "r.wav"), epoch=epoch, snapshot=CallSnapshot(1, {"node": "order"})
    )
    assert page_id is not None
    stored = await store.load_page(page_id)
    assert stored is not None
    page = stored.page
    assert (page.user_text, page.user_audio_ms, page.reply_audio_ms) == ("Onetwo", 2_000, 1_000)
    assert (page.user_audio_path, page.reply_audio_path) == ("u.wav", "r.wav")
    assert (page.interrupted, page.user_item_id, stored.flow_node) == (True, "item_1", "order")
    assert stored.owner == ANA
    call = await store.get_call("CA1")
    assert call is not None and call.snapshot == CallSnapshot(1, {"node": "order"})


async def test_an_old_stream_commits_nothing(store: Store, database_url: str) -> None:
    await store.open_call("CA1", "bakery", ANA.caller, TO, "hash")
    old = await store.claim_stream("CA1", "MZ1")
    await store.claim_stream("CA1", "MZ2")
    with pytest.raises(StaleEpoch):
        await store.commit_page(ANA, Exchange("CA1", 1, "Hi", "Hello"), AudioPaths(), epoch=old)
    with pytest.raises(UnknownCall):
        await store.commit_page(ANA, Exchange("CA9", 1, "Hi", "Hello"), AudioPaths())
    assert await queued(database_url) == []


async def test_words_find_pages_by_any_stem_best_first(store: Store) -> None:
    loaves = await commit(store, ANA, "CA1", 1, "I would like two loaves of rye bread on Friday.")
    await commit(store, ANA, "CA1", 2, "Is there any parking near the shop?")
    bread = await commit(store, ANA, "CA1", 3, "The bread was good.")
    scan = await store.scan(ANA, "Which bread did I order, was it a loaf of rye?", None, MODEL)
    assert len(scan) == 3
    assert asked_for(scan) == [loaves, bread]
    logits = utterance_logits(scan, None, load_weights()).max(axis=1).tolist()
    assert logits[0] > logits[2] > logits[1]
    for odd in ("?!", "", "'quoted' & (odd | <-> !input:*"):
        assert asked_for(await store.scan(ANA, odd, None, MODEL)) == []


async def test_a_scan_holds_every_page_oldest_first_by_call(store: Store) -> None:
    ids = [
        await commit(store, ANA, call_id, number, user, reply)
        for call_id, number, user, reply in (
            ("CA1", 1, "Loaves, loaves and rye", "Sure."),
            ("CA1", 2, "", "Are you there?"),
            ("CA2", 1, "Hello", ""),
        )
    ]
    scan = await store.scan(ANA, "loaves", None, MODEL)
    assert scan.page_ids.tolist() == ids
    assert scan.call_ids[0] == scan.call_ids[1] != scan.call_ids[2]
    assert scan.user_terms.counts.tolist() == [3, 0, 1]
    assert np.isin(scan.user_terms.hashes, scan.asked_terms).sum() == 2
    assert np.isnan(scan.user_cosines).all() and np.isnan(scan.reply_cosines).all()


async def test_b078_the_end_of_a_long_exchange_is_found_by_its_words(store: Store) -> None:
    small_talk = "we talked about the weather and the garden again "
    page_id = await commit(store, ANA, "CA1", 1, small_talk * 100 + "My gate code is blue heron.")
    assert asked_for(await store.scan(ANA, "What is the gate code?", None, MODEL)) == [page_id]


async def test_b082_nothing_crosses_callers_or_businesses(store: Store) -> None:
    page_id = await commit(store, ANA, "CA1", 1, "I am allergic to penicillin.")
    assert page_id is not None
    await store.save_vectors(ANA, page_id, MODEL, said(axis(0)))
    for other in (Owner("dentist", ANA.caller), Owner("bakery", "+12025550122"), NOBODY, Owner("bakery", "")):
        assert len(await store.scan(other, "allergic to penicillin", axis(0), MODEL)) == 0
        assert await store.recent_pages(other, "CA1", 10) == []
        assert await store.pages_by_id(other, [page_id]) == []
        assert await store.threads_of(other, [page_id]) == []
        with pytest.raises((ValueError, UnknownCall)):
            await store.commit_page(other, Exchange("CA1", 2, "Hi", "Hello"), AudioPaths())
    nameless = Owner("", ANA.caller)
    with pytest.raises(ValueError, match="business_id"):
        await store.scan(nameless, "allergic", None, MODEL)
    with pytest.raises(ValueError, match="business_id"):
        await store.recent_pages(nameless, "CA1", 10)
    assert nearest(await store.scan(ANA, "allergic", axis(0), MODEL)) == [page_id]


async def test_b083_hidden_numbers_share_nothing(store: Store) -> None:
    first = await commit(store, NOBODY, "CA1", 1, "I am Ana, order 77.")
    await commit(store, NOBODY, "CA2", 1, "What is my name?")
    assert len(await store.scan(NOBODY, "I am Ana, order 77", None, MODEL)) == 0
    assert [page.call_id for page in await store.recent_pages(NOBODY, "CA2", 10)] == ["CA2"]
    with pytest.raises(ValueError, match="nobody"):
        await store.save_vectors(NOBODY, first or 0, MODEL, said(axis(0)))


async def test_a_resumed_call_sees_the_pages_before_it(store: Store) -> None:
    await commit(store, ANA, "CA1", 1, "First call, one.")
    await commit(store, ANA, "CA1", 2, "First call, two.")
    await store.end_call("CA1", CallStatus.DROPPED)
    await commit(store, ANA, "CA2", 1, "Second call.")
    await store.mark_resumed("CA2", "CA1")
    offered = [page.user_text for page in await store.recent_pages(ANA, "CA2", 10)]
    assert offered == ["Second call."]
    await store.save_snapshot("CA2", 0, CallSnapshot(1, {"resumed": True}))
    texts = [page.user_text for page in await store.recent_pages(ANA, "CA2", 10)]
    assert texts == ["First call, one.", "First call, two.", "Second call."]
    assert [page.user_text for page in await store.recent_pages(ANA, "CA2", 2)] == texts[1:]
    assert [page.user_text for page in await store.recent_pages(ANA, "CA1", 10)] == texts[:2]


async def test_b075_only_vectors_with_a_direction_are_ranked(store: Store) -> None:
    good = [await commit(store, ANA, "CA1", number, f"Good {number}") for number in range(3)]
    bad = [await commit(store, ANA, "CA1", 10 + number, text) for number, text in enumerate(("", "...", "x"))]
    for number, page_id in enumerate(good):
        await store.save_vectors(ANA, page_id or 0, MODEL, said(axis(0, tilt=0.1 * number)))
    for vector in ([0.0] * 384, [math.nan] * 384, [math.inf] * 384):
        with pytest.raises(ValueError, match="direction"):
            await store.save_vectors(ANA, bad[2] or 0, MODEL, said(vector))
    await store.save_vectors(ANA, bad[0] or 0, MODEL, PageVectors())
    assert nearest(await store.scan(ANA, "", axis(0), MODEL)) == good


async def test_b076_a_vector_that_does_not_fit_names_both_numbers(store: Store) -> None:
    page_id = await commit(store, ANA, "CA1", 1, "Hello")
    with pytest.raises(WrongDimension, match=r"768.*384"):
        await store.save_vectors(ANA, page_id or 0, "big-model", said([1.0] * 768))
    with pytest.raises(WrongDimension):
        await store.scan(ANA, "Hello", [1.0] * 768, "big-model")
    assert asked_for(await store.scan(ANA, "Hello", None, "big-model")) == [page_id]


async def test_vectors_of_another_model_are_not_compared(store: Store) -> None:
    old = await commit(store, ANA, "CA1", 1, "One")
    new = await commit(store, ANA, "CA1", 2, "Two")
    await store.save_vectors(ANA, old or 0, "old-model", said(axis(0)))
    await store.save_vectors(ANA, new or 0, MODEL, said(axis(7)))
    assert nearest(await store.scan(ANA, "", axis(0), MODEL)) == [new]


async def test_the_best_chunk_speaks_for_a_page(store: Store) -> None:
    long = await commit(store, ANA, "CA1", 1, "Long")
    short = await commit(store, ANA, "CA1", 2, "Short")
    await store.save_vectors(ANA, long or 0, MODEL, said(axis(5), axis(9), axis(0)))
    await store.save_vectors(ANA, short or 0, MODEL, said(axis(0, tilt=0.5)))
    scan = await store.scan(ANA, "", [3.0 * value for value in axis(0)], MODEL)
    assert nearest(scan) == [long, short]
    assert scan.user_cosines.tolist() == pytest.approx([1.0, math.cos(0.5)], abs=1e-6)


def fill(url: str, owner: Owner, call_id: str, vectors: Sequence[Sequence[float]]) -> list[int]:
    """Many pages with a vector each, past the store; returns their ids in order."""
    with psycopg.connect(conninfo_of(url)) as connection:
        register_vector(connection)
        rows = connection.execute(
            "INSERT INTO pages (business_id, caller, call_id, exchange_no)"
            " SELECT %s, %s, %s, n FROM generate_series(1, %s) n RETURNING page_id",
            (owner.business_id, owner.caller, call_id, len(vectors)),
        )
        ids = [row[0] for row in rows]
        copy = "COPY page_vectors (business_id, caller, page_id, model, side, chunk, embedding) FROM STDIN"
        with connection.cursor().copy(copy) as sink:
            for page_id, vector in zip(ids, vectors, strict=True):
                text = "[" + ",".join(f"{value:.5f}" for value in vector) + "]"
                sink.write_row((owner.business_id, owner.caller, page_id, MODEL, 1, 0, text))
    return ids


def spread(rng: random.Random, cosine: float) -> list[float]:
    """A unit vector at about this cosine from axis 0."""
    noise = [rng.gauss(0.0, 1.0) for _ in range(383)]
    length = math.hypot(*noise)
    return [cosine, *(value / length * math.sqrt(1 - cosine**2) for value in noise)]


async def test_b072_b073_the_search_is_exact_whoever_else_is_closer(store: Store, database_url: str) -> None:
    """3,000 nearer pages of another business hide nothing; 60 of 100 wanted are 60; in exact order."""
    rng = random.Random(7)
    other = Owner("neighbour", ANA.caller)
    await store.open_call("CA1", "neighbour", ANA.caller, TO, "hash")
    await store.open_call("CA2", "bakery", ANA.caller, TO, "hash")
    fill(database_url, other, "CA1", [spread(rng, 0.9) for _ in range(3_000)])
    cosines = [0.5 - 0.004 * number for number in range(100)]
    order = rng.sample(range(100), 100)
    ids = fill(database_url, ANA, "CA2", [spread(rng, cosines[number]) for number in order])
    expected = [page_id for _, page_id in sorted(zip(order, ids, strict=True))]
    query = [1.0] + [0.0] * 383
    scan = await store.scan(ANA, "", query, MODEL)
    assert nearest(scan) == expected
    assert len(scan) == 100


async def test_an_unreachable_database_is_told_apart_from_an_unmigrated_one(
    empty_database_url: str, tmp_path: object
) -> None:
    nowhere = Store(f"postgresql://postgres@/ivr?host={tmp_path}")
    with pytest.raises(StorageUnavailable):
        await nowhere.get_call("CA1")
    await nowhere.close()
    empty = Store(empty_database_url)
    with pytest.raises(StorageFault, match="Undefined"):
        await empty.get_call("CA1")
    await empty.close()
