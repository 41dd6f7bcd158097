"""What `ivr costs` prints: money by call, caller, month or kind, by the price table of when it was spent."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from ivr.observe import mask_number
from memory.costs import PRICES
from memory.store_costs import CostKey, Costs

NOTE = (
    f"By memory/prices.toml of {PRICES.date}: every response of the model (greeting, prompts, cancelled ones too),"
    " transcription, summaries. ≈: by tokens that were estimated, because the provider did not tell them."
)

NOTHING = "nothing was spent"


def render(business_id: str, rows: Sequence[Costs], by: CostKey) -> Table:
    """For people; callers' numbers masked."""
    table = Table(title=f"{business_id}: ${sum(row.usd for row in rows):.4f}", box=None, title_justify="left")
    table.add_column(by.value, no_wrap=True)
    for column in ("turns", "tokens in", "cached", "out", "US dollars", "of it ≈", "a turn"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        tokens = (row.input_tokens, row.cached_tokens, row.output_tokens)
        a_turn = f"{row.usd / row.turns:.4f}" if row.turns else "–"
        usd = (f"{row.usd:.4f}", f"{row.estimated_usd:.4f}", a_turn)
        table.add_row(_key(row, by), str(row.turns), *(f"{count:,}" for count in tokens), *usd)
    return table


def as_json(found: Mapping[str, Sequence[Costs]], by: CostKey) -> str:
    """For programs; callers' numbers masked."""
    body: dict[str, Any] = {
        business_id: {
            "usd": round(sum(row.usd for row in rows), 6),
            f"by_{by.value}": [
                asdict(row)
                | {
                    "key": _key(row, by),
                    "usd": round(row.usd, 6),
                    "estimated_usd": round(row.estimated_usd, 6),
                }
                for row in rows
            ],
        }
        for business_id, rows in found.items()
    }
    return json.dumps({"prices_of": PRICES.date.isoformat(), "businesses": body}, indent=2)


def _key(row: Costs, by: CostKey) -> str:
    if by is not CostKey.CALLER:
        return row.key
    return mask_number(row.key) if row.key else "withheld or erased"
