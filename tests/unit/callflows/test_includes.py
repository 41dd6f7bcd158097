"""`include:`: parts of a flow file that stand in other files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callflows import includes
from callflows.check import check_paths
from callflows.faults import FlowErrors, FlowFault
from callflows.model import Business
from callflows.parse import load_folder, parse_text
from tests.unit.callflows.examples import unhurried

OWN = """\
id: shop
name: The Shop
numbers: ["+16175550101"]
timezone: America/New_York
include: [shared/people.yaml, shared/times.yaml]
disclosure: This is a machine.
greeting: The Shop.
facts: [Our own fact.]
transfers:
  boss: {number: "+16175550103", description: the owner}
start: open
nodes:
  open: {type: hours, hours: office, open: desk, closed: boss}
  boss: {type: transfer, target: boss}
"""
PEOPLE = """\
include: [more/facts.yaml]
transfers:
  desk: {number: "+16175550102", description: reception}
nodes:
  desk: {type: transfer, target: desk}
"""
TIMES = """\
hours:
  office: {weekly: {mon-fri: "09:00-17:00"}}
"""
FACTS = "facts: [A shared fact.]\n"
FILES = {"shared/people.yaml": PEOPLE, "shared/times.yaml": TIMES, "shared/more/facts.yaml": FACTS}


def folder(path: Path, **changed: str) -> Path:
    """The shop's folder; `changed`: other texts, by a file's name without its ending."""
    for name, text in {"shop.yaml": OWN, **FILES}.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(changed.pop(file.stem, text))
    assert not changed
    return path


def shop(path: Path) -> Business:
    return load_folder(path).businesses["shop"]


def faults(path: Path) -> list[FlowFault]:
    with pytest.raises(FlowErrors) as raised:
        load_folder(path)
    return list(raised.value.faults)


def test_parts_of_other_files_count_as_if_they_stood_here(tmp_path: Path) -> None:
    business = shop(folder(tmp_path))
    assert list(business.nodes) == ["open", "boss", "desk"]
    assert list(business.transfers) == ["boss", "desk"]
    assert list(business.hours) == ["office"]
    assert business.facts == ("Our own fact.", "A shared fact.")


def test_the_text_that_is_kept_needs_none_of_the_files(tmp_path: Path) -> None:
    book = load_folder(folder(tmp_path))
    assert parse_text(book.text_of("shop"), "kept") == book.businesses["shop"]


def test_a_change_of_an_included_file_is_another_version_of_the_flow(tmp_path: Path) -> None:
    before = load_folder(folder(tmp_path)).hash_of("shop")
    assert load_folder(folder(tmp_path)).hash_of("shop") == before
    assert load_folder(folder(tmp_path, facts="facts: [Another.]\n")).hash_of("shop") != before


def test_two_businesses_share_a_file(tmp_path: Path) -> None:
    folder(tmp_path)
    other = OWN.replace("id: shop", "id: kiosk").replace("+16175550101", "+16175550109")
    (tmp_path / "kiosk.yaml").write_text(other)
    assert load_folder(tmp_path).businesses["kiosk"].hours == shop(tmp_path).hours
    assert check_paths(tmp_path) == []


def test_a_name_given_twice_is_told_with_both_places(tmp_path: Path) -> None:
    folder(tmp_path, times=TIMES + 'transfers:\n  desk: {number: "+16175550104", description: x}\n')
    (fault,) = faults(tmp_path)
    assert (fault.file, fault.line, fault.column) == (str(tmp_path / "shared/times.yaml"), 4, 3)
    assert "given twice" in fault.message
    assert f"first in {tmp_path / 'shared/people.yaml'}:3:3" in fault.hint


def test_a_part_that_is_no_list_of_names_is_given_once(tmp_path: Path) -> None:
    folder(tmp_path, times=TIMES + "greeting: Hello.\nlimits: {reprompts: 1}\n")
    (fault,) = faults(tmp_path)
    assert (fault.line, fault.message) == (3, "`greeting` is given twice")
    folder(tmp_path, times=TIMES + "limits: {reprompts: 1}\n")
    assert shop(tmp_path).limits.reprompts == 1


@pytest.mark.parametrize("key", ["id: x", "name: x", 'numbers: ["+16175550102"]', "start: desk"])
def test_what_makes_a_business_is_not_shared(tmp_path: Path, key: str) -> None:
    told = faults(folder(tmp_path, times=f"{TIMES}{key}\n"))
    assert [(fault.line, fault.message) for fault in told] == [
        (3, f"`{key.split(':')[0]}` is each business's own")
    ]


def test_a_fault_inside_an_included_file_names_that_file(tmp_path: Path) -> None:
    folder(
        tmp_path,
        times=TIMES.replace("09:00-17:00", "9 to 5"),
        people=PEOPLE.replace("target: desk", "target: dsk"),
    )
    told = [(fault.file, fault.line, fault.message) for fault in faults(tmp_path)]
    assert (str(tmp_path / "shared/people.yaml"), 5, "no transfer target is called `dsk`") in told
    assert any(file == str(tmp_path / "shared/times.yaml") and line == 2 for file, line, _ in told)


def test_text_that_is_no_yaml_names_its_file(tmp_path: Path) -> None:
    told = faults(folder(tmp_path, facts="facts: [\n"))
    assert (told[0].file, told[0].line) == (str(tmp_path / "shared/more/facts.yaml"), 2)
    assert "not readable as YAML" in told[0].message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("shared/none.yaml", "there is no file"),
        ("shared", "not a .yaml file"),
        ("../other/hours.yaml", "not a .yaml file"),
        ("/etc/hours.yaml", "not a .yaml file"),
        ("shared/../../x.yaml", "not a .yaml file"),
        ("shop.yaml", "the flow file's own folder"),
        ("link/hours.yaml", "leads out of"),
        ("a/b/c/d/hours.yaml", "more than 3 folders"),
        ('"shared/\\0.yaml"', "control character"),
        ("[shared/times.yaml]", "must be the path of a file"),
    ],
)
def test_what_cannot_be_included(tmp_path: Path, name: str, message: str) -> None:
    root = tmp_path / "flows"
    (tmp_path / "out").mkdir()
    (tmp_path / "out/hours.yaml").write_text(TIMES)
    folder(root, shop=OWN.replace("shared/times.yaml", name))
    (root / "link").symlink_to(tmp_path / "out")
    told = [fault for fault in faults(root) if fault.line == 5]
    assert any(message in fault.message for fault in told)
    assert {fault.column for fault in told} == {31}


def test_a_file_that_includes_itself_is_a_fault(tmp_path: Path) -> None:
    (fault,) = faults(folder(tmp_path, facts=FACTS + "include: [../people.yaml]\n"))
    assert "`..`" in fault.message
    told = faults(folder(tmp_path, people=PEOPLE.replace("more/facts.yaml", "people.yaml")))
    assert told[0].message == "a file includes itself: people.yaml → people.yaml"
    assert (told[0].file, told[0].line, told[0].column) == (str(tmp_path / "shared/people.yaml"), 1, 11)


def test_a_file_that_two_others_include_counts_once(tmp_path: Path) -> None:
    business = shop(folder(tmp_path, times="include: [more/facts.yaml]\n" + TIMES))
    assert business.facts == ("Our own fact.", "A shared fact.")


@pytest.mark.parametrize("value", ["shared/times.yaml", "[]", "{a: b}", "", "1"])
def test_include_is_a_list(tmp_path: Path, value: str) -> None:
    told = faults(folder(tmp_path, shop=OWN.replace("[shared/people.yaml, shared/times.yaml]", value)))
    assert "must be a list of files" in [fault.message for fault in told]


def test_a_text_that_is_no_file_can_include_nothing() -> None:
    with pytest.raises(FlowErrors) as raised:
        parse_text(OWN, "shop.yaml")
    assert "can include none" in str(raised.value)


def test_all_together_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(includes, "MAX_NODES", 1_000)  # each file by itself has less
    long = "facts:\n" + "".join(f"- Fact {number} of many.\n" for number in range(600))
    told = faults(folder(tmp_path, facts=long, times=TIMES + long))
    assert "too much with all that is included" in [fault.message for fault in told]


ANY = st.recursive(
    st.none() | st.text(max_size=12) | st.sampled_from(["desk", "menu", "shared/times.yaml", "{x}"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "to", "desk", "menu", "say", "include", "hours"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@unhurried
@given(
    st.sampled_from(["people", "times", "facts"]),
    st.integers(0, 120),
    st.integers(0, 30),
    st.text(max_size=8)
    | st.sampled_from(["\n", "  ", ": ", "- ", "*a", "&a ", "include", "[", "}", "\t", "nodes:"]),
)
def test_any_damage_to_an_included_file_parses_or_tells(
    tmp_path_factory: pytest.TempPathFactory, stem: str, at: int, cut: int, put: str
) -> None:
    text = {"people": PEOPLE, "times": TIMES, "facts": FACTS}[stem]
    path = folder(tmp_path_factory.mktemp("flows"))
    file = next(path.rglob(f"{stem}.yaml"))
    file.write_bytes((text[:at] + put + text[at + cut :]).encode("utf-8", "surrogatepass"))
    told = check_paths(path)
    if any(fault.severity == "error" for fault in told):
        return
    book = load_folder(path)
    assert parse_text(book.text_of("shop"), "kept") == book.businesses["shop"]


@unhurried
@given(
    st.dictionaries(st.sampled_from(["nodes", "hours", "include", "facts", "tools", "flows", "limits"]), ANY)
)
def test_any_structure_that_is_included_parses_or_tells(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, object]
) -> None:
    path = folder(tmp_path_factory.mktemp("flows"), times=repr(values).replace("None", "null"))
    check_paths(path)
