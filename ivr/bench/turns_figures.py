"""From simulated calls to figures: rates with their bounds, delays, costs, by set and policy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ivr.bench.turns import Group, Row
from ivr.bench.turns_policies import Policy

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Figures:
    """One policy on one set. `upper_95`: of the network-induced rate. Rates are shares, 0 to 1.

    `unanswered`: calls whose end was not answered after the last word: the last reply came before it, or none.
    Delays are over the others; `None` if there are none.
    """

    n: int
    false_interruptions: int
    false_interruption_rate: float
    network_false_interruptions: int
    network_false_interruption_rate: float
    upper_95: float
    median_delay_ms: float | None
    p95_delay_ms: float | None
    unanswered: int
    cost_usd_per_trace: float
    decisions_per_trace: float


Sets = dict[Group, dict[Policy, Figures]]


def upper_bound(hits: int, n: int, confidence: float = CONFIDENCE) -> float:
    """One-sided Clopper-Pearson bound: the rate at which so few hits in `n` have the chance 1 − confidence.

    Nothing in 600 gives 0.498 %.
    """
    if n == 0 or hits >= n:
        return 1.0
    low, high = hits / n, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_most(hits, n, middle) > 1 - confidence else (low, middle)
    return high


def _at_most(hits: int, n: int, rate: float) -> float:
    """Chance of at most so many hits."""
    logs = [
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        + k * math.log(rate)
        + (n - k) * math.log1p(-rate)
        for k in range(hits + 1)
        if 0 < rate < 1
    ]
    return math.fsum(math.exp(log) for log in logs) if logs else float(rate <= 0)


def figures(rows: Sequence[Row]) -> Figures:
    """Sum up the calls of one policy."""
    n = len(rows)
    delays = [row.delay_ms for row in rows if row.delay_ms is not None]
    false = sum(row.is_false for row in rows)
    network = sum(row.is_network_false for row in rows)
    return Figures(
        n=n,
        false_interruptions=false,
        false_interruption_rate=false / n if n else 0.0,
        network_false_interruptions=network,
        network_false_interruption_rate=network / n if n else 0.0,
        upper_95=upper_bound(network, n),
        median_delay_ms=float(np.percentile(delays, 50)) if delays else None,
        p95_delay_ms=float(np.percentile(delays, 95)) if delays else None,
        unanswered=n - len(delays),
        cost_usd_per_trace=math.fsum(row.cost_usd for row in rows) / n if n else 0.0,
        decisions_per_trace=sum(row.decisions for row in rows) / n if n else 0.0,
    )


def by_set(rows: Sequence[Row], policies: Sequence[Policy]) -> Sets:
    """The figures of all sets and policies."""
    return {
        group: {
            policy: figures([row for row in rows if group in row.groups and row.policy is policy])
            for policy in policies
        }
        for group in Group
    }
