"""The recording of what the model was given, addressed on the model's clock."""

from ivr.core.tape import KEEP_LONGEST_MS, KEEP_QUIET_MS, InputTape


def frame(no: int) -> bytes:
    return bytes([no % 251]) * 160


def test_a_cut_is_what_was_appended_there() -> None:
    tape = InputTape()
    for no in range(10):
        tape.append(frame(no), 0)
    assert tape.cut(40, 80) == frame(2) + frame(3)
    assert tape.cut(-100, 20) == frame(0)
    assert tape.cut(180, 9_999) == frame(9)
    assert tape.cut(80, 40) == b""
    assert tape.length_ms() == 200


def test_what_was_missing_takes_its_time() -> None:
    tape = InputTape()
    tape.append(frame(1), 0)
    tape.append(frame(2), 40)
    assert tape.length_ms() == 80
    assert tape.cut(20, 60) == b"\xff" * 320
    assert tape.cut(60, 80) == frame(2)


def test_quiet_is_kept_for_seconds_only_and_the_clock_goes_on() -> None:
    tape = InputTape()
    for no in range(1_000):  # 20 s
        tape.append(frame(no), 0)
    assert tape.length_ms() == 20_000
    assert tape.cut(0, 10_000) == b""
    assert tape.cut(19_980, 20_000) == frame(999)
    assert len(tape.cut(0, 20_000)) <= (KEEP_QUIET_MS + 1_000) * 8


def test_a_turn_is_kept_whole() -> None:
    tape = InputTape()
    tape.keep_from(0.0)
    for no in range(1_000):
        tape.append(frame(no), 0)
    assert len(tape.cut(0, 20_000)) == 160_000


def test_what_has_no_words_yet_is_kept_and_the_quiet_before_it_is_not() -> None:
    tape = InputTape()
    for no in range(1_000):
        tape.append(frame(no), 0)
    tape.keep_from(18_000)
    for no in range(1_000, 2_000):
        tape.append(frame(no), 0)
    assert len(tape.cut(18_000, 40_000)) == 22_000 * 8
    assert len(tape.cut(0, 18_000)) <= 4_000 * 8
    tape.keep_from(None)
    for no in range(2_000, 2_100):
        tape.append(frame(no), 0)
    assert len(tape.cut(0, 42_000)) <= (KEEP_QUIET_MS + 1_000) * 8


def test_nothing_is_kept_for_ever() -> None:
    tape = InputTape()
    tape.keep_from(0.0)
    for no in range(10_000):
        tape.append(frame(no), 0)
    assert len(tape.cut(0, 200_000)) <= (KEEP_LONGEST_MS + 1_000) * 8


def test_a_new_session_counts_from_zero() -> None:
    tape = InputTape()
    tape.append(frame(1), 0)
    tape.restart()
    assert tape.length_ms() == 0
    tape.append(frame(2), 0)
    assert tape.cut(0, 20) == frame(2)
