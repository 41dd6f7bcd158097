"""Flow files that change while the service runs."""

import asyncio
import os
from pathlib import Path

import pytest

from callflows.faults import FlowErrors
from ivr import shelf as shelf_module
from ivr.shelf import FlowShelf
from tests.unit.callflows.examples import CLINIC, changed


def write(path: Path, text: str, at_ns: int) -> None:
    path.write_text(text)
    os.utime(path, ns=(at_ns, at_ns))


def test_a_changed_file_is_taken_up(tmp_path: Path) -> None:
    file = tmp_path / "clinic.yaml"
    write(file, CLINIC, 1_000)
    shelf = FlowShelf(tmp_path)
    before = shelf.businesses["clinic"]
    assert not shelf.look()
    write(file, changed("Hello, this is the clinic.", "Good day."), 2_000)
    assert shelf.look()
    assert (shelf.businesses["clinic"].greeting, before.greeting) == (
        "Good day.",
        "Hello, this is the clinic.",
    )
    assert shelf.by_number("+16175550101") is shelf.businesses["clinic"]
    assert "Good day." in shelf.text_of("clinic")
    assert not shelf.look()


def test_a_bad_file_keeps_the_old_flows_and_a_mended_one_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "clinic.yaml"
    write(file, CLINIC, 1_000)
    shelf = FlowShelf(tmp_path)
    known = shelf.hash_of("clinic")
    write(file, changed("start: main", "start: mian"), 2_000)
    assert not shelf.look()
    assert f"{file}:13:8: error: no node is called `mian`" in shelf.fault
    assert shelf.hash_of("clinic") == known
    write(file, CLINIC + "# mended\n", 3_000)
    assert shelf.look()
    assert shelf.fault == ""


def test_files_come_and_go(tmp_path: Path) -> None:
    write(tmp_path / "clinic.yaml", CLINIC, 1_000)
    shelf = FlowShelf(tmp_path)
    other = CLINIC.replace("id: clinic", "id: other").replace("+16175550101", "+16175550109")
    write(tmp_path / "other.yaml", other, 1_000)
    assert shelf.look()
    assert set(shelf.businesses) == {"clinic", "other"}
    (tmp_path / "clinic.yaml").unlink()
    assert shelf.look()
    assert set(shelf.businesses) == {"other"}
    (tmp_path / "other.yaml").unlink()
    assert not shelf.look()
    assert "no flow files here" in shelf.fault
    assert set(shelf.businesses) == {"other"}


def test_a_changed_file_that_is_included_is_taken_up(tmp_path: Path) -> None:
    write(tmp_path / "clinic.yaml", CLINIC + "include: [shared/more/limits.yaml]\n", 1_000)
    file = tmp_path / "shared/more/limits.yaml"
    file.parent.mkdir(parents=True)
    write(file, "limits: {reprompts: 1}\n", 1_000)
    shelf = FlowShelf(tmp_path)
    known = shelf.hash_of("clinic")
    write(file, "limits: {reprompts: 3}\n", 2_000)
    assert shelf.look()
    assert shelf.businesses["clinic"].limits.reprompts == 3
    assert shelf.hash_of("clinic") != known
    file.unlink()
    assert not shelf.look()
    assert "there is no file" in shelf.fault
    write(file, "limits: {reprompts: 3}\n", 3_000)
    assert shelf.look()


def test_it_does_not_begin_with_bad_files(tmp_path: Path) -> None:
    with pytest.raises(FlowErrors):
        FlowShelf(tmp_path)


async def test_flows_that_stay_the_same_are_stored_again_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what they are stored as would count as unused in the end."""
    (tmp_path / "clinic.yaml").write_text(CLINIC)
    monkeypatch.setattr(shelf_module, "LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(shelf_module, "KEEP_EVERY_S", 0.003)
    kept = asyncio.Event()

    async def keep() -> None:
        kept.set()

    watching = asyncio.create_task(FlowShelf(tmp_path).watch(keep))
    await kept.wait()
    watching.cancel()
