import pytest

from ivr.phone.line import SILENT_FRAME
from ivr.phone.mouth import Mouth
from ivr.phone.script import Dtmf
from tests.unit.phone.harness import tone


def test_b004_the_last_frame_is_filled_up_with_silence() -> None:
    mouth = Mouth()
    mouth.say(tone(50), "hello")
    frames = [mouth.frame() for _ in range(4)]

    assert b"".join(frame.ulaw for frame in frames) == tone(50) + b"\xff" * (80 + 160)
    assert [frame.ends for frame in frames] == [False, False, True, False]
    assert [frame.said for frame in frames] == ["hello"] * 3 + [""]
    assert not mouth.busy


def test_keys_are_a_fifth_of_a_second_apart_and_silent() -> None:
    mouth = Mouth()
    mouth.press("4w#")
    frames = []
    while mouth.busy:
        frames.append(mouth.frame())

    assert [(at * 20, frame.digit) for at, frame in enumerate(frames) if frame.digit] == [
        (0, "4"),
        (700, "#"),
    ]
    assert all(frame.ulaw == SILENT_FRAME for frame in frames)


def test_a_key_that_no_telephone_has_is_refused() -> None:
    with pytest.raises(ValueError, match="0-9"):
        Mouth().press("12x")
    with pytest.raises(ValueError, match="0-9"):
        Dtmf("12x")


def test_saying_nothing_is_nothing() -> None:
    mouth = Mouth()
    mouth.say(b"", "")
    assert not mouth.busy
