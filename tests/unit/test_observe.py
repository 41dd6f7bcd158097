"""What may and may not be in a log line."""

import io
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import pytest
import structlog

from ivr.observe import Metrics, Redactor, call_context, configure, mask_number

CARD = "4111111111111111"


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Log output as JSON lines; the logging set-up of before comes back."""
    root = logging.getLogger()
    was = (list(root.handlers), root.level)
    out = io.StringIO()
    configure("debug", "json", secrets=["tok-hush-1", "postgresql://u:hush2@db/x"], stream=out)
    yield out
    root.handlers[:] = was[0]
    root.setLevel(was[1])
    structlog.reset_defaults()


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("+15551230012", "+1•••…12"),
        ("+447700900123", "+4•••…23"),
        (CARD, "•••…11"),
        ("123", "•••"),
        ("", "•••"),
    ],
)
def test_a_masked_number_keeps_its_ends(number: str, shown: str) -> None:
    assert mask_number(number) == shown


@pytest.mark.parametrize(
    "text",
    [
        "call from +15551230012 now",
        "call from +1 (555) 123-0012 now",
        "call from 555-123-0012 now",
        "from=15551230012,",
        "'+15551230012'",
        f"digits {CARD}#",
        "4111 1111 1111 1111",
        "sip:+15551230012@example.com",
        "tel:+15551230012",
    ],
)
def test_number_like_text_is_masked_wherever_it_stands(text: str) -> None:
    shown = Redactor().text(text)
    assert "•••" in shown
    assert "555" not in shown
    assert "1111" not in shown


@pytest.mark.parametrize(
    "text",
    [
        "CA0123456789abcdef0123456789abcdef",
        "MZ00000000000000000000000000000001",
        "took 12.5 ms for 160 bytes",
        "127.0.0.1:8000",
        "line 123456",
    ],
)
def test_ids_and_figures_stay_readable(text: str) -> None:
    assert Redactor().text(text) == text


def test_marked_keys_are_hidden_at_any_depth() -> None:
    event = {
        "event": "x",
        "words": "I am Ana",
        "a": {"b": [{"digits": "1234"}, {"ok": 1}]},
        "Transcript": "hello",
    }
    shown = Redactor()(None, "info", event)
    assert shown["words"] == "•••"
    assert shown["Transcript"] == "•••"
    assert shown["a"] == {"b": [{"digits": "•••"}, {"ok": 1}]}


def test_a_caller_is_masked_and_nobody_stays_nobody() -> None:
    shown = Redactor()(None, "info", {"caller": "+15551230012", "to": "+15550009999", "from": None})
    assert shown == {"caller": "+1•••…12", "to": "+1•••…99", "from": None}


def test_values_that_are_no_plain_data_show_their_kind_only() -> None:
    @dataclass
    class Heard:
        text: str = "my pin is 1234"

    shown = Redactor()(
        None, "info", {"a": Heard(), "b": b"\x00" * 5, "c": Decimal("1"), "d": 15551230012, "n": 42}
    )
    assert shown == {"a": "<Heard>", "b": "<5 bytes>", "c": "<Decimal>", "d": "•••…12", "n": 42}


def test_b025_digits_are_in_no_log_line(lines: io.StringIO) -> None:
    log = structlog.get_logger("flow")
    log.info("collected", digits=f"{CARD}#", count=17)
    log.info("tool", arguments=json.dumps({"card": CARD}))
    log.warning(f"handler got {CARD}")
    try:
        raise ValueError(f"bad card {CARD} from +15551230012")
    except ValueError:
        log.exception("handler failed", values=[CARD, {"pin": CARD}])
    logging.getLogger("driver").error("row %s refused", CARD)
    logging.getLogger("driver").error("row %(card)s", {"card": CARD})
    text = lines.getvalue()
    assert "4111" not in text
    assert "1230012" not in text
    assert text.count("\n") == 6
    assert "ValueError" in text
    assert "Traceback" in text
    assert json.loads(text.splitlines()[0])["count"] == 17


def test_secrets_are_in_no_log_line(lines: io.StringIO) -> None:
    log = structlog.get_logger()
    log.info("connecting to postgresql://u:hush2@db/x", auth_token="tok-hush-1", note="tok-hush-1!")
    log.info("other", url="redis://me:hush3@host/0", header="Bearer abcdefghijkl", key="sk-proj-hushhush")
    try:
        raise RuntimeError("cannot use tok-hush-1")
    except RuntimeError as error:
        log.warning("failed", error=error)
    assert "hush" not in lines.getvalue()
    assert "abcdefgh" not in lines.getvalue()


def test_a_call_is_named_in_every_line_of_its_task(lines: io.StringIO) -> None:
    with call_context("CA0123456789abcdef0123456789abcdef", "bloom"):
        structlog.get_logger().info("inside")
        logging.getLogger("lib").info("inside too")
    structlog.get_logger().info("outside")
    inside, lib, outside = (json.loads(line) for line in lines.getvalue().splitlines())
    assert inside["call_sid"] == lib["call_sid"] == "CA0123456789abcdef0123456789abcdef"
    assert inside["business"] == "bloom"
    assert "call_sid" not in outside
    assert inside["timestamp"].startswith("20")


def test_console_lines_and_levels() -> None:
    root = logging.getLogger()
    was = (list(root.handlers), root.level)
    out = io.StringIO()
    try:
        configure("warning", "console", stream=out)
        structlog.get_logger().info("unseen")
        structlog.get_logger().warning("seen", caller="+15551230012")
    finally:
        root.handlers[:] = was[0]
        root.setLevel(was[1])
        structlog.reset_defaults()
    assert "unseen" not in out.getvalue()
    assert "seen" in out.getvalue()
    assert "+1•••…12" in out.getvalue()


def test_two_sets_of_metrics_do_not_meet() -> None:
    first, second = Metrics(), Metrics()
    first.calls_started.inc()
    first.calls_ended.labels("finished").inc()
    first.first_audio_ms.observe(450)
    assert b"callthread_calls_started_total 1.0" in first.render()
    assert b'callthread_calls_ended_total{reason="finished"} 1.0' in first.render()
    assert b'callthread_first_audio_ms_bucket{le="500.0"} 1.0' in first.render()
    assert b"callthread_calls_started_total 0.0" in second.render()
