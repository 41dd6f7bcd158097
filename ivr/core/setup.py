"""What a call starts from: its business, where its flow stands, what it says first, and the tuning of waits."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from callflows import engine
from callflows.engine import NEVER_CALLED_BACK, Action, CalledBack, FlowState, Override
from callflows.model import Business
from ivr.core.speaking import SpeedBy, SpeedState, VoiceProfile
from ivr.core.standing import Standing
from ivr.core.threshold import LONGEST_MS, SHORTEST_MS
from memory.model import MAY_RETURN, CallSnapshot

SNAPSHOT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Tuning:
    """Waits, in ms. `transcript_wait_ms` is short where partial words come, long where the model itself needs
    the transcript (the sandbox).
    """

    silence_ms: int = 500
    prefix_ms: int = 300
    longest_insert_ms: int = 2_000
    """So much is inserted for a hole at most, however long the silence that ends a turn: what is longer than 120 ms
    is silence anyway, and a model's VAD needs no more of it to know a pause."""
    transcript_wait_ms: int = 350
    window_wait_ms: int = 1_500
    answer_wait_ms: int = 10_000
    """A reply of which nothing more comes for so long has failed; the link itself notices a dead peer sooner."""
    held_talking_ms: int = 700
    """Speech over our reply that lasts this long is an interruption, whatever its words."""
    held_words_ms: int = 2_500
    page_wait_ms: int = 5_000
    retry_ms: int = 500
    defer_soft_ms: int = 1_500
    """A boundary that is held is reconsidered then (paper)."""
    defer_hard_ms: int = 5_000
    """And answered then at the latest (paper)."""
    farewell_slack_ms: int = 3_000
    max_rounds: int = 4
    max_failures: int = 2
    max_sessions: int = 6
    outage_ms: int = 20_000
    """Without a session for so long, or with sessions that come and go, there is none to be had. A caller in silence
    hangs up sooner; the six attempts and their pauses take 8 s where each fails at once."""


@dataclass(frozen=True, slots=True)
class CallSetup:
    """Everything a call core needs to know at its start."""

    call_id: str
    business: Business
    flow: FlowState
    opening: str
    """Said first, word for word; empty: nothing is said first."""
    first: tuple[Action, ...] = ()
    """What the flow does after the opening."""
    caller: str | None = None
    """The caller (a number, or an address), for the flow's conditions."""
    overrides: Mapping[str, Override] = field(default_factory=dict)
    """Schedules that are set by hand, as of the start; `HoursByHand` tells of later ones."""
    called_back: CalledBack = NEVER_CALLED_BACK
    """Calls back to this caller, as of the start."""
    resumed: bool = False
    """The thread of a dropped call goes on: the caller may decline and start afresh."""
    standing: Standing = field(default_factory=Standing)
    """Who the caller seems to be."""
    exchange_no: int = 1
    """The first free number: a call that goes on in another worker counts on."""
    started_at: datetime | None = None
    """The business's local time at the start, so that the model can be told the time."""
    speed: SpeedState = field(default_factory=SpeedState)
    silence_ms: int | None = None
    """D_VAD that the caller asked for before: in an earlier stream, or in the call that goes on here."""
    voice: VoiceProfile | None = None
    """What our voice's speed setting comes to; `None`: nobody knows, so it is never matched to the caller's."""
    unsupported: frozenset[str] = frozenset()
    """Names of directives that the provider in use cannot carry out."""
    tuning: Tuning = field(default_factory=Tuning)
    is_spent: bool = False
    """What the call may cost is spent before it begins here: only that is said, in place of the opening."""
    was_transferred: bool = False
    """A transfer of this call reached nobody: if the call is spent it is not connected again, but ended."""


def snapshot_of(
    flow: FlowState,
    exchange_no: int,
    speed: SpeedState,
    silence_ms: int | None,
    *,
    resumed: bool,
    standing: Standing | None,
    opening: str | None = None,
    may_return: bool = False,
) -> CallSnapshot:
    """The journalled state, small and JSON-compatible. `silence_ms`: D_VAD if the caller asked for one; `opening`:
    what a stream that goes on says first; left out, that the line broke; `may_return`: the caller may be called back.
    """
    state = {
        "flow": flow.to_json(),
        "exchange_no": exchange_no,
        "speed": speed.speed,
        "speed_by": speed.by.value,
        "rates": list(speed.rates),
        "resumed": resumed,
    }
    if silence_ms is not None:
        state["silence_ms"] = silence_ms
    if standing is not None:
        state["standing"] = standing.to_json()
    if flow.orders:
        state["orders"] = engine.orders_json(flow.orders)
    if opening is not None:
        state["opening"] = opening
    if may_return:
        state[MAY_RETURN] = True
    return CallSnapshot(SNAPSHOT_VERSION, state)


@dataclass(frozen=True, slots=True)
class Restored:
    """What a snapshot held, with safe values where it is older or newer than this code."""

    flow_json: dict[str, Any] | None
    exchange_no: int
    speed: SpeedState
    resumed: bool
    opening: str | None = None
    silence_ms: int | None = None
    standing: Standing | None = None
    may_return: bool = False


def restore(snapshot: CallSnapshot | None) -> Restored:
    """Read a snapshot back; an unknown version is as good as none."""
    if snapshot is None or snapshot.version != SNAPSHOT_VERSION:
        return Restored(None, 1, SpeedState(), resumed=False)
    state = snapshot.state
    return Restored(
        state.get("flow"),
        int(state.get("exchange_no", 1)),
        _speed_of(state),
        bool(state.get("resumed")),
        str(state["opening"]) if "opening" in state else None,
        _silence_of(state),
        Standing.from_json(state.get("standing")),
        state.get(MAY_RETURN) is True,
    )


def moved(snapshot: CallSnapshot | None, flow: FlowState, opening: str | None = None) -> CallSnapshot:
    """The snapshot of a call whose flow stands elsewhere now; all else is as it was. `opening`: as in `snapshot_of`."""
    before = restore(snapshot)
    return snapshot_of(
        flow,
        before.exchange_no,
        before.speed,
        before.silence_ms,
        resumed=before.resumed,
        standing=before.standing,
        opening=opening,
        may_return=before.may_return,
    )


def with_standing(snapshot: CallSnapshot, standing: Standing) -> CallSnapshot:
    """The snapshot of a call of whose caller more is known now; all else is as it was."""
    return replace(snapshot, state={**snapshot.state, "standing": standing.to_json()})


def _silence_of(state: dict[str, Any]) -> int | None:
    silence_ms = state.get("silence_ms")
    is_known = isinstance(silence_ms, int) and SHORTEST_MS <= silence_ms <= LONGEST_MS
    return silence_ms if is_known else None


def _speed_of(state: dict[str, Any]) -> SpeedState:
    # Snapshots older than `speed_by` hold a speed only where the caller had asked for one.
    speed = float(state.get("speed", 1.0))
    by = state.get("speed_by", SpeedBy.DEFAULT if speed == 1.0 else SpeedBy.ASKED)
    rates = tuple(float(rate) for rate in state.get("rates", ()))
    return SpeedState(speed, SpeedBy(by) if by in set(SpeedBy) else SpeedBy.DEFAULT, rates)
