"""`ivr flows simulate`, as a newcomer types into it."""

import pytest
from typer.testing import CliRunner

from callflows.parse import parse_text
from ivr.errors import CallthreadError
from ivr.flow_terminal import Terminal, moment_of
from ivr.flows_cli import flows_app
from tests.unit.callflows.nodes import shop
from tests.unit.callflows.test_override import FLOW as OWNERS
from tests.unit.callflows.test_rings import HELP as RINGS


def typed(text: str, *lines: str, caller: str = "+12025550144") -> list[str]:
    told: list[str] = []
    business = parse_text(text, "f.yaml") if text else shop()
    Terminal(business, moment_of(business, "2026-01-07T10:00", caller), told.append).run(lines)
    return told


def test_it_begins_with_help_the_time_and_who_calls() -> None:
    told = typed("")
    assert "Ctrl-D" in told[0]
    assert told[1] == "The Shop, Wednesday 2026-01-07 10:00 EST, a call from +12025550144"
    assert told[-1] == "  [menu]"


@pytest.mark.parametrize("caller", ["", "anonymous", "withheld", "Restricted", "+266696687"])
def test_withheld_may_be_said_in_every_way(caller: str) -> None:
    assert typed("", caller=caller)[1].endswith("a call from a withheld number")


@pytest.mark.parametrize("caller", ["12345", "+1202555", "me"])
def test_what_is_no_number_is_refused(caller: str) -> None:
    with pytest.raises(CallthreadError, match=r"--from.*like \+1202"):
        moment_of(shop(), "", caller)


@pytest.mark.parametrize("caller", ["+447700900123", "sip:ann@example.com"])
def test_who_calls_is_whoever_a_network_may_say(caller: str) -> None:
    assert moment_of(shop(), "", caller).caller == caller


@pytest.mark.parametrize(
    ("at", "told"),
    [
        ("tomorrow", "not a time; like"),
        # The USA put their clocks forward on 8 March 2026 at 02:00.
        ("2026-03-08T02:30", "there is no 02:30 on that day in America/New_York.*2026-03-08T03:30"),
    ],
)
def test_what_is_no_time_is_refused(at: str, told: str) -> None:
    with pytest.raises(CallthreadError, match=f"--at: {told}"):
        moment_of(shop(), at, "")


def test_a_time_that_comes_twice_is_the_first() -> None:
    moment = moment_of(shop(), "2026-11-01T01:30", "")
    assert moment.now is not None and f"{moment.now:%H:%M %Z}" == "01:30 EDT"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/nonsense", "  there is no /nonsense: /help shows what there is"),
        ("/call", "  there is no function (its name is missing): no model is asked here"),
        ("/answer {}", "  no tool, and no PIN, is awaited here"),
        ("/fail", "  no tool, and no PIN, is awaited here"),
        ("/result busy", "  the call is not away: nobody is being called, and no message is left"),
    ],
)
def test_what_does_not_fit_here_says_why(line: str, told: str) -> None:
    assert typed("", line)[-1] == told


def test_words_keys_and_silence_go_to_the_flow() -> None:
    told = typed("", "", "orders", "4")
    assert any(line.startswith("  says: Hello?") for line in told)
    assert told[-2:] == ["  says: 4, right?", "  [party]"]


def test_functions_are_named_where_one_is_not_known() -> None:
    told = typed("", "3", "/call nothing")
    assert told[-1].startswith("  there is no function nothing: the model may use leave_again, leave_done")
    assert typed("", "3", "/call leave_done")[-2:] == [
        "  says: We are closed.\n  hangs up",
        "  [closed, hung_up]",
    ]


def test_a_pin_is_answered_for() -> None:
    told = typed(OWNERS, "9", "123456#", "/answer perhaps", "/answer true", "1", caller="+12025550143")
    assert any("checks the PIN" in line for line in told)
    assert any("or /answer true for a PIN" in line for line in told)
    assert "  sets office: open, until 2026-01-07 13:00" in told
    assert "123456" not in "\n".join(told)


def test_a_call_that_is_away_waits_for_what_came_of_it() -> None:
    told = typed(RINGS, "1", "hello", "/result gone", "/result busy")
    assert any(line.startswith("  the call is away: /result WORD") for line in told)
    assert any(line.startswith("  /result is one of reached, busy") for line in told)
    assert any("+16175550103" in line for line in told)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["bella-tavla"], "did you mean bella-tavola?"),
        (["nosuch"], "name a .yaml file, or one of bella-tavola"),
        (["nosuch.yaml"], "nosuch.yaml:1:1: error: cannot be read: No such file or directory"),
        (
            ["bella-tavola", "--script", "no.test.yaml"],
            "no.test.yaml:1:1: error: cannot be read: No such file",
        ),
    ],
)
def test_a_wrong_name_says_which_there_are(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.delenv("IVR_CALLFLOWS", raising=False)
    result = CliRunner().invoke(flows_app, ["simulate", *arguments])
    assert result.exit_code == 1
    assert told in str(result.exception)


def test_the_end_of_input_ends_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IVR_CALLFLOWS", raising=False)
    result = CliRunner().invoke(
        flows_app, ["simulate", "bella-tavola", "--at", "2026-01-07T18:00"], input="1\n"
    )
    assert (result.exit_code, result.exception) == (0, None)
    assert result.output.endswith("> \n")
