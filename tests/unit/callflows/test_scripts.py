"""Recorded conversations: they hold, they fail with the place, and a broken script is told of."""

from pathlib import Path

import pytest

from callflows.diagram import differences, mermaid
from callflows.faults import FlowErrors
from callflows.scripts import run_script, script_files
from tests.unit.callflows.nodes import SHOP, shop

GOOD = """\
tests:
  - name: a table for six
    from: "+12025550144"
    steps:
      - {said: [calls are recorded, press one], node: menu}
      - {press: "1", said: how many}
      - {say: six, said: "6, right"}
      - {say: yes, node: day, slots: {party: "6"}}
  - name: closed at night, and no exit is open
    at: 2026-01-07T18:00
    steps:
      - {said: we are closed, ended: hung_up}
      - {call: leave_again, refused: true}
  - name: a secret
    steps:
      - {press: "33", node: pin, language: null}
      - {press: "7391", ended: transferred, target: boss, slots: {pin: "•••"}}
"""


def script(folder: Path, text: str) -> Path:
    (folder / "shop.yaml").write_text(SHOP)
    path = folder / "shop.test.yaml"
    path.write_text(text)
    return path


def test_conversations_that_hold(tmp_path: Path) -> None:
    path = script(tmp_path, GOOD)
    assert script_files(tmp_path) == [path]
    assert [(r.name, r.faults) for r in run_script(path)] == [
        ("a table for six", ()),
        ("closed at night, and no exit is open", ()),
        ("a secret", ()),
    ]


@pytest.mark.parametrize(
    ("old", "new", "place", "told"),
    [
        ("said: how many", "said: how few", (6, 28), "expected to hear `how few`, heard `How many?`"),
        ("node: day", "node: party", (8, 26), "expected node `party`, it is `day`"),
        ('party: "6"', 'party: "7"', (8, 38), "expected slot party `7`, it is `6`"),
        (
            "refused: true",
            "refused: false",
            (13, 16),
            "flow_ended: The call is ending; nothing more can be done.",
        ),
        ("at: 2026-01-07T18:00", "at: tonight", (10, 9), "not a time"),
    ],
)
def test_what_goes_another_way_is_told_by_place(
    tmp_path: Path, old: str, new: str, place: tuple[int, int], told: str
) -> None:
    assert old in GOOD
    faults = [f for r in run_script(script(tmp_path, GOOD.replace(old, new))) for f in r.faults]
    assert [(f.line, f.column, f.message) for f in faults] == [(*place, told)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "tests: []",
        "tests: [{name: x, steps: [{press: a}]}]",
        "tests: [{name: x, steps: [{press: '1', say: x}]}]",
        "flow: none.yaml\ntests: [{name: x, steps: [{say: x}]}]",
    ],
)
def test_a_broken_script_is_told_of(tmp_path: Path, text: str) -> None:
    with pytest.raises(FlowErrors) as told:
        run_script(script(tmp_path, text))
    assert told.value.faults


def test_a_diagram_names_every_node_and_way() -> None:
    lines = mermaid(shop()).splitlines()
    assert lines[:2] == ["flowchart TD", '  begin_(["The Shop"]) --> n_vip']
    assert '  n_menu{{"menu: menu"}}' in lines
    assert '  n_menu -->|"1"| n_party' in lines
    assert '  n_menu -->|"no_input"| n_closed' in lines
    assert '  n_open -->|"closed"| n_closed' in lines
    assert '  n_size -->|"cases 1"| n_boss' in lines


def test_differences_are_told_path_by_path() -> None:
    assert differences(shop(), shop()) == []
    changed = shop("say: We are closed.", "say: We are shut.")
    assert differences(shop(), changed) == ["~ nodes.closed.say.: We are closed. -> We are shut."]
    fewer = shop('      "33": {to: pin}\n', '      "4": {to: pin}\n')
    assert differences(shop(), fewer) == ["- nodes.menu.options.33", "+ nodes.menu.options.4"]
