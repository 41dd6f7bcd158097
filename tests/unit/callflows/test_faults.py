"""Every fault that a flow file can have: told once, in its place, with how to mend it.

`at` is the beginning of what is at fault, as it stands in the faulty file: where an owner would put the finger.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from callflows.check import check_paths
from tests.unit.callflows.nodes import SHOP

TOO_LONG = "x" * 4_097
Changes = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Faulty:
    """What is changed in a file without fault, and what is to be told of it."""

    name: str
    changes: Changes
    at: str
    told: str
    severity: str = "error"


def warned(name: str, changes: Changes, at: str, told: str) -> Faulty:
    """One that only disappoints."""
    return Faulty(name, changes, at, told, "warning")


BOSS = "boss: {type: transfer, target: boss, say: To the owner.}"
WEEK = 'weekly: {mon-fri: "09:00-17:00"}'
TALK_EXITS = "exits: {again: {to: menu, when: asked}, done: {to: closed, when: done}}"
HOOK = "allow_hosts: [a.example]\nwebhooks: [{url: https://b.example/x, secret: '${KEY}'}]\nstart: vip"
TOOL = "allow_hosts: [a.example]\ntools: {look: {description: x, url: https://a.example/x}}\nstart: vip"
SPARE = "callers: {blocked"
PIN = "  pinned: {type: verify, say: {en-US: x, es-US: y}, to: set, failed: menu}\n"
SET = "  set: {type: override, hours: office, state: open, to: menu, failed: menu}\n"
FAULTS = (
    # names
    Faulty("unknown node", (("to: size", "to: sise"),), "sise", "no node is called `sise`"),
    Faulty("unknown start", (("start: vip", "start: viip"),), "viip", "no node is called `viip`"),
    Faulty(
        "missing target", (("target: boss", "target: bos"),), "bos, say", "no transfer target is called `bos`"
    ),
    Faulty(
        "missing operator",
        (("operator: desk", "operator: disk"),),
        "disk",
        "no transfer target is called `disk`",
    ),
    Faulty(
        "unknown schedule",
        (("open: {type: hours, hours: office", "open: {type: hours, hours: ofice"),),
        "ofice, open",
        "no schedule is called `ofice`",
    ),
    Faulty("unknown slot", (("slot: pin, value", "slot: pni, value"),), "pni", "no slot is called `pni`"),
    Faulty(
        "unknown slot in a text", (("Just you.", "'{partie}'"),), "'{partie}'", "no slot is called `partie`"
    ),
    Faulty(
        "unknown language",
        (("language: es-US, to", "language: fr-FR, to"),),
        "fr-FR",
        "no language of the business is called `fr-FR`",
    ),
    Faulty(
        "unknown rota",
        (
            (BOSS, "boss: {type: ring, rota: night, otherwise: menu}"),
            ("  boss: {number", "  desk2: {number"),
            ('desk2: {number: "+16175550103"', 'boss: {number: "+16175550103"'),
        ),
        "night, otherwise",
        "no rota is called `night`",
    ),
    Faulty(
        "unknown tool",
        ((BOSS, "boss: {type: tool, tool: look, to: menu, failed: menu}"),),
        "look, to",
        "no tool is called `look`",
    ),
    # ways
    Faulty(
        "unreachable, with what lies behind it",
        (('"33": {to: pin}', '"33": {to: day}'),),
        "pin: {type: collect",
        "nothing leads to `pin`",
    ),
    warned(
        "dead end",
        ((TALK_EXITS, "transfers: []"),),
        "main:\n",
        "from `main` a caller reaches nobody: hanging up is the only way out",
    ),
    Faulty(
        "circle",
        (
            (
                "spanish: {type: language, language: es-US, to: menu}",
                "spanish: {type: language, language: es-US, to: spanish}",
            ),
        ),
        "spanish: {type: language",
        "`spanish` leads back to itself without waiting for the caller",
    ),
    Faulty(
        "start that cannot start",
        (("start: vip", "start: boss"),),
        "boss\nnodes",
        "a call cannot start at `boss`: nobody would talk",
    ),
    Faulty(
        "override without PIN",
        (
            ('"33": {to: pin}', '"33": {to: pin}\n      "4": {to: set}'),
            ("nodes:\n", f"nodes:\n{SET}"),
            ("callers: {", 'callers: {owners: ["+12025550143"], '),
        ),
        "set: {type: override",
        "`set` can be reached without a PIN",
    ),
    warned(
        "override for nobody",
        (
            ('"33": {to: pin}', '"33": {to: pin}\n      "4": {to: pinned}'),
            ("nodes:\n", f"nodes:\n{PIN}{SET}"),
        ),
        "set: {type: override",
        "nobody may set hours by telephone",
    ),
    # hours
    Faulty(
        "hours that overlap",
        (('"09:00-17:00"', '"09:00-12:00, 11:00-17:00"'),),
        '"09:00-12:00, 11',
        "these hours overlap",
    ),
    Faulty(
        "hours that overlap over midnight",
        ((WEEK, 'weekly: {mon: "22:00-02:00", tue: "01:00-03:00"}'),),
        'tue: "01',
        "these hours overlap",
    ),
    Faulty(
        "hours that overlap at the week's end",
        ((WEEK, 'weekly: {mon: "01:00-03:00", sun: "22:00-02:00"}'),),
        'mon: "01',
        "these hours overlap",
    ),
    Faulty(
        "a day twice",
        ((WEEK, 'weekly: {mon-fri: "09:00-17:00", wed: "18:00-19:00"}'),),
        'wed: "18',
        "wed is given twice",
    ),
    Faulty("no day", ((WEEK, 'weekly: {mon-fry: "09:00-17:00"}'),), "mon-fry", "not a day of the week"),
    Faulty("no date", ((WEEK, WEEK + ", dates: {2026-02-30: closed}"),), "2026-02-30", "not a date"),
    Faulty(
        "no country",
        (("country: US", "country: XX"),),
        "{country: XX",
        "no holidays are known for this country",
    ),
    Faulty("no time zone", (("America/New_York", "New York"),), "New York", "not a time zone"),
    # texts
    Faulty(
        "prompt over 4,096 characters", (("We are closed.", TOO_LONG),), f"say: {TOO_LONG}", "is too long"
    ),
    Faulty(
        "greeting over 4,096 characters",
        (("greeting: The Shop.", f"greeting: {TOO_LONG}"),),
        TOO_LONG,
        "is too long",
    ),
    warned(
        "text without the language",
        (("say: We are closed.", "say: {es-US: Cerrado.}"),),
        "say: {es-US: Cerrado",
        "no text in en-US",
    ),
    warned(
        "text in a language that is not spoken",
        (("en-US: Just you.", "en-US: Just you., fr-FR: Vous"),),
        "fr-FR: Vous",
        "nobody hears this: the business does not speak fr-FR",
    ),
    Faulty(
        "braces around no name",
        (("We are closed.", "'We are {closed at}.'"),),
        "say: 'We are {",
        "only the name of a slot may stand in braces here",
    ),
    warned(
        "secret in a text",
        (("We are closed.", "'{pin}.'"),),
        "say: '{pin}",
        "`{pin}` is secret: where a text names it, nothing is said",
    ),
    warned(
        "no disclosure",
        (("disclosure: This is a machine.\n", ""),),
        "greeting",
        "callers are not told that a machine speaks",
    ),
    warned(
        "sound file that is not there",
        (("{type: say, say: {en-US: Just you.", "{type: say, audio: a/no.wav, say: {en-US: Just you."),),
        "audio: a/no.wav",
        "there is no file a/no.wav: `say` is spoken instead",
    ),
    warned(
        "words of two choices",
        (("words: [spanish]", "words: [Orders]"),),
        "words: [Orders]",
        "`Orders` stands for 1 too: whoever says it is asked again",
    ),
    # what nothing uses
    warned(
        "unused slot",
        (
            ("slot: day, kind", "slot: date, kind"),
            ("{party} on {day}.", "{party}."),
            ("{party}, {day}.", "{party}."),
        ),
        "slot: date",
        "nothing uses slot `date`",
    ),
    warned(
        "unused target",
        (
            ("transfers:\n", 'transfers:\n  spare: {number: "+16175550109", description: x}\n'),
            (TALK_EXITS, TALK_EXITS + "\n    transfers: [desk]"),
        ),
        "spare: {number",
        "no node transfers to `spare`",
    ),
    warned(
        "unused schedule",
        ((SPARE, f"  night: {{weekly: {{mon: 01:00-02:00}}}}\n{SPARE}"),),
        "night: {weekly",
        "nothing looks at the hours `night`",
    ),
    warned(
        "unused rota",
        ((SPARE, f"rotas: {{duty: {{shifts: [{{who: [boss], weekly: {{mon: 01:00-02:00}}}}]}}}}\n{SPARE}"),),
        "duty: {shifts",
        "nothing looks at the rota `duty`",
    ),
    warned("unused tool", (("start: vip", TOOL),), "look: {description", "nothing uses the tool `look`"),
    # numbers and hosts
    Faulty(
        "number twice",
        (('["+16175550101"]', '["+16175550101", "+1 617 555 0101"]'),),
        '"+1 617 555 0101"',
        "number +16175550101 is taken already",
    ),
    Faulty(
        "no number",
        (('"+16175550103"', "617 555 0103"),),
        "617 555 0103",
        "not a telephone number in international form",
    ),
    Faulty(
        "transfer to oneself",
        (('"+16175550103"', '"+16175550101"'),),
        '"+16175550101", description: the owner',
        "this number is answered by this flow itself",
    ),
    Faulty(
        "host that is not allowed",
        (("start: vip", HOOK),),
        "https://b.example",
        "`b.example` is not among allow_hosts",
    ),
    # the form
    Faulty(
        "unknown kind",
        (("closed: {type: hangup", "closed: {type: hang-up"),),
        "hang-up",
        "is not a kind of node",
    ),
    Faulty("no kind", (("closed: {type: hangup, ", "closed: {"),), "closed: {say", "`type` is missing"),
    Faulty(
        "unknown key",
        (("name: The Shop\n", "name: The Shop\ngreating: x\n"),),
        "greating",
        "`greating` is not known here",
    ),
    Faulty(
        "key twice", (("name: The Shop\n", "name: The Shop\nname: B\n"),), "name: B", "`name` is given twice"
    ),
    Faulty(
        "choice twice", (('"3": {to: main}', '"1": {to: main}'),), '"1": {to: main}', "`1` is given twice"
    ),
    Faulty("no choice by keys", (('"33": {to: pin}', '"3x": {to: pin}'),), '"3x"', "not a choice by keys"),
    Faulty(
        "something left out",
        (("{type: hangup, say: We are closed.}", "{type: say, say: We are closed.}"),),
        "closed: {type: say",
        "`to` is missing",
    ),
    Faulty("no nodes", ((SHOP[SHOP.index("nodes:\n") :], "nodes: {}\n"),), "{}\n", "must not be empty"),
    Faulty(
        "not YAML",
        (("  closed: {", "\tclosed: {"),),
        "\tclosed",
        "not readable as YAML: while scanning for the next token, found character '\\t' that cannot start any token",
    ),
)


def faulty_text(changes: Changes) -> str:
    """The shop with the changes; one that changes nothing would prove nothing."""
    text = SHOP
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def place_of(text: str, snippet: str) -> tuple[int, int]:
    """Line and column, from 1, of something that stands in the file once."""
    assert text.count(snippet) == 1, snippet
    before = text[: text.index(snippet)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.name)
def test_each_fault_is_told_once_in_its_place(tmp_path: Path, case: Faulty) -> None:
    text = faulty_text(case.changes)
    file = tmp_path / "shop.yaml"
    file.write_text(text)
    told = [(fault.severity.value, fault.line, fault.column, fault.message) for fault in check_paths(file)]
    assert told == [(case.severity, *place_of(text, case.at), case.told)]


HINTLESS = {"no nodes", "something left out"}
"""The message says all of it."""


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.name)
def test_each_fault_says_how_to_mend_it(tmp_path: Path, case: Faulty) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(faulty_text(case.changes))
    (fault,) = check_paths(file)
    assert fault.hint or case.name in HINTLESS
    assert str(fault).startswith(f"{file}:{fault.line}:{fault.column}: {case.severity}: {case.told}")


def test_faults_of_several_files_are_told_at_once(tmp_path: Path) -> None:
    """Two businesses with one number among them: the later place is at fault, and names the first."""
    (tmp_path / "a.yaml").write_text(SHOP)
    (tmp_path / "b.yaml").write_text(SHOP.replace("id: shop", "id: other").replace("to: size", "to: sise"))
    faults = check_paths(tmp_path)
    assert [(Path(f.file).name, f.line, f.column, f.message) for f in faults] == [
        ("b.yaml", 3, 11, "number +16175550101 is taken already"),
        ("b.yaml", 38, 73, "no node is called `sise`"),
    ]
    assert "a.yaml:3" in faults[0].hint


def test_nodes_that_lead_only_to_each_other_are_told_once(tmp_path: Path) -> None:
    one = "  one: {type: say, say: x, to: two}\n"
    two = "  two: {type: talk, instructions: y, exits: {a: {to: one, when: z}}}\n"
    island = f"nodes:\n{one}{two}"
    (tmp_path / "shop.yaml").write_text(SHOP.replace("nodes:\n", island))
    assert [fault.message for fault in check_paths(tmp_path)] == ["nothing leads to `one`"]


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ('on_model_down: {say: "Sorry {party}."}', "nothing that was gathered can be said here"),
        ("spending: {say: {en-US: Enough.}}", "no text in es-US"),
    ],
)
def test_texts_outside_the_nodes_are_looked_at_too(tmp_path: Path, part: str, told: str) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(f"{SHOP}{part}\n")
    lines = {fault.line for fault in check_paths(file) if fault.message == told}
    assert lines == {SHOP.count("\n") + 1}


def test_a_targets_words_may_say_what_was_gathered_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(SHOP.replace("es-US: Un momento.", 'es-US: "Un momento, {nobody}."'))
    assert [fault.message for fault in check_paths(file)] == ["no slot is called `nobody`"]
