"""Every kind of node, once. A new kind is a module of its own and a name here."""

from collections.abc import Mapping
from typing import Annotated, get_args

from pydantic import Field

from callflows.nodes.base import NodeBase
from callflows.nodes.collect import CollectNode
from callflows.nodes.ends import HangUpNode
from callflows.nodes.flow import FlowNode
from callflows.nodes.later import CallbackNode, SmsNode
from callflows.nodes.menu import MenuNode
from callflows.nodes.override import OverrideNode
from callflows.nodes.queue import QueueNode, TakeNode
from callflows.nodes.rings import RingNode, TransferNode
from callflows.nodes.routes import BranchNode, HoursNode, LanguageNode
from callflows.nodes.say import SayNode
from callflows.nodes.talk import Talk
from callflows.nodes.tool import ToolNode
from callflows.nodes.verify import VerifyNode
from callflows.nodes.voicemail import VoicemailNode

AnyNode = (
    Talk
    | SayNode
    | MenuNode
    | CollectNode
    | VerifyNode
    | HoursNode
    | BranchNode
    | LanguageNode
    | FlowNode
    | ToolNode
    | OverrideNode
    | TransferNode
    | RingNode
    | VoicemailNode
    | QueueNode
    | TakeNode
    | SmsNode
    | CallbackNode
    | HangUpNode
)
Node = Annotated[AnyNode, Field(discriminator="type")]


def _kinds() -> Mapping[str, type[NodeBase]]:
    return {get_args(kind.model_fields["type"].annotation)[0]: kind for kind in get_args(AnyNode)}


KINDS: Mapping[str, type[NodeBase]] = _kinds()
"""By the word after `type:`."""
