"""What `ivr costs` prints."""

import json

import pytest
from rich.console import Console

from ivr import show_costs
from ivr.errors import CallthreadError
from ivr.operate import month_of
from memory.store_costs import CostKey, Costs

ROWS = [Costs("+12025550111", 2, 0.03, 0.01, 2_000, 500, 300), Costs("", 1, 0.5, 0.0, 10, 0, 5)]


def test_callers_are_masked_and_who_withheld_is_nobody() -> None:
    console = Console(record=True, width=100, file=None)
    with console.capture() as captured:
        console.print(show_costs.render("bakery", ROWS, CostKey.CALLER))
    text = captured.get()
    assert "2025550111" not in text
    assert "withheld" in text
    assert "bakery: $0.5300" in text
    assert "2,000" in text and "0.0150" in text
    assert "0.0100" in text and "≈" in show_costs.NOTE  # how much of it is by estimated tokens


def test_json_has_the_same_figures() -> None:
    body = json.loads(show_costs.as_json({"bakery": ROWS}, CostKey.CALLER))
    bakery = body["businesses"]["bakery"]
    assert bakery["usd"] == 0.53
    assert [(one["turns"], one["usd"]) for one in bakery["by_caller"]] == [(2, 0.03), (1, 0.5)]
    assert "2025550111" not in json.dumps(body)
    months = show_costs.as_json({"bakery": [Costs("2026-11", 1, 0.1, 0.02, 1, 0, 1)]}, CostKey.MONTH)
    assert json.loads(months)["businesses"]["bakery"]["by_month"][0]["key"] == "2026-11"
    assert json.loads(months)["businesses"]["bakery"]["by_month"][0]["estimated_usd"] == 0.02


def test_a_month_is_from_midnight_to_midnight_of_the_zone() -> None:
    since, until = month_of("2026-12", "America/New_York")
    assert since is not None and since.isoformat() == "2026-12-01T00:00:00-05:00"
    assert until is not None and until.isoformat() == "2027-01-01T00:00:00-05:00"
    assert month_of("", "UTC") == (None, None)
    with pytest.raises(CallthreadError, match="like 2026-11"):
        month_of("Nov 26", "UTC")
