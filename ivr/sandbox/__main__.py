"""`python -m ivr.sandbox --host 127.0.0.1 --port 9000 [--script FILE]`."""

import argparse
import asyncio
import contextlib
import signal
import sys
from pathlib import Path

from ivr.errors import CallthreadError
from ivr.sandbox.server import serve

DEFAULT_PORT = 9000


async def _until_told(host: str, port: int, script: Path | None, partials_ms: float) -> None:
    """Serve until SIGTERM or SIGINT."""
    serving = asyncio.ensure_future(serve(host, port, script=script, partials_ms=partials_ms))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, serving.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await serving


def main(arguments: list[str] | None = None) -> int:
    """Run the sandbox; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="ivr sandbox",
        description="An offline server that speaks the OpenAI Realtime protocol. Not a language model.",
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    parser.add_argument(
        "--script", type=Path, help="YAML file of turns; neither ear nor voice is loaded then"
    )
    parser.add_argument(
        "--partials-ms",
        type=float,
        default=0.0,
        help="tell words while the user speaks, each so many ms of speech (0: only at the end)",
    )
    options = parser.parse_args(arguments)
    try:
        asyncio.run(_until_told(options.host, options.port, options.script, options.partials_ms))
    except (CallthreadError, OSError) as error:
        sys.stderr.write(f"ivr sandbox: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
