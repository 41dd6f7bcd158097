"""Documents in passages: whole sentences, nothing lost, none too long."""

from hypothesis import given
from hypothesis import strategies as st

from memory.costs import word_count
from memory.facts import PASSAGE_WORDS, Document, Passage, digest_of, passages
from memory.project import fit_facts

TEN = "One two three four five six seven eight nine ten."


def test_sentences_are_packed_and_paragraphs_kept_apart() -> None:
    text = f"{TEN} {TEN}\n\n{' '.join([TEN] * 7)}\n- A list\n- of two"
    found = passages([Document("House  rules", text)])
    assert [word_count(each.text) for each in found] == [20, 60, 16]
    assert {each.title for each in found} == {"House rules"}
    assert str(found[0]) == f"House rules: {TEN} {TEN}"


def test_scripts_without_spaces_are_cut_at_their_full_stops() -> None:
    sentence = "小麦アレルギーがあります。"
    found = passages([Document("注意", sentence * 10)])
    assert len(found) > 1
    assert all(each.text.endswith("。") and word_count(each.text) <= PASSAGE_WORDS for each in found)


def test_what_has_no_word_is_no_passage() -> None:
    assert passages([Document("a", "…\n\n---\n\n"), Document("b", "")]) == []


@given(st.lists(st.text(alphabet="ab .\n", max_size=400), max_size=3))
def test_no_word_is_lost_and_no_passage_too_long(texts: list[str]) -> None:
    found = passages([Document("t", text) for text in texts])
    said = [word for each in found for word in each.text.split() if word.strip(".")]
    assert said == [word for text in texts for word in text.split() if word.strip(".")]
    assert all(len(each.text.split()) <= PASSAGE_WORDS for each in found)


def test_a_change_of_text_or_language_is_a_new_set() -> None:
    one = [Passage("a", "b")]
    assert digest_of(one, "en") == digest_of([Passage("a", "b")], "en")
    assert len({digest_of(one, "en"), digest_of(one, "de"), digest_of([Passage("ab", "")], "en")}) == 3


def test_facts_take_a_quarter_of_the_window_at_most() -> None:
    assert fit_facts(["one two three"] * 5, 32) == (("one two three",) * 2, 8)
    assert fit_facts([], 1_500) == ((), 0)
