"""A memory bench that is told to stop leaves nothing running."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from ivr.bench.running import TERMINATED
from tests.pg import server_folder

PROGRAM = """
import asyncio, signal, sys
from pathlib import Path
from ivr.bench import memory_world
from ivr.bench.running import run

memory_world.find_model = lambda _named: None
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would be deaf to it

async def bench():
    async with memory_world.memory_world(Path(sys.argv[1])):
        print("up", flush=True)
        await asyncio.Event().wait()

run(bench())
"""


def servers(folder: Path) -> list[int]:
    """PostgreSQL's processes that work somewhere in the folder."""
    every = psutil.process_iter(["name", "cwd", "pid"])
    return [
        each.info["pid"]
        for each in every
        if "postgres" in (each.info["name"] or "") and (each.info["cwd"] or "").startswith(str(folder))
    ]


@pytest.mark.parametrize(
    ("sent", "codes"),
    [
        (signal.SIGTERM, {TERMINATED}),
        (signal.SIGINT, {-signal.SIGINT, 128 + signal.SIGINT}),
    ],
)
async def test_a_bench_told_to_stop_stops_its_database(sent: signal.Signals, codes: set[int]) -> None:
    with server_folder() as folder:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PROGRAM, str(folder / "kept")),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(folder)},
        )
        assert process.stdout is not None
        while await process.stdout.readline() != b"up\n":
            assert not process.stdout.at_eof()
        assert servers(folder)
        process.send_signal(sent)
        assert await process.wait() in codes
        assert servers(folder) == []
        assert list(folder.glob("callthread-bench-*")) == []
