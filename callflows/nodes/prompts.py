"""What all nodes that say something or wait for the caller share: the prompt, and asking again."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from callflows.actions import HangUp, Say
from callflows.fields import Name, fault
from callflows.nodes.base import Here, NodeBase, Outcome, Pattern, Progress
from callflows.part import Part
from callflows.texts import ANY_LANGUAGE, Texts, lacks, text_in


def _audio(value: Any) -> Any:
    return {ANY_LANGUAGE: value} if isinstance(value, str) else value


def _audio_path(text: str) -> str:
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts or path.suffix.lower() != ".wav" or len(text) > 200:
        raise fault("not a WAV file beside this one", "like audio/welcome.wav, without `..`")
    return text


AudioFiles = Annotated[
    dict[str, Annotated[str, AfterValidator(_audio_path)]],
    BeforeValidator(_audio),
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}]}
    ),
]
"""A WAV file, or one for each language, relative to the flow file's folder."""


def file_in(files: Mapping[str, str], language: str) -> str:
    """The file of a language; empty if there is none: one in another language is not played."""
    return "" if lacks(files, language) else text_in(files, language)


class Retry(Part):
    """What happens when the caller says nothing, or nothing that fits."""

    say: tuple[Texts, ...] = Field(
        (), max_length=5, description="Said before asking again: the first time, the second time, …"
    )
    times: int = Field(2, ge=0, le=5, description="So often it is asked again.")
    to: Name | None = Field(None, description="The node to go to after that; the call ends when left out.")


class Asks(NodeBase):
    """What nodes with a prompt have in common."""

    TEXTS: ClassVar[tuple[Pattern, ...]] = (("say",),)

    say: Texts = Field(min_length=1, description="Said word for word.")
    audio: AudioFiles = Field({}, description="Played instead of being spoken.")
    interruptible: bool = Field(True, description="Whether the caller may talk or press over it.")

    def file_for(self, language: str) -> str:
        """The sound file that is played in this language; empty: the text is spoken."""
        return file_in(self.audio, language)

    def prompt(self, here: Here, before: Mapping[str, str] | None = None) -> tuple[Say, ...]:
        """The node's prompt, with `before` ahead of it."""
        first = here.text(before) if before else ""
        file = self.file_for(here.language)
        own = Say(here.text(self.say), file, self.interruptible)
        # Each by itself: a text that is always the same need be made into sound once only.
        return (Say(first, "", self.interruptible), own) if first else (own,)


class Waits(Asks):
    """What nodes have in common that wait for words or keys."""

    LINKS: ClassVar[tuple[Pattern, ...]] = (("no_input", "to"), ("no_match", "to"))
    TEXTS: ClassVar[tuple[Pattern, ...]] = (
        ("say",),
        ("no_input", "say", "*"),
        ("no_match", "say", "*"),
    )
    WAITS: ClassVar[bool] = True

    wait_s: float = Field(7, ge=1, le=60, allow_inf_nan=False, description="Silence before asking again.")
    key_wait_s: float = Field(3, ge=0.5, le=15, allow_inf_nan=False, description="Wait between two keys.")
    no_input: Retry = Retry()
    no_match: Retry = Retry()

    def silent(self, here: Here) -> Outcome:
        """Nothing came: ask again, or go where that leads. Each kind of failure has its own count."""
        count = here.progress.no_input
        return self._again(self.no_input, count, replace(here.progress, no_input=count + 1, keys=""), here)

    def unmatched(self, here: Here) -> Outcome:
        """Something came that does not fit. What was read back before is forgotten."""
        count = here.progress.no_match
        progress = replace(here.progress, no_match=count + 1, keys="", candidate=None)
        return self._again(self.no_match, count, progress, here)

    def _again(self, retry: Retry, count: int, progress: Progress, here: Here) -> Outcome:
        if count >= retry.times:
            return Outcome(to=retry.to) if retry.to else Outcome(end=HangUp(""))
        texts = retry.say[min(count, len(retry.say) - 1)] if retry.say else None
        return Outcome(say=self.question(replace(here, progress=progress), texts), progress=progress)

    def question(self, here: Here, before: Mapping[str, str] | None = None) -> tuple[Say, ...]:
        """What is asked at this point."""
        return self.prompt(here, before)
