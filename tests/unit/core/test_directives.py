"""The typed functions: what is offered where, what is refused and why, and when it takes hold."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callflows import engine
from callflows.model import Orchestration
from ivr.core.directives import DIRECTIVES, Directive, Effect, Refused
from ivr.core.functions import Functions, Situation
from tests.unit.core.harness import clinic
from tests.unit.core.lossy import orchestrated

VALID: dict[str, list[dict[str, Any]]] = {
    "set_response_instruction": [{"text": "Be brief."}],
    "set_response_speed": [{"speed": 0.25}, {"speed": 1.5}, {"speed": 1, "asked": False}],
    "set_vad_silence_duration": [{"silence_ms": 200}, {"silence_ms": 5_000, "asked": False}],
    "defer_response": [{}, {"reason": "a hole in the last word"}],
}
INVALID: list[tuple[str, dict[str, Any], str]] = [
    ("set_response_instruction", {}, "bad_type"),
    ("set_response_instruction", {"text": 5}, "bad_type"),
    ("set_response_instruction", {"text": "x" * 501}, "out_of_range"),
    ("set_response_speed", {"speed": "fast"}, "bad_type"),
    ("set_response_speed", {"speed": True}, "bad_type"),
    ("set_response_speed", {"speed": 0.24}, "out_of_range"),
    ("set_response_speed", {"speed": 1.51}, "out_of_range"),
    ("set_response_speed", {"speed": float("nan")}, "out_of_range"),
    ("set_response_speed", {"speed": 1, "asked": "yes"}, "bad_type"),
    ("set_vad_silence_duration", {"silence_ms": 199}, "out_of_range"),
    ("set_vad_silence_duration", {"silence_ms": 5_001}, "out_of_range"),
    ("set_vad_silence_duration", {"silence_ms": None}, "bad_type"),
    ("set_vad_silence_duration", {"silence_ms": 900, "asked": "no"}, "bad_type"),
    ("defer_response", {"reason": 5}, "bad_type"),
]


@dataclass
class Recorded:
    """Controls that only note what was done."""

    done: list[tuple[str, Any]] = field(default_factory=list)

    def set_speed(self, speed: float, *, asked: bool) -> None:
        self.done.append(("speed", (speed, asked)))

    def set_silence(self, silence_ms: int, *, asked: bool) -> None:
        self.done.append(("silence", (silence_ms, asked)))

    def set_instruction(self, text: str) -> None:
        self.done.append(("instruction", text))


def apply(name: str, arguments: dict[str, Any]) -> Effect | Refused:
    return DIRECTIVES[name].validate(arguments)


def dispatched(
    functions: Functions,
    name: str,
    arguments: str,
    situation: Situation | None = None,
    *,
    audible: bool = False,
) -> str:
    flow = engine.start(clinic())
    return functions.apply(
        flow, name, arguments, engine.Moment(), situation or Situation(), audible=audible
    ).output


def code_of(output: str) -> str:
    return str(json.loads(output)["error"])


def offered(functions: Functions, situation: Situation | None = None) -> list[str]:
    tools = functions.tools(engine.start(clinic()), situation or Situation())
    return [tool.name for tool in tools if tool.name in DIRECTIVES]


def test_the_paper_s_four_in_one_order() -> None:
    assert list(DIRECTIVES) == list(VALID)


@pytest.mark.parametrize(("name", "arguments"), [(n, a) for n, many in VALID.items() for a in many])
def test_what_the_schema_allows_is_valid(name: str, arguments: dict[str, Any]) -> None:
    schema = DIRECTIVES[name].tool.parameters
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) <= set(arguments) <= set(schema["properties"])
    assert isinstance(apply(name, arguments), Effect)


@pytest.mark.parametrize(("name", "arguments", "code"), INVALID)
def test_what_is_refused_is_told_by_a_code(name: str, arguments: dict[str, Any], code: str) -> None:
    refused = apply(name, arguments)
    assert isinstance(refused, Refused)
    assert refused.code == code
    assert refused.message


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(list(DIRECTIVES)),
    st.dictionaries(
        st.sampled_from(["text", "speed", "silence_ms", "reason", "asked", "x"]),
        st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.lists(st.integers()),
    ),
)
def test_any_arguments_are_an_effect_or_a_refusal_and_no_effect_is_out_of_range(
    name: str, arguments: dict[str, Any]
) -> None:
    outcome = apply(name, arguments)
    if isinstance(outcome, Refused):
        return
    controls = Recorded()
    outcome.apply(controls)
    for what, value in controls.done:
        assert what != "speed" or 0.25 <= value[0] <= 1.5
        assert what != "silence" or 200 <= value[0] <= 5_000


def test_effects() -> None:
    controls = Recorded()
    for name, many in VALID.items():
        effect = apply(name, many[0])
        assert isinstance(effect, Effect)
        effect.apply(controls)
        assert effect.defers is (name == "defer_response")
        assert effect.changes_session is (name in ("set_response_speed", "set_vad_silence_duration"))
    assert controls.done == [("instruction", "Be brief."), ("speed", (0.25, True)), ("silence", (200, True))]


@pytest.mark.parametrize(
    ("mode", "missing"),
    [
        ("off", {"set_vad_silence_duration", "defer_response"}),
        ("local", {"defer_response"}),
        ("model", set()),
        ("joint", set()),
    ],
)
def test_an_orchestration_offers_its_own_and_refuses_the_others(mode: str, missing: set[str]) -> None:
    functions = Functions(orchestrated(mode))
    assert set(DIRECTIVES) - set(offered(functions)) == missing
    for name in missing:
        assert code_of(dispatched(functions, name, json.dumps(VALID[name][0]))) == "not_available"


def test_what_the_provider_cannot_do_is_not_offered_and_refused() -> None:
    functions = Functions(clinic(), frozenset({"set_response_speed"}))
    assert "set_response_speed" not in offered(functions)
    assert code_of(dispatched(functions, "set_response_speed", '{"speed": 1}')) == "not_supported"


def test_a_directive_of_other_languages_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    speed = DIRECTIVES["set_response_speed"]
    only = Directive(speed.tool, speed.validate, languages=frozenset({"de"}))
    monkeypatch.setitem(DIRECTIVES, "set_response_speed", only)
    assert "set_response_speed" not in offered(Functions(clinic()))
    assert code_of(dispatched(Functions(clinic()), "set_response_speed", "{}")) == "unsupported_language"
    german = clinic("timezone:", "language: de-DE\ntimezone:")
    assert "set_response_speed" in offered(Functions(german))


def test_deferring_has_its_time() -> None:
    functions = Functions(orchestrated(Orchestration.MODEL))
    assert code_of(dispatched(functions, "defer_response", "{}", audible=True)) == "already_speaking"
    waited = Situation(may_defer=False)
    assert "defer_response" not in offered(functions, waited)
    assert code_of(dispatched(functions, "defer_response", "{}", waited)) == "no_waiting"
    assert dispatched(functions, "set_response_speed", '{"speed": 1.2}', audible=True) == "ok"


def test_the_order_of_what_is_offered_never_changes() -> None:
    functions = Functions(clinic())
    whole = offered(functions)
    assert offered(functions, Situation(may_defer=False)) == [n for n in whole if n != "defer_response"]
