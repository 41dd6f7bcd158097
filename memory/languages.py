"""How a language's words are reduced to stems: PostgreSQL's text search configuration for it. Pure."""

UNKNOWN = "simple"
"""For a language without a configuration: its words as they are and their character bigrams (`memory_terms`)."""

_CONFIGURATIONS = {
    "ar": "arabic",
    "ca": "catalan",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "ne": "nepali",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}


def configuration_of(language: str) -> str:
    """Of a language tag ("de-AT"). A database whose PostgreSQL lacks it takes `simple` (before 18: Estonian)."""
    return _CONFIGURATIONS.get(language.partition("-")[0].lower(), UNKNOWN)


def configurations() -> frozenset[str]:
    """All that a language stands for."""
    return frozenset(_CONFIGURATIONS.values())
