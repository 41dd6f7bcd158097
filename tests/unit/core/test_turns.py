"""Every (state, sign) pair of the three machines is decided here, one by one: those that change, and all others."""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivr.core.turns import FLOOR, PLAYOUT, REPLY, Act, Floor, Playout, Reply, Sign, Turns

State = tuple[Floor, Playout, Reply]
QUIET, TALKING = Floor.QUIET, Floor.TALKING
SILENT, PLAYING, HELD = Playout.SILENT, Playout.PLAYING, Playout.HELD
RESTING: State = (QUIET, SILENT, Reply.NONE)
START: State = (QUIET, SILENT, Reply.AWAY)

FLOOR_CHANGES = {
    (QUIET, "speech_began"): TALKING,
    (QUIET, "speech_early"): TALKING,
    (TALKING, "speech_ended"): QUIET,
    (TALKING, "turn_closed"): QUIET,
    (TALKING, "model_lost"): QUIET,
}
PLAYOUT_CHANGES = {
    (SILENT, "audio"): (PLAYING, ""),
    (PLAYING, "speech_began"): (HELD, "hold"),
    (PLAYING, "confirmed"): (SILENT, "cut"),
    (PLAYING, "keyed"): (SILENT, "cut"),
    (PLAYING, "played"): (SILENT, "finish"),
    (HELD, "confirmed"): (SILENT, "cut"),
    (HELD, "keyed"): (SILENT, "cut"),
    (HELD, "refuted"): (PLAYING, "replay"),
    (HELD, "model_lost"): (PLAYING, "replay"),
}
REPLY_CHANGES = {
    ("away", "model_ready"): ("none", ""),
    ("none", "turn_closed"): ("gathering", "gather"),
    ("none", "say"): ("asked", "ask"),
    ("none", "model_lost"): ("away", ""),
    ("gathering", "speech_began"): ("none", "reopen_turn"),
    ("gathering", "turn_ready"): ("asked", "ask"),
    ("gathering", "turn_empty"): ("none", "drop_turn"),
    ("gathering", "model_lost"): ("away", "reopen_turn"),
    ("gathering", "keyed"): ("none", "drop_turn"),
    ("asked", "keyed"): ("none", "cancel reopen_turn"),
    ("streaming", "keyed"): ("none", "cancel"),
    ("deferred", "keyed"): ("none", "drop_turn"),
    ("asked", "speech_began"): ("none", "cancel reopen_turn"),
    ("asked", "turn_empty"): ("none", "cancel drop_turn"),
    ("asked", "audio"): ("streaming", ""),
    ("asked", "calls"): ("asked", "ask_again"),
    ("asked", "defer"): ("deferred", "wait"),
    ("asked", "answered"): ("none", "settle"),
    ("asked", "failed"): ("asked", "retry"),
    ("asked", "model_lost"): ("away", "put_off reopen_turn"),
    ("streaming", "confirmed"): ("none", "cancel"),
    ("streaming", "answered"): ("none", ""),
    ("streaming", "failed"): ("none", "break_off"),
    ("streaming", "model_lost"): ("away", "break_off"),
    ("deferred", "speech_began"): ("none", "reopen_turn"),
    ("deferred", "turn_closed"): ("gathering", "reopen_turn gather"),
    ("deferred", "reconsider"): ("asked", "ask_again"),
    ("deferred", "turn_empty"): ("none", "drop_turn"),
    ("deferred", "model_lost"): ("away", "reopen_turn"),
}


def acts(names: str) -> tuple[Act, ...]:
    return tuple(Act(name) for name in names.split())


@pytest.mark.parametrize("sign", Sign)
@pytest.mark.parametrize("floor", Floor)
def test_floor_pair(floor: Floor, sign: Sign) -> None:
    turns = Turns(floor=floor)
    turns.show(sign)
    assert turns.floor is FLOOR_CHANGES.get((floor, sign.value), floor)


@pytest.mark.parametrize("sign", Sign)
@pytest.mark.parametrize("playout", Playout)
def test_playout_pair(playout: Playout, sign: Sign) -> None:
    after, names = PLAYOUT_CHANGES.get((playout, sign.value), (playout, ""))
    assert PLAYOUT.get((playout, sign), (playout, ())) == (after, acts(names))


@pytest.mark.parametrize("sign", Sign)
@pytest.mark.parametrize("reply", Reply)
def test_reply_pair(reply: Reply, sign: Sign) -> None:
    after, names = REPLY_CHANGES.get((reply.value, sign.value), (reply.value, ""))
    assert REPLY.get((reply, sign), (reply, ())) == (Reply(after), acts(names))


def test_nothing_but_the_listed_pairs_is_in_the_tables() -> None:
    assert (len(FLOOR), len(PLAYOUT), len(REPLY)) == (
        len(FLOOR_CHANGES),
        len(PLAYOUT_CHANGES),
        len(REPLY_CHANGES),
    )


def after(state: State, sign: Sign) -> State:
    turns = Turns(state[0], state[2], state[1])
    turns.show(sign)
    return turns.floor, turns.playout, turns.reply


def reachable() -> Iterator[State]:
    seen, waiting = {START}, deque([START])
    while waiting:
        state = waiting.popleft()
        yield state
        for sign in Sign:
            then = after(state, sign)
            if then not in seen:
                seen.add(then)
                waiting.append(then)


REACHABLE = tuple(reachable())


def test_a_new_machine_stands_at_the_start() -> None:
    turns = Turns()
    assert (turns.floor, turns.playout, turns.reply) == START


def test_every_state_has_a_way_back_to_rest() -> None:
    edges = {state: {after(state, sign) for sign in Sign} for state in REACHABLE}
    home = {RESTING}
    while grown := {s for s in REACHABLE if s not in home and edges[s] & home}:
        home |= grown
    assert set(REACHABLE) - home == set()


def test_every_state_is_left_by_some_sign() -> None:
    assert [state for state in REACHABLE if all(after(state, sign) == state for sign in Sign)] == []


def test_nothing_is_asked_for_without_a_session() -> None:
    for floor, playout, reply in REACHABLE:
        if reply is Reply.AWAY:
            turns = Turns(floor, reply, playout)
            asking = {Act.ASK, Act.ASK_AGAIN, Act.GATHER}
            assert all(not asking & set(replace(turns).show(sign)) for sign in Sign)


@given(st.lists(st.sampled_from(Sign)))
def test_any_signs_lead_to_a_defined_state(signs: list[Sign]) -> None:
    turns = Turns()
    for sign in signs:
        done = turns.show(sign)
        assert all(isinstance(act, Act) for act in done)
        assert (turns.floor, turns.playout, turns.reply) in REACHABLE
    assert len(turns.history) <= 50


def test_rest_is_where_nobody_speaks_and_nothing_is_due() -> None:
    resting = [state for state in REACHABLE if Turns(state[0], state[2], state[1]).is_resting()]
    assert resting == [RESTING]


def test_the_history_tells_changes_only() -> None:
    turns = Turns()
    turns.show(Sign.MODEL_READY)
    turns.show(Sign.REFUTED)
    assert turns.history == ["quiet/silent/away --model_ready--> quiet/silent/none"]
