"""The model guards itself where there is no file."""

import pytest
from pydantic import ValidationError

from callflows.model import Business, Target, referred
from callflows.nodes.registry import KINDS
from callflows.schema import json_schema
from tests.unit.callflows.examples import clinic


def remade(**changes: object) -> Business:
    return Business.model_validate({**clinic().model_dump(), **changes})


def test_a_business_survives_its_own_dump() -> None:
    assert remade() == clinic()
    assert Business.model_validate_json(clinic().model_dump_json()) == clinic()


@pytest.mark.parametrize(
    "changes",
    [
        {"start": "nowhere"},
        {"start": "bye"},
        {"transfers": {}},
        {"on_model_down": {"transfer": "nobody"}},
        {"nodes": {"main": {"type": "talk", "instructions": "x", "exits": {"a": {"to": "b", "when": "c"}}}}},
    ],
)
def test_a_business_whose_names_lead_nowhere_cannot_exist(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="names that lead nowhere"):
        remade(**changes)


def test_a_business_is_frozen() -> None:
    with pytest.raises(ValidationError):
        clinic().__setattr__("name", "x")


def test_what_nodes_refer_to() -> None:
    assert referred(clinic().nodes) == ({"desk", "nurse"}, {"booking", "nurse", "bye", "main"})


def test_targets_allowed_when_a_node_names_none() -> None:
    business = clinic()
    booking, main = business.nodes["booking"], business.nodes["main"]
    assert booking.type == "talk"
    assert main.type == "talk"
    assert business.allowed_transfers(booking) == ("desk", "nurse")
    assert business.allowed_transfers(main) == ("desk",)


def test_texts_are_put_on_one_line() -> None:
    assert Target(number="+16175550102", description=" two\n lines ").description == "two lines"


def test_the_schema_describes_the_file() -> None:
    schema = json_schema()
    assert schema["$schema"].endswith("2020-12/schema")
    assert set(schema["required"]) == {"id", "name", "numbers", "start"}
    assert schema["anyOf"] == [{"required": ["timezone", "greeting", "nodes"]}, {"required": ["include"]}]
    assert schema["additionalProperties"] is False
    node = next(iter(schema["properties"]["nodes"]["patternProperties"].values()))
    assert set(node["discriminator"]["mapping"]) == set(KINDS)
    assert schema["$defs"]["ResumePolicy"]["properties"]["within"]["type"] == "string"
