"""The reference is what the model says."""

from pathlib import Path

from callflows.nodes.registry import KINDS
from callflows.reference import reference
from callflows.schema import json_schema

PAGE = Path(__file__).parents[3] / "docs" / "callflows-reference.md"


def test_the_reference_is_in_step_with_the_model() -> None:
    told = "the model has changed: run `ivr flows reference > docs/callflows-reference.md`"
    assert PAGE.read_text(encoding="utf-8").strip() == reference().strip(), told


def test_every_kind_of_node_and_every_key_of_the_file_is_in_it() -> None:
    text = reference()
    assert [kind for kind in KINDS if f"## Node `{kind}`" not in text] == []
    assert [key for key in json_schema()["properties"] if f"| {key} |" not in text.replace("**", "")] == []
    assert "anything by name" not in text
