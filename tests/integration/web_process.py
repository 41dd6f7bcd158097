"""A worker as a process of its own, for signals: `python -m tests.integration.web_process DRAIN_S`."""

import asyncio
import sys

from ivr.server import make_server, run
from ivr.web.routes import create_app
from tests.integration.web_kit import World


async def main(drain_s: float) -> None:
    """Serve until a signal; the first line of stdout is the port."""
    world = World()
    deps = world.deps()

    def drain() -> None:
        world.draining = True

    server = make_server(
        create_app(deps), "127.0.0.1", 0, on_drain=drain, drained=deps.slots.empty, drain_s=drain_s
    )
    serving = asyncio.create_task(server.serve())
    await server.ready.wait()
    sys.stdout.write(f"{server.port}\n")
    sys.stdout.flush()
    await serving
    sys.stdout.write(f"ended {len(world.calls.ended)}\n")


if __name__ == "__main__":
    run(main(float(sys.argv[1])))
