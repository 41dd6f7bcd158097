"""What we say ourselves, in the languages that we know."""

import re

import pytest

from callflows import stock

PHRASES = {name: each for name, each in vars(stock).items() if isinstance(each, dict) and "en" in each}


@pytest.mark.parametrize("name", PHRASES)
def test_every_phrase_is_there_in_every_language_with_the_same_gaps(name: str) -> None:
    texts = PHRASES[name]
    assert set(texts) == {"en", "de", "fr", "es"}
    assert len(set(texts.values())) == 4
    assert len({len(re.findall(r"{}", text)) for text in texts.values()}) == 1


def test_a_language_is_known_by_its_tongue_and_else_it_is_english() -> None:
    assert stock.phrase(stock.GOODBYE, "de-AT") == "Auf Wiederhören."
    assert stock.phrase(stock.GOODBYE, "ja-JP") == "Goodbye."
    assert (stock.is_known("fr-CA"), stock.is_known("ja-JP")) == (True, False)
