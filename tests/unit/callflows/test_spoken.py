"""Which words are always alike, so that they can be made into sound before anybody calls; and who says them."""

from pathlib import Path

import pytest

from callflows.check import check_paths
from callflows.parse import load_folder, parse_text
from callflows.spoken import Fixed, fixed_texts, unrecorded
from callflows.stock import OURS
from ivr.places import SHIPPED_FLOWS
from ivr.voicing import words_of

SHOP = """\
id: shop
name: The Shop
numbers: ["+16175550101"]
timezone: America/New_York
voice: marin
languages: {es-US: {voice: cedar}}
disclosure: ""
greeting: The Shop.
announcement: This call is recorded.
transfers: {desk: {number: "+16175550102", description: a person, say: {en-US: One moment., es-US: Un momento.}}}
operator: desk
start: menu
nodes:
  menu:
    type: menu
    say: {en-US: Press one., es-US: Pulse uno.}
    audio: {es-US: audio/menu.wav}
    options: {"1": {to: name}}
    no_input: {say: [{en-US: "Hello?", es-US: "¿Hola?"}], times: 1}
  name: {type: collect, slot: who, kind: text, by: voice, say: "Your name?", confirm: "Are you {who}?", to: text}
  text: {type: sms, text: Thank you., to: pass}
  pass: {type: transfer, target: desk, whisper: Press one to take it., otherwise: menu}
"""


def shop() -> set[tuple[str, str, str]]:
    return {(each.text, each.voice, each.language) for each in fixed_texts(parse_text(SHOP, "shop.yaml"))}


def test_texts_without_slots_are_fixed_by_voice_and_language() -> None:
    texts = shop()
    assert ("Press one.", "marin", "en-US") in texts
    assert ("¿Hola?", "cedar", "es-US") in texts
    assert ("Un momento.", "cedar", "es-US") in texts
    assert ("The Shop. This call is recorded.", "marin", "en-US") in texts
    assert ("Your name?", "cedar", "es-US") in texts


def test_what_has_a_file_is_gathered_or_is_not_our_voices_is_not_prepared() -> None:
    texts = {text for text, _, _ in shop()}
    assert "Pulse uno." not in texts  # its file is played
    assert not [text for text in texts if text.startswith("Are you ?") or "{" in text]
    assert not texts & {"Thank you.", "Press one to take it."}


def test_what_any_call_may_hear_comes_in_its_language() -> None:
    texts = fixed_texts(parse_text(SHOP, "shop.yaml"))
    assert {Fixed("Goodbye.", "marin", "en-US"), Fixed("Adiós.", "cedar", "es-US")} <= texts
    assert Fixed("¿Sigue ahí?", "cedar", "es-US") in texts
    assert all(each.text for each in texts)


def test_of_the_shipped_businesses_every_greeting_is_prepared() -> None:
    businesses = load_folder(SHIPPED_FLOWS).businesses.values()
    said = {words.texts[0] for words in words_of(businesses)}
    for business in businesses:
        assert any(business.greeting.strip() in text for text in said)
    assert said.issuperset(each["en"] for each in OURS)
    assert not [text for text in said if len(text) > 4_096]


@pytest.mark.parametrize("has_voice", [True, False])
def test_a_check_warns_of_words_that_only_the_speech_model_could_say(tmp_path: Path, has_voice: bool) -> None:
    (tmp_path / "shop.yaml").write_text(SHOP)
    told = [
        str(fault) for fault in check_paths(tmp_path, has_voice=has_voice) if "may say others" in str(fault)
    ]
    assert len(told) == (0 if has_voice else 1)
    for line in told:
        assert "shop.yaml:14:3: warning" in line
        assert "in 1 more nodes" in line
        assert "OPENAI_BASE_URL" in line
    assert unrecorded(parse_text(SHOP, "shop.yaml")) == ["menu", "name"]
