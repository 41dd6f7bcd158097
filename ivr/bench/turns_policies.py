"""The policies of `ivr bench turns`: what is set differently in a call."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum

from callflows.model import Orchestration
from ivr.bench.turns_model import BY_ITSELF
from ivr.bench.turns_world import Manner
from ivr.core.setup import CallSetup

STATIC_MS = 3_200


class Policy(StrEnum):
    """How turns are taken."""

    FIXED = "fixed-500"
    """The paper's baseline: a receiver that conceals, all its sound passed on, a model that answers by itself."""
    STATIC = "static-3200"
    """The same with 3.2 s of silence."""
    OFF = "off"
    """A call of ours with orchestration off: the holes are ours to see, so none is heard longer than 400 ms."""
    MODEL = "model"
    LOCAL = "local"
    JOINT = "joint"


def _mode(mode: Orchestration) -> Callable[[CallSetup], CallSetup]:
    return lambda setup: replace(setup, business=setup.business.model_copy(update={"orchestration": mode}))


def _static(setup: CallSetup) -> CallSetup:
    off = _mode(Orchestration.OFF)(setup)
    return replace(off, tuning=replace(off.tuning, silence_ms=STATIC_MS))


MANNERS: Mapping[Policy, Manner] = {
    Policy.FIXED: Manner(_mode(Orchestration.OFF), receives=True, timing=BY_ITSELF),
    Policy.STATIC: Manner(_static, receives=True, timing=BY_ITSELF),
    Policy.OFF: Manner(_mode(Orchestration.OFF)),
    Policy.MODEL: Manner(_mode(Orchestration.MODEL)),
    Policy.LOCAL: Manner(_mode(Orchestration.LOCAL)),
    Policy.JOINT: Manner(_mode(Orchestration.JOINT)),
}
