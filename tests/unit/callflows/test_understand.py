"""What callers say and press, as values. The right values are what a person writing it down would write."""

from datetime import datetime
from typing import Any, get_args
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callflows.commands import command_in
from callflows.lexicon import plain
from callflows.understand import Kind, keyed, sounds, understood, yes_no
from tests.unit.callflows.examples import clinic, unhurried

NOW = datetime(2026, 11, 30, 10, 0, tzinfo=ZoneInfo("America/New_York"))
"""A Monday."""


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("number", "forty two", 42),
        ("number", "a party of six, please", 6),
        ("number", "two hundred and five", 205),
        ("number", "one thousand three hundred", 1_300),
        ("number", "three point five", 3.5),
        ("number", "1,250", 1_250),
        ("number", "five or six", None),
        ("number", "I don't know", None),
        ("money", "$12.50", "12.50"),
        ("money", "twelve dollars and fifty cents", "12.50"),
        ("money", "12 dollars 50", "12.50"),
        ("money", "twenty euros", "20.00"),
        ("date", "tomorrow", "2026-12-01"),
        ("date", "the day after tomorrow", "2026-12-02"),
        ("date", "on Friday", "2026-12-04"),
        ("date", "Monday", "2026-12-07"),
        ("date", "December 24th", "2026-12-24"),
        ("date", "the third of March", "2027-03-03"),
        ("date", "March twenty-second", "2027-03-22"),
        ("date", "2027-02-28", "2027-02-28"),
        ("date", "February 30th", None),
        ("date", "April third, 1980", "1980-04-03"),
        ("date", "the 3rd of April 2031", "2031-04-03"),
        ("date", "April third nineteen eighty", "1980-04-03"),
        ("date", "March twenty-second nineteen eighty-four", "1984-03-22"),
        ("date", "March twenty-second, twenty twenty-seven", "2027-03-22"),
        ("date", "May first two thousand and four", "2004-05-01"),
        ("date", "May first two thousand", "2000-05-01"),
        ("date", "July fourth twenty oh nine", "2009-07-04"),
        ("date", "July fourth nineteen oh nine", "1909-07-04"),
        ("date", "October nineteenth nineteen nineteen", "1919-10-19"),
        ("date", "March twenty twenty-seven", None),
        ("date", "February 29th 2027", None),
        ("date", "whenever", None),
        ("time", "half past three", "15:30"),
        ("time", "three thirty", "15:30"),
        ("time", "9 am", "09:00"),
        ("time", "nine in the morning", "09:00"),
        ("time", "7:15 p.m.", "19:15"),
        ("time", "18:45", "18:45"),
        ("time", "quarter to five", "16:45"),
        ("time", "noon", "12:00"),
        ("time", "12 am", "00:00"),
        ("time", "soon", None),
        ("phone", "six one seven five five five two three six eight", "+16175552368"),
        ("phone", "+44 20 7946 0958", "+442079460958"),
        ("phone", "one two three", None),
        ("email", "ana dot li at example dot com", "ana.li@example.com"),
        ("email", "Ana_1@Example.org", "ana_1@example.org"),
        ("email", "ana at home", None),
        ("digits", "double five, oh three", "5503"),
        ("digits", "my number is 12 34", "1234"),
        ("digits", "eins zwei drei", "123"),
        ("digits", "call me", None),
        ("text", "  two   words ", "two words"),
        ("text", "  ", None),
        ("yes_no", "yes please", True),
        ("yes_no", "no that's not right", False),
        ("yes_no", "perhaps", None),
    ],
)
def test_what_callers_say(kind: Kind, text: str, value: Any) -> None:
    assert understood(kind, text, NOW, "US") == value


@pytest.mark.parametrize(
    ("kind", "keys", "value"),
    [
        ("digits", "0042", "0042"),
        ("digits", "4*2", None),
        ("number", "12", 12),
        ("number", "3*5", 3.5),
        ("money", "12*50", "12.50"),
        ("money", "*5", None),
        ("yes_no", "1", True),
        ("yes_no", "2", False),
        ("yes_no", "3", None),
        ("time", "930", "09:30"),
        ("time", "2561", None),
        ("phone", "6175552368", "+16175552368"),
        ("date", "1224", None),
    ],
)
def test_what_callers_press(kind: Kind, keys: str, value: Any) -> None:
    assert keyed(kind, keys, "US") == value


def test_how_values_sound() -> None:
    assert sounds("557", "digits", "en-US") == "5 5 7"
    assert sounds("2026-12-04", "date", "en-US") == "Friday, December 4"
    assert sounds("2026-12-04", "date", "de-DE") == "4.12.2026"
    assert sounds("2026-12-04", "date", "en-US", NOW) == "Friday, December 4"
    assert sounds("1980-04-03", "date", "en-US", NOW) == "April 3, 1980"
    assert sounds("2028-04-03", "date", "en-US", NOW) == "April 3, 2028"
    assert sounds("15:30", "time", "en-US") == "3 30 pm"
    assert sounds("15:00", "time", "en-US") == "3 pm"
    assert (sounds(True, "yes_no", "de-DE"), sounds(False, "yes_no", "xx")) == ("ja", "no")


def test_yes_and_no_in_other_languages() -> None:
    assert [yes_no(text) for text in ("ja, genau", "nein", "sí", "oui", "non merci")] == [
        True,
        False,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("Operator, please.", "operator"),
        ("Can you repeat", ""),
        ("Repeat that.", "repeat"),
        ("Main menu", "start_over"),
        ("Bye bye!", "goodbye"),
        ("please", ""),
        ("", ""),
    ],
)
def test_commands(text: str, command: str) -> None:
    assert command_in(clinic(), "en-US", text) == command


def test_commands_in_other_languages_and_in_the_business_s_words() -> None:
    assert command_in(clinic(), "de-DE", "Tschüss!") == "goodbye"
    own = clinic("start:", "commands: {operator: [front desk], goodbye: []}\nstart:")
    assert command_in(own, "en-US", "the front desk") == "operator"
    assert command_in(own, "en-US", "goodbye") == ""


@unhurried
@given(st.text(max_size=60), st.sampled_from(get_args(Kind)))
def test_any_text_is_understood_or_is_not(text: str, kind: Kind) -> None:
    value = understood(kind, text, NOW, "US")
    assert value is None or sounds(value, kind, "en-US") is not None
    assert plain(plain(text)) == plain(text)


@unhurried
@given(st.text(alphabet="0123456789*#", max_size=14), st.sampled_from(get_args(Kind)))
def test_any_keys_are_a_value_or_none(keys: str, kind: Kind) -> None:
    value = keyed(kind, keys, "US")
    assert value is None or sounds(value, kind, "en-US")
