"""A change of the embedding model: noticed, and made good by `ivr db reembed`, which can be broken off."""

from pathlib import Path

import pytest
import structlog

import ivr.reembed
from ivr.reembed import check_vectors, reembed, to_do
from memory.audio_store import AudioStore
from memory.embed import Embedder
from memory.jobs import JobTools
from memory.model import Exchange, Owner
from memory.service import Memory
from memory.store import AudioPaths, PageVectors, Store
from memory.summarise import ExtractiveSummariser
from tests.integration.embed_double import EmbedDouble

OWNERS = (Owner("bakery", "+12025550111"), Owner("dentist", "+12025550122"))
PAGES = 3


class BrokenOff(Exception):
    """The operator pressed Ctrl-C."""


@pytest.fixture
async def pages(store: Store) -> None:
    """Of two businesses, embedded by another model."""
    for owner in OWNERS:
        call_id = f"CA-{owner.business_id}"
        await store.open_call(call_id, owner.business_id, owner.caller, "+1", "hash")
        for number in range(PAGES):
            page_id = await store.commit_page(owner, Exchange(call_id, number, "rye", "Sure."), AudioPaths())
            assert page_id is not None
            await store.save_vectors(owner, page_id, "older", PageVectors(user=[[1.0] + [0.0] * 383]))


@pytest.mark.usefixtures("pages")
async def test_what_another_model_embedded_is_embedded_again_and_only_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ivr.reembed, "BATCH", 2)
    done = []

    def step() -> None:
        done.append(1)
        if len(done) == PAGES + 1:
            raise BrokenOff

    async with EmbedDouble().serve() as embedder:
        tools = JobTools(store, ExtractiveSummariser(), embedder)
        assert sum((await to_do(store, embedder.model)).values()) == 2 * PAGES
        with pytest.raises(BrokenOff):
            await reembed(tools, step)
        assert sum((await to_do(store, embedder.model)).values()) == PAGES - 1
        assert await reembed(tools, step) == PAGES - 1
        assert await reembed(tools, step) == 0
        for owner in OWNERS:
            scan = await store.scan(owner, "rye", [1.0] + [0.0] * 383, embedder.model)
            assert not any(cosine != cosine for cosine in scan.user_cosines)


@pytest.mark.usefixtures("pages")
async def test_a_change_of_model_is_said_at_the_start(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivr.reembed, "BATCH", 2)
    warned: list[str] = []
    async with EmbedDouble().serve() as embedder:
        with structlog.testing.capture_logs() as logs:
            await check_vectors(store, embedder, warned.append)
        assert [(line["event"], line["pages"]) for line in logs] == [("embedding_model_changed", 2 * PAGES)]
        await reembed(JobTools(store, ExtractiveSummariser(), embedder), lambda: None)
        await check_vectors(store, embedder, warned.append)
    assert warned == ["embedding_model_changed"]


async def test_vectors_that_do_not_fit_are_said_at_the_start(store: Store) -> None:
    warned: list[str] = []
    async with EmbedDouble(dimension=768).serve() as embedder:
        await check_vectors(store, embedder, warned.append)
    assert warned == ["embedding_refused"]


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize(("model", "dimension"), [("newer", 384), ("newer", 768)])
async def test_b076_with_another_model_a_call_remembers_by_words(
    store: Store, tmp_path: Path, model: str, dimension: int
) -> None:
    """Its pages are found and its words are kept, whether the new vectors cannot be compared or do not fit at all."""
    owner = OWNERS[0]
    async with EmbedDouble(dimension, model=model).serve() as embedder:
        memory = Memory(store, AudioStore(f"file://{tmp_path}/audio"), embedder)
        await store.open_call("CA2", owner.business_id, owner.caller, "+1", "hash")
        assert await memory.commit(owner, Exchange("CA2", 1, "And walnuts?", "None today.")) is not None
        window = await memory.recall(owner, "CA3", "rye", ())
        assert [entry.page.user_text for entry in window.entries].count("rye") == PAGES
        window = await memory.recall(owner, "CA3", "walnuts", ())
        assert window.entries[-1].page.user_text == "And walnuts?"
        assert (embedder.fault is None) == (dimension == 384)
        if embedder.fault is not None:
            assert "768" in str(embedder.fault) and "384" in str(embedder.fault)


async def test_a_process_that_serves_another_model_is_not_believed() -> None:
    """As after a change of the setting in only one of two processes that share a socket."""
    double = EmbedDouble(model="served")
    async with double.serve() as right:
        wrong = Embedder(right._socket_path, "wanted", wait_s=5.0)
        with structlog.testing.capture_logs() as logs:
            assert await wrong.embed(["rye"]) is None
            assert await wrong.embed(["rye"]) is None
        assert [line["event"] for line in logs] == ["embedding_model_mismatch"]
        assert (logs[0]["served"], logs[0]["wanted"]) == ("served", "wanted")
