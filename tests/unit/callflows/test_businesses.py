"""The shipped businesses are good examples: no fault, no warning, enough to talk about, no real numbers."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

from callflows.check import check_paths
from callflows.engine import estimate_tokens, instructions, start
from callflows.model import Business
from callflows.parse import load_folder
from callflows.scripts import run_script

FOLDER = Path(str(files("callflows"))) / "businesses"
BOOK = load_folder(FOLDER)
SHIPPED = sorted(BOOK.businesses.values(), key=lambda business: business.id)
FICTIONAL = re.compile(r"\+1\d{3}55501\d{2}")


def test_all_are_there_without_fault_or_warning() -> None:
    names = ["Bella Tavola", "Granite Bank", "Harbor Dental", "Hotel Camino", "Northside Plumbing"]
    assert [business.name for business in SHIPPED] == names
    assert check_paths(FOLDER) == []


def test_together_they_use_every_kind_of_node_and_every_part_of_a_business() -> None:
    used = {node.type for business in SHIPPED for node in business.nodes.values()}
    kinds = """talk say menu collect verify hours branch language tool override flow transfer
        ring queue take voicemail sms callback hangup"""
    assert used >= set(kinds.split())
    given = {key for business in SHIPPED for key in business.model_fields_set}
    parts = """version id name numbers timezone language languages voice orchestration disclosure greeting announcement
        consent instructions facts documents hours callers transfers allow_hosts tools webhooks rotas notices operator
        commands emergency flows resume limits memory spending retention_days on_model_down on_busy start nodes"""
    assert given >= set(parts.split())
    written = "".join(file.read_text(encoding="utf-8") for file in FOLDER.glob("*.yaml"))
    parts = """include choices verifies secret confirm music leave fallback whisper rota holidays dates vip blocked
        owners staff fills exits interruptible transcribe lasts"""
    assert [part for part in parts.split() if f"{part}:" not in written] == []


@pytest.mark.parametrize("business", SHIPPED, ids=lambda business: business.id)
def test_numbers_are_of_the_fictional_range(business: Business) -> None:
    numbers = [*business.numbers, *(target.number for target in business.transfers.values())]
    assert all(FICTIONAL.fullmatch(number) for number in numbers)
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("business", SHIPPED, ids=lambda business: business.id)
def test_its_recorded_conversations_hold(business: Business) -> None:
    results = run_script(FOLDER / f"{business.id}.test.yaml")
    assert [(result.name, result.faults) for result in results if result.faults] == []
    assert len(results) >= 2


@pytest.mark.parametrize("business", SHIPPED, ids=lambda business: business.id)
def test_facts_are_sentences_to_be_spoken_and_all_fit(business: Business) -> None:
    assert len(business.facts) >= 12
    assert all(re.fullmatch(r"[A-Z][^$%€\n]+\.", fact) for fact in business.facts)
    text = instructions(business, start(business))
    assert all(f"\n- {fact}" in text for fact in business.facts)
    assert estimate_tokens(text) < 2_000


@pytest.mark.parametrize(
    ("business_id", "words"),
    [
        (
            "harbor-dental",
            ["open", "check-up", "parking", "insurance", "cancel", "emergency", "wharf street"],
        ),
        (
            "northside-plumbing",
            ["open", "call-out fee", "serve", "cancel", "emergency", "valve", "guaranteed"],
        ),
    ],
)
def test_what_callers_ask_is_answered(business_id: str, words: list[str]) -> None:
    told = " ".join(BOOK.businesses[business_id].facts).lower()
    assert [word for word in words if word not in told] == []


def test_the_guides_example_has_no_fault(tmp_path: Path) -> None:
    guide = Path(__file__).parents[3] / "docs" / "callflows.md"
    (example,) = re.findall(r"```yaml\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "example.yaml").write_text(example, encoding="utf-8")
    assert check_paths(tmp_path) == []
