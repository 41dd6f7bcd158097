"""How the sandbox answers: extractive, deterministic, by rules. It is not a language model."""

import re

import msgspec

from ivr.sandbox.brain import Answer, Question, Who
from ivr.sandbox.extract import Candidate, Source, best, constraints, facts, is_personal, papers, told
from ivr.sandbox.language import is_question, is_unfinished, quoted, sentences, shortened, stems, words
from ivr.sandbox.rules import (
    CONNECTING,
    FAREWELL,
    OFFER,
    REALLY_FORGET,
    choose,
    directive_in,
    wants_promptness,
)
from ivr.sandbox.scene import Scene, plain

MAX_WORDS = 60
DONT_KNOW = f"I don't have that here. {OFFER}"
NOT_HEARD = "Sorry, I didn't catch that. Could you say it again?"
PLEASE_GO_ON = "Yes, please go on."
WELCOME = "Hello. How can I help you?"

_SAY_EXACTLY = re.compile(r"^\s*Say exactly:\s*(?P<text>.+?)\s*$", re.M)
# Whisper hears "where were we" as "wherever we" from some voices.
_WHERE_WERE_WE = re.compile(
    r"\bwhere(ver)? (were|are|was|did) (we|i)\b|^wherever we$|\bwhat (were|was) (we|i) (talking|speaking|saying)"
    r"|\bwhere did we (stop|leave)|\bwhat did we (talk|speak) about"
)
_SMALL_TALK = (
    (re.compile(r"^(hello|hi|hey|good (morning|afternoon|evening))( there)?$"), WELCOME),
    (
        re.compile(r"^(ok |okay |great |no )?(thanks|thank you)( very much| so much)?$"),
        "You are welcome. Anything else?",
    ),
    (re.compile(r"^(yes|yeah|yep|sure|okay|ok|right|fine)( please)?$"), "Good. What would you like to know?"),
    (re.compile(r"^(no|nope)( thanks| thank you)?$"), "All right. Is there anything else?"),
)


class _Output(msgspec.Struct):
    """What a function's output may say about itself; everything else in it is ignored."""

    say: str = ""
    text: str = ""
    refused: str | bool = ""
    error: str | bool = ""


def think(question: Question) -> Answer:
    """The answer to a response's material. The rules, in order, are in docs/sandbox.md."""
    exact = _SAY_EXACTLY.findall(question.instructions)
    if exact:
        return Answer(say=exact[-1])
    scene = Scene.of(question)
    if scene.outputs:
        return Answer(say=_limited(_after_call(scene)))
    if not scene.has_user:
        return Answer(say=WELCOME)
    called = choose(scene)
    if called is not None:
        return called
    return Answer(say=_limited(_reply(scene, scene.turn)))


def _reply(scene: Scene, turn: str) -> str:
    said = plain(turn)
    if not said:
        return NOT_HEARD
    if scene.offered_to_go_on and scene.accepts:
        return f"Good, let's go on. {_where_were_we(scene)}"
    if _WHERE_WERE_WE.search(said):
        return _where_were_we(scene)
    small = next((answer for pattern, answer in _SMALL_TALK if pattern.search(said)), None)
    if small:
        return small
    return PLEASE_GO_ON if is_unfinished(turn) else _extracted(scene, turn)


def _extracted(scene: Scene, turn: str) -> str:
    known = facts(scene.question.instructions) + papers(scene.earlier)
    earlier = _distinct(told(scene.earlier))
    asked = is_question(turn)
    first, second = (earlier, known) if asked and is_personal(turn) else (known, earlier)
    found = best(turn, first) or (best(turn, second) if asked else [])
    limits = [one for one in constraints(turn, earlier) if one not in found]
    parts = [] if asked else [f"Noted: {quoted(turn)}."]
    parts += [_spoken(one) for one in found]
    parts += [f"I remember you said: {quoted(one.text)}." for one in limits[-1:]]
    return " ".join(parts) or DONT_KNOW


def _distinct(candidates: list[Candidate]) -> list[Candidate]:
    """Each text once, the newest; sentences about how to speak are left out."""
    newest = {plain(one.text): one for one in candidates if not directive_in(one.text)}
    return list(newest.values())


def _spoken(one: Candidate) -> str:
    if one.source is Source.USER:
        return f"You told me: {quoted(one.text)}."
    if one.source is Source.MEMORY:
        return f"I remember: {quoted(one.text)}."
    return one.text if one.text.endswith((".", "!", "?")) else f"{one.text}."


def _where_were_we(scene: Scene) -> str:
    """Names the last topic: the user's last words of substance, and what was said to them."""
    lines = scene.earlier
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number]
        if line.who is not Who.USER or not _has_substance(line.text):
            continue
        replies = (after.text for after in lines[number + 1 :] if after.who is Who.ASSISTANT and after.text)
        reply = next(replies, "")
        had_said = f" I had said: {quoted(sentences(reply)[0])}." if reply else ""
        return f"We were talking about: {quoted(line.text)}.{had_said}"
    memory = [one for one in told(lines) if one.source is Source.MEMORY]
    return (
        f"We were talking about: {quoted(memory[-1].text)}."
        if memory
        else "We have only just begun. How can I help?"
    )


def _has_substance(text: str) -> bool:
    return (
        len(words(text)) >= 3
        and bool(stems(text))
        and not _WHERE_WERE_WE.search(plain(text))
        and not directive_in(text)
    )


def _after_call(scene: Scene) -> str:
    """What a function's output says, or a short confirmation; then the rest of the turn, if it asked more."""
    line = scene.outputs[-1]
    output = _read(line.text)
    if output.say or output.text:
        return output.say or output.text
    if output.refused or output.error:
        return "I am afraid I can't do that just now."
    rest = " ".join(part for part in sentences(scene.turn) if not directive_in(part))
    more = _reply(scene, rest) if line.name in _DIRECTIVES and is_question(rest) and stems(rest) else ""
    return f"{_confirmation(scene, line.name)} {more}".strip()


_DIRECTIVES = {
    "set_response_speed",
    "set_response_instruction",
    "set_vad_silence_duration",
    "another_person",
}
_CONFIRMATIONS = {
    "set_response_instruction": "Understood.",
    "set_vad_silence_duration": "Of course, take your time.",
    "transfer": CONNECTING,
    "hang_up": FAREWELL,
    "refuse_recording": "All right, nothing of this call is recorded.",
    "forget_me": REALLY_FORGET,
    "confirm_forget_me": "Everything will be erased after a day.",
    "another_person": "Hello. How can I help you?",
    "start_afresh": "Of course, let's start afresh. How can I help you?",
}


def _confirmation(scene: Scene, name: str) -> str:
    if name == "set_response_speed":
        return (
            "Okay, faster now."
            if re.search(r"fast|quick|speed up|too slow", plain(scene.turn))
            else "Okay, slower now."
        )
    if name == "set_vad_silence_duration" and wants_promptness(scene.turn):
        return "I will."
    if name == "go_on":
        return f"Good, let's go on. {_where_were_we(scene)}"
    return _CONFIRMATIONS.get(name, "All right, that is done.")


def _read(text: str) -> _Output:
    try:
        return msgspec.json.decode(text, type=_Output)
    except (msgspec.ValidationError, msgspec.DecodeError):
        return _Output()


def _limited(text: str) -> str:
    return shortened(text, MAX_WORDS)
