"""Recall, commit and resume on a real database, real files and a real socket."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory.audio_store import AudioStore, wav_to_ulaw
from memory.calls import CallStatus
from memory.embedded import EmbeddedPostgres
from memory.jobs import JobTools, run_pending
from memory.migrate import upgrade
from memory.model import Exchange, Form, Owner, Window
from memory.service import Memory
from memory.store import Store
from memory.strategies import Policy
from memory.summarise import ExtractiveSummariser
from tests.integration.embed_double import EmbedDouble
from tests.pg import FAST, MIGRATIONS, server_folder

ANA = Owner("bakery", "+12025550111")
TO = "+12025550100"
SMALL_TALK = "Lovely weather today, is it not, and the garden is so green."


@pytest.fixture
def audio(tmp_path: Path) -> AudioStore:
    return AudioStore(f"file://{tmp_path}/audio")


@pytest.fixture
def memory(store: Store, audio: AudioStore) -> Memory:
    return Memory(store, audio, None)


async def say(
    memory: Memory, store: Store, owner: Owner, call_id: str, number: int, user: str, reply: str = "Right."
) -> None:
    await store.open_call(call_id, owner.business_id, owner.caller, TO, "hash")
    await memory.commit(
        owner,
        Exchange(call_id, number, user, reply, b"\xff" * 16_000, b"\xff" * 80, user_item_id=f"i{number}"),
    )


def texts(window: Window) -> list[str]:
    return [entry.page.user_text for entry in window.entries]


async def test_a_constraint_survives_a_long_digression(memory: Memory, store: Store) -> None:
    """The paper's first case: said early, then 60 turns of small talk; the budget holds a few pages."""
    await say(memory, store, ANA, "CA1", 1, "I am allergic to walnuts, please remember.")
    for number in range(2, 62):
        await say(memory, store, ANA, "CA1", number, f"{SMALL_TALK} {number}")
    window = await memory.recall(
        ANA, "CA1", "Which cake is safe with my walnuts allergy?", (), policy=Policy(budget_tokens=120)
    )
    assert "I am allergic to walnuts, please remember." in texts(window)
    assert texts(window)[-2:] == [f"{SMALL_TALK} 60", f"{SMALL_TALK} 61"]
    assert window.tokens <= 120
    assert window.omitted > 0


async def test_a_page_is_found_the_moment_it_is_committed(memory: Memory, store: Store) -> None:
    await say(memory, store, ANA, "CA1", 1, "Order number is 4711.")
    window = await memory.recall(ANA, "CA2", "order number", ())
    assert texts(window) == ["Order number is 4711."]


async def test_only_the_last_two_live_turns_are_audio(memory: Memory, store: Store) -> None:
    for number in range(1, 5):
        await say(memory, store, ANA, "CA1", number, f"Turn {number}")
    window = await memory.recall(ANA, "CA1", "Turn", ("i1", "i2", "i4"))
    assert {entry.page.user_item_id: entry.form for entry in window.entries} == {
        "i1": Form.TRANSCRIPT,
        "i2": Form.TRANSCRIPT,
        "i3": Form.TRANSCRIPT,
        "i4": Form.AUDIO,
    }


async def test_the_resumed_calls_pages_come_along(memory: Memory, store: Store) -> None:
    await say(memory, store, ANA, "CA1", 1, "A birthday cake for Friday.")
    await store.end_call("CA1", CallStatus.DROPPED)
    await store.open_call("CA2", "bakery", ANA.caller, TO, "hash")
    call = await store.find_dropped("bakery", ANA.caller, timedelta(hours=2), datetime.now(UTC))
    assert call is not None
    brief = await memory.resume_brief(call)
    assert "birthday cake for Friday" in brief.topic
    assert [page.user_text for page in brief.exchanges] == ["A birthday cake for Friday."]
    await say(memory, store, ANA, "CA2", 1, "Hello again.")
    window = await memory.recall(ANA, "CA2", "?", (), resumed_from="CA1")
    assert texts(window) == ["A birthday cake for Friday.", "Hello again."]


async def test_b083_nobody_recalls_only_the_call_itself(memory: Memory, store: Store) -> None:
    nobody = Owner("bakery", None)
    await say(memory, store, nobody, "CA1", 1, "I am Ana, order 77.")
    await store.end_call("CA1", CallStatus.DROPPED)
    await say(memory, store, nobody, "CA2", 1, "What is my order?")
    window = await memory.recall(nobody, "CA2", "I am Ana, order 77", (), resumed_from="CA1")
    assert texts(window) == ["What is my order?"]
    call = await store.get_call("CA1")
    assert call is not None
    assert (await memory.resume_brief(call)).exchanges == ()


async def test_b078_the_next_call_is_told_the_end_of_a_long_exchange(memory: Memory, store: Store) -> None:
    """900 words of small talk do not fit into this window; the sentence that is asked for does."""
    small_talk = "we talked about the weather and the garden again. " * 100
    await say(memory, store, ANA, "CA1", 1, f"{small_talk}My gate code is blue heron.")
    window = await memory.recall(ANA, "CA2", "What is the gate code?", (), policy=Policy(budget_tokens=600))
    assert "blue heron" in window.entries[0].text
    assert window.tokens <= 600


async def test_b082_another_business_recalls_nothing(memory: Memory, store: Store) -> None:
    await say(memory, store, ANA, "CA1", 1, "I am allergic to penicillin.")
    elsewhere = Owner("dentist", ANA.caller)
    window = await memory.recall(elsewhere, "CA2", "allergic to penicillin", (), resumed_from="CA1")
    assert window.entries == ()
    with pytest.raises(ValueError, match="business_id"):
        await memory.recall(Owner("", ANA.caller), "CA1", "allergic", ())


async def test_audio_is_kept_as_heard(memory: Memory, store: Store, audio: AudioStore) -> None:
    await store.open_call("CA1", "bakery", ANA.caller, TO, "hash")
    heard = Exchange("CA1", 1, "Hi", "Hello", bytes(range(256)) * 4, b"\x01\x02\x03")
    await memory.commit(ANA, heard)
    page = (await store.recent_pages(ANA, "CA1", 1))[0]
    for path, ulaw in ((page.user_audio_path, heard.user_ulaw), (page.reply_audio_path, heard.reply_ulaw)):
        wav = await audio.get(path)
        assert wav is not None and wav_to_ulaw(wav) == ulaw
    assert await audio.get("bakery/CA1/none.wav") is None


async def test_a_broken_audio_store_costs_the_audio_only(store: Store, tmp_path: Path) -> None:
    (tmp_path / "audio").write_text("a file where the folder should be")
    memory = Memory(store, AudioStore(f"file://{tmp_path}/audio"), None)
    await say(memory, store, ANA, "CA1", 1, "Hello")
    page = (await store.recent_pages(ANA, "CA1", 1))[0]
    assert (page.user_audio_path, page.user_audio_ms) == ("", 2_000)


async def test_meaning_finds_what_words_do_not(store: Store, audio: AudioStore) -> None:
    """The page's own words are stop words; only its vector can find it. Vectors are made by the queued job."""
    async with EmbedDouble().serve() as embedder:
        memory = Memory(store, audio, embedder)
        await say(memory, store, ANA, "CA1", 1, "and then we were there", "so it was")
        for number in range(2, 12):
            await say(memory, store, ANA, "CA1", number, f"Filler {number} zebra crossing")
        url = store._engine.url.render_as_string(hide_password=False)
        await run_pending(url, JobTools(store, ExtractiveSummariser(), embedder))
        window = await memory.recall(ANA, "CA2", "there we were", (), policy=Policy(budget_tokens=40))
        assert texts(window)[0] == "and then we were there"
        assert window.entries[0].text == ""
        assert window.entries[0].page.summary != ""
        assert len(window.entries) < 11


async def test_b089_a_restart_between_two_calls_is_not_noticed(tmp_path: Path) -> None:
    with server_folder() as folder:
        server = EmbeddedPostgres(FAST)
        url = server.start(folder)
        upgrade(url, MIGRATIONS)
        store = Store(url)
        memory = Memory(store, AudioStore(f"file://{tmp_path}"), None)
        # More than one pooled connection, all of which the restart kills.
        await asyncio.gather(*(store.open_call(f"CA{n}", "bakery", ANA.caller, TO, "hash") for n in range(5)))
        await asyncio.to_thread(server.stop)
        call = memory.of_call(ANA, "CA1")
        with pytest.raises(Exception, match="OperationalError"):
            await call.commit(Exchange("CA1", 1, "Said while it was down.", "Right."))
        assert texts(await call.recall("anything", ())) == ["Said while it was down."]
        await asyncio.to_thread(server.start, folder)
        rows = await asyncio.gather(*(store.get_call(f"CA{n}") for n in range(5)))
        assert all(rows)
        assert await memory.commit(ANA, Exchange("CA1", 1, "Said while it was down.", "Right.")) is not None
        await store.close()
        server.stop()
