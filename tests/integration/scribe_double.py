"""A double of a server with OpenAI's `POST /v1/audio/transcriptions`, on a real socket."""

from types import TracebackType
from typing import Any, Self

from aiohttp import BodyPartReader, web


class Scribe:
    """`status`: what it answers; `asked`: what it was sent."""

    def __init__(self, status: int = 200, text: str = "Please call me back.") -> None:
        self.status = status
        self.text = text
        self.asked: list[dict[str, Any]] = []
        self.url = ""
        app = web.Application()
        app.router.add_post("/v1/audio/transcriptions", self._handle)
        self._runner = web.AppRunner(app)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        asked: dict[str, Any] = {"key": request.headers["Authorization"]}
        async for part in await request.multipart():
            if isinstance(part, BodyPartReader) and part.name in ("file", "model", "language"):
                body = bytes(await part.read())
                asked[part.name] = body if part.name == "file" else body.decode()
        self.asked.append(asked)
        return web.json_response({"text": f" {self.text}\n"}, status=self.status)
