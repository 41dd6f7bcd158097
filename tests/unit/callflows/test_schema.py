"""What an editor tells while a flow file is typed: the schemas, by an independent validator."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from callflows.schema import included_schema, json_schema

ROOT = Path(__file__).parents[3]
BUSINESSES = ROOT / "callflows" / "businesses"
OWN = {"id": "a", "name": "A", "numbers": ["+16175550101"], "start": "main"}
NODES = {"main": {"type": "talk", "instructions": "Help."}}
REST: dict[str, Any] = {"timezone": "America/New_York", "greeting": "Hello.", "nodes": NODES}


def told(schema: dict[str, Any], document: object) -> list[tuple[str | int, ...]]:
    Draft202012Validator.check_schema(schema)
    return [tuple(error.path) for error in Draft202012Validator(schema).iter_errors(document)]


@pytest.mark.parametrize(
    "file", [f for f in sorted(BUSINESSES.glob("*.yaml")) if ".test." not in f.name], ids=lambda f: f.name
)
def test_the_shipped_businesses_are_right(file: Path) -> None:
    assert told(json_schema(), yaml.safe_load(file.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("file", sorted(BUSINESSES.glob("*/*.yaml")), ids=lambda f: f.name)
def test_what_they_include_is_right(file: Path) -> None:
    assert told(included_schema(), yaml.safe_load(file.read_text(encoding="utf-8"))) == []


def test_the_example_of_the_guide_is_right() -> None:
    guide = (ROOT / "docs" / "callflows.md").read_text(encoding="utf-8")
    example = re.search(r"```yaml\n(.*?)```", guide, re.DOTALL)
    assert example is not None
    assert told(json_schema(), yaml.safe_load(example[1])) == []


def test_what_must_be_given_may_stand_in_an_included_file() -> None:
    assert told(json_schema(), OWN | REST) == []
    assert told(json_schema(), OWN) == [()]
    assert told(json_schema(), OWN | {"include": ["shared/rest.yaml"]}) == []


@pytest.mark.parametrize(
    ("document", "at"),
    [
        ({"id": "a"}, ()),
        ({"facts": "one"}, ("facts",)),
        ({"nodes": {"Main": NODES["main"]}}, ("nodes",)),
        ({"nodes": {"main": {"type": "tlak"}}}, ("nodes", "main")),
        ({"transfers": {"desk": {"number": "617"}}}, ("transfers", "desk")),
        ({"greetings": "Hello."}, ()),
    ],
)
def test_faults_of_an_included_file_are_told(document: object, at: tuple[str, ...]) -> None:
    assert at in told(included_schema(), document)


def test_a_value_to_compare_with_may_be_a_number() -> None:
    case = {"when": {"slot": "party", "op": "above", "value": 8}, "to": "main"}
    nodes = {"size": {"type": "branch", "cases": [case], "otherwise": "main"}}
    assert told(included_schema(), {"nodes": nodes}) == []
