"""Fixtures of the acceptance tests."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ivr import reception
from tests.acceptance.world import Act, Story
from tests.acceptance.world import act as act_stories
from tests.pg import execute, with_database


@pytest.fixture
def new_database(cluster_url: str, template_database: str) -> Iterator[Callable[[], str]]:
    """Migrated databases, as many as a test wants."""
    made: list[str] = []

    def make() -> str:
        made.append(f"t_{uuid.uuid4().hex}")
        execute(cluster_url, "CREATE DATABASE {} TEMPLATE {}", made[-1], template_database)
        return with_database(cluster_url, made[-1])

    yield make
    for name in made:
        execute(cluster_url, "DROP DATABASE {} WITH (FORCE)", name)


@pytest.fixture
def act(tmp_path: Path, new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> Act:
    """`await act(story, story, …)`."""
    # A machine that is busy with twelve calls and their tests is no database that is down.
    monkeypatch.setattr(reception, "PREPARE_TIMEOUT_S", 10.0)

    async def run(*stories: Story) -> None:
        await act_stories(tmp_path, new_database, stories)

    return run
