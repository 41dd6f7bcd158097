"""How utterances are scored: cues with known values, and what the shipped weights make of them."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from memory.fusion import cues, load_weights, utterance_logits
from memory.scan import NO_PAGES, CallerScan, Cosines, Terms

NAN = math.nan
SHIPPED = load_weights()


def terms(texts: Sequence[Sequence[int]]) -> Terms:
    flat = [term for text in texts for term in text]
    return Terms(np.array(flat, np.int64), np.array([len(text) for text in texts], np.int64))


def scan(
    user: Sequence[Sequence[int]],
    reply: Sequence[Sequence[int]],
    asked: Sequence[int] = (),
    *,
    calls: Sequence[int] | None = None,
    cosines: Sequence[tuple[float, float]] | None = None,
) -> CallerScan:
    """Terms are small numbers here; a text without any was not spoken unless it has a cosine."""
    size = len(user)
    both = np.array(cosines if cosines is not None else [(NAN, NAN)] * size)
    return CallerScan(
        np.arange(1, size + 1),
        np.array(calls if calls is not None else [7] * size, np.int64),
        both[:, 0],
        both[:, 1],
        terms(user),
        terms(reply),
        np.array(asked, np.int64),
    )


def test_bm25_is_that_of_the_formula() -> None:
    """Four utterances of mean length 2; term 5 is in one of them, twice: ln(1 + 3.5/1.5) · 2·2.2 / (2 + 1.2·1.375)."""
    found = cues(scan([[5, 5, 6], [1]], [[2, 3], [4, 8]], [5]), None)
    bm25 = math.log(1 + 3.5 / 1.5) * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2))
    weight = math.log(1 + 3.5 / 1.5)
    assert found["share_of_words"].tolist() == pytest.approx([bm25 / (weight + 1), 0, 0, 0])
    assert found["covered"].tolist() == [1, 0, 0, 0]
    assert found["page_covered"].tolist() == [1, 1, 0, 0]


def test_a_word_in_every_page_counts_less_than_a_rare_one() -> None:
    found = cues(scan([[1, 2], [1, 3], [1, 4]], [[9], [9], [9]], [1, 4]), None)
    assert found["words"].argmax() == 4
    assert found["covered"][0] < 0.35 < 0.65 < found["covered"][4] == 1


def test_meaning_is_standardised_over_what_was_spoken() -> None:
    found = cues(scan([[1], [1]], [[], []], cosines=[(0.2, NAN), (0.6, NAN)]), None)
    assert found["meaning"].tolist() == pytest.approx([-1, 0, 1, 0], abs=1e-4)


def test_neighbours_are_of_the_same_call_only() -> None:
    made = scan(
        [[1], [2], [3]], [[4], [5], [6]], calls=[1, 1, 2], cosines=[(0.1, 0.2), (0.3, 0.4), (0.5, 0.9)]
    )
    found = cues(made, None)
    meaning = found["meaning"]
    assert found["meaning_1_before"].tolist() == [0, *meaning[:3], 0, meaning[4]]
    assert found["meaning_1_after"].tolist() == [*meaning[1:4], 0, meaning[5], 0]
    assert found["call_1"].tolist() == pytest.approx([meaning[3]] * 4 + [meaning[5]] * 2)
    assert found["call_3"][0] == pytest.approx(meaning[1:4].mean())
    assert found["call_8"][0] == pytest.approx(meaning[:4].mean())


def test_the_party_that_the_query_names_is_marked() -> None:
    made = scan([[1], [2]], [[3], [4]])
    assert cues(made, None)["asked"].tolist() == [0.5] * 4
    assert cues(made, 0)["asked"].tolist() == [1, 0, 1, 0]
    assert cues(made, 1)["asked"].tolist() == [0, 1, 0, 1]


def test_silence_is_never_found() -> None:
    logits = utterance_logits(scan([[1], []], [[], [2]], [1]), None, SHIPPED)
    assert np.isfinite(logits).tolist() == [[True, False], [False, True]]
    assert utterance_logits(NO_PAGES, None, SHIPPED).shape == (0, 2)


def test_without_words_in_common_the_nearest_in_meaning_wins() -> None:
    rng = np.random.default_rng(3)
    near = [(float(a), float(b)) for a, b in rng.uniform(-0.1, 0.2, (50, 2))]
    near[30] = (0.05, 0.7)
    made = scan([[n] for n in range(50)], [[100 + n] for n in range(50)], [999], cosines=near)
    assert utterance_logits(made, None, SHIPPED).argmax() == 30 * 2 + 1


def test_without_vectors_the_most_words_in_common_win() -> None:
    user = [[n, n + 1, 70] for n in range(50)]
    made = scan(user, [[200 + n] for n in range(50)], [30, 31, 70])
    assert utterance_logits(made, None, SHIPPED).argmax() == 30 * 2 + 0


def test_no_query_terms_at_all() -> None:
    logits = utterance_logits(
        scan([[1]] * 3, [[2]] * 3, cosines=[(0.1, 0.1), (0.2, 0.6), (0.1, 0.1)]), None, SHIPPED
    )
    assert logits.argmax() == 3


def test_every_weight_has_its_cue_and_every_cue_its_weight() -> None:
    assert SHIPPED.cues.keys() == cues(scan([[1]], [[2]]), None).keys()
    assert "locomo-dev.json" in SHIPPED.made


def test_a_side_has_the_cosine_of_its_best_chunk_and_unknown_pages_none() -> None:
    found = Cosines(np.array([2, 2, 1, 9]), np.array([0, 0, 1, 0]), np.array([0.1, 0.4, -0.2, 0.9]))
    made = scan([[1], [1]], [[2], [2]]).with_cosines(found)
    assert np.nan_to_num(made.user_cosines, nan=-9).tolist() == [-9, 0.4]
    assert np.nan_to_num(made.reply_cosines, nan=-9).tolist() == [-0.2, -9]
    assert len(NO_PAGES.with_cosines(found)) == 0
