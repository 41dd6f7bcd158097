"""Which function the sandbox calls, and when: one rule each, tried in order. docs/sandbox.md lists them."""

import re
from collections.abc import Callable

from ivr.sandbox.brain import Answer, Who
from ivr.sandbox.language import is_unfinished, stems
from ivr.sandbox.scene import Scene, calling, choices, plain, property_of

OFFER = "Shall I connect you to a person?"
FAREWELL = "Thank you for calling. Goodbye."
REALLY_FORGET = "Shall I really have everything about you erased?"
CONNECTING = "One moment, I'll connect you."

_CONCEALED_MS = 200
_SPEED_STEP = 0.2
_SPEED_RANGE = (0.25, 1.5)
_PATIENT_MS, _PROMPT_MS = 1_200, 300
_LONG_FAREWELL_WORDS = 12

_ASKS_TO_CONNECT = re.compile(
    r"\b(put me through|connect me|transfer me|pass me (on|over|to)|(speak|talk)(ing)? (to|with)|operator)\b"
)
_A_PERSON = re.compile(
    r"\b(a |an |the |some|real |human )*(person|human|someone|somebody|operator|agent|representative|receptionist"
    r"|colleague|manager|member of staff)\b"
)
_INSISTS = re.compile(r"\b(put me through|connect me|transfer me|pass me)\b")
_GOODBYE = re.compile(
    r"\b(good ?bye|bye|hang up|that's all|that is all|that'll be all|that will be all|that's it for|nothing else"
    r"|no that's it|have a (nice|good|great) (day|evening|one))\b"
)
_SLOWER = re.compile(r"\b(slower|slow down|slowly|too fast|too quick(ly)?)\b")
_FASTER = re.compile(r"\b(faster|speed up|quicker|more quickly|hurry up|too slow(ly)?)\b")
_BRIEF = re.compile(
    r"\b(be brief|briefly|keep it short|short answers?|shorter answers?|in one sentence|more briefly)\b"
)
_LONGER = re.compile(r"\b(more detail|in detail|longer answers?|explain more)\b")
_MY_NAME = re.compile(r"\b([Tt]his is|[Mm]y name is|[Mm]y name's|[Hh]ere is) (?P<name>[A-Z][a-z]+)\b")
_SOMEBODY_ELSE = re.compile(
    r"\b(i'm not (her|him|the one)|(somebody|someone) else (is )?(speaking|here|on the (phone|line))"
    r"|you spoke (to|with) my|(took over|handed me) the phone)\b"
)
_NO_RECORDING = re.compile(r"\b(don't|do not|not want|no|stop) (you )?(to )?(be )?record(ed|ing)?\b")
_FORGET_ME = re.compile(
    r"\b(forget (me|all|everything|what i)|(delete|erase) (me|my data|everything|all (you|that)))\b"
)
_PATIENCE = re.compile(
    r"\b(more time|let me think|don't (interrupt|rush|cut)|stop (interrupting|cutting)|wait for me|be patient)\b"
)

_PROMPTNESS = re.compile(
    r"\b((as soon as|the moment|once) i (finish|am done|stop)|don't wait so long|answer at once)\b"
)


def choose(scene: Scene) -> Answer | None:
    """The first rule that applies; None: no function is to be called."""
    return next((answer for rule in RULES if (answer := rule(scene)) is not None), None)


def wants_promptness(turn: str) -> bool:
    """Whether the caller asks for answers as soon as they have finished."""
    return bool(_PROMPTNESS.search(plain(turn)))


def directive_in(sentence: str) -> bool:
    """Whether a sentence is about how to speak or listen rather than about the matter."""
    said = plain(sentence)
    return any(
        pattern.search(said) for pattern in (_SLOWER, _FASTER, _BRIEF, _LONGER, _PATIENCE, _PROMPTNESS)
    )


def _defer(scene: Scene) -> Answer | None:
    tool = scene.tool("defer_response")
    broken = scene.numbers.get("concealed_ms", 0.0) >= _CONCEALED_MS
    if tool is None or not broken or not is_unfinished(scene.turn):
        return None
    return calling(
        tool, {property_of(tool, "reason", "string"): "the network lost part of an unfinished turn"}
    )


def _transfer(scene: Scene) -> Answer | None:
    tool = scene.tool("transfer")
    if tool is None or not scene.turn:
        return None
    said = plain(scene.turn)
    argument = property_of(tool, "target", "string")
    targets = choices(tool, argument)
    accepted = scene.accepts and scene.last_reply.rstrip().endswith(OFFER)
    named = _best_target(said, targets, tool.description)
    asked = bool(_ASKS_TO_CONNECT.search(said))
    wanted = accepted or _INSISTS.search(said) or (asked and (named or _A_PERSON.search(said)))
    if not wanted or not (targets or not tool.parameters.get("required")):
        return None
    target = named or _usual_target(targets)
    return calling(tool, {argument: target} if target else {}, CONNECTING)


def _best_target(said: str, targets: list[str], description: str) -> str:
    """The target whose name (counted twice) or description, `name: text`, shares most with what was said."""
    present = stems(said)
    scored = [
        (
            2 * len(stems(_spaced(target)) & present)
            + len(stems(_described(target, targets, description)) & present),
            target,
        )
        for target in targets
    ]
    score, target = max(scored, key=lambda pair: pair[0], default=(0, ""))
    return target if score else ""


def _spaced(name: str) -> str:
    return re.sub(r"[_-]+", " ", name)


def _described(target: str, targets: list[str], description: str) -> str:
    """What stands after `target:` in the tool's description, up to the next target."""
    _, found, rest = description.partition(f"{target}:")
    others = "|".join(re.escape(name) for name in targets)
    return re.split(rf"\b(?:{others}):", rest)[0] if found else ""


def _usual_target(targets: list[str]) -> str:
    usual = ("reception", "front", "operator", "office", "desk", "person", "staff", "host")
    return next(
        (target for word in usual for target in targets if word in target.lower()),
        targets[0] if targets else "",
    )


def _hang_up(scene: Scene) -> Answer | None:
    tool = scene.tool("hang_up")
    said = plain(scene.turn)
    if tool is None or not _GOODBYE.search(said) or len(said.split()) > _LONG_FAREWELL_WORDS:
        return None
    argument = property_of(tool, "reason", "string")
    required = tool.parameters.get("required") or []
    return calling(tool, {argument: "the caller said goodbye"} if argument in required else {}, FAREWELL)


def _another_person(scene: Scene) -> Answer | None:
    tool = scene.tool("another_person")
    if tool is None:
        return None
    said = plain(scene.turn)
    name = _named(scene.turn)
    known = {_named(line.text) for line in scene.earlier if line.who is Who.USER} - {""}
    is_other = bool(name and known and name not in known)
    return calling(tool, {}) if is_other or _SOMEBODY_ELSE.search(said) else None


def _refuse_recording(scene: Scene) -> Answer | None:
    tool = scene.tool("refuse_recording")
    return calling(tool, {}) if tool is not None and _NO_RECORDING.search(plain(scene.turn)) else None


def _forget(scene: Scene) -> Answer | None:
    tool, confirm = scene.tool("forget_me"), scene.tool("confirm_forget_me")
    if confirm is not None and scene.accepts and scene.last_reply.rstrip().endswith(REALLY_FORGET):
        return calling(confirm, {})
    return calling(tool, {}) if tool is not None and _FORGET_ME.search(plain(scene.turn)) else None


def _named(said: str) -> str:
    """The name that somebody gives as theirs; empty if none."""
    found = _MY_NAME.search(said)
    return found["name"].lower() if found else ""


def _go_on_or_afresh(scene: Scene) -> Answer | None:
    afresh, go_on = scene.tool("start_afresh"), scene.tool("go_on")
    if afresh is not None and scene.declines:
        return calling(afresh, {})
    if go_on is not None and scene.accepts:
        return calling(go_on, {})
    return None


def _speed(scene: Scene) -> Answer | None:
    tool = scene.tool("set_response_speed")
    said = plain(scene.turn)
    slower, faster = _SLOWER.search(said), _FASTER.search(said)
    if tool is None or bool(slower) == bool(faster):
        return None
    speed = scene.numbers.get("speed", 1.0) + (_SPEED_STEP if faster else -_SPEED_STEP)
    low, high = _SPEED_RANGE
    return calling(tool, {property_of(tool, "speed", "number"): round(min(high, max(low, speed)), 2)})


def _instruction(scene: Scene) -> Answer | None:
    tool = scene.tool("set_response_instruction")
    said = plain(scene.turn)
    if tool is None or not (_BRIEF.search(said) or _LONGER.search(said)):
        return None
    text = "Answer in one short sentence." if _BRIEF.search(said) else "Answer in more detail."
    return calling(tool, {property_of(tool, "text", "string"): text})


def _silence(scene: Scene) -> Answer | None:
    tool = scene.tool("set_vad_silence_duration")
    patient, prompt = bool(_PATIENCE.search(plain(scene.turn))), wants_promptness(scene.turn)
    if tool is None or patient == prompt:
        return None
    return calling(tool, {property_of(tool, "ms", "number"): _PROMPT_MS if prompt else _PATIENT_MS})


RULES: tuple[Callable[[Scene], Answer | None], ...] = (
    _defer,
    _another_person,
    _refuse_recording,
    _forget,
    _transfer,
    _hang_up,
    _go_on_or_afresh,
    _speed,
    _instruction,
    _silence,
)
