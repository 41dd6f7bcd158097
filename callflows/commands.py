"""Words that work wherever the caller is listened to: operator, repeat, start over, goodbye; and emergencies."""

from collections.abc import Iterable, Mapping

from callflows.lexicon import plain
from callflows.model import Business, Emergency

COMMANDS = ("operator", "repeat", "start_over", "goodbye")
_USUAL: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "en": {
        "operator": ("operator", "agent", "representative", "talk to a person", "speak to a person", "human"),
        "repeat": ("repeat", "repeat that", "say that again", "again", "pardon", "what was that"),
        "start_over": ("start over", "main menu", "start again", "go back to the start"),
        "goodbye": ("goodbye", "good bye", "bye", "bye bye", "hang up"),
    },
    "de": {
        "operator": ("mitarbeiter", "zentrale", "mit jemandem sprechen"),
        "repeat": ("wiederholen", "noch einmal", "noch mal", "wie bitte"),
        "start_over": ("von vorne", "hauptmenü", "zurück zum anfang"),
        "goodbye": ("auf wiederhören", "auf wiedersehen", "tschüss"),
    },
    "es": {
        "operator": ("operador", "operadora", "hablar con una persona", "agente"),
        "repeat": ("repetir", "repita", "otra vez", "cómo"),
        "start_over": ("empezar de nuevo", "menú principal", "volver al inicio"),
        "goodbye": ("adiós", "hasta luego"),
    },
    "fr": {
        "operator": ("opérateur", "standard", "parler à quelqu'un"),
        "repeat": ("répéter", "répétez", "encore une fois", "pardon"),
        "start_over": ("recommencer", "menu principal", "depuis le début"),
        "goodbye": ("au revoir",),
    },
}
_POLITE = {
    "please",
    "bitte",
    "por",
    "favor",
    "sil",
    "vous",
    "plait",
    "the",
    "a",
    "an",
    "thanks",
    "thank",
    "you",
}


def command_in(business: Business, language: str, text: str) -> str:
    """The command that was said, alone but for polite words; empty if none was."""
    said = _bare(text)
    for name in COMMANDS:
        own: tuple[str, ...] | None = getattr(business.commands, name)
        usual = _USUAL.get(language.split("-")[0], _USUAL["en"])[name]
        if said and said in {_bare(phrase) for phrase in (usual if own is None else own)}:
            return name
    return ""


def emergency_in(business: Business, text: str) -> Emergency | None:
    """The first emergency whose words stand in what was said."""
    said = f" {plain(text)} "
    return next((each for each in business.emergency if _any(each.words, said)), None)


def _any(phrases: Iterable[str], said: str) -> bool:
    return any(f" {plain(phrase)} " in said for phrase in phrases if plain(phrase))


def _bare(text: str) -> str:
    words = plain(text).split()
    kept = [word for word in words if word not in _POLITE]
    return " ".join(kept or words)
