"""Dialogues as calls, and what counts as found, on a dialogue written here."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ivr.bench.fit import Rows, as_toml, fit, fit_without_each
from ivr.bench.locomo import Dialogue, Variant, load_dialogues
from ivr.bench.recall import Remembered, judge, owner_of, scores
from ivr.bench.recall_report import as_csv, as_jsonl, as_svg
from ivr.errors import CallthreadError
from memory.fusion import FusionWeights
from memory.model import Form, Page, Window, WindowEntry
from memory.parties import Parties
from memory.strategies import StrategyName
from tests.unit.memory.pages import page

RAW: dict[str, Any] = {
    "sample_id": "made-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bo",
        "session_2_date_time": "1 May 2026",
        "session_2": [
            {"speaker": "Bo", "dia_id": "D2:1", "text": "Hi Ann!  How was it?"},
            {"speaker": "Ann", "dia_id": "D2:2", "text": "Wet.", "blip_caption": "a lake"},
        ],
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "I sail on 3 May 2026."},
            {"speaker": "Bo", "dia_id": "D1:2", "text": "Alone?"},
            {"speaker": "Ann", "dia_id": "D1:3", "text": "With Bo's dog."},
        ],
    },
    "qa": [
        {"question": "When does Ann sail?", "answer": 3, "evidence": ["D1:1; D2:2"], "category": 2},
        {"question": "With whom?", "answer": "dog", "evidence": ["D1:3", "D9:9"], "category": 4},
        {"question": "Why?", "evidence": ["D1:3"], "category": 5},
        {"question": "How?", "answer": "", "evidence": ["D"], "category": 1},
    ],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "made.json"
    path.write_text(json.dumps([RAW]))
    return path


@pytest.fixture
def dialogue(file: Path) -> Dialogue:
    return load_dialogues(file)[0]


def test_two_turns_are_a_page_and_an_odd_tail_is_alone(dialogue: Dialogue) -> None:
    ids = [(one.session, [turn.dia_id for turn in one.turns]) for one in dialogue.pages]
    assert ids == [(1, ["D1:1", "D1:2"]), (1, ["D1:3"]), (2, ["D2:1", "D2:2"])]
    assert [one.said(0) for one in dialogue.pages] == [
        "I sail on 3 May 2026.",
        "With Bo's dog.",
        "Wet. (photo: a lake)",
    ]
    assert dialogue.pages[2].said(1) == "Hi Ann! How was it?"


def test_only_answerable_questions_with_evidence_that_exists(dialogue: Dialogue) -> None:
    assert [(one.text, one.evidence) for one in dialogue.questions] == [
        ("When does Ann sail?", ("D1:1", "D2:2")),
        ("With whom?", ("D1:3",)),
    ]
    assert dialogue.parties == Parties(("Ann",), ("Bo",))


def test_the_anonymous_variant_has_no_names_and_no_dates(file: Path) -> None:
    anonymous = load_dialogues(file, Variant.ANON)[0]
    assert anonymous.pages[0].said(0) == "I sail on that day."
    assert anonymous.pages[1].said(0) == "With assistant's dog."
    assert anonymous.questions[0].text == "When does caller sail?"
    assert anonymous.parties == Parties()


def test_a_recogniser_writes_small_letters_and_errs_in_one_word_of_ten(tmp_path: Path) -> None:
    words = " ".join(f"Word{number}," for number in range(4_000))
    raw = {
        **RAW,
        "conversation": {
            **RAW["conversation"],
            "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": words}],
        },
    }
    path = tmp_path / "long.json"
    path.write_text(json.dumps([raw]))
    heard = load_dialogues(path, Variant.ASR)[0].pages[0].said(0)
    assert heard == load_dialogues(path, Variant.ASR)[0].pages[0].said(0)
    draws = {load_dialogues(path, Variant.ASR, seed)[0].pages for seed in "abcdefgh"}
    assert len(draws) > 1
    assert heard == heard.lower() and "," not in heard
    right = {f"word{number}" for number in range(4_000)}
    lost = len(right - set(heard.split())) / 4_000
    assert 0.06 < lost < 0.10  # two errors of ten are a word too many, and lose none


def test_a_file_of_something_else_is_named(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    for content in ('{"a": 1}', "nonsense", '[{"qa": []}]'):
        path.write_text(content)
        with pytest.raises(CallthreadError, match=r"other\.json: not a LoCoMo file"):
            load_dialogues(path)


def entry(number: int, form: Form, user: str, reply: str = "", text: str = "") -> WindowEntry:
    told: Page = page(number, user_text=user, reply_text=reply, summary="Wet.")
    return WindowEntry(told, form, 10, text)


def test_verbatim_is_every_evidence_turn_of_the_page_word_for_word(dialogue: Dialogue) -> None:
    past = Remembered(dialogue, owner_of(0), {1: 0, 2: 1, 3: 2})
    sail, wet = "I sail on 3 May 2026.", "Wet. (photo: a lake)"
    both = (entry(1, Form.TRANSCRIPT, sail, "Alone?"), entry(3, Form.SUMMARY, wet, "Hi Ann! How was it?"))
    answer = judge(past, dialogue.questions[0], Window(both, tokens=20, budget_tokens=99))
    assert (answer.hit, answer.verbatim, answer.evidence_pages) == (1.0, 0.5, 2)
    assert [(shown.text, shown.dia_ids) for shown in answer.shown] == [
        ("caller: I sail on 3 May 2026.\nassistant: Alone?", ("D1:1", "D1:2")),
        ("Wet.", ("D2:1", "D2:2")),
    ]
    one_side = (entry(1, Form.TRANSCRIPT, sail, "Alone?", "assistant: Alone?"),)
    answer = judge(past, dialogue.questions[0], Window(one_side))
    assert (answer.hit, answer.verbatim) == (0.5, 0.0)
    assert answer.shown[0].dia_ids == ("D1:2",)


def test_scores_are_means_over_questions_by_kind(dialogue: Dialogue) -> None:
    past = Remembered(dialogue, owner_of(0), {1: 0, 2: 1, 3: 2})
    window = Window((entry(2, Form.TRANSCRIPT, "With Bo's dog."),), tokens=10, budget_tokens=50)
    none, found = (judge(past, question, window) for question in dialogue.questions)
    score = scores([none, found, replace(found, budget=90)])[StrategyName.VTHREADS]
    assert (score[50].n, score[50].hit, score[50].hit_single, score[50].hit_multi) == (2, 0.5, 1.0, 0.0)
    assert (score[50].verbatim, score[50].verbatim_multi, score[50].tokens) == (0.5, 0.0, 10.0)
    assert score[50].pages == {"audio": 0.0, "transcript": 1.0, "summary": 0.0}
    assert score[90].n == 1


def rows(seed: int, slope: float) -> Rows:
    """Evidence by a known logit: slope · x - 1, with a cue beside it that says nothing."""
    rng = np.random.default_rng(seed)
    cue = rng.normal(size=(20_000, 2))
    chance = 1 / (1 + np.exp(1 - slope * cue[:, 0]))
    return Rows(cue, (rng.random(20_000) < chance).astype(float), np.ones(20_000))


def test_the_fit_finds_the_weights_that_made_the_data() -> None:
    weights = fit([rows(1, 2.0), rows(2, 2.0)], ["good", "noise"])
    assert weights.cues["good"] == pytest.approx(2.0, abs=0.1)
    assert weights.cues["noise"] == pytest.approx(0.0, abs=0.05)
    assert weights.bias == pytest.approx(-1.0, abs=0.1)


def test_a_dialogue_is_judged_by_weights_that_have_not_seen_it() -> None:
    fitted = fit_without_each({"a": rows(1, 2.0), "b": rows(2, 0.5)}, ["good", "noise"])
    assert fitted["a"].cues["good"] == pytest.approx(0.5, abs=0.1)
    assert fitted["b"].cues["good"] == pytest.approx(2.0, abs=0.1)


def test_the_weights_file_reads_back() -> None:
    assert (
        as_toml(FusionWeights(-1.5, {"words": 0.25}, "by hand"))
        == 'made = "by hand"\nbias = -1.50000\n\n[cues]\nwords = 0.25000\n'
    )


def test_a_summary_of_several_pages_is_a_hit_in_its_pages_and_not_word_for_word(dialogue: Dialogue) -> None:
    past = Remembered(dialogue, owner_of(0), {1: 0, 2: 1, 3: 2})
    window = Window(threads=("Sails in May.",), covers=((1, 2),), tokens=6, budget_tokens=50)
    answer = judge(past, dialogue.questions[0], window, StrategyName.COMPACTION, 40)
    assert (answer.hit, answer.verbatim, answer.budget, answer.strategy) == (0.5, 0.0, 40, "compaction")
    assert answer.shown[0].dia_ids == ("D1:1", "D1:2", "D1:3")
    assert scores([answer])[StrategyName.COMPACTION][40].pages == {
        "audio": 0.0,
        "transcript": 0.0,
        "summary": 2.0,
    }


def test_a_dump_is_enough_to_count_hits_again(dialogue: Dialogue) -> None:
    """From the file's lines and the dialogue alone: which evidence pages are there, and which word for word."""
    past = Remembered(dialogue, owner_of(0), {1: 0, 2: 1, 3: 2})
    sail, wet = "I sail on 3 May 2026.", "Wet. (photo: a lake)"
    windows = [
        Window(
            (entry(1, Form.TRANSCRIPT, sail, "Alone?"), entry(3, Form.SUMMARY, wet, "Hi Ann! How was it?"))
        ),
        Window((entry(2, Form.TRANSCRIPT, "With Bo's dog."),), threads=("She sails.",), covers=((1,),)),
        Window(),
    ]
    answers = [judge(past, question, window) for question in dialogue.questions for window in windows]
    lines = [json.loads(line) for line in as_jsonl(answers).splitlines()]
    assert len(lines) == len(answers) == 6
    for line in lines:
        pages = {page_of(dialogue, dia_id) for dia_id in line["evidence"]}
        hits = {page_of(dialogue, dia_id) for text in line["shown"] for dia_id in text["dia_ids"]}
        verbatim = [
            all(
                any(
                    dia_id in shown["dia_ids"] and dialogue.turns()[dia_id].text in shown["text"]
                    for shown in line["shown"]
                )
                for dia_id in line["evidence"]
                if page_of(dialogue, dia_id) == page
            )
            for page in pages
        ]
        assert line["hit"] == len(pages & hits) / len(pages)
        assert line["verbatim"] == sum(verbatim) / len(pages)


def page_of(dialogue: Dialogue, dia_id: str) -> int:
    return dialogue.page_of()[dia_id]


def test_a_report_has_a_line_a_strategy_and_budget(dialogue: Dialogue) -> None:
    past = Remembered(dialogue, owner_of(0), {1: 0, 2: 1, 3: 2})
    found = scores(
        judge(past, dialogue.questions[0], Window(tokens=9), name, budget)
        for name in (StrategyName.VTHREADS, StrategyName.FULL)
        for budget in (10, 20)
    )
    assert as_csv(found).splitlines()[1] == "vthreads,10,1,0.0,0.0,0.0,0.0,0.0,9.0,0.0,0.0,0.0"
    assert len(as_csv(found).splitlines()) == 5
    assert as_svg(found, "a < b").count("<polyline") == 2
