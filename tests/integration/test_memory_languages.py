"""Words are found in the language that was spoken: stems where PostgreSQL has them, bigrams of ours where not."""

import pytest
from sqlalchemy import NullPool, create_engine, text

from memory.languages import configuration_of, configurations
from memory.model import Exchange, Owner
from memory.store import AudioPaths, Store
from tests.integration.test_memory_pages import asked_for

ANA = Owner("bakery", "+12025550111")
MODEL = "test-model"
SAID = {
    "en": "My cakes were burnt.",
    "de": "Die Reservierungen sind für Samstag.",
    "ja": "小麦アレルギーがあります。パンは要りません。",
    "zh": "我对花生过敏，请不要放花生。",
    "th": "ฉันแพ้ถั่วลิสงมาก",
    "ko": "저는 땅콩 알레르기가 있습니다",
    "pl": "Poproszę rezerwację na sobotę.",
}
# What shares a word with it, in another form or place; and what does not.
ASKED = {
    "en": ("Which cake was it?", "Where is the station?"),
    "de": ("Wann ist die Reservierung?", "Wo liegt der Bahnhof?"),
    "ja": ("アレルギーは何ですか", "駅はどこ"),
    "zh": ("花生可以吗", "火车站在哪里"),
    "th": ("แพ้อะไร", "ราคาเท่าไร"),
    "ko": ("땅콩을 먹어도 되나요", "역은 어디예요"),
    "pl": ("Czy mam rezerwacje?", "Gdzie bufet?"),
}


@pytest.fixture
async def pages(store: Store) -> dict[str, int | None]:
    """A page in each language, by it."""
    await store.open_call("CA1", ANA.business_id, ANA.caller, "+12025550100", "hash")
    return {
        language: await store.commit_page(
            ANA, Exchange("CA1", number, words, "", language=language), AudioPaths()
        )
        for number, (language, words) in enumerate(SAID.items(), start=1)
    }


@pytest.mark.parametrize("language", SAID)
async def test_words_are_found_in_their_language(
    store: Store, pages: dict[str, int | None], language: str
) -> None:
    akin, foreign = ASKED[language]
    assert pages[language] in asked_for(await store.scan(ANA, akin, None, MODEL, (language,)))
    assert pages[language] not in asked_for(await store.scan(ANA, foreign, None, MODEL, (language,)))


async def test_a_business_of_two_languages_searches_in_both(
    store: Store, pages: dict[str, int | None]
) -> None:
    found = asked_for(await store.scan(ANA, "Reservierung, cake", None, MODEL, ("en-GB", "de-AT")))
    assert {pages["en"], pages["de"]} <= set(found)


async def test_full_width_is_half_width(store: Store) -> None:
    await store.open_call("CA2", ANA.business_id, ANA.caller, "+12025550100", "hash")
    page = await store.commit_page(ANA, Exchange("CA2", 1, "７時にｶﾒﾗを", "", language="ja"), AudioPaths())
    for query in ("7", "カメラ"):
        assert asked_for(await store.scan(ANA, query, None, MODEL, ("ja",))) == [page]


def test_every_configuration_of_the_database_has_its_language(database_url: str) -> None:
    with create_engine(database_url, poolclass=NullPool).connect() as connection:
        there = set(connection.execute(text("SELECT cfgname FROM pg_ts_config")).scalars())
    assert there - {"simple"} == configurations()


async def test_an_unknown_configuration_is_simple(store: Store) -> None:
    assert configuration_of("tlh") == "simple"
    await store.open_call("CA3", ANA.business_id, ANA.caller, "+12025550100", "hash")
    exchange = Exchange("CA3", 1, "nuqneH", "", language="tlh")
    page = await store.commit_page(ANA, exchange, AudioPaths())
    assert asked_for(await store.scan(ANA, "nuqneh", None, MODEL, ("tlh",))) == [page]
