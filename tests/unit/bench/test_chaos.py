"""The chaos bench's own parts: its numbers as sound, its plan, its verdicts."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import yaml

from callflows.parse import parse_text
from ivr.audio.g711 import pcm16_to_ulaw, ulaw_to_pcm16
from ivr.audio.resample import Upsampler
from ivr.bench.chaos import BUSINESS, CALL_MAX_MS, Failure, heard_numbers, is_lost, plan
from ivr.bench.chaos_code import CALLER_HZ, MODEL_HZ, decode, encode, tone
from ivr.bench.chaos_model import Troubles
from ivr.phone.record import CallRecord, EndReason
from ivr.phone.script import BreakStream
from ivr.sandbox.brain import Line, Question, Who


@pytest.mark.parametrize("number", [0, 7, 11_111, 99_999, 40_502])
@pytest.mark.parametrize("late", [0, 37, 159])
def test_a_number_is_heard_over_the_line_and_at_the_model(number: int, late: int) -> None:
    said = encode(number, CALLER_HZ, 8_000)
    pcm = np.concatenate([np.zeros(late, np.int16), said, np.zeros(1_600, np.int16), tone(300, 400, 8_000)])
    line = ulaw_to_pcm16(pcm16_to_ulaw(pcm.astype("<i2").tobytes()))
    assert decode(np.frombuffer(line, "<i2"), CALLER_HZ, 8_000) == [number]
    assert decode(np.frombuffer(Upsampler().feed(line), "<i2"), CALLER_HZ, 24_000) == [number]
    assert decode(np.frombuffer(line, "<i2"), MODEL_HZ, 8_000) == []


def test_a_number_that_was_cut_is_none_and_the_next_is_heard() -> None:
    first, second = encode(12_345, MODEL_HZ, 8_000), encode(67_890, MODEL_HZ, 8_000)
    assert decode(first[:-300], MODEL_HZ, 8_000) == []
    assert decode(np.concatenate([first[:1_500], second]), MODEL_HZ, 8_000) == [67_890]
    assert decode(np.concatenate([first, second]), MODEL_HZ, 8_000) == [12_345, 67_890]


def test_a_plan_is_the_seed_s_and_breaks_everything_equally_often() -> None:
    runs = plan(220, 7)
    assert runs == plan(220, 7) != plan(220, 8)
    assert set(Counter(run.failure for run in runs).values()) == {20}
    numbers = [number for run in runs for number in run.numbers]
    assert len(set(numbers)) == len(numbers)
    assert len({run.caller for run in runs}) == len(runs)
    broken = [run for run in runs if any(isinstance(step, BreakStream) for step in run.script().steps)]
    assert {run.failure for run in broken} == {Failure.STREAM_BROKEN}
    assert all(
        (run.script().drop_after_ms is not None) == (run.failure is Failure.LINE_DROPPED) for run in runs
    )


def test_a_call_that_the_network_lost_is_not_ours() -> None:
    run = replace(plan(1, 1)[0], failure=Failure.WORKER_KILLED)
    record = CallRecord("CA1", EndReason.CALLER_HUNG_UP, (), (), b"", b"\xff" * 8_000)
    assert not is_lost(run, record)
    assert is_lost(run, replace(record, end=EndReason.SERVICE_HUNG_UP))
    assert is_lost(run, replace(record, heard_ulaw=b"\xff" * CALL_MAX_MS * 8))
    dropped = replace(record, end=EndReason.LINE_DROPPED)
    assert is_lost(run, dropped)
    assert not is_lost(replace(run, failure=Failure.LINE_DROPPED), dropped)


def test_what_a_caller_heard() -> None:
    heard = pcm16_to_ulaw(encode(12_345, MODEL_HZ, 8_000).astype("<i2").tobytes())
    assert heard_numbers(CallRecord("CA1", EndReason.CALLER_HUNG_UP, (), (), b"", heard)) == [12_345]


def test_neighbours_failures_do_not_add_up_to_a_model_that_is_down() -> None:
    troubles, chance = Troubles(), random.Random(1)
    one, two = troubles.brain(), troubles.brain()
    question = Question("", (Line(Who.USER, "12345"),))
    for _ in range(9):
        troubles.fail_replies(chance)
    for echo in (one, two):
        assert [bool(echo.answer(question).failure) for _ in range(3)] == [True, True, False]
    troubles.fail_replies(chance)
    hit = one if one.failures else two
    assert hit.answer(question).failure
    for _ in range(9):
        troubles.fail_replies(chance)  # the other one's trouble: this one had its share
    assert [bool(hit.answer(question).failure) for _ in range(2)] == [True, False]
    del one, two, hit, echo
    troubles.fail_replies(chance)  # nobody there


def test_its_business_is_one() -> None:
    assert parse_text(yaml.safe_dump(BUSINESS), "chaos.yaml").id == "chaos"
