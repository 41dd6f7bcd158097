"""What `session.update` does to a session: checked as a whole, then put in force as a whole."""

from typing import TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from ivr.sandbox.asking import check_size
from ivr.sandbox.faults import Fault
from ivr.sandbox.shapes import (
    Audio,
    InputAudio,
    OutputAudio,
    SessionChange,
    SessionObject,
    ToolChoiceFunction,
)

_SettingsT = TypeVar("_SettingsT", SessionObject, InputAudio, OutputAudio)


def changed(
    session: SessionObject, change: SessionChange, *, has_spoken: bool, speaking: bool
) -> SessionObject:
    """The session after the change. Raises `Fault` and changes nothing if any of it cannot be.

    `has_spoken`: audio was sent, so voice and model are fixed. `speaking`: a response is active, so speed is.
    """
    _check_fixed(session, change, has_spoken=has_spoken, speaking=speaking)
    after = _merge(session, change, skip=("audio", "type"))
    after.audio = Audio(
        input=_merge(session.audio.input, change.audio.input),
        output=_merge(session.audio.output, change.audio.output),
    )
    check_size(after.instructions, after.tools, "session.instructions")
    choice = after.tool_choice
    if isinstance(choice, ToolChoiceFunction) and all(tool.name != choice.name for tool in after.tools):
        raise Fault("invalid_value", f"There is no tool '{choice.name}'.", "session.tool_choice")
    return after


def _check_fixed(session: SessionObject, change: SessionChange, *, has_spoken: bool, speaking: bool) -> None:
    own = {session.model, session.model.removeprefix("sandbox/")}
    if change.model is not UNSET and (has_spoken or change.model not in own):
        raise Fault("invalid_value", "The model of a session cannot be changed.", "session.model")
    output = change.audio.output
    if output.voice is not UNSET and has_spoken:
        message = "The voice cannot be changed once the session has spoken."
        raise Fault("cannot_update_voice", message, "session.audio.output.voice")
    if speaking and output.speed is not UNSET and output.speed != session.audio.output.speed:
        message = "The speed can only be changed between responses."
        raise Fault("invalid_value", message, "session.audio.output.speed")


def _merge(settings: _SettingsT, change: msgspec.Struct, skip: tuple[str, ...] = ()) -> _SettingsT:
    """The settings with everything the change names; an object given replaces the one there."""
    named = {
        name: value
        for name in change.__struct_fields__
        if name not in skip and not isinstance(value := getattr(change, name), UnsetType)
    }
    return msgspec.structs.replace(settings, **named)
