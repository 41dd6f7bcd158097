"""`ivr numbers`: which of the account's numbers come to this service, and how to make one do so."""

import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from callflows.parse import FlowBook, load_folder
from ivr.accounts import accounts_of
from ivr.adapters.twilio_numbers import AccountNumber, TwilioNumbers
from ivr.errors import CallthreadError, ConfigError
from ivr.foundations import flow_folder
from ivr.settings import Settings


def list_numbers(settings: Settings, out: Console, *, as_json: bool) -> None:
    """Print the account's numbers, and the businesses' numbers that it does not have. Raises: `CallthreadError`."""
    public_url, book = _public_url(settings), load_folder(flow_folder(settings))
    numbers = _account(settings).all()
    missing = _missing(numbers, book)
    if as_json:
        rows = [_row(number, public_url, book) for number in numbers]
        out.print_json(json.dumps({"numbers": rows, "not_in_account": missing}))
        return
    table = Table("number", "name", "business", "its calls go to")
    for number in numbers:
        here = number.is_connected_to(public_url)
        goes_to = "[green]this service[/]" if here else number.goes_to() or "nowhere"
        table.add_row(number.number, number.name, _business(number.number, book) or "none", goes_to)
    out.print(table if numbers else "The account has no telephone numbers.")
    for missed, business_id in missing.items():
        out.print(f"{missed} of {business_id} is not a number of this account.", markup=False, soft_wrap=True)


def connect_number(settings: Settings, out: Console, wanted: str) -> None:
    """Point a number at this service. Raises: `CallthreadError`."""
    public_url, book = _public_url(settings), load_folder(flow_folder(settings))
    account = _account(settings)
    numbers = account.all()
    number = next((n for n in numbers if n.number == wanted), None)
    if number is None:
        there = ", ".join(n.number for n in numbers) or "none"
        raise CallthreadError(f"{wanted} is not a number of this account, which has: {there}")
    business = _business(wanted, book)
    if business is None:
        raise CallthreadError(
            f"no business has the number {wanted}: write it under `numbers:` in its flow file first, "
            "or its callers would hear that it is not in service"
        )
    was = number.goes_to() or "nowhere"
    now = account.connect(number, public_url)
    if not now.is_connected_to(public_url):
        raise CallthreadError(f"Twilio took the change, but calls still go to {now.goes_to() or 'nowhere'}")
    out.print(f"{wanted} ({business}): calls went to {was}", markup=False, soft_wrap=True)
    out.print(
        f"they come to {now.voice_url} now, their status to {now.status_url}", markup=False, soft_wrap=True
    )


def _row(number: AccountNumber, public_url: str, book: FlowBook) -> dict[str, object]:
    return {
        "number": number.number,
        "name": number.name,
        "business": _business(number.number, book),
        "goes_to": number.goes_to() or None,
        "connected": number.is_connected_to(public_url),
    }


def _business(number: str, book: FlowBook) -> str | None:
    business = book.by_number(number)
    return None if business is None else business.id


def _missing(numbers: Sequence[AccountNumber], book: FlowBook) -> dict[str, str]:
    """Numbers in the flows that the account does not have, with their business."""
    had = {number.number for number in numbers}
    named = {number: business.id for business in book.businesses.values() for number in business.numbers}
    return {number: business_id for number, business_id in named.items() if number not in had}


def _account(settings: Settings) -> TwilioNumbers:
    if settings.twilio_account_sid is None:
        raise ConfigError("TWILIO_ACCOUNT_SID", "is needed for this", "AC0123456789abcdef0123456789abcdef")
    if settings.twilio_auth_token is None:
        raise ConfigError("TWILIO_AUTH_TOKEN", "is needed for this", "the token in Twilio's console")
    accounts = accounts_of(settings)
    return TwilioNumbers(accounts, accounts.all()[0])


def _public_url(settings: Settings) -> str:
    if settings.public_url is None:
        raise ConfigError(
            "IVR_PUBLIC_URL", "is needed: it is the address that Twilio calls", "https://ivr.example.com"
        )
    return settings.public_url
