"""What the package says it needs: releases that do not work with it are forbidden by name."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
PROJECT = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
NEEDED = {need.name: need for need in map(Requirement, PROJECT["dependencies"])}


def test_b110_other_releases_of_what_we_reach_into_are_forbidden() -> None:
    """We use more of these than their documents promise (`ivr/adapters/openai_socket.py`)."""
    for name, known, unknown in (
        ("websockets", "15.0.1", ["13.1", "14.2", "16.0"]),
        ("openai", "3.57.0", ["2.9", "4.0"]),
    ):
        assert NEEDED[name].specifier.contains(known)
        assert not [release for release in unknown if NEEDED[name].specifier.contains(release)]


def test_b111_audioop_comes_from_elsewhere_where_python_has_it_no_more() -> None:
    """Imports inside functions are none (`test_imports.py`): a lack of it shows at the start, not in the first call."""
    marker = NEEDED["audioop-lts"].marker
    assert marker is not None
    for version, wanted in (("3.11", False), ("3.12", False), ("3.13", True), ("3.14", True)):
        assert marker.evaluate({"python_version": version}) is wanted
