"""The usual sample: µ-law both ways, base64 in base64 out. No pacing, no marks, no memory.

`python -m ivr.bench.bridges.pass_through --port PORT --model ws://…/v1`
"""

import argparse
import asyncio
import json
from functools import partial

import uvicorn
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect

SESSION = {
    "type": "realtime",
    "instructions": "You are a friendly assistant.",
    "audio": {
        "input": {"format": {"type": "audio/pcmu"}, "turn_detection": {"type": "server_vad"}},
        "output": {"format": {"type": "audio/pcmu"}, "voice": "marin"},
    },
}


async def from_twilio(ws: WebSocket, model: ClientConnection, sid: asyncio.Future[str]) -> None:
    """Frames to the model."""
    try:
        async for message in ws.iter_text():
            data = json.loads(message)
            if data["event"] == "media":
                payload = data["media"]["payload"]
                await model.send(json.dumps({"type": "input_audio_buffer.append", "audio": payload}))
            elif data["event"] == "start":
                sid.set_result(data["start"]["streamSid"])
    except WebSocketDisconnect:
        pass
    await model.close()


async def from_model(ws: WebSocket, model: ClientConnection, sid: asyncio.Future[str]) -> None:
    """Deltas to the caller; their speech clears what is queued."""
    stream_sid = await sid
    async for message in model:
        event = json.loads(message)
        if event["type"] == "response.output_audio.delta":
            media = {"event": "media", "streamSid": stream_sid, "media": {"payload": event["delta"]}}
            await ws.send_json(media)
        elif event["type"] == "input_audio_buffer.speech_started":
            await ws.send_json({"event": "clear", "streamSid": stream_sid})


async def bridge(ws: WebSocket, model_url: str) -> None:
    """One call."""
    await ws.accept()
    url = f"{model_url}/realtime?model=bench"
    async with connect(url, additional_headers={"Authorization": "Bearer none"}) as model:
        await model.send(json.dumps({"type": "session.update", "session": SESSION}))
        sid: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        await asyncio.gather(from_twilio(ws, model, sid), from_model(ws, model, sid))


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", required=True)
    arguments = parser.parse_args()
    route = WebSocketRoute("/media", partial(bridge, model_url=arguments.model))
    uvicorn.run(Starlette(routes=[route]), host="127.0.0.1", port=arguments.port, log_level="warning")


if __name__ == "__main__":
    main()
