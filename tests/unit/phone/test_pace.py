"""Frames are due every 20 ms; a machine that stood still is not made up for."""

import pytest

from ivr.phone.pace import STALLED_S, Pace


def test_no_delay_adds_up() -> None:
    pace = Pace(10.0)
    assert pace.wait_s(10.0) == pytest.approx(0.02)
    assert pace.wait_s(10.025) == pytest.approx(0.015)
    assert pace.wait_s(10.12) == 0.0  # two frames late: they follow at once
    assert pace.wait_s(10.12) == 0.0
    assert [pace.wait_s(10.12) for _ in range(3)] == pytest.approx([0.0, 0.0, 0.02])


def test_time_stands_still_while_the_process_does_not_run() -> None:
    pace = Pace(0.0)
    assert pace.wait_s(0.02 + STALLED_S + 0.01) == 0.0
    assert pace.wait_s(0.02 + STALLED_S + 0.01) == pytest.approx(0.02)
