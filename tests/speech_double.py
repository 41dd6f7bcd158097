"""A double of a text-to-speech endpoint, on a real socket: `POST /v1/audio/speech` as OpenAI documents it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.unit.core.call_rig import tone


@dataclass
class SpeechDouble:
    """Says a tone of 100 ms for each word. `faults` hold for the next requests, one each.

    status: refused so; json, wav: an answer of that kind; stall: nothing comes; break: the line breaks in mid-sound;
    empty: no sound at all.
    """

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    async def speech(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.json())
        self.keys.append(request.headers.get("Authorization", ""))
        fault = self.faults.pop(0) if self.faults else ""
        if fault.isdigit():
            return web.json_response({"error": {"message": self.asked[-1]["input"]}}, status=int(fault))
        if fault == "json":
            return web.json_response({"error": "no such voice"})
        if fault == "wav":
            return web.Response(body=b"RIFF....WAVEfmt ", content_type="application/octet-stream")
        if fault == "empty":
            return web.Response(body=b"", content_type="audio/pcm")
        if fault == "stall":
            await asyncio.sleep(60)
        return await self._stream(request, fault)

    async def _stream(self, request: web.Request, fault: str) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "audio/pcm"})
        answer.enable_chunked_encoding()
        await answer.prepare(request)
        pcm = self.sound_of(self.asked[-1]["input"])
        await answer.write(pcm[:1_001])  # cut in the middle of a sample
        if fault == "break":
            await asyncio.sleep(0.05)
            if request.transport is not None:
                request.transport.abort()
            return answer
        await answer.write(pcm[1_001:])
        await answer.write_eof()
        return answer

    def sound_of(self, text: str) -> bytes:
        return tone(100 * len(text.split()))

    def said(self) -> list[str]:
        """The texts that were asked for, in order."""
        return [each["input"] for each in self.asked]


@contextlib.asynccontextmanager
async def speech_double() -> AsyncIterator[SpeechDouble]:
    """The endpoint while the block runs; `url` is its base."""
    double = SpeechDouble()
    app = web.Application()
    app.router.add_post("/v1/audio/speech", double.speech)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    double.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield double
    finally:
        await runner.cleanup()
