"""Weights of the fusion, by logistic regression on dialogues whose answers are known; judged on others."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memory.fusion import FusionWeights, cues
from memory.scan import CallerScan, Floats

PENALTY = 3.0
STEPS = 30
CONVERGED = 1e-5


@dataclass(frozen=True, slots=True)
class Example:
    """One question. `answers`: shape (pages, 2), whether that utterance is evidence."""

    dialogue: str
    scan: CallerScan
    asked_side: int | None
    answers: Floats


@dataclass(frozen=True, slots=True)
class Rows:
    """A dialogue's utterances for all its questions: cues, whether it is evidence, and what that weighs."""

    cues: Floats
    answers: Floats
    weights: Floats


def rows_of(examples: Sequence[Example]) -> dict[str, Rows]:
    """By dialogue. Each question's evidence weighs one together."""
    parts: dict[str, list[Rows]] = {}
    for example in examples:
        spoken, answers = _spoken(example), example.answers.ravel()
        found = cues(example.scan, example.asked_side)
        table = np.column_stack([found[name] for name in sorted(found)])[spoken]
        answers = answers[spoken]
        weights = np.where(answers > 0, 1.0 / max(answers.sum(), 1.0), 1.0)
        parts.setdefault(example.dialogue, []).append(Rows(table, answers, weights))
    return {name: _joined(rows) for name, rows in parts.items()}


def fit(dialogues: Iterable[Rows], names: Sequence[str], made: str = "") -> FusionWeights:
    """One set of weights for all of these dialogues; `names` are the cues', sorted."""
    rows = _joined(list(dialogues))
    coefficients, bias = _logistic(rows.cues, rows.answers, rows.weights)
    return FusionWeights(bias, dict(zip(names, coefficients.tolist(), strict=True)), made)


def fit_without_each(dialogues: Mapping[str, Rows], names: Sequence[str]) -> dict[str, FusionWeights]:
    """For each dialogue, weights that have not seen it."""
    return {
        held_out: fit((rows for name, rows in dialogues.items() if name != held_out), names)
        for held_out in dialogues
    }


def _joined(rows: Sequence[Rows]) -> Rows:
    return Rows(
        np.concatenate([one.cues for one in rows]),
        np.concatenate([one.answers for one in rows]),
        np.concatenate([one.weights for one in rows]),
    )


def as_toml(weights: FusionWeights) -> str:
    """The file that `memory.fusion` reads."""
    lines = [f'made = "{weights.made}"', f"bias = {weights.bias:.5f}", "", "[cues]"]
    return "\n".join([*lines, *_lines(weights.cues.items())]) + "\n"


def _lines(cue_weights: Iterable[tuple[str, float]]) -> list[str]:
    return [f"{name} = {weight:.5f}" for name, weight in cue_weights]


def _spoken(example: Example) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    scan = example.scan
    counts = np.column_stack((scan.user_terms.counts, scan.reply_terms.counts)).ravel()
    cosines = np.column_stack((scan.user_cosines, scan.reply_cosines)).ravel()
    return np.asarray((counts > 0) | np.isfinite(cosines))


def _logistic(rows: Floats, answers: Floats, weights: Floats) -> tuple[Floats, float]:
    """Newton's method on standardised rows with a quadratic penalty (not on the bias)."""
    mean, deviation = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    design = np.column_stack(((rows - mean) / deviation, np.ones(len(rows))))
    penalty = np.full(design.shape[1], PENALTY)
    penalty[-1] = 1e-6
    beta = np.zeros(design.shape[1])
    beta[-1] = np.log(weights @ answers / (weights @ (1 - answers)))

    def loss(at: Floats) -> float:
        score = design @ at
        return float(weights @ (np.logaddexp(0.0, score) - answers * score) + 0.5 * (penalty @ at**2))

    for _ in range(STEPS):
        chance = 0.5 * (1.0 + np.tanh(0.5 * (design @ beta)))
        slope = design.T @ (weights * (answers - chance)) - penalty * beta
        curvature = (design.T * (weights * chance * (1 - chance))) @ design + np.diag(penalty)
        step, before = np.linalg.solve(curvature, slope), loss(beta)
        while loss(beta + step) > before and float(np.abs(step).max()) > CONVERGED:
            step /= 2.0  # Newton's own step overshoots where evidence is rare
        beta += step
        if float(np.abs(step).max()) < CONVERGED:
            break
    return beta[:-1] / deviation, float(beta[-1] - beta[:-1] @ (mean / deviation))
