"""Using a tool: the key that makes it count once, the request, and what its answer comes to. Pure."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from callflows.actions import UseTool
from callflows.model import Business
from callflows.nodes.collect import CollectNode
from callflows.nodes.talk import Talk
from callflows.state import FlowState, Using
from callflows.tools import CALLER
from callflows.understand import Kind

USE = "use_"
NO_ANSWER = {"error": "no_answer", "message": "It did not answer as it should. Say so; promise nothing."}


def use(
    business: Business, state: FlowState, name: str, call_id: str, caller: str | None, arguments: str = ""
) -> tuple[FlowState, UseTool]:
    """Use a tool with what was gathered. One that is awaited already keeps its key, in whatever process."""
    using, uses = state.using, state.uses
    if using is None or using.tool != name:
        uses += 1
        # Nobody outside learns a call's id, and every process that goes on from this state makes the same key.
        key = hashlib.sha256(f"{business.id}\n{call_id}\n{uses}".encode()).hexdigest()[:32]
        using = Using(key, name, arguments)
    values = {CALLER: caller or "", **state.slots, **state.secrets}
    order = UseTool(using.key, name, business.tools[name].request(values))
    return replace(state, using=using, uses=uses), order


def output_of(values: Mapping[str, Any] | None) -> str:
    """What the model is told: the declared values as JSON, or that there are none."""
    return json.dumps(NO_ANSWER if values is None else {"result": dict(values)}, ensure_ascii=False)


def kinds_of_slots(business: Business) -> dict[str, Kind]:
    """The kind of every slot that something fills."""
    kinds: dict[str, Kind] = {}
    for tool in business.tools.values():
        kinds |= {name: value.kind for name, value in (*tool.parameters.items(), *tool.result.items())}
    for node in business.nodes.values():
        if isinstance(node, Talk):
            kinds |= {name: value.kind for name, value in node.slots.items()}
        elif isinstance(node, CollectNode):
            kinds[node.slot] = node.kind
    return kinds
