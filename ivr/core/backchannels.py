"""Small words by which a listener shows that they listen: said over us, they ask for nothing."""

import re

MAX_WORDS = 3

_HUMS = "mm mmm mhm mmhm mm-hmm mm-hm mhmm hm hmm uh-huh uhuh uh-hu aha ah oh eh"
"""Written much the same in every language."""
_LISTENING: dict[str, str] = {
    "de": "ja genau ach so okay ok gut klar richtig stimmt",
    "en": "yeah yep yes yup okay ok right sure alright good great fine cool i see got it",
    "es": "sí si ya vale claro bueno okay ok",
    "fr": "oui ouais d'accord ok okay voilà bien",
}
"""What is also an answer, where a question was asked. A language without a list has its hums."""


def is_backchannel(text: str, language: str, *, asked: bool) -> bool:
    """Whether words said over us only show that somebody listens. `asked`: we were asking something."""
    words = re.findall(r"[\w'’-]+", text.lower().replace("’", "'"))
    answers = "" if asked else _LISTENING.get(language.partition("-")[0].lower(), "")
    known = f"{_HUMS} {answers}".split()
    return 0 < len(words) <= MAX_WORDS and all(word in known for word in words)


def is_echo(text: str, said: str) -> bool:
    """Whether words are those that we were saying ourselves, in their order."""
    words, ours = _plain(text), _plain(said)
    return bool(words) and f" {words} " in f" {ours} "


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[\w']+", text.lower()))
