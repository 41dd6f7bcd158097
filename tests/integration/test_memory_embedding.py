"""The real embedding process with the bundled weights, and what its client does without it."""

import asyncio
from pathlib import Path

import pytest

from memory.embed import BUNDLED_NAME, Embedder, EmbedProcess, find_model


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def up(embedder: Embedder) -> None:
    while not await embedder.ready():  # noqa: ASYNC110 - another process: there is nothing to wait on
        await asyncio.sleep(0.1)


async def test_b079_the_bundled_model_embeds_in_its_own_process(tmp_path: Path) -> None:
    """Not up at first; then near things are near; killed, it is started again; stopped, it is gone."""
    model = find_model(None)
    assert model is not None and model.name == BUNDLED_NAME
    process = EmbedProcess(model, tmp_path)
    embedder = process.client()
    await process.start()
    assert await embedder.embed(["too early"]) is None
    await up(embedder)
    vectors = await embedder.embed(
        ["My son is allergic to walnuts.", "He cannot eat nuts.", "Park behind us."]
    )
    assert vectors is not None
    assert [len(vector) for vector in vectors] == [384] * 3
    assert cosine(vectors[0], vectors[0]) == pytest.approx(1.0, abs=1e-3)
    assert cosine(vectors[0], vectors[1]) > 0.4 > cosine(vectors[0], vectors[2])
    many = await asyncio.gather(*(embedder.embed([f"text {number}"], wait_s=30) for number in range(20)))
    assert all(many)
    with pytest.raises(ValueError, match="without words"):
        await embedder.embed(["..."])
    assert process.pid is not None
    await asyncio.create_subprocess_exec("kill", "-9", str(process.pid))
    killed = process.pid
    while process.pid in {killed, None}:  # noqa: ASYNC110 - another process again
        await asyncio.sleep(0.1)
    await process.stop()
    await process.stop()
    assert await embedder.embed(["too late"]) is None


async def test_without_a_process_there_are_no_vectors(tmp_path: Path) -> None:
    embedder = Embedder(tmp_path / "none.sock", "model")
    assert await embedder.embed(["hello"]) is None
    assert await embedder.ready() is False
    assert embedder.fault is None


async def test_a_process_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.close()

    path = tmp_path / "s"
    async with await asyncio.start_unix_server(silent, str(path)):
        assert await Embedder(path, "model", wait_s=0.05).embed(["hello"]) is None
        release.set()
