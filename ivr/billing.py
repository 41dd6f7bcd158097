"""What one stream of a call pays for, as it arises: every response of the model, and every item that is transcribed.

It watches what the call asks for and what comes of it. Where a response ends without telling its tokens (a server that
counts none, a lost session, the end of the call) they are estimated, as uncached ones: rather too many than too few.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.units import ulaw_ms
from ivr.remembering import Prices
from memory.costs import audio_tokens, json_tokens, reply_audio_tokens, text_tokens, word_count
from memory.model import Charge, ChargeKind

NOTHING: tuple[Charge, ...] = ()


@dataclass(slots=True)
class _Response:
    """One that was asked for and is not paid yet; what has come of it."""

    asked: do.StartReply
    texts: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    audio_ms: float = 0.0

    def has_begun(self) -> bool:
        """Anything has come of it."""
        return bool(self.texts or self.calls or self.audio_ms)


class Bill:
    """`ivr.ports.Bill` of one stream."""

    def __init__(self, prices: Prices, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._prices = prices
        self._now = now
        self._open: dict[str, _Response] = {}
        self._began_ms: dict[str, int] = {}
        self._item_ms: dict[str, int] = {}
        self._transcribed: set[str] = set()
        self._on_event: dict[type, Callable[[Any], tuple[ev.Event, tuple[Charge, ...]]]] = {
            ev.SpeechStarted: self._speech_started,
            ev.SpeechStopped: self._speech_stopped,
            ev.TurnCommitted: self._committed,
            ev.ReplyAudio: self._audio,
            ev.ReplyText: self._text,
            ev.ReplySpoken: self._by_endpoint,
            ev.ReplyCall: self._call,
            ev.ReplyDone: self._done,
            ev.ModelLost: self._lost,
        }

    def event(self, event: ev.Event) -> tuple[ev.Event, tuple[Charge, ...]]:
        """See the port."""
        handler = self._on_event.get(type(event))
        return (event, NOTHING) if handler is None else handler(event)

    def command(self, command: do.Command) -> None:
        """See the port."""
        if isinstance(command, do.StartReply):
            self._open[command.reply_id] = _Response(command)
        elif isinstance(command, do.ForgetItem):
            self._item_ms.pop(command.item_id, None)

    def spoken(self, audio_ms: float) -> tuple[Charge, ...]:
        """See the port."""
        if not audio_ms:
            return NOTHING
        model, usd = self._prices.prompt_model, self._prices.prompt_usd(audio_ms)
        tokens = reply_audio_tokens(audio_ms)
        made = Charge(str(uuid4()), ChargeKind.SPEECH, model, usd, self._now(), output_tokens=tokens)
        return (replace(made, is_estimate=True),)

    def close(self) -> tuple[Charge, ...]:
        """See the port. What was asked for and not begun is paid too: nobody has told the provider to stop."""
        return self._close(begun_only=False)

    # -- transcription ------------------------------------------------------------------------------------------

    def _speech_started(self, event: ev.SpeechStarted) -> tuple[ev.Event, tuple[Charge, ...]]:
        self._began_ms.setdefault(event.item_id, event.audio_start_ms)
        return event, NOTHING

    def _speech_stopped(self, event: ev.SpeechStopped) -> tuple[ev.Event, tuple[Charge, ...]]:
        began_ms = self._began_ms.pop(event.item_id, None)
        if began_ms is not None:
            self._item_ms[event.item_id] = max(0, event.audio_end_ms - began_ms)
        return event, NOTHING

    def _committed(self, event: ev.TurnCommitted) -> tuple[ev.Event, tuple[Charge, ...]]:
        """Noise without words is transcribed too."""
        audio_ms = self._item_ms.get(event.item_id, 0)
        if event.item_id in self._transcribed or not audio_ms:
            return event, NOTHING
        self._transcribed.add(event.item_id)
        return event, (self._transcription(audio_ms),)

    # -- responses ----------------------------------------------------------------------------------------------

    def _audio(self, event: ev.ReplyAudio) -> tuple[ev.Event, tuple[Charge, ...]]:
        if (response := self._open.get(event.reply_id)) is not None:
            response.audio_ms += ulaw_ms(event.ulaw)
        return event, NOTHING

    def _text(self, event: ev.ReplyText) -> tuple[ev.Event, tuple[Charge, ...]]:
        if (response := self._open.get(event.reply_id)) is not None:
            response.texts.append(event.delta)
        return event, NOTHING

    def _by_endpoint(self, event: ev.ReplySpoken) -> tuple[ev.Event, tuple[Charge, ...]]:
        """The model was not asked at all."""
        self._open.pop(event.reply_id, None)
        return event, NOTHING

    def _call(self, event: ev.ReplyCall) -> tuple[ev.Event, tuple[Charge, ...]]:
        if (response := self._open.get(event.reply_id)) is not None:
            response.calls.append(f"{event.name}{event.arguments}")
        return event, NOTHING

    def _done(self, event: ev.ReplyDone) -> tuple[ev.Event, tuple[Charge, ...]]:
        """The turn's own page is to have the tokens that are charged."""
        response = self._open.pop(event.reply_id, None)
        if response is None:
            return event, NOTHING
        usage = event.usage
        if usage is None:
            was_made = response.has_begun() or event.status is not ev.ReplyStatus.FAILED
            usage = self._estimate(response) if was_made else ev.Usage()
        return replace(event, usage=usage), self._speech(usage)

    def _lost(self, event: ev.ModelLost) -> tuple[ev.Event, tuple[Charge, ...]]:
        """What nothing came of will be asked for again, of the next session."""
        return event, self._close(begun_only=True)

    def _close(self, *, begun_only: bool) -> tuple[Charge, ...]:
        left, self._open = self._open.values(), {}
        made = (response for response in left if response.has_begun() or not begun_only)
        return tuple(charge for response in made for charge in self._speech(self._estimate(response)))

    def _estimate(self, response: _Response) -> ev.Usage:
        asked = response.asked
        said = [asked.instructions, *(text for item in asked.input for text in _texts_of(item))]
        tools = json.dumps([asdict(tool) for tool in asked.tools]) if asked.tools else ""
        heard_ms = sum(
            self._item_ms.get(item.item_id, 0) for item in asked.input if isinstance(item, do.ItemRef)
        )
        return ev.Usage(
            input_text_tokens=sum(text_tokens(word_count(text)) for text in said) + json_tokens(tools),
            input_audio_tokens=audio_tokens(heard_ms),
            output_text_tokens=text_tokens(word_count("".join(response.texts)))
            + sum(map(json_tokens, response.calls)),
            output_audio_tokens=reply_audio_tokens(response.audio_ms),
            is_estimate=True,
        )

    # -- charges ------------------------------------------------------------------------------------------------

    def _speech(self, usage: ev.Usage) -> tuple[Charge, ...]:
        read = usage.input_text_tokens + usage.input_audio_tokens
        written = usage.output_text_tokens + usage.output_audio_tokens
        if not read and not written:
            return NOTHING
        charge = Charge(
            charge_id=str(uuid4()),
            kind=ChargeKind.SPEECH,
            model=self._prices.model,
            usd=self._prices.speech_usd(usage),
            at=self._now(),
            is_estimate=usage.is_estimate,
            input_tokens=read,
            cached_tokens=usage.cached_text_tokens + usage.cached_audio_tokens,
            output_tokens=written,
        )
        return (charge,)

    def _transcription(self, audio_ms: float) -> Charge:
        model, usd = self._prices.transcribe_model, self._prices.transcription_usd(audio_ms)
        return Charge(str(uuid4()), ChargeKind.TRANSCRIPTION, model, usd, self._now())


def _texts_of(item: do.InputItem) -> tuple[str, ...]:
    match item:
        case do.ItemRef():
            return ()
        case do.CallOutput(_, name, arguments, output):
            return name, arguments, output
        case do.UserText(text) | do.AssistantText(text) | do.SystemText(text):
            return (text,)
