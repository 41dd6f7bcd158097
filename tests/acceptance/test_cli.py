"""The command line as a user meets it: what works, and what it says when something is wrong."""

import asyncio
import io
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog

from ivr import cli
from memory.audio_store import AudioStore
from memory.embedded import conninfo_of
from memory.model import CallSnapshot, Exchange, Owner
from memory.service import Memory
from memory.store import Store
from tests.acceptance.businesses import FRONT_DESK, write_flows
from tests.pg import serving

VARIABLES = ("IVR_", "TWILIO_", "OPENAI_")

Ivr = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ivr(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Ivr]:
    """`ivr ARGUMENTS` with no settings but those given, in a folder of its own: exit code, stdout, stderr."""
    for name in os.environ:
        if name.startswith(VARIABLES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("IVR_DATA_DIR", str(tmp_path / "var"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, **env: str) -> tuple[int, str, str]:
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["ivr", *arguments])
        capsys.readouterr()
        try:
            cli.main()
            code = 0
        except SystemExit as done:
            code = int(done.code or 0)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    handlers, level = list(logging.root.handlers), logging.root.level
    yield run
    structlog.reset_defaults()
    logging.root.handlers, logging.root.level = handlers, level


def test_help_tells_every_command() -> None:
    told = subprocess.run([sys.executable, "-m", "ivr", "--help"], capture_output=True, text=True, check=True)
    for command in ("serve", "worker", "sandbox", "demo", "call", "flows", "calls", "db"):
        assert command in told.stdout


def test_flows_check_says_file_and_line(ivr: Ivr, tmp_path: Path) -> None:
    good = write_flows(tmp_path / "flows")
    code, out, _ = ivr("flows", "check", str(good))
    assert (code, out.splitlines()[-1]) == (0, f"{good}: 0 errors, 1 warnings")  # one reaches nobody
    assert ivr("flows", "check")[0] == 0  # what is shipped
    bad = good / "alpha.yaml"
    text = (
        bad.read_text().replace("start: talk", "start: tlak").replace("timezone: America/New_York", "zone: x")
    )
    bad.write_text(text)
    line = next(n for n, content in enumerate(text.splitlines(), start=1) if content == "zone: x")
    code, out, _ = ivr("flows", "check", str(good))
    assert code == 1
    assert f"{bad}:{line}:" in out
    assert "tlak" in out


def test_a_broken_flow_stops_the_service_with_its_place(ivr: Ivr, tmp_path: Path) -> None:
    flows = write_flows(tmp_path / "flows")
    (flows / "beta.yaml").write_text("id: [broken\n")
    code, _, err = ivr("serve", IVR_CALLFLOWS=str(flows), IVR_REALTIME_URL="ws://127.0.0.1:9/v1")
    assert code == 1
    assert f"{flows / 'beta.yaml'}:" in err
    assert "Traceback" not in err


def test_serving_without_a_model_names_the_three_ways(ivr: Ivr) -> None:
    code, _, err = ivr("serve")
    assert code == 2
    for way in ("OPENAI_API_KEY", "IVR_REALTIME_URL", "sandbox"):
        assert way in err


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("IVR_MAX_CALLS", "many"),
        ("IVR_PUBLIC_URL", "http://ivr.example.com"),
        ("IVR_DATABASE_URL", "mysql://u:hunter2@db/ivr"),
        ("IVR_CALLFLOWS", "./nowhere"),
        ("IVR_LOG_LEVEL", "loud"),
        ("IVR_REALTIME_URL", "https://api.example.com"),
    ],
)
def test_a_wrong_setting_is_named_with_a_right_example(ivr: Ivr, name: str, value: str) -> None:
    code, _, err = ivr("serve", **{name: value})
    assert code == 2
    assert err.startswith(f"ivr: {name}: ")
    assert "example: " in err
    assert "Traceback" not in err
    assert "hunter2" not in err


def test_a_database_that_is_not_there_is_one_line(ivr: Ivr) -> None:
    address = "postgresql://ivr:hunter2@127.0.0.1:9/ivr"
    for command in (("serve",), ("calls", "list"), ("db", "upgrade")):
        code, _, err = ivr(*command, IVR_DATABASE_URL=address, IVR_REALTIME_URL="ws://127.0.0.1:9/v1")
        assert code == 1
        assert err.startswith("ivr: IVR_DATABASE_URL: the database cannot be reached")
        assert "hunter2" not in err
        assert "Traceback" not in err


def test_a_database_that_was_not_migrated_says_what_to_do(ivr: Ivr, empty_database_url: str) -> None:
    env = {"IVR_DATABASE_URL": conninfo_of(empty_database_url), "IVR_REALTIME_URL": "ws://127.0.0.1:9/v1"}
    code, _, err = ivr("serve", **env)
    assert code == 1
    assert "ivr db upgrade" in err
    assert ivr("db", "upgrade", **env)[0] == 0
    assert ivr("db", "upgrade", **env)[:2] == (0, "the database is at the newest schema\n")
    code, out, _ = ivr("calls", "list", **env)
    assert code == 0
    assert "harbor-dental: 0 calls" in out


def test_calls_are_listed_and_shown(ivr: Ivr, database_url: str) -> None:
    async def a_call() -> None:
        store = Store(database_url)
        await store.open_call("CA1", "harbor-dental", "+12025550143", "+16175550140", "hash")
        await store.save_snapshot("CA1", await store.claim_stream("CA1", "MZ1"), CallSnapshot(1, {}))
        await store.close()

    asyncio.run(a_call())
    env = {"IVR_DATABASE_URL": conninfo_of(serving(database_url))}
    code, out, _ = ivr("calls", "list", "--business", "harbor-dental", **env)
    assert (code, "CA1" in out, "2025550143" in out) == (0, True, False)
    code, out, _ = ivr("calls", "show", "CA1", "--json", **env)
    assert (code, json.loads(out)["status"]) == (0, "active")
    assert ivr("calls", "show", "CA1", **env)[0] == 0
    code, _, err = ivr("calls", "show", "CA404", **env)
    assert code == 1
    assert err.startswith("ivr: no call 'CA404'")
    code, _, err = ivr("calls", "list", "--business", "nobody", **env)
    assert (code, "harbor-dental" in err) == (1, True)


def test_a_caller_is_shown_and_forgotten(ivr: Ivr, database_url: str, tmp_path: Path) -> None:
    async def a_call() -> None:
        store = Store(database_url)
        memory = Memory(store, AudioStore(f"file://{tmp_path}/var/audio"), None)
        await store.open_call("CA1", "harbor-dental", "+12025550143", "+16175550140", "hash")
        await memory.commit(
            Owner("harbor-dental", "+12025550143"), Exchange("CA1", 1, "About my crown", "Yes?", b"\xff" * 80)
        )
        await store.close()

    asyncio.run(a_call())
    env = {"IVR_DATABASE_URL": conninfo_of(serving(database_url))}
    whom = ("+12025550143", "--business", "harbor-dental")
    code, out, _ = ivr("callers", "show", *whom, **env)
    assert (code, "About my crown" in out, "2025550143" in out) == (0, True, False)
    code, out, _ = ivr("callers", "show", *whom, "--json", **env)
    assert [turn["heard"] for call in json.loads(out)["calls"] for turn in call["turns"]] == [
        "About my crown"
    ]
    recording = next((tmp_path / "var" / "audio").rglob("*.wav"))
    code, out, _ = ivr("callers", "forget", *whom, "--yes", **env)
    assert (code, "1 calls, 1 turns erased, with 1 audio files" in out) == (0, True)
    assert not recording.exists()
    assert "2025550143" not in (tmp_path / "var" / "erasures.jsonl").read_text()
    assert json.loads(ivr("callers", "show", *whom, "--json", **env)[1])["calls"] == []
    code, _, err = ivr("callers", "show", "anonymous", "--business", "harbor-dental", **env)
    assert (code, "+12025550143" in err) == (1, True)
    code, out, err = ivr("callers", "forget", "+12025550143", "--business", "nobody", **env)
    assert (code, "harbor-dental" in err, "Erase" in out) == (1, True, False)


def test_a_business_without_a_file_still_forgets(
    ivr: Ivr, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def a_call() -> None:
        store = Store(database_url)
        await store.open_call("CA1", "closed-shop", "+12025550143", "+16175550140", "hash")
        await store.close()

    asyncio.run(a_call())
    env = {"IVR_DATABASE_URL": conninfo_of(serving(database_url))}
    whom = ("+12025550143", "--business", "closed-shop")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    code, out, _ = ivr("callers", "forget", *whom, **env)
    assert (code, "[y/N]" in out) == (1, True)
    assert "1 calls" in ivr("callers", "show", *whom, **env)[1]
    code, out, _ = ivr("callers", "forget", *whom, "--yes", **env)
    assert (code, "1 calls, 0 turns erased" in out) == (0, True)


def test_a_call_needs_the_services_token_and_readable_files(ivr: Ivr, tmp_path: Path) -> None:
    place = ("call", "--from", "+12025550143", "--to", "+16175550140")
    code, _, err = ivr(*place, "http://127.0.0.1:9")
    assert code == 2
    assert err.startswith("ivr: TWILIO_AUTH_TOKEN: ")
    wav = tmp_path / "no.wav"
    wav.write_text("no sound")
    code, _, err = ivr(*place, "--audio", str(wav), "http://127.0.0.1:9", TWILIO_AUTH_TOKEN="t")
    assert (code, str(wav) in err, "Traceback" in err) == (1, True, False)
    code, out, _ = ivr(*place, "http://127.0.0.1:9")
    assert (code, "failed" in out) == (1, True)


def test_a_port_that_is_taken_is_one_line(ivr: Ivr) -> None:
    """As when the service is started twice."""
    env = {"IVR_REALTIME_URL": "ws://127.0.0.1:9/v1"}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, _, err = ivr("serve", "--port", port, **env)
    assert code == 1
    assert err.startswith(f"ivr: cannot listen on 127.0.0.1 port {port}: ")
    assert len(err.splitlines()) == 1


def test_flows_are_tried_tested_shown_and_compared(
    ivr: Ivr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flows = write_flows(tmp_path / "flows")
    alpha = str(flows / "alpha.yaml")
    script = flows / "alpha.test.yaml"
    script.write_text("tests:\n  - {name: greets, steps: [{said: how can I help}]}\n")
    code, out, _ = ivr("flows", "test", str(flows))
    assert (code, out.splitlines()[-1]) == (0, "1 tests, 0 failed")
    script.write_text("tests:\n  - name: greets\n    steps:\n      - {said: good evening}\n")
    code, out, _ = ivr("flows", "simulate", alpha, "--script", str(script))
    assert code == 1
    assert f"{script}:4:16: error: expected to hear `good evening`" in out

    monkeypatch.setattr(sys, "stdin", io.StringIO('hello\n/call transfer {"target": "front_desk"}\n'))
    code, out, _ = ivr("flows", "simulate", alpha, "--at", "2026-12-24T09:30", "--from", "+12025550143")
    assert code == 0
    assert "says: Alpha Dental, how can I help you?" in out
    assert "(the model answers; /call lets it use a function)" in out
    assert f"transfers to front_desk, {FRONT_DESK}" in out

    code, out, _ = ivr("flows", "show", alpha)
    assert (code, out.splitlines()[:2]) == (
        0,
        ["flowchart TD", '  begin_(["Alpha Dental"]) --> n_talk'],
    )
    code, out, _ = ivr("flows", "diff", alpha, str(flows / "beta.yaml"))
    assert code == 1
    assert "~ name: Alpha Dental -> Beta Plumbing" in out.splitlines()
    assert ivr("flows", "diff", alpha, alpha) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("simulate", "nobody"), "there is no flow 'nobody'"),
        (("simulate", "alpha", "--at", "noon"), "--at: not a time"),
        (("simulate", "alpha", "--from", "5"), "--from: no telephone number"),
        (("test",), "no *.test.yaml here"),
        (("show", "gone.yaml"), "gone.yaml:1:1: error: cannot be read"),
    ],
)
def test_flows_commands_say_what_is_wrong(ivr: Ivr, tmp_path: Path, arguments: list[str], told: str) -> None:
    code, _, err = ivr("flows", *arguments, IVR_CALLFLOWS=str(write_flows(tmp_path / "flows")))
    assert code == 1
    assert told in err
    assert "Traceback" not in err
