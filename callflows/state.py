"""Where a call stands in its flow: small, versioned, JSON; journalled at each step. Secrets never are."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from callflows.away import AWAY, Trip, trip_of
from callflows.model import Business
from callflows.nodes.base import Progress
from callflows.orders import Order, orders_json, orders_of

STATE_VERSION = 1
NO_PROGRESS = Progress()
NO_TRIP = Trip()


@dataclass(frozen=True, slots=True)
class Using:
    """A tool whose answer is awaited. `arguments`: what the model gave it, as JSON text; empty in a tool node."""

    key: str
    tool: str
    arguments: str = ""

    def is_pin(self) -> bool:
        """It is a PIN that is being checked; another worker has it entered again."""
        return not self.tool


@dataclass(frozen=True, slots=True)
class FlowState:
    """Where a call stands. `ended` is empty while our stream has the call, then `transferred` or `hung_up`.

    `target` names the (first) transfer target once transferred; `language` is empty for the business's own.
    """

    version: int
    node: str
    slots: dict[str, Any] = field(default_factory=dict, hash=False)
    ended: str = ""
    target: str = ""
    language: str = ""
    progress: Progress = NO_PROGRESS
    using: Using | None = None
    uses: int = 0
    """How many tools were used so far: no key comes twice in a call."""
    offered: "FlowState | None" = None
    """Where a call broke off that the caller may go on with: nothing of it counts before they say so."""
    taken_up: bool = False
    """The call goes on with one that broke off."""
    may_return: bool = False
    """The caller has agreed to be called back should the call break off."""
    is_old: bool = False
    """What was gathered is so old that the caller is to confirm it."""
    secrets: dict[str, Any] = field(default_factory=dict, hash=False, repr=False)
    """Lost when another process takes the call: they are asked for again, never written down."""
    trip: Trip = NO_TRIP
    orders: tuple[Order, ...] = ()
    """What is to be done beside the call; each counts once."""
    ahead: int = 0
    """So many of them, the last, were ordered by a step that the flow has not taken yet: the call's end, which is
    being said. They stand if the caller hangs up meanwhile; where the step is taken again, nothing is ordered anew.
    """

    def ordering(self, last: "FlowState") -> "FlowState":
        """This state, with what its last step has ordered, before it is taken."""
        taken = len(self.orders) - self.ahead
        return replace(self, orders=last.orders, ahead=max(0, len(last.orders) - taken))

    def is_away(self) -> bool:
        """The call has left our stream, and may come back."""
        return self.ended in AWAY

    def to_json(self) -> dict[str, Any]:
        """As a JSON-compatible dict, without secrets and without keys half entered."""
        stored: dict[str, Any] = {
            "version": self.version,
            "node": self.node,
            "slots": dict(self.slots),
            "ended": self.ended,
            "target": self.target,
        }
        if self.language:
            stored["language"] = self.language
        if self.uses:
            stored["uses"] = self.uses
        if self.using is not None:
            stored["using"] = asdict(self.using)
        if self.orders:
            stored["orders"] = orders_json(self.orders)
        if self.ahead:
            stored["ahead"] = self.ahead
        if self.trip.no:
            stored["trip"] = self.trip.to_json()
        progress = asdict(self.progress)
        del progress["keys"]
        if any(progress.values()) or progress["candidate"] is not None:
            stored["progress"] = progress
        if self.offered is not None:
            stored["offered"] = self.offered.to_json()
        return stored | {flag: True for flag in _FLAGS if getattr(self, flag)}

    @classmethod
    def from_json(cls, data: object, business: Business) -> "FlowState":
        """What `to_json` gave, for the business as it is now. Never raises.

        A node that has vanished, or waits for nobody any more, becomes the start; what cannot be read is left out.
        """
        stored: Mapping[str, Any] = data if isinstance(data, dict) else {}
        node, slots, ended, target = (stored.get(key) for key in ("node", "slots", "ended", "target"))
        uses = stored.get("uses")
        there = business.node(node) if isinstance(node, str) else None
        known = there is not None and (bool(ended) or there.WAITS)
        language = stored.get("language")
        return cls(
            STATE_VERSION,
            node if isinstance(node, str) and known else business.start,
            dict(slots) if isinstance(slots, dict) else {},
            ended if isinstance(ended, str) else "",
            target if isinstance(target, str) and target in business.transfers else "",
            language if isinstance(language, str) and language in business.languages else "",
            _progress(stored.get("progress")) if known else Progress(),
            _using(stored.get("using"), business) if known else None,
            uses if isinstance(uses, int) and uses >= 0 else 0,
            cls.from_json(stored["offered"], business) if isinstance(stored.get("offered"), dict) else None,
            taken_up=stored.get("taken_up") is True,
            is_old=stored.get("is_old") is True,
            may_return=stored.get("may_return") is True,
            orders=(orders := orders_of(stored.get("orders"))),
            ahead=_ahead(stored.get("ahead"), len(orders)),
            trip=trip_of(stored.get("trip"), business.transfers),
        )


def _ahead(data: object, count: int) -> int:
    return data if isinstance(data, int) and 0 <= data <= count else 0


def _using(data: object, business: Business) -> Using | None:
    stored: Mapping[str, Any] = data if isinstance(data, dict) else {}
    key, tool, arguments = (stored.get(name) for name in ("key", "tool", "arguments"))
    if not (isinstance(key, str) and isinstance(tool, str) and isinstance(arguments, str)):
        return None
    return Using(key, tool, arguments) if tool in business.tools else None


_FLAGS = ("taken_up", "is_old", "may_return")


def _progress(data: object) -> Progress:
    stored: Mapping[str, Any] = data if isinstance(data, dict) else {}
    counts = [stored.get(key) for key in ("no_input", "no_match")]
    no_input, no_match = (n if isinstance(n, int) and 0 <= n <= 5 else 0 for n in counts)
    candidate = stored.get("candidate")
    return Progress(no_input, no_match, candidate if isinstance(candidate, str | int | float) else None)
