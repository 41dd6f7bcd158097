"""People are called: by transfer, by ring, by rota; whispered to; and what the caller hears of it."""

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callflows import engine
from callflows.away import Came, Trip
from callflows.check import check_paths
from callflows.conversation import Conversation
from callflows.engine import Dial, FlowState, Moment, Whisper
from callflows.model import Business
from callflows.parse import FlowErrors, parse_text
from tests.unit.callflows.examples import unhurried

HELP = """\
id: help
name: Help
numbers: ["+16175550101"]
timezone: America/New_York
languages: {de-DE: {}}
disclosure: ""
greeting: Help.
transfers:
  ann: {number: "+16175550102", description: day, say: Calling Ann.}
  bob: {number: "+16175550103", description: night, say: Calling Bob.}
  cat: {number: "+16175550104", description: boss}
rotas:
  duty:
    shifts:
      - {who: [ann, bob], weekly: {mon-fri: "07:00-19:00"}}
      - {who: [bob], weekly: {mon-thu: "19:00-07:00"}}
    dates: {"2026-12-25": [cat]}
start: menu
nodes:
  menu:
    type: menu
    say: Press a key.
    options: {"1": {to: person}, "2": {to: on_call}, "3": {to: all}, "4": {to: german}, "5": {to: name}}
  person:
    type: transfer
    target: ann
    fallback: [bob, cat]
    timeout_s: 15
    whisper: "A call of {who}. Press five to take it."
    accept: "5"
    not_reached: Nobody is there.
    otherwise: sorry
  on_call: {type: ring, rota: duty, say: I am calling who is on duty., otherwise: sorry}
  all: {type: ring, targets: [ann, bob], order: together}
  german: {type: language, language: de-DE, to: plain}
  plain: {type: transfer, target: ann, fallback: [cat], otherwise: talk}
  name: {type: collect, slot: who, kind: text, by: voice, say: "Your name?", to: person}
  sorry: {type: say, say: Please call again later., to: talk}
  talk: {type: talk, instructions: Help., exits: {menu: {to: menu, when: asked}}}
"""
WEDNESDAY = datetime(2026, 1, 7, 10, 0, tzinfo=ZoneInfo("America/New_York"))
BUSINESS = parse_text(HELP, "help.yaml")


def at(key: str, now: datetime = WEDNESDAY, business: Business = BUSINESS) -> Conversation:
    """A call that pressed this key."""
    call = Conversation(business, Moment(now, "+12025550144"))
    call.begin()
    call.press(key)
    return call


def test_b061_the_next_target_is_tried_and_then_the_flow_goes_on() -> None:
    call = at("1")
    assert (call.state.ended, call.state.target) == ("transferred", "ann")
    assert engine.away(BUSINESS, call.state) == Dial(("+16175550102",), 15, whispers=True)
    said = call.result(Came.BUSY).said()
    assert said == "Nobody has answered there. I am trying somebody else. Calling Bob."
    assert (call.state.target, call.state.trip) == ("bob", Trip(2, ("bob",), ("cat",), said))
    call.result(Came.DECLINED)
    assert engine.away(BUSINESS, call.state) == Dial(("+16175550104",), 15, whispers=True)
    assert (
        call.result(Came.NO_ANSWER).said() == "Nobody is there. Please call again later. (the model speaks)"
    )
    assert (call.state.node, call.state.ended, call.state.target) == ("talk", "", "")


@pytest.mark.parametrize("came", [Came.REACHED, Came.HUNG_UP])
def test_a_call_that_was_taken_or_given_up_is_over(came: Came) -> None:
    call = at("1")
    before = call.state
    assert call.result(came).actions == ()
    assert call.state == before


def test_what_comes_back_twice_or_unasked_changes_nothing() -> None:
    call = Conversation(BUSINESS, Moment(WEDNESDAY))
    call.begin()
    before = call.state
    assert call.result(Came.BUSY).actions == ()
    assert call.state == before


@pytest.mark.parametrize(
    ("now", "names"),
    [
        (WEDNESDAY, ("ann", "bob")),
        (WEDNESDAY.replace(hour=20), ("bob",)),
        (WEDNESDAY.replace(hour=3), ("bob",)),  # the night that began on Tuesday
        (WEDNESDAY.replace(month=12, day=25), ("cat",)),
    ],
)
def test_the_rota_says_who_is_called(now: datetime, names: tuple[str, ...]) -> None:
    state = at("2", now).state
    assert (*state.trip.ringing, *state.trip.after) == names


def test_with_nobody_on_duty_the_flow_goes_on() -> None:
    call = Conversation(BUSINESS, Moment(WEDNESDAY.replace(day=10), "+12025550144"))  # a Saturday
    call.begin()
    said = call.press("2").said()
    assert said.startswith("I am sorry, nobody could take the call. Please call again later.")
    assert (call.state.node, call.state.trip.no) == ("talk", 0)


def test_a_rota_holds_across_the_change_of_the_clocks() -> None:
    zone = ZoneInfo("America/New_York")
    rota = BUSINESS.rotas["duty"]
    assert rota.on_duty(datetime(2026, 3, 9, 11, 30, tzinfo=ZoneInfo("UTC")), zone) == (
        "ann",
        "bob",
    )  # 07:30 EDT
    assert rota.on_duty(datetime(2026, 3, 6, 11, 30, tzinfo=ZoneInfo("UTC")), zone) == ("bob",)  # 06:30 EST


def test_all_together_and_then_back_to_the_start() -> None:
    call = at("3")
    assert engine.away(BUSINESS, call.state) == Dial(("+16175550102", "+16175550103"))
    assert call.result(Came.NO_ANSWER).said() == "I am sorry, nobody could take the call."
    assert (call.state.node, call.state.ended) == ("menu", "")


def test_what_is_said_is_in_the_calls_language() -> None:
    call = at("4")
    assert call.result(Came.BUSY).said().startswith("Dort hat sich niemand gemeldet.")
    assert call.result(Came.BUSY).said().startswith("Es tut mir leid")
    done = engine.returned(BUSINESS, at("4").state, Came.BUSY, Moment(WEDNESDAY))
    assert done.state.language == "de-DE"


def test_who_answers_is_told_what_the_caller_said_and_no_secret() -> None:
    call = at("5")
    call.say("Ana")
    told = engine.whisper(BUSINESS, call.state)
    assert told == Whisper("A call of Ana. Press five to take it.", "5", "en-US")
    assert engine.whisper(BUSINESS, at("2").state) is None
    assert engine.whisper(BUSINESS, engine.start(BUSINESS)) is None


def test_a_person_the_model_asked_for_gives_the_caller_back_where_they_were() -> None:
    state = engine.at_node(BUSINESS, "talk")
    applied = engine.apply(BUSINESS, state, "transfer", '{"target": "cat"}')
    assert isinstance(applied, engine.Applied)
    assert engine.away(BUSINESS, applied.state) == Dial(("+16175550104",))
    back = engine.returned(BUSINESS, applied.state, Came.BUSY, Moment(WEDNESDAY))
    assert (back.state.node, back.state.ended) == ("talk", "")
    assert (
        engine.opening(BUSINESS, back)
        == "I am sorry, nobody could take the call. What else can I do for you?"
    )


def test_the_opening_leaves_the_prompt_to_the_node() -> None:
    state = at("3").state
    back = engine.returned(BUSINESS, state, Came.BUSY, Moment(WEDNESDAY))
    assert engine.opening(BUSINESS, back) == "I am sorry, nobody could take the call."
    person = replace(at("1").state, trip=Trip(3, ("cat",)))
    back = engine.returned(BUSINESS, person, Came.BUSY, Moment(WEDNESDAY))
    said = "Nobody is there. Please call again later. What else can I do for you?"
    assert engine.opening(BUSINESS, back) == said


def test_the_state_of_a_call_that_is_away_survives_its_journal() -> None:
    call = at("1")
    call.result(Came.BUSY)
    assert FlowState.from_json(call.state.to_json(), BUSINESS) == call.state
    gone = parse_text(HELP.replace("[bob, cat]", "[cat]"), "help.yaml")
    assert FlowState.from_json(call.state.to_json(), gone).trip.ringing == ("bob",)


KEYS = st.sampled_from(["no", "ringing", "after", "say"])
LEAVES = st.none() | st.integers() | st.sampled_from(["ann", "bob", "dan"])
TRIPS = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner))


@unhurried
@given(TRIPS)
def test_any_journalled_trip_can_be_read(data: object) -> None:
    stored = at("1").state.to_json() | {"trip": data}
    state = FlowState.from_json(stored, BUSINESS)
    assert set(state.trip.ringing + state.trip.after) <= BUSINESS.transfers.keys()
    engine.away(BUSINESS, state)
    engine.returned(BUSINESS, state, Came.FAILED, Moment(WEDNESDAY))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("fallback: [bob, cat]", "fallback: [bob, ann]", "a target is named twice"),
        ("fallback: [bob, cat]", "fallback: [bob, dan]", "no transfer target is called `dan`"),
        ("who: [bob]", "who: [dan]", "no transfer target is called `dan`"),
        ('"2026-12-25": [cat]', '"2026-12-25": [dan]', "no transfer target is called `dan`"),
        ("rota: duty", "rota: night", "no rota is called `night`"),
        ("rota: duty", "rota: duty, targets: [ann]", "needs either `targets` or `rota`"),
        ("targets: [ann, bob], order", "order", "needs either `targets` or `rota`"),
        ("otherwise: sorry}", "otherwise: gone}", "no node is called `gone`"),
        ('whisper: "A call of {who}. Press five to take it."', "timeout_s: 15", "is given twice"),
        ("timeout_s: 15", "timeout_s: 3", "is too small"),
        (
            "{type: say, say: Please call again later., to: talk}",
            "{type: ring, targets: [cat], otherwise: person}",
            "leads back to itself",
        ),
        ('"A call of {who}. Press five to take it."', '"A call of {name}."', "no slot is called `name`"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(old: str, new: str, told: str) -> None:
    assert old in HELP
    with pytest.raises(FlowErrors) as caught:
        parse_text(HELP.replace(old, new, 1), "help.yaml")
    assert any(told in fault.message for fault in caught.value.faults), caught.value.faults
    assert all(fault.line > 1 for fault in caught.value.faults)


def test_accept_without_a_whisper_is_a_fault() -> None:
    text = "\n".join(line for line in HELP.splitlines() if "whisper:" not in line)
    with pytest.raises(FlowErrors, match="`accept` belongs to `whisper`"):
        parse_text(text, "help.yaml")


def test_warnings_of_unused_rotas_and_of_languages_we_do_not_speak(tmp_path: object) -> None:
    file = tmp_path / "help.yaml"  # type: ignore[operator]
    file.write_text(HELP.replace("de-DE", "it-IT").replace("rota: duty", "targets: [ann]"))
    told = [fault.message for fault in check_paths(file)]
    assert "nothing looks at the rota `duty`" in told
    assert "that nobody was reached is told in English to callers in it-IT" in told
