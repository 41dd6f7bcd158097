"""The wheel holds all that the service needs: migrations, flows, prices, types."""

import os
import subprocess
import sys
from pathlib import Path

from memory.embedded import conninfo_of

ROOT = Path(__file__).parents[2]
WHERE = "import callflows, ivr, memory; print(ivr.__file__, memory.__file__, callflows.__file__)"


def run(folder: Path, *command: str, **env: str) -> str:
    """The output of a Python command that must succeed, in an empty folder."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=os.environ | env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_alone_migrates_a_database_and_checks_its_flows(
    tmp_path: Path, empty_database_url: str
) -> None:
    built, installed, empty = tmp_path / "built", tmp_path / "installed", tmp_path / "empty"
    empty.mkdir()
    run(ROOT, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(built))
    (wheel,) = built.glob("callthread-*.whl")
    run(
        empty,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(installed),
        str(wheel),
    )
    env = {"PYTHONPATH": str(installed), "IVR_DATABASE_URL": conninfo_of(empty_database_url)}

    assert all(Path(path).is_relative_to(installed) for path in run(empty, "-c", WHERE, **env).split())
    assert "newest schema" in run(empty, "-m", "ivr", "db", "upgrade", **env)
    checked = run(empty, "-m", "ivr", "flows", "check", **env)
    assert checked.startswith(str(installed / "callflows" / "businesses"))
    assert "0 errors" in checked
    for shipped in ("ivr/py.typed", "memory/prices.toml", "ivr/_alembic/env.py"):
        assert (installed / shipped).is_file(), shipped
    assert not list(installed.glob("tests"))
