"""The form of a flow file as JSON Schema, for editors that complete and check while typing."""

from typing import Any

from callflows.model import Business


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of one flow file."""
    schema = Business.model_json_schema(mode="validation")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Call flow of a business",
    }
