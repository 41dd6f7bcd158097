"""The measured tables of voices: which speed setting makes which voice speak how fast. One TOML file a provider.

[marin]                       # a voice as flows name it; "*" stands for any that is not named
language = "en"
measured_units = 466          # words spoken at each point; 0: not measured by us
points = [[0.8, 150.2], …]    # speed setting, words (or characters) a minute; both rising
"""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from ivr.core.speaking import VoiceProfile
from ivr.errors import CallthreadError
from ivr.settings import ModelSource

ANY = "*"
SHIPPED = {ModelSource.SANDBOX: "sandbox.toml", ModelSource.OPENAI: "openai.toml"}
"""Of a compatible server nobody knows how its voices take a speed."""


class _Table(msgspec.Struct, forbid_unknown_fields=True):
    points: tuple[tuple[float, float], ...]
    language: str = "en"
    measured_units: int = 0


class VoiceBook:
    """The voices of one provider."""

    def __init__(self, profiles: Mapping[str, VoiceProfile] | None = None) -> None:
        self._profiles = dict(profiles or {})

    def of(self, voice: str) -> VoiceProfile | None:
        """The voice's table, or the one for any voice; `None` where there is neither."""
        return self._profiles.get(voice, self._profiles.get(ANY))


def voices_of(source: ModelSource, file: Path | None = None) -> VoiceBook:
    """The operator's file, else what ships for this source of replies. Raises: `CallthreadError`."""
    if file is not None:
        try:
            return parse(file.read_text(encoding="utf-8"), file.name)
        except OSError as error:
            raise CallthreadError(f"voice profile {file}: {error.strerror or error}") from error
    name = SHIPPED.get(source)
    if name is None:
        return VoiceBook()
    return parse(files("ivr").joinpath("voices", name).read_text(encoding="utf-8"), name)


def parse(text: str, name: str) -> VoiceBook:
    """A file's text. Raises: `CallthreadError` naming file, voice and fault."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CallthreadError(f"voice profile {name}: {error}") from error
    return VoiceBook(
        {voice: _profile(table, f"voice profile {name}, [{voice}]") for voice, table in tables.items()}
    )


def _profile(raw: Any, where: str) -> VoiceProfile:
    try:
        table = msgspec.convert(raw, _Table)
        return VoiceProfile(table.points, table.language, table.measured_units)
    except (msgspec.ValidationError, ValueError) as error:
        raise CallthreadError(f"{where}: {error} (example: points = [[0.8, 142.4], [1.5, 267.0]])") from error


def as_toml(profiles: Mapping[str, VoiceProfile], how: str) -> str:
    """The file's text; `how` says in a comment how the tables were measured."""
    lines = [f"# {line}" for line in how.splitlines()]
    for voice, profile in profiles.items():
        name = voice if voice.isalnum() else f'"{voice}"'
        lines += [
            "",
            f"[{name}]",
            f'language = "{profile.language}"',
            f"measured_units = {profile.measured_units}",
        ]
        lines += ["points = [", *(f"  [{speed:.2f}, {rate:.1f}]," for speed, rate in profile.points), "]"]
    return "\n".join(lines) + "\n"
