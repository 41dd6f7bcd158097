"""Signals: a worker drains, answers throughout, and ends with 0."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from websockets.asyncio.client import ClientConnection

from tests.integration.web_kit import (
    CONNECTED,
    closed_with,
    dial_stream,
    form,
    parameters,
    parse_twiml,
    signed_post,
    start_message,
    verbs,
)


@asynccontextmanager
async def worker(drain_s: float) -> AsyncIterator[tuple[Process, int]]:
    command = [sys.executable, "-m", "tests.integration.web_process", str(drain_s)]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
    assert process.stdout is not None
    try:
        yield process, int(await process.stdout.readline())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def ask(port: int, path: str, call_sid: str) -> list[str]:
    root, _ = await ask_parameters(port, path, call_sid)
    return root


async def ask_parameters(port: int, path: str, call_sid: str) -> tuple[list[str], dict[str, str]]:
    body, headers = signed_post(path, form(call_sid))
    async with httpx2.AsyncClient(trust_env=False) as client:
        root = parse_twiml(
            (await client.post(f"http://127.0.0.1:{port}{path}", content=body, headers=headers)).text
        )
    return verbs(root), parameters(root)


async def ready(port: int) -> int:
    async with httpx2.AsyncClient(trust_env=False) as client:
        return (await client.get(f"http://127.0.0.1:{port}/readyz")).status_code


async def drained_readiness(port: int) -> None:
    async with asyncio.timeout(10):
        while await ready(port) != 503:  # noqa: ASYNC110  # only asking tells
            await asyncio.sleep(0.02)


@asynccontextmanager
async def call(port: int, call_sid: str) -> AsyncIterator[ClientConnection]:
    _, given = await ask_parameters(port, "/twilio/voice", call_sid)
    async with dial_stream(port) as ws:
        await ws.send(CONNECTED)
        await ws.send(start_message(call_sid, given))
        await asyncio.wait_for(await ws.ping(), 5)  # the server has read what came before
        yield ws


async def rest_of(process: Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(15):
        rest = (await process.stdout.read()).decode()
        await process.wait()
    return rest


async def test_b109_running_calls_go_on_until_they_end() -> None:
    async with worker(60) as (process, port):
        assert await ready(port) == 200
        async with call(port, "CA1") as first, call(port, "CA2") as second:
            process.send_signal(signal.SIGTERM)
            await drained_readiness(port)
            assert await ask(port, "/twilio/voice", "CA3") == ["Say", "Hangup"]
            assert await ask(port, "/twilio/continue", "CA1") == ["Pause", "Redirect"]
            for ws in (first, second):
                await asyncio.wait_for(await ws.ping(), 5)
        assert "ended 2" in await rest_of(process)
        assert process.returncode == 0


async def test_b109_a_second_signal_ends_at_once_and_a_grace_that_is_over_too() -> None:
    async with worker(60) as (process, port):
        async with call(port, "CA1") as ws:
            process.send_signal(signal.SIGTERM)
            await drained_readiness(port)
            process.send_signal(signal.SIGTERM)
            assert await closed_with(ws) == 1012
        assert "ended 1" in await rest_of(process)
        assert process.returncode == 0
    async with worker(0.3) as (process, port):
        async with call(port, "CA1") as ws:
            process.send_signal(signal.SIGTERM)
            assert await closed_with(ws) == 1012
        assert "ended 1" in await rest_of(process)
        assert process.returncode == 0


async def test_b109_without_calls_it_ends_at_once() -> None:
    async with worker(60) as (process, _):
        process.send_signal(signal.SIGINT)
        assert "ended 0" in await rest_of(process)
        assert process.returncode == 0
