"""The form of flow files as JSON Schema, for editors that complete and check while typing."""

from collections.abc import Iterator
from typing import Any

from callflows.includes import INCLUDE, OWN
from callflows.model import Business

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of one business's flow file."""
    schema = _schema()
    # What must be given may stand in an included file; what makes the business may not.
    elsewhere = [key for key in schema["required"] if key not in OWN]
    schema["required"] = [key for key in schema["required"] if key in OWN]
    schema["anyOf"] = [{"required": elsewhere}, {"required": [INCLUDE]}]
    return {"$schema": DIALECT, **schema, "title": "Call flow of a business"}


def included_schema() -> dict[str, Any]:
    """JSON Schema of a file that flow files include: any of their parts, but for what makes a business."""
    schema = _schema()
    del schema["required"]
    schema["properties"] = {key: value for key, value in schema["properties"].items() if key not in OWN}
    schema["description"] = "Parts that several businesses share."
    return {"$schema": DIALECT, **schema, "title": "Included part of call flows"}


def _schema() -> dict[str, Any]:
    schema = Business.model_json_schema(mode="validation")
    for part in _parts(schema):
        if "patternProperties" in part:  # a name that is none is a fault, not anything
            part.setdefault("additionalProperties", False)
    return schema


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from _parts(each)
