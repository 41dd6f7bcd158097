"""What is to be done beside the call: a text message, a call back. Pure data, journalled with the flow's state."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

import phonenumbers
from phonenumbers import PhoneNumberType

Kind = Literal["sms", "callback"]
MAX_ORDERS = 5
"""So many in one call: what a talk costs must not depend on how often a node is passed."""
MAX_TEXT = 1_600
"""What Twilio takes as one message."""
CALL_BACK_ONCE_IN = timedelta(hours=20)
"""Once a day: twenty hours, so that a daily caller at about the same hour is not refused."""
_BEYOND_COUNTRIES = "001"
"""Where phonenumbers puts satellites, whose numbers are mobile ones to it."""
_ORDINARY = frozenset(
    {
        PhoneNumberType.FIXED_LINE,
        PhoneNumberType.MOBILE,
        PhoneNumberType.FIXED_LINE_OR_MOBILE,
        PhoneNumberType.VOIP,
    }
)


@dataclass(frozen=True, slots=True)
class Order:
    """One of them. `key` makes it count once; `due`: ISO time with a zone, empty for now."""

    key: str
    kind: Kind
    to: str
    """E.164: the caller's own number, or a target of the file."""
    text: str = ""
    due: str = ""


@dataclass(frozen=True, slots=True)
class CalledBack:
    """What there is of calls back to a caller's number, of this call or others."""

    is_due: bool = False
    """One is still to be made."""
    begun_at: datetime | None = None
    """When the last one was made, or tried."""

    def may_again(self, due: datetime | None) -> bool:
        """Whether one that is due then (None: it is not known) may be made: once a day."""
        return self.begun_at is None or due is None or due - self.begun_at >= CALL_BACK_ONCE_IN


NEVER_CALLED_BACK = CalledBack()


def order_key(business_id: str, call_id: str, number: int) -> str:
    """The same in every process that goes on from the same state; tells nobody who called."""
    return hashlib.sha256(f"{business_id}\n{call_id}\norder {number}".encode()).hexdigest()[:32]


def orders_json(orders: Sequence[Order]) -> list[dict[str, Any]]:
    """As JSON-compatible dicts."""
    return [asdict(order) for order in orders]


def orders_of(data: object) -> tuple[Order, ...]:
    """What `orders_json` gave. Never raises; what cannot be read is left out."""
    listed = data if isinstance(data, list) else []
    return tuple(order for each in listed[:MAX_ORDERS] if (order := _order(each)) is not None)


def _order(data: object) -> Order | None:
    stored: Mapping[str, Any] = data if isinstance(data, dict) else {}
    values = [stored.get(name, "") for name in ("key", "kind", "to", "text", "due")]
    if not all(isinstance(value, str) for value in values) or values[1] not in get_args(Kind):
        return None
    return Order(*values)


def may_reach(number: str | None, countries: Sequence[str]) -> bool:
    """Whether a number (E.164) may be called or written to: an ordinary one of these countries (ISO 3166).

    Not premium, shared-cost, pager, satellite or other numbers beyond countries, whose price somebody else makes.
    """
    if number is None or not number.startswith("+"):  # the parser would find a number within a `sip:` address
        return False
    try:
        parsed = phonenumbers.parse(number)
    except phonenumbers.NumberParseException:
        return False
    if phonenumbers.number_type(parsed) not in _ORDINARY:
        return False
    region = phonenumbers.region_code_for_number(parsed)
    return region != _BEYOND_COUNTRIES and region in countries
