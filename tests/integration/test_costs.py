"""What was spent, added up on a real database, and a business's ceilings held against it."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from uuid import uuid4

from rich.console import Console
from sqlalchemy import insert

from callflows.model import Business
from callflows.parse import parse_text
from ivr.operate import CostQuery, print_costs
from ivr.settings import Settings
from ivr.spending import Budgets
from memory.embedded import conninfo_of
from memory.model import Charge, ChargeKind, Exchange, Owner
from memory.schema import charges
from memory.store import AudioPaths, Store
from memory.store_costs import CostKey, Spent

ANA, BOB, NOBODY = (Owner("bakery", caller) for caller in ("+12025550111", "+12025550122", None))
ELSEWHERE = Owner("florist", "+12025550111")
LONG_AGO = datetime.now(UTC) - timedelta(days=40)


def charge(usd: float, kind: ChargeKind = ChargeKind.SPEECH, *, is_estimate: bool = False) -> Charge:
    return Charge(str(uuid4()), kind, "gpt-realtime-2.1", usd, datetime.now(UTC), is_estimate, 100, 40, 7)


async def pay(store: Store, owner: Owner, call_sid: str, *usd: float) -> None:
    await store.open_call(call_sid, owner.business_id, owner.caller, "+12025550100", "hash")
    for number, amount in enumerate(usd, start=1):
        await store.commit_page(owner, Exchange(call_sid, number, "Hi", "Yes"), AudioPaths())
        await store.add_charge(owner.business_id, call_sid, charge(amount))


def bakery(spending: str) -> Business:
    return parse_text(
        f"""
id: bakery
name: Bakery
numbers: ["+16175550170"]
timezone: America/New_York
greeting: Hello.
spending: {spending}
start: main
nodes:
  main: {{type: talk, instructions: Help.}}
""",
        "bakery.yaml",
    )


async def test_costs_are_added_up_by_call_caller_and_month_of_one_business(store: Store) -> None:
    await pay(store, ANA, "CA1", 0.01, 0.02)
    await pay(store, ANA, "CA2", 0.04)
    await pay(store, BOB, "CA3", 0.08)
    await pay(store, NOBODY, "CA4", 0.16)
    await pay(store, ELSEWHERE, "CA5", 5.0)
    by_call = await store.costs_by("bakery", CostKey.CALL, "UTC", None, None)
    assert [(one.key, one.turns, round(one.usd, 6)) for one in by_call] == [
        ("CA4", 1, 0.16),
        ("CA3", 1, 0.08),
        ("CA2", 1, 0.04),
        ("CA1", 2, 0.03),
    ]
    assert (by_call[3].input_tokens, by_call[3].cached_tokens, by_call[3].output_tokens) == (200, 80, 14)
    by_caller = await store.costs_by("bakery", CostKey.CALLER, "UTC", None, None)
    assert {one.key: round(one.usd, 6) for one in by_caller} == {
        "": 0.16,
        "+12025550122": 0.08,
        "+12025550111": 0.07,
    }
    (month,) = await store.costs_by("bakery", CostKey.MONTH, "America/New_York", LONG_AGO, None)
    assert (month.turns, round(month.usd, 6)) == (5, 0.31)
    assert await store.costs_by("bakery", CostKey.MONTH, "UTC", None, LONG_AGO) == []


async def test_what_is_written_twice_is_paid_once_and_estimates_are_told(store: Store) -> None:
    await pay(store, ANA, "CA1")
    summary = charge(0.04, ChargeKind.SUMMARY, is_estimate=True)
    for one in (charge(0.01), charge(0.02, ChargeKind.TRANSCRIPTION), summary, summary):
        await store.add_charge("bakery", "CA1", one)
    assert round(await store.spent_in_call("bakery", "CA1"), 6) == 0.07
    by_kind = await store.costs_by("bakery", CostKey.KIND, "UTC", None, None)
    figures = {one.key: (one.turns, round(one.usd, 6), round(one.estimated_usd, 6)) for one in by_kind}
    assert figures == {"speech": (0, 0.01, 0.0), "transcription": (0, 0.02, 0.0), "summary": (0, 0.04, 0.04)}


async def test_what_was_read_before_is_not_read_again(store: Store) -> None:
    await pay(store, ANA, "CA1", 0.01, 0.02)
    first = await store.spent_since("bakery", LONG_AGO, Spent())
    await pay(store, BOB, "CA2", 0.04)
    later = await store.spent_since("bakery", LONG_AGO, first)
    assert (round(first.usd, 6), round(later.usd, 6)) == (0.03, 0.07)
    assert later.horizon > first.horizon
    again = await store.spent_since("bakery", LONG_AGO, later)
    assert round(again.usd, 6) == 0.07
    assert (await store.spent_since("bakery", datetime.now(UTC) + timedelta(days=1), Spent())).usd == 0.0


async def test_a_charge_that_is_committed_late_is_not_missed(store: Store) -> None:
    """It was written first, and a later one was committed and added up before it."""
    await pay(store, ANA, "CA1")
    async with store.transaction("bakery") as slow:
        await slow.execute(
            insert(charges).values(business_id="bakery", charge_id="slow", kind="speech", usd=0.32)
        )
        await store.add_charge("bakery", "CA1", charge(0.01))
        before = await store.spent_since("bakery", LONG_AGO, Spent())
        await store.add_charge("bakery", "CA1", charge(0.02))
        between = await store.spent_since("bakery", LONG_AGO, before)
    after = await store.spent_since("bakery", LONG_AGO, between)
    assert [round(one.usd, 6) for one in (before, between, after)] == [0.01, 0.03, 0.35]


async def test_an_erased_call_leaves_its_money_and_no_name(store: Store) -> None:
    await pay(store, ANA, "CA1", 0.01)
    await store.forget(ANA)
    await store.add_charge("bakery", "CA1", charge(0.02))  # of a reply that was under way
    assert await store.spent_in_call("bakery", "CA1") == 0.0
    assert round((await store.spent_since("bakery", LONG_AGO, Spent())).usd, 6) == 0.03
    (nobody,) = await store.costs_by("bakery", CostKey.CALLER, "UTC", None, None)
    assert (nobody.key, nobody.turns) == ("", 0)


async def test_a_call_may_cost_the_lesser_of_what_its_two_ceilings_leave(store: Store) -> None:
    await pay(store, ANA, "CA1", 0.10)
    await pay(store, BOB, "CA2", 0.30)
    budgets = Budgets(store)
    assert await budgets.left_usd(bakery("{}"), "CA1") is None
    left = await budgets.left_usd(bakery("{per_call_usd: 0.25}"), "CA1")
    assert left is not None and round(left, 6) == 0.15
    left = await budgets.left_usd(bakery("{per_call_usd: 0.25, per_month_usd: 0.5}"), "CA1")
    assert left is not None and round(left, 6) == 0.10
    await pay(store, BOB, "CA3", 0.30)
    left = await budgets.left_usd(bakery("{per_month_usd: 0.5}"), "CA9")
    assert left is not None and round(left, 6) == -0.2


async def test_with_the_database_down_a_call_keeps_its_own_ceiling() -> None:
    down = Store("postgresql://nobody@127.0.0.1:1/none")
    assert await Budgets(down).left_usd(bakery("{per_call_usd: 2, per_month_usd: 9}"), "CA1") == 2.0
    assert await Budgets(down).left_usd(bakery("{per_month_usd: 9}"), "CA1") is None
    await down.close()


async def test_of_a_business_that_spent_nothing_one_line_says_so(service_url: str) -> None:
    settings = Settings.load({"IVR_DATABASE_URL": conninfo_of(service_url)})
    out = StringIO()
    await print_costs(settings, Console(file=out, width=200), CostQuery("harbor-dental"), as_json=False)
    assert out.getvalue().splitlines()[0] == "harbor-dental: nothing was spent"
