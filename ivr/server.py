"""The HTTP server. We own the signals: uvicorn alone would close every call within 80 ms of a SIGTERM."""

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Coroutine
from types import FrameType
from typing import Any, TypeVar

import structlog
import uvicorn
import uvloop
from starlette.types import ASGIApp

from ivr.adapters.direct_socket import DirectSocket
from ivr.wire.twilio import MAX_MESSAGE_BYTES

PING_S = 10.0
"""A peer that answers no ping for this long is gone: its call comes back through the continue URL."""

CLOSE_S = 3
"""How long connections may take to end once the server is told to stop."""

GIL_S = 0.000_5
"""So long at most a thread that computes keeps the interpreter from the loop; Python's own 5 ms are a frame's delay."""

T = TypeVar("T")
log = structlog.get_logger(__name__)


class Server(uvicorn.Server):
    """The first SIGTERM or SIGINT starts a drain; the server stops when drained, when `drain_s` is over, or at the
    second signal. HTTP is answered throughout. Ends normally: exit code 0.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        on_drain: Callable[[], None],
        drained: Callable[[], Awaitable[None]],
        drain_s: float,
    ) -> None:
        super().__init__(config)
        self.port = 0
        """The port that is bound, once `ready` is set."""
        self.ready = asyncio.Event()
        self._on_drain = on_drain
        self._drained = drained
        self._drain_s = drain_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drain: asyncio.Task[None] | None = None
        self._signals = 0

    async def startup(self, sockets: list[Any] | None = None) -> None:
        """Bind, then say where."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self.port = next((s.getsockname()[1] for server in self.servers for s in server.sockets), 0)
        self.ready.set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came. Not kept for raising it again afterwards, as uvicorn does: we end with 0."""
        self._signals += 1
        if self._signals > 1 or self._loop is None:
            self.should_exit = True
            return
        self._loop.call_soon_threadsafe(self.begin_drain)

    def begin_drain(self) -> None:
        """Start the drain, once."""
        if self._drain is None:
            self._drain = asyncio.create_task(self._drain_calls(), name="drain")

    async def shutdown(self, sockets: list[Any] | None = None) -> None:
        """Stop listening and close what is open; nothing of the drain is left running."""
        await super().shutdown(sockets)
        if self._drain is not None:
            self._drain.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._drain

    async def _drain_calls(self) -> None:
        log.info("draining", drain_s=self._drain_s)
        try:
            self._on_drain()
            async with asyncio.timeout(self._drain_s):
                await self._drained()
            log.info("drained")
        except TimeoutError:
            log.warning("drain_time_over", drain_s=self._drain_s)
        except Exception:  # a task's border: a broken drain must not keep the process up for ever
            log.exception("drain_failed")
        finally:
            self.should_exit = True


def make_server(
    app: ASGIApp,
    host: str,
    port: int,
    *,
    on_drain: Callable[[], None],
    drained: Callable[[], Awaitable[None]],
    drain_s: float,
) -> Server:
    """A server for `app`; `await server.serve()` runs it. `port` 0: the system chooses, see `Server.port`."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http="httptools",
        ws=DirectSocket,
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_per_message_deflate=False,  # 74 against 9 µs a message
        ws_ping_interval=PING_S,
        ws_ping_timeout=PING_S,
        lifespan="off",
        log_config=None,  # ours: ivr.observe
        log_level="warning",  # its info lines are an access log
        access_log=False,
        proxy_headers=False,  # forwarded headers are never believed
        server_header=False,
        timeout_graceful_shutdown=CLOSE_S,
    )
    return Server(config, on_drain, drained, drain_s)


async def serve_app(
    app: ASGIApp,
    host: str,
    port: int,
    *,
    on_drain: Callable[[], None],
    drained: Callable[[], Awaitable[None]],
    drain_s: float,
) -> None:
    """Serve until a signal's drain is over. Call it in the main thread: signals are handled there."""
    await make_server(app, host, port, on_drain=on_drain, drained=drained, drain_s=drain_s).serve()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a program's main coroutine on uvloop."""
    sys.setswitchinterval(GIL_S)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)
