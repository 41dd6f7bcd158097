"""Warnings: a file that works and will disappoint somebody."""

from pathlib import Path

import pytest

from callflows.check import check_paths
from callflows.faults import Severity
from tests.unit.callflows.examples import CLINIC, changed
from tests.unit.callflows.nodes import changed_shop


def checked(folder: Path, text: str) -> list[tuple[int, str, str]]:
    (folder / "f.yaml").write_text(text)
    return [(fault.line, fault.severity.value, fault.message) for fault in check_paths(folder)]


def test_a_good_folder_has_nothing_to_tell(tmp_path: Path) -> None:
    assert checked(tmp_path, CLINIC) == []
    assert check_paths(tmp_path / "f.yaml") == []


def test_errors_are_told_without_raising(tmp_path: Path) -> None:
    assert checked(tmp_path, changed("start: main", "start: x"))[0][:2] == (13, "error")
    assert [fault.severity for fault in check_paths(tmp_path / "none")] == [Severity.ERROR]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "start:",
            "language: it-IT\nstart:",
            {
                (1, "callers are welcomed back in English"),
                (1, "that all lines are busy is told in English"),
                (1, "a failure is told in English to callers in it-IT"),
                (30, "that nobody was reached is told in English to callers in it-IT"),
            },
        ),
        (
            "start:",
            "language: it-IT\nresume: {say: Ciao}\non_model_down: {say: Guasto}\non_busy: {say: Occupato}\n"
            "spending: {per_call_usd: 1}\nstart:",
            {
                (17, "a spent ceiling is told in English to callers in it-IT"),
                (34, "that nobody was reached is told in English to callers in it-IT"),
            },
        ),
        ("start:", "language: de-DE\nspending: {per_call_usd: 1}\nstart:", set()),
        ("start:", "language: de\nresume: {greeting: never}\non_model_down: {say: Leider}\nstart:", set()),
        ("Ask which day suits.", "Ask. " * 9_000, {(26, "too long for a speech model: the end is left out")}),
        ("Be kind.", "Be kind. " * 9_000, {(6, "too long for a speech model: the end is left out")}),
    ],
)
def test_warnings(tmp_path: Path, old: str, new: str, told: set[tuple[int, str]]) -> None:
    assert set(checked(tmp_path, changed(old, new))) == {(line, "warning", message) for line, message in told}


def test_a_node_nobody_can_be_reached_from_and_a_target_nobody_uses(tmp_path: Path) -> None:
    text = changed(
        "    exits:\n      back: {to: main, when: something else is wanted}\n", "    transfers: []\n"
    )
    unused = text.replace("start: main", '  boss: {number: "+16175550109", description: x}\nstart: main')
    assert checked(tmp_path, unused) == [
        (13, "warning", "no node transfers to `boss`"),
        (24, "warning", "from `booking` a caller reaches nobody: hanging up is the only way out"),
    ]


def test_facts_that_do_not_fit(tmp_path: Path) -> None:
    facts = "".join(f"  - Fact {number} {'x' * 1_000}\n" for number in range(100))
    ((line, severity, message),) = checked(tmp_path, changed("  - We open at nine.\n", facts))
    assert severity == "warning"
    kept = int(message.split(": ")[1].split()[0])
    assert 20 < kept < 60
    assert line == 8 + kept


def test_a_file_with_the_other_ending_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "g.yml").write_text(CLINIC)
    assert checked(tmp_path, CLINIC) == [(1, "warning", "is not read")]


@pytest.mark.parametrize(
    ("old", "new", "severity", "told"),
    [
        ("disclosure: This is a machine.\n", "", "warning", "callers are not told that a machine speaks"),
        ('{en-US: "Hello?"', '{de-DE: "Hallo"', "warning", "no text in en-US"),
        ("{when: {slot: pin", "{when: {slot: party", "warning", "nothing uses slot `pin`"),
        (
            "We are closed.",
            '"We are closed, {pin}."',
            "warning",
            "`{pin}` is secret: where a text names it, nothing is said",
        ),
        ("hours: office, open", "hours: ofice, open", "error", "no schedule is called `ofice`"),
        (
            "language: es-US, to",
            "language: fr-FR, to",
            "error",
            "no language of the business is called `fr-FR`",
        ),
        ("slot: party, op: above", "slot: partie, op: above", "error", "no slot is called `partie`"),
        ("We are closed.", '"We are closed, {dai}."', "error", "no slot is called `dai`"),
        (
            "We are closed.",
            '"We are {closed at}."',
            "error",
            "only the name of a slot may stand in braces here",
        ),
        ("operator: desk", "operator: disk", "error", "no transfer target is called `disk`"),
        ("op: above, value: 8", "op: above", "error", "`op` and `value` belong to `slot`"),
        ("{slot: party, op: above, value: 8}", "{}", "error", "a condition is exactly one of its forms"),
        (
            "secret: true",
            "secret: true, confirm: x",
            "error",
            "a secret is taken by keys and never read back",
        ),
        ("kind: date, by: voice", "kind: date, by: keys", "error", "this kind cannot be given by keys"),
        ('"33": {to: pin}', '"3x": {to: pin}', "error", "not a choice by keys"),
        ("mon-fri:", "mon-fry:", "error", "not a day of the week"),
        ("country: US", "country: XX", "error", "no holidays are known for this country"),
        ("say: We are closed.", "say: 3, to: menu", "error", "`to` is not known here"),
    ],
)
def test_faults_of_the_whole_language(tmp_path: Path, old: str, new: str, severity: str, told: str) -> None:
    found = {(kind, message) for _, kind, message in checked(tmp_path, changed_shop(old, new))}
    assert (severity, told) in found


@pytest.mark.parametrize(
    ("old", "new", "at", "severity", "told"),
    [
        ('"09:00-17:00"', '"09:00-12:00, 11:00-17:00"', "office: {", "error", "these hours overlap"),
        (
            '"+16175550101"',
            '"+16175550101", "+1 617 555 0101"',
            "numbers",
            "error",
            "number +16175550101 is taken already",
        ),
        ("slot: day, kind", "slot: date, kind", "  thanks:", "error", "no slot is called `day`"),
        ("slot: day, kind", "slot: date, kind", "  day:", "warning", "nothing uses slot `date`"),
        ("say: We are closed.", "say: {es-US: Cerrado.}", "  closed:", "warning", "no text in en-US"),
        ('"33": {to: pin}', '"33": {to: day}', "  pin:", "error", "nothing leads to `pin`"),
        ("to: size", "to: sise", 'en-US: "{party}, right', "error", "no node is called `sise`"),
        ("target: boss", "target: bos", "target: bos", "error", "no transfer target is called `bos`"),
        ("We are closed.", "x" * 4_097, "  closed:", "error", "is too long"),
        (
            "exits: {again: {to: menu, when: asked}, done: {to: closed, when: done}}",
            "transfers: []",
            "  main:",
            "warning",
            "from `main` a caller reaches nobody: hanging up is the only way out",
        ),
    ],
)
def test_every_fault_has_its_line(
    tmp_path: Path, old: str, new: str, at: str, severity: str, told: str
) -> None:
    text = changed_shop(old, new)
    if told.startswith("nothing uses"):
        text = text.replace("{day}", "soon")
    line = next(number for number, each in enumerate(text.split("\n"), start=1) if at in each)
    assert (line, severity, told) in checked(tmp_path, text)


def test_two_businesses_cannot_have_one_number(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CLINIC)
    (tmp_path / "b.yaml").write_text(CLINIC.replace("id: clinic", "id: other"))
    (fault,) = check_paths(tmp_path)
    assert (Path(fault.file).name, fault.line, fault.severity.value) == ("b.yaml", 3, "error")
    assert fault.message == "number +16175550101 is taken already"


def test_a_circle_without_the_caller_is_told(tmp_path: Path) -> None:
    text = changed_shop("otherwise: open", "otherwise: loop")
    text = text.replace("nodes:\n", "nodes:\n  loop: {type: say, say: {en-US: x, es-US: x}, to: vip}\n", 1)
    messages = [message for _, _, message in checked(tmp_path, text)]
    assert "`loop` leads back to itself without waiting for the caller" in messages


def test_a_prompt_that_is_too_long_for_the_network(tmp_path: Path) -> None:
    text = changed_shop("We are closed.", "x" * 4_097)
    assert "is too long" in [message for _, _, message in checked(tmp_path, text)]
