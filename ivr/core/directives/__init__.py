"""The paper's typed functions by which the model steers the call: one module each, registered here."""

from ivr.core.directives import defer, response_instruction, response_speed, vad_silence
from ivr.core.directives.directive import Controls, Directive, Effect, Refused

__all__ = ["DIRECTIVES", "Controls", "Directive", "Effect", "Refused"]

DIRECTIVES: dict[str, Directive] = {
    module.DIRECTIVE.tool.name: module.DIRECTIVE
    for module in (response_instruction, response_speed, vad_silence, defer)
}
"""By name, always in this order: what is offered is part of the prefix that the provider caches."""
