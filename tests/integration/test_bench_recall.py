"""`ivr bench recall` through the real store, by words alone, on a dialogue written here."""

from pathlib import Path

import msgspec

from ivr.bench.locomo import load_dialogues
from ivr.bench.memory_world import MemoryWorld
from ivr.bench.recall import ask, remember_all, scores
from ivr.bench.recall_report import as_jsonl
from memory.audio_store import AudioStore
from memory.store import Store
from memory.strategies import StrategyName
from tests.unit.bench.test_recall import RAW

KEYS = {"n", "hit", "hit_single", "hit_multi", "verbatim", "verbatim_multi", "tokens"}


async def test_every_strategy_is_asked_and_the_latest_words_are_audio(store: Store, tmp_path: Path) -> None:
    (tmp_path / "made.json").write_bytes(msgspec.json.encode([RAW]))
    dialogues = load_dialogues(tmp_path / "made.json")
    world = MemoryWorld("", store, AudioStore(f"file://{tmp_path}/audio"), None)
    steps: list[None] = []
    (past,) = await remember_all(world, dialogues, lambda: steps.append(None), spoken=True)
    answers = await ask(
        world.memory(), past, [40, 400], lambda: steps.append(None), strategies=list(StrategyName)
    )
    assert len(steps) == 5  # three pages, two questions
    found = msgspec.to_builtins(scores(answers), str_keys=True)
    assert set(found) == {name.value for name in StrategyName}
    assert all(set(by_budget) == {"40", "400"} for by_budget in found.values())
    assert all(set(score) >= KEYS for by_budget in found.values() for score in by_budget.values())
    ours = found["vthreads"]
    assert ours["400"] | {"tokens": 0, "pages": {}} == dict.fromkeys(KEYS, 1.0) | {
        "n": 2,
        "tokens": 0,
        "pages": {},
    }
    # "Wet. (photo: a lake)": five words are two seconds.
    assert (ours["400"]["pages"]["audio"], ours["40"]["tokens"] <= 40) == (1.0, True)
    first = msgspec.json.decode(as_jsonl(answers).splitlines()[0])
    assert {"question", "budget", "strategy", "shown"} <= set(first)
    assert {"text", "form", "dia_ids"} <= set(first["shown"][0])
