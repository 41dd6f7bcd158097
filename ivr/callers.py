"""`ivr callers`: what is kept of one caller at one business, and its erasure."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from callflows.parse import load_folder
from ivr.errors import CallthreadError, ConfigError
from ivr.foundations import audio_store, flow_folder
from ivr.observe import mask_number
from ivr.operate import opened
from ivr.pins import check_form, hash_pin
from ivr.settings import Settings
from ivr.show import CallView, load_call
from ivr.show import as_json as call_json
from ivr.wire.callers import caller_of
from memory import errors as faults
from memory.jobs import delete_doomed
from memory.ledger import Ledger
from memory.model import Owner
from memory.store import Store
from memory.store_callers import CallerFacts
from memory.store_erasure import Topic

MOST_CALLS = 10_000


@dataclass(frozen=True, slots=True)
class CallerView:
    """Everything that is kept of a caller, but for the audio itself."""

    owner: Owner
    calls: Sequence[CallView]
    topics: Sequence[Topic]
    facts: CallerFacts

    @property
    def turns(self) -> int:
        """Exchanges in all."""
        return sum(len(call.turns) for call in self.calls)

    @property
    def usd(self) -> float:
        """Estimated cost of all turns."""
        return sum(call.usd for call in self.calls)


def ledger_path(settings: Settings) -> Path:
    """Where this machine notes erasures."""
    return settings.data_dir / "erasures.jsonl"


async def show_caller(settings: Settings, out: Console, number: str, business: str, *, as_json: bool) -> None:
    """Print what is kept of a caller. Raises: `CallthreadError`."""
    async with opened(settings) as store:
        view = await _load(store, await _owner(settings, store, number, business))
    if as_json:
        out.print(_as_json(view), markup=False, soft_wrap=True)
        return
    out.print(
        f"{mask_number(number)} at {business}: {len(view.calls)} calls, {view.turns} turns, about ${view.usd:.4f}"
    )
    table = Table("call", "started", "status", "turns", "last said", box=None)
    for call in view.calls:
        started = call.call.started_at.strftime("%Y-%m-%d %H:%M")
        last = call.turns[-1].page.user_text if call.turns else ""
        table.add_row(call.call.call_sid, started, call.call.brief_ending, str(len(call.turns)), last)
    if view.calls:
        out.print(table)
    for line in _known(view.facts):
        out.print(line)
    for topic in view.topics:
        out.print(f"topic ({topic.turns} turns): {topic.summary}", markup=False, soft_wrap=True)


async def forget_caller(
    settings: Settings, out: Console, number: str, business: str, confirm: Callable[[str], object]
) -> None:
    """Erase a caller at a business, once `confirm` has not objected to the question it is given.

    Raises: `CallthreadError`, and what `confirm` raises.
    """
    async with opened(settings) as store:
        owner = await _owner(settings, store, number, business)
        confirm(f"Erase everything of this caller at {business}?")
        erased, entry = await store.forget(owner)
        try:
            Ledger(ledger_path(settings)).add(entry)
        except OSError as error:
            raise CallthreadError(
                f"erased, but {ledger_path(settings)} cannot be written ({error.strerror}): a restored backup would "
                "bring this caller back; mend it and run the command again"
            ) from error
        done = f"{erased.calls} calls, {erased.pages} turns erased"
        try:
            await delete_doomed(store, audio_store(settings))
        except faults.StorageUnavailable:
            out.print(
                f"{done}; {erased.files} audio files will be deleted by the worker: their store is away now"
            )
        else:
            out.print(f"{done}, with {erased.files} audio files")


async def keep_caller(settings: Settings, out: Console, number: str, business: str) -> None:
    """Undo a caller's wish to be forgotten. Raises: `CallthreadError`: there is none, or it was carried out."""
    async with opened(settings) as store:
        if not await store.keep_after_all(await _owner(settings, store, number, business)):
            raise CallthreadError("this caller has not asked to be forgotten, or is forgotten already")
    out.print("kept: what they asked for is not carried out")


async def enrol_caller(
    settings: Settings, out: Console, number: str, business: str, ask_pin: Callable[[], str] | None
) -> None:
    """Give a caller a PIN, as `ask_pin` answers; None takes it away. Raises: `CallthreadError`."""
    pepper = settings.pin_pepper
    if pepper is None and ask_pin is not None:
        raise ConfigError(
            "IVR_PIN_PEPPER", "is needed for PINs", "a long random text, the same on every machine"
        )
    async with opened(settings) as store:
        owner = await _owner(settings, store, number, business)
        if ask_pin is None or pepper is None:
            await store.enrol(owner, None)
            out.print("not enrolled any more")
            return
        pin = ask_pin()
        check_form(pin)
        await store.enrol(owner, hash_pin(pin, pepper.get_secret_value()))
    out.print("enrolled: in a `verify` node of the flow the PIN is asked for")


async def share_caller(
    settings: Settings, out: Console, number: str, business: str, *, is_shared: bool
) -> None:
    """Say whether several people use a number. Raises: `CallthreadError`."""
    async with opened(settings) as store:
        await store.set_shared(await _owner(settings, store, number, business), is_shared=is_shared)
    out.print(
        "shared: nothing of its past is told to who calls from it"
        if is_shared
        else "not shared: its past is remembered again"
    )


async def _owner(settings: Settings, store: Store, number: str, business: str) -> Owner:
    # A business whose file is gone may still have callers, and they their rights.
    known = sorted({*load_folder(flow_folder(settings)).businesses, *await store.businesses()})
    if business not in known:
        raise CallthreadError(f"there is no business {business!r}; there are: {', '.join(known)}")
    caller = caller_of(number)
    if caller is None:
        raise CallthreadError(
            f"{number!r} is nobody's number; write it as +12025550143, or sip:name@host, or client:name"
        )
    return Owner(business, caller)


async def _load(store: Store, owner: Owner) -> CallerView:
    rows = await store.list_calls(owner.business_id, caller=owner.caller, limit=MOST_CALLS)
    views = [view for row in reversed(rows) if (view := await load_call(store, row.call_sid)) is not None]
    return CallerView(owner, views, await store.topics(owner), await store.caller_facts(owner))


def _known(facts: CallerFacts) -> Iterator[str]:
    if facts.is_shared:
        yield "several people use this number: nothing is told of its past"
    if facts.is_enrolled:
        yield "enrolled: has a PIN"
    if facts.forget_at is not None:
        yield f"asked to be forgotten: will be at {facts.forget_at:%Y-%m-%d %H:%M %Z}"


def _as_json(view: CallerView) -> str:
    body = {
        "business_id": view.owner.business_id,
        "caller": mask_number(view.owner.caller or ""),
        "usd": round(view.usd, 6),
        "shared": view.facts.is_shared,
        "enrolled": view.facts.is_enrolled,
        "forget_at": view.facts.forget_at.isoformat() if view.facts.forget_at else None,
        "topics": [{"summary": topic.summary, "turns": topic.turns} for topic in view.topics],
        "calls": [json.loads(call_json(call)) for call in view.calls],
    }
    return json.dumps(body, ensure_ascii=False, indent=2)
