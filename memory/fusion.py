"""How likely each utterance of a caller's past answers a query: words, meaning and neighbourhood in one logit. Pure.

The cues are standardised over the caller's own utterances, so that they mean the same for ten pages and ten thousand.
Their weights (`fusion.toml`) are a logistic regression's; `ivr bench recall --fit` makes them.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from memory.kinds import KINDS
from memory.scan import CallerScan, Floats, Ints, Terms

BM25_K1 = 1.2
BM25_B = 0.75
RANK_DAMPING = 5
SIDES = 2


@dataclass(frozen=True, slots=True)
class FusionWeights:
    """A logit's weights by the cue's name. `made`: from what, for people."""

    bias: float
    cues: Mapping[str, float]
    made: str = ""


def load_weights() -> FusionWeights:
    """The weights that are shipped with the package."""
    raw = tomllib.loads(files("memory").joinpath("fusion.toml").read_text(encoding="utf-8"))
    return FusionWeights(raw["bias"], raw["cues"], raw["made"])


def utterance_logits(scan: CallerScan, asked_side: int | None, weights: FusionWeights) -> Floats:
    """Shape (pages, 2): the logit of what the caller, and what the reply said; -inf where that side was silent.

    `asked_side`: 0 or 1 if the query names one of the two parties, else None.
    """
    if not len(scan):
        return np.empty((0, SIDES))
    made = cues(scan, asked_side)
    logits = np.full(len(scan) * SIDES, weights.bias)
    for name, weight in weights.cues.items():
        logits += weight * made[name]
    logits[~_spoken(scan)] = -np.inf
    return logits.reshape(-1, SIDES)


def cues(scan: CallerScan, asked_side: int | None) -> dict[str, Floats]:
    """Each cue's value for every utterance: page 0's caller, page 0's reply, page 1's caller, …"""
    spoken = _spoken(scan)
    calls = np.repeat(np.unique(scan.call_ids, return_inverse=True)[1], SIDES)
    cosine = np.column_stack((scan.user_cosines, scan.reply_cosines)).ravel()
    page_cosine = _both(np.nan_to_num(cosine))
    words = _WordMatch.of(scan)
    page_words = words.of_pages()
    meaning, lexical = _standard(cosine, spoken), _standard(words.scores, spoken)
    page_meaning = np.repeat(_standard(page_cosine, np.ones(len(scan), bool)), SIDES)
    page_lexical = np.repeat(_standard(page_words.scores, np.ones(len(scan), bool)), SIDES)
    mixed, page_mixed = meaning + lexical, page_meaning + page_lexical
    # Sorting is most of the work, so each is done once.
    by_words, by_mixed, by_page = (_descending(values) for values in (lexical, mixed, page_mixed))
    asked = np.full(len(calls), 0.5)
    if asked_side is not None:
        asked = np.tile(np.arange(SIDES) == asked_side, len(scan)).astype(np.float64)
    length = np.log1p(words.lengths)
    found = {
        "meaning": meaning,
        "words": lexical,
        "page_meaning": page_meaning,
        "page_words": page_lexical,
        "both": np.maximum(meaning, 0.0) * np.maximum(lexical, 0.0),
        "share_of_words": words.scores / (words.weight + 1.0),
        "covered": words.covered,
        "page_covered": np.repeat(page_words.covered, SIDES),
        "length": length,
        "asked": asked,
        "asked_meaning": asked * meaning,
        "asked_words": asked * lexical,
        "asked_length": asked * length,
        "rank_meaning": _rank(_descending(meaning), spoken),
        "rank_words": _rank(by_words, spoken),
        "rank_mixed": _rank(by_mixed, spoken),
        "rank_page": _rank(by_page, spoken),
        "call_words": _best_of_calls(lexical, calls, by_words, 2)[0],
        "call_page": _best_of_calls(page_mixed, calls, by_page, 3)[0],
    }
    found |= _answer_kinds(scan)
    counts = (1, 3, 8)
    for count, values in zip(counts, _best_of_calls(mixed, calls, by_mixed, *counts), strict=True):
        found[f"call_{count}"] = values
    near = (("meaning", meaning, 1), ("words", lexical, 1), ("mixed", mixed, 2))
    for name, values, distance in (*near, ("page", page_mixed, 2), ("page", page_mixed, 4)):
        found[f"{name}_{distance}_before"] = _neighbour(values, calls, distance)
        found[f"{name}_{distance}_after"] = _neighbour(values, calls, -distance)
    return found


def _answer_kinds(scan: CallerScan) -> dict[str, Floats]:
    """Times, numbers and names in each utterance, and the same where the query asks for them."""
    table = np.zeros((len(scan) * SIDES, len(KINDS))) if scan.kinds is None else scan.kinds.astype(np.float64)
    found = {kind: table[:, column] for column, kind in enumerate(KINDS)}
    return found | {f"asked_{kind}": found[kind] * wanted for kind, wanted in scan.wanted._asdict().items()}


@dataclass(frozen=True, slots=True)
class _WordMatch:
    """BM25 over the caller's own utterances, or pages. `covered`: the matched share of the query's weight."""

    frequencies: Floats  # (terms asked for, texts)
    lengths: Floats
    scores: Floats
    covered: Floats
    weight: float

    @classmethod
    def of(cls, scan: CallerScan) -> "_WordMatch":
        asked = np.unique(scan.asked_terms)
        user, reply = (_frequencies(terms, asked) for terms in (scan.user_terms, scan.reply_terms))
        frequencies = np.stack((user, reply), axis=2).reshape(len(asked), len(scan) * SIDES)
        lengths = np.column_stack((scan.user_terms.counts, scan.reply_terms.counts)).ravel()
        return cls._scored(frequencies, lengths.astype(np.float64))

    def of_pages(self) -> "_WordMatch":
        """The same with both sides of a page as one text."""
        paired = self.frequencies.reshape(len(self.frequencies), len(self.lengths) // SIDES, SIDES).sum(
            axis=2
        )
        return self._scored(paired, _both(self.lengths))

    @classmethod
    def _scored(cls, frequencies: Floats, lengths: Floats) -> "_WordMatch":
        held = frequencies > 0
        holding = held.sum(axis=1)
        rarity = np.log1p((len(lengths) - holding + 0.5) / (holding + 0.5))
        typical = max(float(lengths.mean()), 1.0)
        damping = BM25_K1 * (1.0 - BM25_B + BM25_B * lengths / typical)
        scores = rarity @ (frequencies * (BM25_K1 + 1.0) / (frequencies + damping))
        weight = float(rarity.sum())
        return cls(frequencies, lengths, scores, (rarity @ held) / (weight or 1.0), weight)


def _frequencies(terms: Terms, asked: Ints) -> Floats:
    """(terms asked for, texts): how often each text has each term."""
    texts = len(terms.counts)
    if not len(asked):
        return np.zeros((0, texts))
    owner = np.repeat(np.arange(texts), terms.counts)
    # A few terms are asked for among very many: to look for one at a time is the quickest.
    return np.stack(
        [np.bincount(owner[terms.hashes == term], minlength=texts).astype(np.float64) for term in asked]
    )


def _spoken(scan: CallerScan) -> Any:
    """Which utterances exist: they have a stem, or (of stop words only) at least a vector."""
    counts = np.column_stack((scan.user_terms.counts, scan.reply_terms.counts)).ravel()
    cosines = np.column_stack((scan.user_cosines, scan.reply_cosines)).ravel()
    return (counts > 0) | np.isfinite(cosines)


def _both(values: Floats) -> Floats:
    return np.asarray(values.reshape(-1, SIDES).sum(axis=1), np.float64)


def _standard(values: Floats, spoken: Any) -> Floats:
    """Zero mean, unit deviation over the utterances that have a value; the others are average."""
    known = spoken & np.isfinite(values)
    standard = np.zeros(len(values))
    if known.any():
        standard[known] = (values[known] - values[known].mean()) / (values[known].std() + 1e-6)
    return standard


def _descending(values: Floats) -> Ints:
    """Which value is the greatest, the second, …; equal ones in their order."""
    return np.argsort(-values, kind="stable")


def _rank(order: Ints, spoken: Any) -> Floats:
    """`order`: of all utterances, descending; those that do not exist come last."""
    exists = spoken[order]
    ranks = np.empty(len(order))
    ranks[np.concatenate((order[exists], order[~exists]))] = np.arange(len(order))
    return 1.0 / (RANK_DAMPING + ranks)


def _neighbour(values: Floats, calls: Ints, distance: int) -> Floats:
    """The value so many utterances earlier (later, if negative) in the same call; zero where there is none."""
    shifted = np.zeros(len(values))
    size = abs(distance)
    if size >= len(values):
        return shifted
    here, there = (
        (slice(size, None), slice(None, -size)) if distance > 0 else (slice(None, -size), slice(size, None))
    )
    shifted[here] = np.where(calls[here] == calls[there], values[there], 0.0)
    return shifted


def _best_of_calls(values: Floats, calls: Ints, order: Ints, *counts: int) -> list[Floats]:
    """For each utterance the mean of its call's best so many: what a whole call was about.

    `order`: of the values, descending; `calls` are numbered from 0 without a gap.
    """
    sizes = np.bincount(calls)
    # Small numbers are sorted by their digits, which takes no time.
    by_call = order[np.argsort(calls[order].astype(np.min_scalar_type(len(sizes))), kind="stable")]
    starts = np.cumsum(sizes) - sizes
    place = np.arange(len(values)) - np.repeat(starts, sizes)
    sorted_values = values[by_call]
    return [
        np.asarray(
            (np.add.reduceat(np.where(place < count, sorted_values, 0.0), starts) / np.minimum(sizes, count))[
                calls
            ],
            np.float64,
        )
        for count in counts
    ]
