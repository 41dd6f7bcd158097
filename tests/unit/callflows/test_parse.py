"""Files into businesses, or every fault with its place."""

import hashlib
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from callflows.model import Business, Orchestration, TransferNode
from callflows.parse import FlowErrors, FlowFault, load_folder, parse_text
from tests.unit.callflows.examples import CLINIC, changed, clinic, unhurried
from tests.unit.callflows.nodes import SHOP


def faults_of(text: str) -> tuple[FlowFault, ...]:
    with pytest.raises(FlowErrors) as caught:
        parse_text(text, "f.yaml")
    return caught.value.faults


def only_fault(text: str) -> tuple[int, int, str, str]:
    (fault,) = faults_of(text)
    return fault.line, fault.column, fault.message, fault.hint


def test_a_good_file_becomes_a_business() -> None:
    business = clinic()
    assert business.id == "clinic"
    assert business.numbers == ("+16175550101",)
    assert business.resume.within == timedelta(hours=2)
    assert (business.resume.greeting, business.limits.reprompts, business.voice) == ("offer", 2, "marin")
    assert business.nodes["nurse"] == TransferNode(
        type="transfer", target="nurse", say="I am getting the nurse."
    )


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("2h", timedelta(hours=2)),
        ("30m", timedelta(minutes=30)),
        ("1h30m", timedelta(minutes=90)),
        ("45s", timedelta(seconds=45)),
        ("1d", timedelta(days=1)),
    ],
)
def test_durations(text: str, length: timedelta) -> None:
    assert clinic("start:", f"resume: {{within: {text}}}\nstart:").resume.within == length


@pytest.mark.parametrize(
    "text", ["2", "h", "''", "2 hours", "0m", "31d", "-1h", "30m2h", "9999999999h", "[1]"]
)
def test_what_is_no_duration(text: str) -> None:
    line, column, message, _ = only_fault(changed("start:", f"resume: {{within: {text}}}\nstart:"))
    assert (line, column) == (13, 18)
    assert message in ("not a duration", "must be longer than nothing and at most 30 days")


def test_scalars_mean_what_they_look_like() -> None:
    """YAML 1.1 would read these as an integer, a boolean and a sexagesimal number."""
    text = (
        changed('["+16175550101"]', "[+16175550101]")
        .replace("We open at nine.", "no")
        .replace("The Clinic", "9:30")
    )
    business = parse_text(text, "f.yaml")
    assert (business.numbers, business.facts[0], business.name) == (("+16175550101",), "no", "9:30")


def test_numbers_may_be_written_with_spaces() -> None:
    assert clinic("+16175550101", "+1 (617) 555-0101").numbers == ("+16175550101",)


def test_a_language_tag_is_put_in_its_usual_form() -> None:
    assert clinic("start:", "language: pt-br\nstart:").language == "pt-BR"


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("id: clinic", "id: The Clinic", (1, 5), "not a usable id"),
        ("name: The Clinic\n", "", (1, 1), "`name` is missing"),
        ('["+16175550101"]', "[]", (3, 10), "must not be empty"),
        ('["+16175550101"]', '"+16175550101"', (3, 10), "must be a list"),
        ("+16175550101", "617 555 0101", (3, 11), "not a telephone number in international form"),
        ("+16175550101", "+1617555", (3, 11), "not a telephone number in international form"),
        ("America/New_York", "America", (4, 11), "not a time zone"),
        ("America/New_York", "../../etc/passwd", (4, 11), "not a time zone"),
        ("greeting:", "greating: x\ngreeting:", (5, 1), "`greating` is not known here"),
        ("Hello, this is the clinic.", "", (5, 10), "must be text"),
        ("Hello, this is the clinic.", "x" * 4097, (5, 11), "is too long"),
        ("say: One moment.", "number2: 1", (11, 58), "`number2` is not known here"),
        ("say: One moment.", "say: Yes, one moment.", (11, 68), "`one moment.` is not known here"),
        ("start: main", "limits: {reprompts: some}\nstart: main", (13, 21), "must be a whole number"),
        ("start: main", "limits: {silence_s: nan}\nstart: main", (13, 21), "must be a number"),
        ("start: main", "limits: 3\nstart: main", (13, 9), "must be a mapping"),
        (
            "start: main",
            "resume: {greeting: no}\nstart: main",
            (13, 20),
            "is not one of the words allowed here",
        ),
        (
            "start: main",
            "resume: {say: 'a {x}'}\nstart: main",
            (13, 15),
            "only {topic} may stand in braces here",
        ),
        ("start: main", "voice: a b\nstart: main", (13, 8), "not a voice's name"),
        (
            "start: main",
            "orchestration: on\nstart: main",
            (13, 16),
            "is not one of the words allowed here",
        ),
        (
            "start: main",
            "memory: {strategy: best}\nstart: main",
            (13, 20),
            "is not one of the words allowed here",
        ),
        ("start: main", "memory: {budget_tokens: 20}\nstart: main", (13, 25), "is too small"),
        ("start: main", "spending: {per_call_usd: 0}\nstart: main", (13, 26), "is too small"),
        (
            "start: main",
            "spending: {transfer: nobody}\nstart: main",
            (13, 22),
            "no transfer target is called `nobody`",
        ),
        ("start: main", "language: english\nstart: main", (13, 11), "not a language tag"),
        ("start: main", "version: 2\nstart: main", (13, 10), "is too large"),
        ("type: hangup", "type: hang-up", (30, 15), "is not a kind of node"),
        ("type: hangup, ", "", (30, 3), "`type` is missing"),
        ("{to: bye, when: the caller is done}", "{to: bye}", (22, 7), "`when` is missing"),
    ],
)
def test_each_fault_is_told_with_its_place(old: str, new: str, place: tuple[int, int], message: str) -> None:
    assert only_fault(changed(old, new))[:3] == (*place, message)


@pytest.mark.parametrize(
    ("old", "new", "place", "message", "hint"),
    [
        ("start: main", "start: mian", (13, 8), "no node is called `mian`", "did you mean `main`?"),
        (
            "start: main",
            "start: nurse",
            (13, 8),
            "a call cannot start at `nurse`: nobody would talk",
            "name a node",
        ),
        (
            "transfers: [desk]",
            "transfers: [dest]",
            (18, 17),
            "no transfer target is called `dest`",
            "did you mean",
        ),
        ("{to: bye,", "{to: byee,", (22, 18), "no node is called `byee`", "did you mean `bye`?"),
        (
            "target: nurse",
            "target: doctor",
            (29, 35),
            "no transfer target is called `doctor`",
            "known: desk, nurse",
        ),
        (
            "start: main",
            "on_model_down: {transfer: x}\nstart: main",
            (13, 27),
            "no transfer target is called `x`",
            "",
        ),
        (
            "      done: {to: bye, when: the caller is done}\n",
            "",
            (29, 3),
            "nothing leads to `bye`",
            "add an exit",
        ),
        ("+16175550103", "+16175550101", (12, 19), "this number is answered by this flow itself", "give"),
        (
            '"+16175550101"',
            '"+16175550101", "+16175550101"',
            (3, 27),
            "number +16175550101 is taken already",
            "",
        ),
        ("name:", "id: b\nname:", (2, 1), "`id` is given twice", "first in line 1"),
    ],
)
def test_names_must_lead_somewhere(
    old: str, new: str, place: tuple[int, int], message: str, hint: str
) -> None:
    *found, told = only_fault(changed(old, new))
    assert found == [*place, message]
    assert hint in told


def test_all_faults_at_once_even_beside_broken_parts() -> None:
    text = (
        changed("America/New_York", "Mars")
        .replace("to: booking", "too: booking")
        .replace("target: nurse", "target: x")
    )
    told = [(fault.line, fault.message) for fault in faults_of(text)]
    assert told == [
        (4, "not a time zone"),
        (20, "`to` is missing"),
        (20, "`too` is not known here"),
        (23, "nothing leads to `booking`"),
        (29, "no transfer target is called `x`"),
    ]


def test_a_fault_reads_as_file_line_column() -> None:
    (fault,) = faults_of(changed("start: main", "start: mian"))
    assert str(fault) == "f.yaml:13:8: error: no node is called `mian` (did you mean `main`?)"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", (1, 1)),
        ("# only a comment\n", (1, 1)),
        ("just words", (1, 1)),
        ("- a\n- b\n", (1, 1)),
        ("a: [", (1, 5)),
        ("a: b\n c: d", (2, 3)),
        ("a: b\n---\nc: d", (2, 1)),
        ("a: \x00", (1, 4)),
        ("one: 1\ntwo: \ud800", (2, 6)),
        ('a: "\\UFFFFFFFF"', (1, 7)),
        ("a: *nobody", (1, 4)),
        ("a: &x [*x]", (1, 4)),
        ("a: " + "[" * 5_000, (1, 35)),
        ("x" * 1_000_001, (1, 1)),
        ("- x\n" * 20_001, (20_000, 3)),
    ],
)
def test_unreadable_text_is_one_fault_with_its_place(text: str, place: tuple[int, int]) -> None:
    line, column, message, _ = only_fault(text)
    assert (line, column) == place
    assert message


@pytest.mark.parametrize(
    "value", ["!!python/object/apply:os.system [ls]", "!!binary aGk=", "!x y", "!!set {a}"]
)
def test_tags_are_faults(value: str) -> None:
    assert "tags are not understood here" in [f.message for f in faults_of(changed("The Clinic", value))]


def test_control_characters_and_half_characters_do_not_pass() -> None:
    for escape in ("\\0", "\\x07", "\\ud800"):
        assert "holds a control character or half a character" in [
            fault.message for fault in faults_of(changed("The Clinic", f'"a{escape}"'))
        ]


def test_repeated_aliases_are_bounded() -> None:
    """Nine levels of ten aliases each would be a thousand million values."""
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert "too much is nested or repeated here" in [fault.message for fault in faults_of("\n".join(levels))]


def parses_or_tells(text: str) -> None:
    try:
        assert isinstance(parse_text(text, "f.yaml"), Business)
    except FlowErrors as errors:
        lines = len(text.splitlines()) + 2  # YAML breaks lines at U+2028 too
        assert errors.faults
        assert all(
            1 <= fault.line <= lines and fault.column >= 1 and fault.message for fault in errors.faults
        )


@unhurried
@given(st.text(max_size=200))
@example("? [a]\n: b")
@example(": x")
@example("%YAML 1." + "9" * 5_000 + "\n--- a")
@example("a: !<tag:yaml.org,2002:int> {}")
@example("a: !!null [x]")
def test_any_text_parses_or_tells(text: str) -> None:
    parses_or_tells(text)


@unhurried
@given(
    st.integers(0, len(CLINIC)),
    st.integers(0, 12),
    st.text(alphabet="[]{}:,&*!|>'\"%@`-?# \n\tabz019+\\~<=é\u2028\x00", max_size=8),
)
def test_any_damage_to_a_good_file_parses_or_tells(at: int, cut: int, put: str) -> None:
    parses_or_tells(CLINIC[:at] + put + CLINIC[at + cut :])


_WORDS = (
    "version id name numbers timezone language voice greeting instructions facts start nodes transfers resume within",
    "limits silence_s reprompts on_model_down say transfer type talk hangup main to when target exits topic",
    "menu options collect slot kind branch cases otherwise hours weekly holidays dates open closed languages",
    "emergency words operator callers blocked no_input no_match times confirm audio all any not op value",
)
_KEYS = st.sampled_from([word for line in _WORDS for word in line.split()])
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["talk", "main", "2h", ""])
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(_KEYS | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=12,
)


@unhurried
@given(
    st.integers(0, len(SHOP)),
    st.integers(0, 12),
    st.text(alphabet="[]{}:,&*!|>'\"%@`-?# \n\tabz019+\\~<=é\u2028\x00", max_size=8),
)
def test_any_damage_to_a_file_of_all_kinds_parses_or_tells(at: int, cut: int, put: str) -> None:
    parses_or_tells(SHOP[:at] + put + SHOP[at + cut :])


@unhurried
@given(st.dictionaries(_KEYS, _VALUES, max_size=12))
def test_any_structure_parses_or_tells(values: dict[str, object]) -> None:
    parses_or_tells(yaml.safe_dump({**yaml.safe_load(CLINIC), **values}))


# -- folders -------------------------------------------------------------------------------------------------


def second(**changes: str) -> str:
    text = CLINIC.replace("+1617555010", "+1617555011").replace("id: clinic", "id: second")
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


def test_a_folder_becomes_a_book(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CLINIC)
    (tmp_path / "b.yaml").write_text(second())
    (tmp_path / ".b.yaml").write_text("not: this")
    (tmp_path / "b.test.yaml").write_text("nor: this")
    book = load_folder(tmp_path)
    assert sorted(book.businesses) == ["clinic", "second"]
    found = book.by_number("+16175550111")
    assert found is not None
    assert found.id == "second"
    assert book.by_number("+16175550199") is None
    assert book.by_number("anonymous") is None
    assert book.hash_of("clinic") == hashlib.sha256(CLINIC.encode()).hexdigest()
    assert parse_text(book.text_of("second"), "b.yaml") == book.businesses["second"]


def test_orchestration_is_joint_unless_said_otherwise() -> None:
    assert parse_text(CLINIC, "a.yaml").orchestration is Orchestration.JOINT
    for mode in ("off", "local", "model", "joint"):
        business = parse_text(f"{CLINIC}\norchestration: {mode}\n", "a.yaml")
        assert business.orchestration is Orchestration(mode)


def test_line_ends_and_umlauts_are_kept_in_the_hash(tmp_path: Path) -> None:
    data = CLINIC.replace("The Clinic", "Zahnärzte").replace("\n", "\r\n").encode()
    (tmp_path / "a.yaml").write_bytes(data)
    book = load_folder(tmp_path)
    assert book.businesses["clinic"].name == "Zahnärzte"
    assert book.hash_of("clinic") == hashlib.sha256(data).hexdigest()


def folder_faults(path: Path) -> list[tuple[str, int, int, str]]:
    with pytest.raises(FlowErrors) as caught:
        load_folder(path)
    return [(Path(f.file).name, f.line, f.column, f.message) for f in caught.value.faults]


def test_faults_of_all_files_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CLINIC.replace("start: main", "start: x"))
    (tmp_path / "b.yaml").write_text("a: [")
    assert [(name, line) for name, line, _, _ in folder_faults(tmp_path)] == [("a.yaml", 13), ("b.yaml", 1)]


def test_two_businesses_with_one_number_or_id(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CLINIC)
    (tmp_path / "b.yaml").write_text(
        second().replace("+16175550111", "+16175550101").replace("id: second", "id: clinic")
    )
    assert folder_faults(tmp_path) == [
        ("b.yaml", 1, 5, "id clinic is taken already"),
        ("b.yaml", 3, 11, "number +16175550101 is taken already"),
    ]


def test_what_is_no_flow_folder(tmp_path: Path) -> None:
    assert folder_faults(tmp_path) == [(tmp_path.name, 1, 1, "no flow files here")]
    assert folder_faults(tmp_path / "no") == [("no", 1, 1, "cannot be read: No such file or directory")]
    (tmp_path / "a.yaml").write_bytes(b"id: a\nname: \xff\xfe\n")
    assert folder_faults(tmp_path) == [("a.yaml", 2, 7, "is not UTF-8 text")]
    (tmp_path / "a.yaml").write_bytes(b"# " + b"x" * 1_000_000)
    assert folder_faults(tmp_path) == [("a.yaml", 1, 1, "the file is larger than 1 MB")]


@unhurried
@given(st.binary(max_size=100))
def test_any_bytes_parse_or_tell(data: bytes) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    parses_or_tells(text)


def test_a_memory_strategy_may_be_chosen() -> None:
    business = parse_text(CLINIC, "a.yaml")
    assert (business.memory.strategy, business.memory.budget_tokens) == ("vthreads", 1_500)
    chosen = parse_text(f"{CLINIC}\nmemory: {{strategy: full, audio_turns: 0}}\n", "a.yaml")
    assert (chosen.memory.strategy, chosen.memory.audio_turns) == ("full", 0)


def test_spending_has_no_ceiling_unless_one_is_set() -> None:
    assert parse_text(CLINIC, "a.yaml").spending.per_call_usd is None
    chosen = parse_text(
        f"{CLINIC}\nspending: {{per_call_usd: '2.5', per_month_usd: 90}}\n", "a.yaml"
    ).spending
    assert (chosen.per_call_usd, chosen.per_month_usd, chosen.transfer) == (2.5, 90.0, None)
