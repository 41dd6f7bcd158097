"""The embedding process: `python -m memory.embed_worker --socket PATH --model SOURCE --name NAME --cache DIR`.

A process of its own, because importing sentence-transformers takes seconds and stalls any event loop beside it. The
socket appears when the model is loaded. It ends with its parent (standard input closes).
"""

import argparse
import asyncio
import hashlib
import os
import sys
from pathlib import Path

import msgspec
import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import structlog
import torch
from sentence_transformers import SentenceTransformer

from memory.embed_queue import MICRO_BATCH_TEXTS, EmbedQueue
from memory.embed_wire import EmbedReply, EmbedRequest, frame, read_frame
from memory.errors import EncodingFailed

log = structlog.get_logger()


class Worker:
    """Serves one model, a micro-batch at a time, on one thread."""

    def __init__(self, name: str, model: SentenceTransformer) -> None:
        self._name = name
        self._model = model
        self._dimension = len(model.encode("warm"))  # the property was renamed between releases
        self._queue: EmbedQueue[list[float]] = EmbedQueue()

    async def run(self, socket_path: Path) -> None:
        """Serve until standard input ends."""
        os.umask(0o077)
        server = await asyncio.start_unix_server(self._client, str(socket_path))
        log.info("embedding_ready", model=self._name, dimension=self._dimension)
        async with server:
            encoder = asyncio.create_task(self._queue.serve(self._encode))
            await _parent_gone()
            encoder.cancel()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = msgspec.msgpack.decode(await read_frame(reader), type=EmbedRequest)
            writer.write(frame(await self._answer(request)))
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ValueError, msgspec.MsgspecError) as fault:
            log.warning("embedding_request_dropped", error=type(fault).__name__)
        finally:
            writer.close()

    async def _answer(self, request: EmbedRequest) -> EmbedReply:
        try:
            return EmbedReply(self._name, self._dimension, await self._queue.ask(request))
        except EncodingFailed as failed:
            return EmbedReply(self._name, self._dimension, error=str(failed))

    def _encode(self, texts: list[str]) -> list[list[float]]:
        raw = self._model.encode(
            texts, batch_size=MICRO_BATCH_TEXTS, show_progress_bar=False, normalize_embeddings=True
        )
        vectors: list[list[float]] = np.asarray(raw, dtype=np.float32).tolist()
        return vectors


def load(source: str, cache: Path) -> SentenceTransformer:
    """The model on the ONNX runtime (4 times faster here, same vectors), exported once; on torch where that fails."""
    torch.set_num_threads(1)
    try:
        return _load_onnx(source, cache)
    except Exception:  # an optional backend: whatever is wrong with it, torch does the work
        log.exception("embedding_onnx_unavailable")
        model: SentenceTransformer = SentenceTransformer(source, device="cpu")
        return model


def _load_onnx(source: str, cache: Path) -> SentenceTransformer:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    settings: dict[str, object] = {"provider": "CPUExecutionProvider", "session_options": options}
    exported = cache / f"onnx-{hashlib.sha256(source.encode()).hexdigest()[:12]}"
    if exported.exists():
        return _on_onnx(str(exported), settings)
    model = _on_onnx(source, {**settings, "export": True})
    unfinished = exported.with_name(f"{exported.name}.{os.getpid()}.part")
    model.save_pretrained(str(unfinished))
    unfinished.rename(exported)
    return model


def _on_onnx(source: str, settings: dict[str, object]) -> SentenceTransformer:
    model: SentenceTransformer = SentenceTransformer(
        source, backend="onnx", device="cpu", model_kwargs=settings
    )
    return model


async def _parent_gone() -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    await reader.read()


def main() -> None:
    """Load the model, then serve."""
    parser = argparse.ArgumentParser(prog="memory.embed_worker")
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--model", required=True, help="a folder or a hub name")
    parser.add_argument("--name", required=True, help="the name that rows carry")
    parser.add_argument("--cache", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.cache.mkdir(parents=True, exist_ok=True)
    model = load(arguments.model, arguments.cache)
    asyncio.run(Worker(arguments.name, model).run(arguments.socket))


if __name__ == "__main__":
    main()
