"""TwiML answers, through Twilio's library. What XML cannot carry is removed; results begin with `<`."""

import re
from collections.abc import Mapping, Sequence

from twilio.twiml.voice_response import (
    Connect,
    Dial,
    Gather,
    Stream,
    VoiceResponse,
)

CONTENT_TYPE = "text/xml"
MAX_INLINE_CHARS = 4_000
MAX_PARAMETER_CHARS = 499

# XML 1.0, section 2.2, and the halves of surrogate pairs, which no encoding takes.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class TwimlTooLong(ValueError):
    """Inline TwiML for the REST API may have 4,000 characters."""


class ParameterTooLong(ValueError):
    """A `<Parameter>` value must have less than 500 characters."""


def clean(text: str) -> str:
    """`text` without characters that XML forbids."""
    return _NOT_XML.sub("", text)


def connect_stream(
    ws_url: str,
    token: str,
    continue_url: str,
    *,
    parameters: Mapping[str, str] | None = None,
    status_callback_url: str | None = None,
    say: str = "",
    language: str = "en-US",
) -> str:
    """Open the media stream; when its socket closes, ask at `continue_url` what now.

    Values travel as `<Parameter>`: Twilio drops a Stream URL's query. Raises: `ParameterTooLong`.
    """
    response = VoiceResponse()
    _say(response, say, language)
    stream = Stream(
        url=clean(ws_url),
        status_callback=status_callback_url and clean(status_callback_url),
        status_callback_method="POST" if status_callback_url else None,
    )
    for name, value in {"token": token, **(parameters or {})}.items():
        if len(value) > MAX_PARAMETER_CHARS:
            raise ParameterTooLong(name)
        stream.parameter(name=clean(name), value=clean(value))
    response.append(Connect().append(stream))
    response.redirect(clean(continue_url), method="POST")
    return str(response)


def say_and_hang_up(text: str, language: str = "en-US") -> str:
    """A sentence in Twilio's own voice, then the end: refusals, busy, apologies."""
    response = VoiceResponse()
    _say(response, text, language)
    response.hangup()
    return str(response)


def dial(
    number: str,
    action_url: str,
    *,
    others: Sequence[str] = (),
    whisper_url: str = "",
    say: str = "",
    language: str = "en-US",
    timeout_s: int = 20,
    caller_id: str = "",
) -> str:
    """Connect the caller to `number`; how it went is posted to `action_url`, which answers what is next.

    `others` are rung at the same time. Who answers hears what `whisper_url` answers before they are connected.
    """
    response = VoiceResponse()
    _say(response, say, language)
    call = Dial(
        action=clean(action_url),
        method="POST",
        timeout=timeout_s,
        answer_on_bridge=True,
        caller_id=clean(caller_id) or None,
    )
    for each in (number, *others):
        call.number(clean(each), url=clean(whisper_url) or None, method="POST" if whisper_url else None)
    response.append(call)
    return str(response)


def record(
    action_url: str,
    empty_url: str,
    status_url: str,
    *,
    say: str = "",
    language: str = "en-US",
    max_s: int = 120,
    silence_s: int = 5,
    finish: str = "#",
) -> str:
    """Record a message after a tone. Its end is posted to `action_url`; Twilio does not ask that for an empty one,
    and goes to `empty_url`. That it can be fetched is posted to `status_url`.
    """
    response = VoiceResponse()
    _say(response, say, language)
    response.record(
        action=clean(action_url),
        method="POST",
        max_length=max_s,
        timeout=silence_s,
        finish_on_key=finish,
        play_beep=True,
        recording_status_callback=clean(status_url),
        recording_status_callback_method="POST",
        recording_status_callback_event="completed",
        transcribe=False,
    )
    response.redirect(clean(empty_url), method="POST")
    return str(response)


def enqueue(line: str, action_url: str, wait_url: str, *, say: str = "", language: str = "en-US") -> str:
    """Put the caller into a line. `wait_url` answers what they hear there; how it ended is posted to `action_url`."""
    response = VoiceResponse()
    _say(response, say, language)
    response.enqueue(
        clean(line), action=clean(action_url), method="POST", wait_url=clean(wait_url), wait_url_method="POST"
    )
    return str(response)


def wait_in_line(
    text: str,
    again_url: str,
    for_s: int,
    *,
    sound_url: str = "",
    has_key: bool = False,
    language: str = "en-US",
) -> str:
    """For who waits in a line: the text, then the sound (or silence for so long); then `again_url` is asked anew.

    With `has_key` a key that they press meanwhile is posted there at once.
    """
    response = VoiceResponse()
    url = clean(again_url)
    heard: VoiceResponse | Gather = response
    if has_key:
        heard = Gather(input="dtmf", num_digits=1, timeout=1, finish_on_key="", action=url, method="POST")
        response.append(heard)
    _say(heard, text, language)
    if sound_url:
        heard.play(clean(sound_url))
    else:
        heard.pause(length=for_s)
    response.redirect(url, method="POST")
    return str(response)


def leave_line() -> str:
    """For who waits in a line: leave it, and go on where it was entered."""
    response = VoiceResponse()
    response.leave()
    return str(response)


def dial_line(line: str, action_url: str, *, wait_s: int, say: str = "", language: str = "en-US") -> str:
    """Connect to the first who waits in a line, or wait so long for one; how it went is posted to `action_url`."""
    response = VoiceResponse()
    _say(response, say, language)
    call = Dial(action=clean(action_url), method="POST", timeout=wait_s)
    call.queue(clean(line))
    response.append(call)
    return str(response)


def ask_to_accept(text: str, key_url: str, language: str = "en-US", *, wait_s: int = 8) -> str:
    """For who was called: the text, twice; a key they press is posted to `key_url`. Without one they are left."""
    response = VoiceResponse()
    gather = Gather(
        num_digits=1, timeout=wait_s, action=clean(key_url), method="POST", finish_on_key="", input="dtmf"
    )
    for _ in range(2):
        _say(gather, text, language)
    response.append(gather)
    response.hangup()
    return str(response)


def connect_called() -> str:
    """For who was called: connect them to the caller now, which is what Twilio does when there is nothing to do."""
    return str(VoiceResponse())


def say_and_redirect(text: str, url: str, language: str = "en-US") -> str:
    """A sentence, then ask at `url` what comes next."""
    response = VoiceResponse()
    _say(response, text, language)
    response.redirect(clean(url), method="POST")
    return str(response)


def gather(text: str, action_url: str, *, timeout_s: int, most: int = 0, language: str = "en-US") -> str:
    """A question to be answered by keys, which are posted to `action_url`; so is it if none are pressed.

    `most`: so many digits are enough; 0: `#`, or a pause of `timeout_s`, ends them.
    """
    response = VoiceResponse()
    asked = Gather(
        input="dtmf",
        action=clean(action_url),
        method="POST",
        timeout=timeout_s,
        num_digits=most or None,
        finish_on_key="" if most else "#",
        action_on_empty_result=True,
    )
    if spoken := clean(text).strip():
        asked.say(spoken, language=clean(language))
    response.append(asked)
    return str(response)


def wait_and_redirect(seconds: int, url: str) -> str:
    """Wait and ask again: only for a worker that drains and knows no other (B059)."""
    response = VoiceResponse()
    response.pause(length=seconds)
    response.redirect(clean(url), method="POST")
    return str(response)


def hang_up() -> str:
    """End the call."""
    response = VoiceResponse()
    response.hangup()
    return str(response)


def inline(twiml: str) -> str:
    """`twiml` as the REST API takes it: without the XML declaration. Raises: `TwimlTooLong`."""
    body = re.sub(r"^<\?xml[^>]*\?>", "", twiml)
    if len(body) > MAX_INLINE_CHARS:
        raise TwimlTooLong(f"{len(body)} characters")
    return body


def _say(response: VoiceResponse | Gather, text: str, language: str) -> None:
    if spoken := clean(text).strip():
        response.say(spoken, language=clean(language))
