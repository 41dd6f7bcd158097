"""Callers who wait in a line, and people of the business who take them out of it."""

from pathlib import Path

import pytest

from callflows import engine
from callflows.away import Came, Trip
from callflows.check import check_paths
from callflows.conversation import Conversation
from callflows.engine import FlowState, Hold, InLine, Moment, Take, Wait
from callflows.lines import line_name
from callflows.parse import FlowErrors, parse_text

STAFF = "+16175550109"
SHOP = """\
id: shop
name: The Shop
numbers: ["+16175550101"]
timezone: America/New_York
languages: {es-US: {}}
disclosure: ""
greeting: The Shop.
transfers: {}
callers: {staff: ["+16175550109"]}
start: menu
nodes:
  menu:
    type: menu
    say: Press a key.
    options: {"1": {to: line}, "2": {to: spanish}, "3": {to: pin}}
  spanish: {type: language, language: es-US, to: line}
  line:
    type: queue
    say: {en-US: Into the line., es-US: A la cola.}
    hold: {en-US: Please hold., es-US: Espere por favor.}
    music: {en-US: hold.wav}
    every_s: 20
    max_wait_s: 50
    max_waiting: 3
    leave: "*"
    left: given_up
    full: crowded
    not_reached: {en-US: Nobody was free., es-US: No hay nadie.}
    otherwise: later
  given_up: {type: say, say: You gave up., to: menu}
  crowded: {type: say, say: Too many wait., to: menu}
  later: {type: hangup, say: Call again.}
  pin: {type: verify, say: Your PIN., to: take, failed: menu}
  take: {type: take, queue: line, say: Here they come., wait_s: 120, to: menu, failed: menu}
"""
BUSINESS = parse_text(SHOP, "shop.yaml")


def at(key: str, caller: str = "+12025550144") -> Conversation:
    """A call that pressed this key."""
    call = Conversation(BUSINESS, Moment(None, caller))
    call.begin()
    call.press(key)
    return call


def in_line(**more: int | str) -> Hold | Came:
    """What comes for a caller who stands there."""
    return engine.held(BUSINESS, at("1").state, InLine(**more))  # type: ignore[arg-type]


def test_the_caller_waits_in_a_line_of_the_business() -> None:
    call = at("1")
    assert (call.state.ended, call.state.is_away()) == ("queued", True)
    assert engine.away(BUSINESS, call.state) == Wait("shop.line", "*")
    assert FlowState.from_json(call.state.to_json(), BUSINESS) == call.state


def test_a_name_that_twilio_would_not_take_is_shortened_the_same_everywhere() -> None:
    """The queue name must be 64 characters or less (Twilio, <Enqueue>)."""
    assert line_name("a" * 31, "b" * 32) == f"{'a' * 31}.{'b' * 32}"
    long = line_name("a" * 32, "b" * 32)
    assert len(long) == 64
    assert long == line_name("a" * 32, "b" * 32) != line_name("a" * 32, "c" * 32)


def test_who_waits_hears_text_and_place_in_their_language() -> None:
    assert in_line(position=2, waited_s=0) == Hold(
        "Please hold. You are number 2 in the line.", "en-US", "hold.wav", "*", 20
    )
    spanish = engine.held(BUSINESS, at("2").state, InLine(position=1, waited_s=20))
    assert spanish == Hold("Espere por favor. Usted es el número 1 en la cola.", "es-US", "", "*", 20)
    assert in_line(position=0) == Hold("Please hold.", "en-US", "hold.wav", "*", 20)


def test_nobody_waits_longer_than_they_may() -> None:
    last = in_line(position=1, waited_s=40)
    assert isinstance(last, Hold)
    assert last.for_s == 10
    assert in_line(position=1, waited_s=50) is Came.TIMEOUT


def test_a_full_line_takes_nobody_and_keeps_who_is_in_it() -> None:
    assert isinstance(in_line(position=3, waited_s=0), Hold)
    assert in_line(position=4, waited_s=0) is Came.FULL
    assert isinstance(in_line(position=4, waited_s=20), Hold)


def test_only_the_exit_key_leads_out() -> None:
    assert in_line(key="*") is Came.LEFT
    assert isinstance(in_line(key="5"), Hold)
    assert isinstance(in_line(), Hold)


@pytest.mark.parametrize(
    ("came", "said", "node", "ended"),
    [
        (Came.LEFT, "You gave up. Press a key.", "menu", ""),
        (Came.FULL, "Too many wait. Press a key.", "menu", ""),
        (Came.TIMEOUT, "Nobody was free. Call again.", "later", "hung_up"),
        (Came.FAILED, "Nobody was free. Call again.", "later", "hung_up"),
        (Came.HUNG_UP, "", "line", "hung_up"),
        (Came.REACHED, "", "line", "queued"),
    ],
)
def test_every_end_of_the_wait_goes_on_somewhere(came: Came, said: str, node: str, ended: str) -> None:
    call = at("1")
    assert call.result(came).said() == said
    assert (call.state.node, call.state.ended) == (node, ended)


def test_the_reason_to_leave_is_kept_until_the_network_says_that_they_left() -> None:
    state = at("1").state
    leaving = engine.leaving(state, Came.FULL)
    assert FlowState.from_json(leaving.to_json(), BUSINESS) == leaving
    assert engine.held(BUSINESS, leaving, InLine(position=1, key="*")) is Came.FULL
    assert engine.came_out(BUSINESS, leaving, 0) is Came.FULL
    back = engine.returned(BUSINESS, leaving, Came.FULL, Moment())
    assert back.state.trip.came == ""
    # Where it could not be kept, the time tells.
    assert engine.came_out(BUSINESS, state, 12) is Came.LEFT
    assert engine.came_out(BUSINESS, state, 50) is Came.TIMEOUT


def test_a_state_that_is_in_no_line_hears_nothing() -> None:
    assert engine.held(BUSINESS, engine.start(BUSINESS), InLine()) is Came.FAILED


@pytest.mark.parametrize("came", [7, "nonsense", None])
def test_a_stored_reason_that_is_none_is_left_out(came: object) -> None:
    stored = at("1").state.to_json()
    stored["trip"]["came"] = came
    assert FlowState.from_json(stored, BUSINESS).trip == Trip(1)


def served() -> Conversation:
    """Somebody of the staff whose PIN was right."""
    call = at("3", STAFF)
    call.press("482913#")
    assert call.answer(True).said() == "Here they come."
    return call


def test_the_staff_serve_one_after_the_other() -> None:
    call = served()
    assert engine.away(BUSINESS, call.state) == Take("shop.line", 120)
    for no in (2, 3):
        call.result(Came.REACHED)
        assert (call.state.ended, call.state.trip.no) == ("taking", no)
    assert call.result(Came.NO_ANSWER).said() == "Nobody is waiting. Press a key."
    assert (call.state.node, call.state.ended) == ("menu", "")


def test_who_hangs_up_has_done_their_work() -> None:
    call = served()
    call.result(Came.HUNG_UP)
    assert call.state.ended == "hung_up"


def test_others_take_nobody_out_whatever_their_pin() -> None:
    call = at("3")
    call.press("482913#")
    assert call.answer(True).said() == "Press a key."


def faults(old: str, new: str) -> str:
    assert old in SHOP
    with pytest.raises(FlowErrors) as raised:
        parse_text(SHOP.replace(old, new), "shop.yaml")
    return str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("otherwise: later", "otherwise: latr", "no node is called `latr`"),
        ("left: given_up", "left: nowhere", "no node is called `nowhere`"),
        ("queue: line", "queue: menu", "no node of type queue is called `menu`"),
        ("queue: line", "queue: lines", "no node of type queue is called `lines`"),
        ('leave: "*"', 'leave: "12"', "shop.yaml:25:12"),
        ('    leave: "*"\n', "", "`left` belongs to `leave`"),
        ("every_s: 20", "every_s: 5", "at least 10"),
        ("max_waiting: 3", "max_waiting: 0", "at least 1"),
        ("    hold: {en-US: Please hold., es-US: Espere por favor.}\n", "", "hold"),
        ("music: {en-US: hold.wav}", "music: ../hold.wav", "WAV"),
        ('"3": {to: pin}', '"3": {to: take}', "can be reached without a PIN"),
    ],
)
def test_faults_are_told_with_their_place(old: str, new: str, told: str) -> None:
    assert told in faults(old, new)


def test_a_check_warns_of_lines_that_nobody_takes_calls_from(tmp_path: Path) -> None:
    nobody = SHOP[: SHOP.index("  pin:")].replace(', "3": {to: pin}', "")
    for text, count in ((SHOP, 0), (nobody, 1)):
        told = [each for each in _told(tmp_path, text) if "takes callers out" in each]
        assert len(told) == count
        assert all("`shop.line`" in each for each in told)


def test_a_check_warns_of_lines_that_nobody_may_take_calls_from_and_of_music_that_is_not_there(
    tmp_path: Path,
) -> None:
    told = _told(tmp_path, SHOP.replace('callers: {staff: ["+16175550109"]}\n', ""))
    assert [each for each in told if "nobody may take callers out" in each]
    (missing,) = [each for each in told if "hold.wav" in each]
    assert "shop.yaml:20:5: warning: there is no file hold.wav: who waits hears nothing" in missing
    (tmp_path / "hold.wav").write_bytes(b"")
    assert not [each for each in _told(tmp_path, SHOP) if "hold.wav" in each or "take callers" in each]


def _told(folder: Path, text: str) -> list[str]:
    (folder / "shop.yaml").write_text(text)
    return [str(fault) for fault in check_paths(folder)]
