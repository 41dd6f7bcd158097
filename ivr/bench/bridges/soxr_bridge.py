"""The usual sample with PCM16 24 kHz on the model's side: G.711 and soxr streams both ways.

`python -m ivr.bench.bridges.soxr_bridge --port PORT --model ws://…/v1`
"""

import argparse
import asyncio
import audioop
import base64
import json
from functools import partial

import numpy as np
import soxr
import uvicorn
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect

PCM = {"type": "audio/pcm", "rate": 24_000}
SESSION = {
    "type": "realtime",
    "instructions": "You are a friendly assistant.",
    "audio": {
        "input": {"format": PCM, "turn_detection": {"type": "server_vad"}},
        "output": {"format": PCM, "voice": "marin"},
    },
}


async def from_twilio(ws: WebSocket, model: ClientConnection, sid: asyncio.Future[str]) -> None:
    """Frames to the model."""
    up = soxr.ResampleStream(8_000, 24_000, 1, dtype="int16")
    try:
        async for message in ws.iter_text():
            data = json.loads(message)
            if data["event"] == "media":
                pcm8k = audioop.ulaw2lin(base64.b64decode(data["media"]["payload"]), 2)
                pcm24k = up.resample_chunk(np.frombuffer(pcm8k, np.int16))
                audio = base64.b64encode(pcm24k.tobytes()).decode()
                await model.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
            elif data["event"] == "start":
                sid.set_result(data["start"]["streamSid"])
    except WebSocketDisconnect:
        pass
    await model.close()


async def from_model(ws: WebSocket, model: ClientConnection, sid: asyncio.Future[str]) -> None:
    """Deltas to the caller; their speech clears what is queued."""
    stream_sid = await sid
    down = soxr.ResampleStream(24_000, 8_000, 1, dtype="int16")
    async for message in model:
        event = json.loads(message)
        if event["type"] == "response.output_audio.delta":
            pcm24k = np.frombuffer(base64.b64decode(event["delta"]), np.int16)
            ulaw = audioop.lin2ulaw(down.resample_chunk(pcm24k).tobytes(), 2)
            payload = base64.b64encode(ulaw).decode()
            await ws.send_json({"event": "media", "streamSid": stream_sid, "media": {"payload": payload}})
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
