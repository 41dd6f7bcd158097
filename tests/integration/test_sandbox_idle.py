"""A session that nobody talks to costs nothing."""

import asyncio
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from ivr.sandbox.outbox import Effect
from ivr.sandbox.server import running
from ivr.sandbox.session import Session


async def test_an_idle_session_sleeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = 0
    tick = Session.tick

    def counted(self: Session, now_ms: float) -> list[Effect]:
        nonlocal ticks
        ticks += 1
        return tick(self, now_ms)

    monkeypatch.setattr(Session, "tick", counted)
    script = tmp_path / "script.yaml"
    script.write_text("- {start: true, say: Hello, audio_ms: 400}\n")
    async with running("127.0.0.1", 0, script=script) as port:
        url = f"ws://127.0.0.1:{port}/v1/realtime?model=m"
        async with connect(url, additional_headers={"Authorization": "Bearer any"}) as client:
            await client.recv()
            await client.send('{"type":"response.create"}')
            while '"response.done"' not in str(await client.recv()):
                pass
            spent = ticks
            await asyncio.sleep(0.2)
    assert ticks - spent <= 5
