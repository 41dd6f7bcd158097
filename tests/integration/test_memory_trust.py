"""What of a caller's past may be looked at: by how sure it was, and is, who speaks; and numbers of several people."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from ivr.pins import Pins, hash_pin
from ivr.wire.callers import caller_of
from memory.audio_store import AudioStore
from memory.calls import CallStatus
from memory.embedded import conninfo_of
from memory.errors import StorageUnavailable
from memory.jobs import JobTools, forget_due
from memory.model import Access, CallSnapshot, Exchange, Owner, Trust
from memory.service import Memory
from memory.store import Store
from memory.store_erasure import Erasure
from memory.strategies import Policy, StrategyName
from memory.summarise import ExtractiveSummariser

ANA = Owner("bakery", "+12025550111")
TO = "+12025550100"
NUMBER = Access(trust=Trust.NUMBER)
RESUMED_ONLY = Access(older=False, trust=Trust.NUMBER)
NOTHING = Access(resumed=False, older=False, trust=Trust.NUMBER)


async def say(
    memory: Memory, store: Store, call_id: str, no: int, text: str, trust: Trust, owner: Owner = ANA
) -> None:
    await store.open_call(call_id, owner.business_id, owner.caller, TO, "hash", trust)
    await memory.commit(owner, Exchange(call_id, no, text, "", trust=trust))


async def heard(
    memory: Memory, access: Access, query: str = "the order of the cake", **more: object
) -> set[str]:
    window = await memory.recall(ANA, "CA9", query, (), access=access, **more)  # type: ignore[arg-type]
    return {entry.page.user_text for entry in window.entries}


@pytest.fixture
async def memory(store: Store, tmp_path: Path) -> Memory:
    memory = Memory(store, AudioStore(f"file://{tmp_path}/audio"), None)
    await say(memory, store, "CA1", 1, "The order of the cake by number.", Trust.NUMBER)
    await say(memory, store, "CA2", 1, "The order of the cake, attested.", Trust.ATTESTED)
    await say(memory, store, "CA3", 1, "The order of the cake, verified.", Trust.VERIFIED)
    return memory


BY_NUMBER, ATTESTED, VERIFIED = (
    "The order of the cake by number.",
    "The order of the cake, attested.",
    "The order of the cake, verified.",
)


@pytest.mark.parametrize("query", ["the order of the cake", ""])
@pytest.mark.parametrize("strategy", list(StrategyName))
async def test_what_is_not_to_be_heard_is_not_in_the_window(
    memory: Memory, strategy: StrategyName, query: str
) -> None:
    policy = Policy(strategy)
    assert await heard(memory, NOTHING, query, policy=policy) == set()
    if query and strategy is not StrategyName.HIERARCHICAL:
        assert await heard(memory, NUMBER, query, policy=policy) == {BY_NUMBER}
        assert await heard(memory, Access(trust=Trust.ATTESTED), query, policy=policy) == {
            BY_NUMBER,
            ATTESTED,
        }
        assert await heard(memory, Access(), query, policy=policy) == {BY_NUMBER, ATTESTED, VERIFIED}
    assert not {ATTESTED, VERIFIED} & await heard(memory, NUMBER, query, policy=policy)


async def test_of_a_shared_number_only_what_was_verified_comes_back(memory: Memory) -> None:
    assert await heard(memory, Access(only_verified=True)) == {VERIFIED}
    assert await heard(memory, Access(only_verified=True, trust=Trust.ATTESTED)) == set()


async def test_a_resumed_call_may_be_heard_at_less_trust_but_not_what_was_verified(memory: Memory) -> None:
    assert await heard(memory, RESUMED_ONLY, resumed_from="CA2") == {ATTESTED}
    assert await heard(memory, RESUMED_ONLY, resumed_from="CA3") == set()
    assert await heard(memory, NOTHING, resumed_from="CA2") == set()


async def test_what_the_call_said_before_somebody_else_took_over_is_hidden(
    memory: Memory, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for no in (1, 2, 3):
        await say(memory, store, "CA9", no, f"Turn {no} about the cake.", Trust.NUMBER)
    since = Access(resumed=False, older=False, trust=Trust.NUMBER, since_no=3)
    assert await heard(memory, since) == {"Turn 3 about the cake."}
    bound = memory.of_call(ANA, "CA9")
    for no in (4, 5):
        await bound.commit(Exchange("CA9", no, f"Turn {no}", ""))

    async def is_down(*_: object) -> None:
        raise StorageUnavailable("down")

    monkeypatch.setattr(store, "changes", is_down)
    down = await bound.recall("cake", (), Access(since_no=5))
    assert [entry.page.user_text for entry in down.entries] == ["Turn 5"]


async def test_a_summary_that_tells_of_a_hidden_page_is_hidden(
    memory: Memory, store: Store, database_url: str
) -> None:
    await say(memory, store, "CA9", 1, "The order of the cake again.", Trust.NUMBER)
    with psycopg.connect(conninfo_of(database_url), autocommit=True) as connection:
        connection.execute(
            "INSERT INTO threads (business_id, caller, summary) VALUES ('bakery', %s, 'all about it')",
            (ANA.caller,),
        )
        connection.execute(
            "INSERT INTO thread_pages SELECT 'bakery', thread_id, page_id FROM threads, pages"
            " WHERE call_id IN ('CA1', 'CA3', 'CA9')"
        )
    shown = await memory.recall(ANA, "CA9", "?", (), access=Access())
    assert shown.threads == ("all about it",)
    assert (await memory.recall(ANA, "CA9", "?", (), access=NUMBER)).threads == ()


async def test_a_call_that_was_declined_is_not_taken_up_by_the_next(store: Store, memory: Memory) -> None:
    """A was offered to B, who declined; C goes on with B, and not with A."""
    await say(memory, store, "B", 1, "Something else.", Trust.NUMBER)
    await store.mark_resumed("B", "CA1")
    for resumed, expected in ((False, {"Something else."}), (True, {"Something else.", BY_NUMBER})):
        await store.save_snapshot("B", 0, CallSnapshot(1, {"resumed": resumed}))
        assert await heard(memory, RESUMED_ONLY, resumed_from="B") == expected


async def test_calls_keep_the_trust_of_their_first_webhook(store: Store) -> None:
    first = await store.open_call("CA1", "bakery", ANA.caller, TO, "hash", Trust.ATTESTED)
    again = await store.open_call("CA1", "bakery", ANA.caller, TO, "hash", Trust.NUMBER)
    nobody = await store.open_call("CA2", "bakery", None, TO, "hash", Trust.ATTESTED)
    assert (first.trust, again.trust, nobody.trust) == (Trust.ATTESTED, Trust.ATTESTED, Trust.NONE)


async def test_two_calls_talked_in_at_once_make_a_number_shared(
    store: Store, memory: Memory, database_url: str
) -> None:
    async def is_shared() -> bool:
        return (await store.caller_facts(ANA)).is_shared

    await say(memory, store, "P1", 1, "One.", Trust.NUMBER)
    await say(memory, store, "P2", 1, "Two.", Trust.NUMBER)
    await say(memory, store, "P1", 2, "Still one.", Trust.NUMBER)
    assert not await is_shared(), "a reply may have been under way when the line was lost"
    with psycopg.connect(conninfo_of(database_url), autocommit=True) as connection:
        connection.execute("UPDATE calls SET started_at = started_at - interval '40 s'")
    late = Exchange("P1", 3, "From the disk.", "", is_late=True)
    await memory.commit(ANA, late)
    assert not await is_shared()
    await say(memory, store, "P1", 4, "One again.", Trust.NUMBER)
    assert await is_shared()
    assert not (await store.caller_facts(Owner("dentist", ANA.caller))).is_shared
    await store.set_shared(ANA, is_shared=False)
    assert not await is_shared()


async def test_calls_one_after_the_other_do_not(store: Store, memory: Memory, database_url: str) -> None:
    await say(memory, store, "P1", 1, "One.", Trust.NUMBER)
    await store.end_call("P1", CallStatus.DROPPED)
    await say(memory, store, "P2", 1, "Two.", Trust.NUMBER)
    with psycopg.connect(conninfo_of(database_url), autocommit=True) as connection:
        connection.execute("UPDATE calls SET started_at = started_at - interval '60 s'")
    await say(memory, store, "P2", 2, "Two again.", Trust.NUMBER)
    assert not (await store.caller_facts(ANA)).is_shared


async def test_what_is_known_of_a_caller(store: Store, memory: Memory) -> None:
    facts = await store.caller_facts(ANA, "CA3")
    assert facts.is_beside
    assert facts.heard_at is not None
    for call_id in ("CA1", "CA2"):
        await store.end_call(call_id, CallStatus.FINISHED)
    assert not (await store.caller_facts(ANA, "CA3")).is_beside
    assert (await store.caller_facts(Owner("dentist", ANA.caller))).heard_at is None
    assert await store.pin_hash_of(ANA) is None
    await store.enrol(ANA, "a hash")
    assert (await store.caller_facts(ANA)).is_enrolled
    assert await store.pin_hash_of(Owner("dentist", ANA.caller)) is None
    await store.enrol(ANA, None)
    assert not (await store.caller_facts(ANA)).is_enrolled


async def test_b083_nobody_is_not_known(store: Store) -> None:
    nobody = Owner("bakery", None)
    assert not (await store.caller_facts(nobody)).is_shared
    for change in (store.set_shared(nobody, is_shared=True), store.enrol(nobody, "hash")):
        with pytest.raises(ValueError, match="nobody"):
            await change
    with pytest.raises(ValueError, match="nobody"):
        await store.ask_to_forget(nobody, timedelta(0))


async def test_a_wish_to_be_forgotten_stands_until_it_is_undone_or_done(store: Store, memory: Memory) -> None:
    now = datetime.now(UTC)
    await store.ask_to_forget(ANA, timedelta(hours=24))
    await store.ask_to_forget(ANA, timedelta(hours=48))
    assert await store.due_to_forget(now + timedelta(hours=23)) == []
    assert await store.due_to_forget(now + timedelta(hours=25)) == [ANA]
    assert not await store.keep_after_all(Owner("dentist", ANA.caller))
    assert await store.keep_after_all(ANA)
    assert not await store.keep_after_all(ANA)
    assert await store.due_to_forget(now + timedelta(hours=49)) == []
    await store.enrol(ANA, "a hash")
    await store.forget(ANA)
    assert await store.pin_hash_of(ANA) is None


async def test_a_refusal_takes_the_sound_of_what_was_kept_or_all_of_it(store: Store, tmp_path: Path) -> None:
    memory = Memory(store, AudioStore(f"file://{tmp_path}/audio"), None)
    for owner, call_id in ((ANA, "R1"), (Owner("bakery", None), "R2")):
        await store.open_call(call_id, "bakery", owner.caller, TO, "hash")
        await memory.commit(
            owner, Exchange(call_id, 1, "I have a red car.", "Noted.", b"\x01" * 160, b"\x02")
        )
        await store.strip(owner, call_id, words=False)
        (page,) = await store.recent_pages(owner, call_id, 9)
        assert (page.user_text, page.user_audio_path, page.reply_audio_path) == ("I have a red car.", "", "")
        await store.strip(owner, call_id, words=True)
        (page,) = await store.recent_pages(owner, call_id, 9)
        assert (page.user_text, page.reply_text) == ("", "")
    assert len(await store.doomed(9)) == 4
    await store.strip(Owner("bakery", "+12025550112"), "R1", words=True)
    window = await memory.recall(ANA, "R3", "red car", ())
    assert all("red" not in entry.page.user_text for entry in window.entries)


async def test_the_job_forgets_who_asked_for_it(store: Store, memory: Memory) -> None:
    noted: list[Erasure] = []
    tools = JobTools(store, ExtractiveSummariser(), on_forgotten=noted.append)
    await store.ask_to_forget(ANA, timedelta(hours=24))
    await forget_due(tools, datetime.now(UTC) + timedelta(hours=23))
    assert await heard(memory, Access()) != set()
    await forget_due(tools, datetime.now(UTC) + timedelta(hours=25))
    assert await heard(memory, Access()) == set()
    assert [entry.business_id for entry in noted] == ["bakery"]
    await forget_due(tools, datetime.now(UTC) + timedelta(hours=26))
    assert len(noted) == 1


async def test_a_pin_is_the_callers_own_at_that_business(store: Store) -> None:
    pins = Pins(store, SecretStr("pepper"))
    assert not await pins.check(ANA, "123456")
    await store.enrol(ANA, hash_pin("123456", "pepper"))
    assert await pins.check(ANA, "123456")
    for owner, pin in (
        (ANA, "123457"),
        (Owner("dentist", ANA.caller), "123456"),
        (Owner("bakery", "+12025550112"), "123456"),
        (Owner("bakery", None), "123456"),
    ):
        assert not await pins.check(owner, pin)
    assert not await Pins(store, None).check(ANA, "123456")
    await store.enrol(ANA, None)
    assert not await pins.check(ANA, "123456")


async def test_an_address_with_a_number_in_it_never_comes_to_the_numbers_memory(
    memory: Memory, store: Store
) -> None:
    """Each `From` says one thing to its own memory; none hears what another said, nor does nobody."""
    told = [
        "+12025550111",
        "12025550112",
        "sip:+12025550111@evil.example",
        "sip:+12025550111@evil.example:5070",
        "sip:+12025550111@EVIL2.example;user=phone",
        "sips:+12025550111@evil.example",
        "client:+12025550111",
        "client:ana",
        "client:Ana",
    ]
    callers = [caller_of(from_, "TN-Validation-Passed-A", TO) for from_ in told]
    for number, caller in enumerate(callers):
        own = Owner("club", caller)
        await say(memory, store, f"CM{number}", 1, f"The order of the cake {number}.", Trust.NUMBER, own)
    assert len(set(callers)) == len(told) and None not in callers
    for number, caller in enumerate(callers):
        window = await memory.recall(
            Owner("club", caller), "CM99", "the order of the cake", (), access=Access(trust=Trust.VERIFIED)
        )
        assert {entry.page.user_text for entry in window.entries} == {f"The order of the cake {number}."}


@pytest.mark.parametrize(
    "from_", ["Anonymous", "+266696687", "Restricted", "", "sip:anonymous@anonymous.invalid"]
)
async def test_b083_two_withheld_callers_never_meet(memory: Memory, store: Store, from_: str) -> None:
    nobody = Owner("club", caller_of(from_, None, TO))
    await say(memory, store, "CN1", 1, "I am Ana, order 77.", Trust.NONE, nobody)
    window = await memory.recall(nobody, "CN2", "order 77", (), access=Access(trust=Trust.VERIFIED))
    assert window.entries == ()


async def aged(database_url: str, **days: int) -> None:
    """Let calls, and what was said in them, be so many days old."""
    call = "UPDATE calls SET started_at = started_at - %(old)s, last_activity_at = last_activity_at - %(old)s"
    page = "UPDATE pages SET created_at = created_at - %(old)s"
    async with await psycopg.AsyncConnection.connect(
        conninfo_of(database_url), autocommit=True
    ) as connection:
        for call_sid, old in days.items():
            values = {"old": timedelta(days=old), "sid": call_sid}
            await connection.execute(f"{call} WHERE call_sid = %(sid)s", values)
            await connection.execute(f"{page} WHERE call_id = %(sid)s", values)


async def test_who_may_be_a_numbers_new_owner_never_comes_to_the_old_ones_memory_by_calling_often(
    memory: Memory, store: Store, database_url: str
) -> None:
    """CA1 to CA3 are of before a silence of 46 days. The first call after it opens nothing; nor does any later one."""
    silence = timedelta(days=45)
    await aged(database_url, CA1=100, CA2=80, CA3=56)
    assert await store.new_since(ANA, silence) is None
    await say(memory, store, "CA4", 1, "The order of the cake, later.", Trust.ATTESTED)
    await aged(database_url, CA4=10)
    since = await store.new_since(ANA, silence)
    call = await store.get_call("CA4")
    assert call is not None and since == call.started_at
    await say(memory, store, "CA5", 1, "Hello again.", Trust.ATTESTED)
    assert await store.new_since(ANA, silence) == since
    assert await store.new_since(ANA, timedelta(days=47)) is None
    assert await store.new_since(Owner("dentist", ANA.caller), silence) is None
    assert await store.new_since(Owner("bakery", None), silence) is None
    attested = Access(trust=Trust.ATTESTED, after_s=since.timestamp())
    for strategy in StrategyName:
        told = await heard(memory, attested, policy=Policy(strategy))
        assert not {BY_NUMBER, ATTESTED, VERIFIED} & told
    assert "The order of the cake, later." in await heard(memory, attested)
    assert await heard(memory, Access()) >= {BY_NUMBER, ATTESTED, VERIFIED}
