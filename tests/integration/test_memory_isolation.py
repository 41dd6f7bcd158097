"""What one business's callers said does not exist for another: by the store's own filters, and under them by the
database's row-level security, whatever a statement forgets.
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.engine import make_url

from memory import migrate, schema
from memory.caller_pages import Cursor
from memory.calls import CallStatus
from memory.database import Database
from memory.embedded import conninfo_of
from memory.errors import MemoryFault
from memory.facts import Passage
from memory.model import CallSnapshot, Charge, ChargeKind, Exchange, Owner
from memory.store import AudioPaths, HoursOverride, OrderRow, PageVectors, Store, Voicemail
from memory.store_costs import CostKey, Spent
from memory.store_erasure import Erasure
from memory.store_orders import OrderStatus
from memory.threads import Append, PageLink, Spawn, ThreadLink
from tests.pg import MIGRATIONS, execute

NUMBER = "+12025550111"
MODEL = "test-model"
SECRET = "xylophone"
NOW = datetime.now(UTC)
OWNED = [
    table
    for table in schema.metadata.sorted_tables
    if "business_id" in table.c and table.name != "businesses"
]


@dataclass(frozen=True)
class Party:
    """A business with a caller, who has the same number at the other one, and what there is of them."""

    owner: Owner
    call_sid: str
    page_id: int
    thread_id: int


@dataclass(frozen=True)
class Attempt:
    """Who asks, and whose things they name."""

    store: Store
    mine: Party
    theirs: Party


def charge(charge_id: str) -> Charge:
    return Charge(charge_id, ChargeKind.SPEECH, MODEL, 0.01, NOW)


def axis() -> list[float]:
    return [1.0] + [0.0] * 383


def alone(_threads: list[ThreadLink], _pages: list[PageLink]) -> Append | Spawn:
    return Spawn(())


async def settled(store: Store, business_id: str, said: str) -> Party:
    owner, call_sid = Owner(business_id, NUMBER), f"CA-{business_id}"
    await store.open_call(call_sid, business_id, NUMBER, "+12025550100", "hash")
    page_id = await store.commit_page(
        owner, Exchange(call_sid, 1, said, f"{said}, yes"), AudioPaths("a", "b")
    )
    assert page_id is not None
    await store.save_summary(page_id, said)
    await store.save_vectors(owner, page_id, MODEL, PageVectors([axis()], [axis()], [axis()]))
    stored = await store.load_page(page_id)
    assert stored is not None
    (thread_id,) = await store.join_threads(stored, MODEL, alone)  # type: ignore[arg-type]
    await store.save_thread(thread_id, said, None, None)
    await store.replace_facts(business_id, [Passage("about", said)], "en")
    await store.add_notice(business_id, call_sid, "voicemail", "RE1", {"said": said})
    await store.set_override(business_id, HoursOverride("office", True, NOW + timedelta(days=400)))
    await store.enrol(owner, said)
    await store.add_charge(business_id, call_sid, charge(business_id))
    return Party(owner, call_sid, page_id, thread_id)


@pytest.fixture
async def attempt(store: Store) -> Attempt:
    mine = await settled(store, "bakery", "two loaves")
    return Attempt(store, mine, await settled(store, "dentist", SECRET))


async def join(a: Attempt) -> object:
    """My page next to theirs, by an order of talk that pretends to be the same call."""
    stored = await a.store.load_page(a.mine.page_id)
    assert stored is not None
    return await a.store.join_threads(
        stored, MODEL, lambda near, similar: Spawn(tuple(p.page_id for p in similar))
    )


async def commit_into_theirs(a: Attempt) -> object:
    return await a.store.commit_page(
        a.mine.owner, Exchange(a.theirs.call_sid, 7, "mine", "now"), AudioPaths()
    )


MY_NOTICE = 1
"""The first that was added."""
THEIR_MESSAGE = Voicemail("bakery", "RE1", "CA-dentist", None, 1, False, "", "", NOW, None)

THEIR_ORDER = OrderRow("bakery", "key", "CA-dentist", "sms", NUMBER, "", "+1", NOW, OrderStatus.DUE)

# Every query there is, asked by one business with the other's things named wherever something can be named.
CROSSINGS: dict[str, Callable[[Attempt], Awaitable[object]]] = {
    "open_call": lambda a: a.store.open_call(a.theirs.call_sid, "bakery", NUMBER, "+1", "hash"),
    "find_dropped": lambda a: a.store.find_dropped("bakery", NUMBER, timedelta(days=9), NOW),
    "mark_resumed": lambda a: a.store.mark_resumed(a.mine.call_sid, a.theirs.call_sid),
    "list_calls": lambda a: a.store.list_calls("bakery"),
    "list_voicemails": lambda a: a.store.list_voicemails("bakery"),
    "save_voicemail_audio": lambda a: a.store.save_voicemail_audio(THEIR_MESSAGE, "mine.wav"),
    "save_voicemail_text": lambda a: a.store.save_voicemail_text(THEIR_MESSAGE, "mine"),
    "voicemail_told": lambda a: a.store.voicemail_told(THEIR_MESSAGE),
    "begin_order": lambda a: a.store.begin_order(THEIR_ORDER, None),
    "called_back": lambda a: a.store.called_back("bakery", NUMBER),
    "put_off": lambda a: a.store.put_off(THEIR_ORDER, NOW),
    "refuse_order": lambda a: a.store.refuse_order(THEIR_ORDER),
    "order_over": lambda a: a.store.order_over(THEIR_ORDER, OrderStatus.DONE, "SM1"),
    "drop_stale": lambda a: a.store.drop_stale(timedelta(seconds=-9), business_id="bakery"),
    "stale_calls": lambda a: a.store.stale_calls("bakery", NUMBER, timedelta(seconds=-9)),
    "commit_page": commit_into_theirs,
    "recent_pages": lambda a: a.store.recent_pages(a.mine.owner, a.theirs.call_sid, 9),
    "count_unembedded": lambda a: a.store.count_unembedded("bakery", "none"),
    "unembedded": lambda a: a.store.unembedded("bakery", "none", None, 9),
    "audio_of_calls": lambda a: a.store.audio_of_calls("bakery", [a.theirs.call_sid]),
    "save_vectors": lambda a: a.store.save_vectors(
        a.mine.owner, a.theirs.page_id, MODEL, PageVectors([axis()])
    ),
    "changes": lambda a: a.store.changes(
        a.mine.owner, Cursor(), MODEL, SECRET, a.theirs.call_sid, a.theirs.call_sid
    ),
    "scan": lambda a: a.store.scan(a.mine.owner, SECRET, axis(), MODEL),
    "scan_words": lambda a: a.store.scan_words(a.mine.owner, SECRET),
    "cosines": lambda a: a.store.cosines(a.mine.owner, axis(), MODEL),
    "join_threads": join,
    "threads_of": lambda a: a.store.threads_of(a.mine.owner, [a.theirs.page_id]),
    "pages_by_id": lambda a: a.store.pages_by_id(a.mine.owner, [a.theirs.page_id]),
    "spent_in_call": lambda a: a.store.spent_in_call("bakery", a.theirs.call_sid),
    "spent_since": lambda a: a.store.spent_since("bakery", NOW - timedelta(days=9), Spent()),
    "add_charge": lambda a: a.store.add_charge("bakery", a.theirs.call_sid, charge("crossing")),
    "costs_by": lambda a: a.store.costs_by("bakery", CostKey.CALLER, "UTC", None, None),
    "topics": lambda a: a.store.topics(a.mine.owner),
    "replace_facts": lambda a: a.store.replace_facts("bakery", [Passage("t", "mine")], "en"),
    "unembedded_facts": lambda a: a.store.unembedded_facts("bakery", "none", 9),
    "save_fact_vectors": lambda a: a.store.save_fact_vectors("bakery", MODEL, {1: axis(), 2: axis()}),
    "find_facts": lambda a: a.store.find_facts("bakery", SECRET, ("en",), axis(), MODEL, 9),
    "forget": lambda a: a.store.forget(a.mine.owner),
    "was_erased_since": lambda a: a.store.was_erased_since(a.mine.owner, NOW),
    "erase_again": lambda a: a.store.erase_again([Erasure("bakery", "0" * 64, NOW)]),
    "expire": lambda a: a.store.expire("bakery", NOW + timedelta(days=9)),
    "caller_facts": lambda a: a.store.caller_facts(a.mine.owner),
    "new_since": lambda a: a.store.new_since(a.mine.owner, timedelta(0)),
    "set_shared": lambda a: a.store.set_shared(a.mine.owner, is_shared=True),
    "enrol": lambda a: a.store.enrol(a.mine.owner, "hash"),
    "pin_hash_of": lambda a: a.store.pin_hash_of(a.mine.owner),
    "ask_to_forget": lambda a: a.store.ask_to_forget(a.mine.owner, timedelta(0)),
    "keep_after_all": lambda a: a.store.keep_after_all(a.mine.owner),
    "strip": lambda a: a.store.strip(a.mine.owner, a.theirs.call_sid, words=True),
    "turns_of": lambda a: a.store.turns_of(a.mine.owner, a.theirs.call_sid),
    "add_notice": lambda a: a.store.add_notice("bakery", a.theirs.call_sid, "voicemail", "RE2"),
    "notice_ended_calls": lambda a: a.store.notice_ended_calls("bakery", NOW - timedelta(days=9)),
    "requeue_notices": lambda a: a.store.requeue_notices("bakery", NOW - timedelta(days=9)),
    "set_override": lambda a: a.store.set_override("bakery", HoursOverride("office", False, NOW)),
    "clear_override": lambda a: a.store.clear_override("bakery", "office"),
    "overrides": lambda a: a.store.overrides("bakery", NOW),
    # Of one call, page or thread, by a number that only its own call or job has: of mine, so that theirs must stand.
    "load_notice": lambda a: a.store.load_notice(MY_NOTICE),
    "mark_sent": lambda a: a.store.mark_sent(MY_NOTICE),
    "get_call": lambda a: a.store.get_call(a.mine.call_sid),
    "claim_stream": lambda a: a.store.claim_stream(a.mine.call_sid, "MZ1"),
    "save_snapshot": lambda a: a.store.save_snapshot(a.mine.call_sid, 0, CallSnapshot(1, {})),
    "revive": lambda a: a.store.revive(a.mine.call_sid),
    "renew": lambda a: a.store.renew(a.mine.call_sid),
    "take_lapsed": lambda a: a.store.take_lapsed(a.mine.call_sid, 0, timedelta(seconds=-9)),
    "next_exchange_no": lambda a: a.store.next_exchange_no(a.mine.call_sid, 100_000),
    "has_exchange": lambda a: a.store.has_exchange(Exchange(a.mine.call_sid, 1, SECRET, f"{SECRET}, yes")),
    "save_after_end": lambda a: a.store.save_after_end(a.mine.call_sid, CallSnapshot(1, {})),
    "touch": lambda a: a.store.touch(a.mine.call_sid, 0),
    "end_call": lambda a: a.store.end_call(a.mine.call_sid, CallStatus.DROPPED),
    "return_call": lambda a: a.store.return_call(
        a.mine.call_sid, None, CallSnapshot(1, {}), CallStatus.ACTIVE
    ),
    "order": lambda a: a.store.order(a.mine.call_sid, "key"),
    "note_voicemail": lambda a: a.store.note_voicemail(a.mine.call_sid, "RE1", transcript="mine"),
    "voicemail": lambda a: a.store.voicemail(a.mine.call_sid, "RE2"),
    "load_page": lambda a: a.store.load_page(a.mine.page_id),
    "save_summary": lambda a: a.store.save_summary(a.mine.page_id, "mine"),
    "thread_content": lambda a: a.store.thread_content(a.mine.thread_id),
    "save_thread": lambda a: a.store.save_thread(a.mine.thread_id, "mine", None, None),
}
# What is no business's, and what is done for every business in turn; neither returns a word of a caller's.
SHARED = {
    "active_calls",
    "doomed",
    "due_to_forget",
    "undoom",
    "enqueue_unembedded",
    "forget_flows",
    "forget_spent_tokens",
    "get_flow",
    "lapsed",
    "renew_all",
    "requeue_voicemails",
    "other_workers",
    "save_flow",
    "spend_token",
}


def public_methods() -> set[str]:
    own = {name for name, _ in inspect.getmembers(Database, inspect.isfunction)}
    return {
        name
        for name, _ in inspect.getmembers(Store, inspect.isfunction)
        if name not in own and not name.startswith("_")
    }


def test_no_query_is_left_out() -> None:
    """A new method of the store belongs into one of the two lists."""
    assert public_methods() == CROSSINGS.keys() | SHARED


@pytest.mark.parametrize("name", sorted(CROSSINGS))
async def test_no_query_crosses_from_business_to_business(
    attempt: Attempt, database_url: str, name: str
) -> None:
    before = everything_of(database_url, "dentist")
    assert SECRET in before
    try:
        answer: object = await CROSSINGS[name](attempt)
    except (MemoryFault, ValueError, psycopg.Error) as refused:
        answer = refused
    assert SECRET not in repr(answer)
    assert everything_of(database_url, "dentist") == before


def everything_of(url: str, business_id: str) -> str:
    """All rows of a business, as the superuser sees them."""
    with psycopg.connect(conninfo_of(url)) as connection:
        found = {
            table.name: connection.execute(
                f"SELECT to_jsonb(t)::text FROM {table.name} t WHERE business_id = %s ORDER BY 1".encode(),
                (business_id,),
            ).fetchall()
            for table in OWNED
        }
    return repr(found)


@pytest.mark.parametrize("table", OWNED, ids=lambda table: str(table.name))
async def test_a_statement_without_any_filter_stays_within_its_business(attempt: Attempt, table: Any) -> None:
    store = attempt.store
    of_business = select(func.count()).select_from(table)
    theirs = of_business.where(table.c.business_id == "dentist")
    async with store.transaction("dentist") as connection:
        there = (await connection.execute(of_business)).scalar_one()
    async with store.transaction("bakery") as connection:
        assert (await connection.execute(theirs)).scalar_one() == 0
        changed = update(table).values(business_id=table.c.business_id)
        assert (await connection.execute(changed)).rowcount == (
            await connection.execute(of_business)
        ).scalar_one()
        await connection.execute(delete(table))
    async with store.transaction("dentist") as connection:
        assert (await connection.execute(of_business)).scalar_one() == there
    async with store.shared_transaction() as connection:
        assert (await connection.execute(of_business)).scalar_one() == 0


async def test_nothing_can_be_written_into_another_business(attempt: Attempt) -> None:
    row = {"call_sid": "CA9", "to_number": "+1", "flow_hash": "h"}
    with pytest.raises(MemoryFault):
        async with attempt.store.transaction("bakery") as connection:
            await connection.execute(insert(schema.calls).values(business_id="dentist", **row))
    with pytest.raises(MemoryFault):
        async with attempt.store.transaction("bakery") as connection:
            await connection.execute(update(schema.pages).values(business_id="dentist"))


async def test_a_pooled_connection_carries_no_business_over(service_url: str) -> None:
    store = Store(service_url, pool_size=1)
    await settled(store, "bakery", "two loaves")
    setting = select(func.current_setting("app.business", True), func.current_setting("app.call", True))
    async with store.transaction("bakery") as connection:
        assert (await connection.execute(setting)).one()[0] == "bakery"
        pid = (await connection.execute(select(func.pg_backend_pid()))).scalar_one()
    async with store._engine.begin() as bare:
        assert (await bare.execute(select(func.pg_backend_pid()))).scalar_one() == pid
        assert set((await bare.execute(setting)).one()) <= {None, ""}
        assert (await bare.execute(select(func.count()).select_from(schema.pages))).scalar_one() == 0
    await store.close()


async def test_a_call_gives_its_business_away_and_no_more(attempt: Attempt) -> None:
    async with attempt.store.call_transaction(attempt.mine.call_sid) as connection:
        assert (await connection.execute(select(schema.calls.c.business_id))).scalars().all() == ["bakery"]
    async with attempt.store.call_transaction("CA-unknown") as connection:
        assert (await connection.execute(select(schema.calls))).all() == []


def test_the_services_role_is_nobody_special(service_url: str, database_url: str) -> None:
    """It owns nothing and bypasses nothing, and every table of a business's is protected; a superuser is told."""
    assert migrate.isolation_fault(service_url) is None
    assert "superuser" in str(migrate.isolation_fault(database_url))
    with psycopg.connect(conninfo_of(service_url)) as connection:
        owned = connection.execute(
            "SELECT relname FROM pg_class WHERE relowner = current_user::regrole"
        ).fetchall()
        assert owned == []
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("ALTER TABLE pages DISABLE ROW LEVEL SECURITY")


def test_a_table_without_protection_is_named(service_url: str, database_url: str) -> None:
    with psycopg.connect(conninfo_of(database_url), autocommit=True) as connection:
        connection.execute("CREATE TABLE notes (business_id text)")
        assert migrate.isolation_fault(service_url) == "no row-level security on: notes"
        connection.execute("SELECT protect_businesses()")
        assert migrate.isolation_fault(service_url) is None


async def test_one_role_for_everything_is_bound_too(empty_database_url: str) -> None:
    """The owner of the tables, no superuser, migrates and serves."""
    name = f"owner_{make_url(empty_database_url).database}"
    execute(empty_database_url, "CREATE ROLE {} LOGIN PASSWORD 'secret'", name)
    execute(empty_database_url, "CREATE EXTENSION vector")
    execute(empty_database_url, "GRANT CREATE ON SCHEMA public TO {}", name)
    url = make_url(empty_database_url).set(username=name, password="secret")
    owner_url = url.render_as_string(hide_password=False)
    for _ in range(2):
        migrate.upgrade(owner_url, MIGRATIONS)
    assert migrate.isolation_fault(owner_url) is None
    store = Store(owner_url)
    mine, theirs = await settled(store, "bakery", "two loaves"), await settled(store, "dentist", SECRET)
    assert [page.page_id for page in await store.recent_pages(mine.owner, mine.call_sid, 9)] == [mine.page_id]
    async with store.transaction("bakery") as connection:
        seen = (await connection.execute(select(schema.pages.c.page_id))).scalars().all()
    assert seen == [mine.page_id] != [theirs.page_id]
    await store.close()
    execute(empty_database_url, "DROP OWNED BY {} CASCADE", name)
    execute(empty_database_url, "DROP ROLE {}", name)
