"""`python -m ivr.sandbox`, as a user starts it."""

import asyncio
import signal
import socket
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from websockets.asyncio.client import connect


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def test_it_says_what_it_is_serves_and_stops_on_sigterm(tmp_path: Path) -> None:
    script = tmp_path / "s.yaml"
    script.write_text("[]")
    port = _free_port()
    arguments = ["-m", "ivr.sandbox", "--port", str(port), "--script", str(script)]
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=PIPE, stderr=PIPE)
    assert process.stdout is not None
    line = await process.stdout.readline()
    assert b"not a language model" in line
    headers = {"Authorization": "Bearer any"}
    async with connect(f"ws://127.0.0.1:{port}/v1/realtime?model=m", additional_headers=headers) as client:
        assert b'"sandbox/m"' in (await client.recv(decode=False))
    process.send_signal(signal.SIGTERM)
    await process.communicate()
    assert process.returncode == 0


async def test_a_bad_script_is_one_line_and_exit_1(tmp_path: Path) -> None:
    script = tmp_path / "s.yaml"
    script.write_text("- {any: true, sya: x}")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ivr.sandbox", "--script", str(script), stdout=PIPE, stderr=PIPE
    )
    _, error = await process.communicate()
    assert process.returncode == 1
    assert error.decode() == f"ivr sandbox: {script}:1: turns[0].sya: unknown key\n"


async def test_the_voices_process_ends_with_its_owner_even_when_that_is_killed() -> None:
    code = (
        "import asyncio\n"
        "from ivr.sandbox.voice import Voice\n"
        "async def main():\n"
        "    async with Voice() as voice:\n"
        "        print(voice.pid, flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    # The voice's process holds the same stderr: it ends only when both have.
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=PIPE, stderr=PIPE)
    assert owner.stdout is not None and owner.stderr is not None
    assert int(await owner.stdout.readline()) != owner.pid
    owner.kill()
    await owner.stderr.read()
    await owner.wait()
