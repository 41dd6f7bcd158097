"""What a model said of a text is known in the next run too, and of another model is not."""

from pathlib import Path

import pytest

from ivr.bench.kept_vectors import KeptVectors, VectorFile
from memory.embed_wire import EmbedReply, EmbedRequest


class Counting(KeptVectors):
    """Answers with each text's length, and keeps what it was asked."""

    asked: list[str]

    async def _ask(self, request: EmbedRequest) -> EmbedReply:
        self.asked += request.texts
        return EmbedReply(self.model, 384, [[float(len(text))] * 384 for text in request.texts])


def counting(folder: Path, model: str = "model") -> Counting:
    made = Counting(folder / "none.sock", model, VectorFile(folder / "kept" / "vectors.sqlite"), wait_s=1.0)
    made.asked = []
    return made


async def test_no_text_is_asked_for_twice(tmp_path: Path) -> None:
    first = counting(tmp_path)
    assert await first.embed(["a", "bc", "a"]) == [[1.0] * 384, [2.0] * 384, [1.0] * 384]
    assert await first.embed(["bc"]) == [[2.0] * 384]
    assert first.asked == ["a", "bc"]
    later = counting(tmp_path)
    assert await later.embed(["bc", "def"]) == [[2.0] * 384, [3.0] * 384]
    assert later.asked == ["def"]
    other = counting(tmp_path, "other model")
    await other.embed(["bc"])
    assert other.asked == ["bc"]


async def test_a_text_without_words_is_refused_as_ever(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="without words"):
        await counting(tmp_path).embed(["..."])
