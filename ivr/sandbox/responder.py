"""Responses of a session: created, thought out, spoken, streamed, cancelled.

One at a time in the conversation, any number beside it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from ivr.sandbox.asking import Material, gather, input_characters, question
from ivr.sandbox.brain import Answer, Brain
from ivr.sandbox.conversation import Conversation, Entry
from ivr.sandbox.events import (
    Event,
    FailureDetail,
    ItemAdded,
    ItemDone,
    OutputItemAdded,
    OutputItemDone,
    RateLimit,
    RateLimitsUpdated,
    RawEvent,
    ResponseAudio,
    ResponseCreated,
    ResponseDone,
    ResponseObject,
    ResponseOutput,
    StatusDetails,
)
from ivr.sandbox.faults import Fault
from ivr.sandbox.hearing import Hearing
from ivr.sandbox.outbox import Abort, Close, Outbox, Speak
from ivr.sandbox.pcm import from_pcm24k, layout
from ivr.sandbox.replies import Reply
from ivr.sandbox.requests import ResponseParams
from ivr.sandbox.shapes import Message, SessionObject, VoiceId
from ivr.sandbox.usage import common_prefix_length, usage

WORDS_DEADLINE_MS = 8_000
"""How long a response waits for the words of audio it was given: several may be in the ear on a slow machine."""

_LIMITS = [
    RateLimit(name="requests", limit=1_000_000, remaining=1_000_000, reset_seconds=0.0),
    RateLimit(name="tokens", limit=1_000_000_000, remaining=1_000_000_000, reset_seconds=0.0),
]

Reason = Literal["turn_detected", "client_cancelled"]


@dataclass
class Job:
    """A response on its way."""

    reply: Reply
    material: Material
    in_conversation: bool
    speed: float
    cached_characters: int
    answer: Answer | None = None
    created: bool = False
    """The client was told; before that there is nothing to cancel."""
    thinking: bool = False


class Responder:
    """`session()` gives the settings now in force."""

    def __init__(
        self,
        outbox: Outbox,
        brain: Brain,
        conversation: Conversation,
        hearing: Hearing,
        session: Callable[[], SessionObject],
    ) -> None:
        self.has_spoken = False
        self._outbox = outbox
        self._brain = brain
        self._conversation = conversation
        self._hearing = hearing
        self._session = session
        self._jobs: dict[str, Job] = {}
        self._previous_prefix = ""
        self._conversation_id = outbox.new_id("conv")

    @property
    def speaking(self) -> bool:
        """Whether any response is active."""
        return bool(self._jobs)

    def create(self, params: ResponseParams) -> None:
        """Begin a response. Raises `Fault` if it is refused."""
        in_conversation = params.conversation == "auto"
        active = self._active_in_conversation()
        if in_conversation and active is not None:
            message = (
                f"The conversation has an active response already: {active}. Cancel it or wait for it to end."
            )
            raise Fault("conversation_already_has_active_response", message)
        if self._brain.manners.refuse_out_of_band:
            _refuse_out_of_band(params)
        session = self._session()
        material = gather(params, session, self._conversation, self._hearing)
        response = self._response_object(params, session)
        reply = Reply(response, layout(response.audio.output.format), self._outbox.new_id)
        cached = common_prefix_length(self._previous_prefix, material.prefix)
        self._previous_prefix = material.prefix
        job = Job(reply, material, in_conversation, session.audio.output.speed, cached)
        self._jobs[response.id] = job
        created = self._brain.manners.created_delay_ms
        if created:
            self._outbox.later(created, lambda: self._announce(job))
        else:
            self._announce(job)

    def cancel(self, response_id: str | None, reason: Reason = "client_cancelled") -> None:
        """Stop the named response, or the conversation's. Raises `Fault` if it is not active."""
        identity = self._active_in_conversation() if response_id is None else response_id
        job = self._jobs.get(identity or "")
        if job is None or not job.created:
            raise Fault("response_cancel_not_active", "Cancellation failed: no such active response.")
        self._finish(job, StatusDetails(type="cancelled", reason=reason))

    def interrupt(self) -> None:
        """The user speaks over the conversation's response."""
        job = self._jobs.get(self._active_in_conversation() or "")
        if job is not None and job.created:
            self.cancel(None, "turn_detected")

    def spoken(self, response_id: str, pcm24k: bytes | None) -> None:
        """The voice's audio for a response; None: it could not be made."""
        job = self._jobs.get(response_id)
        if job is None or job.answer is None:
            return
        if pcm24k is None:
            self._fail(job, "server_error", "The sandbox's voice failed.")
            return
        self._stream(job, job.answer, pcm24k)

    # -- steps of a response -------------------------------------------------------------------------------

    def _announce(self, job: Job) -> None:
        if not self._alive(job):
            return
        job.created = True
        self._outbox.send(
            ResponseCreated(response=_copy(job.reply.response)), RateLimitsUpdated(rate_limits=_LIMITS)
        )
        pending = [key for key in job.material.keys if self._hearing.pending(key)]
        for key in pending:
            self._hearing.when_heard(key, lambda: self._think_when_heard(job))
        if pending:
            self._outbox.later(WORDS_DEADLINE_MS, lambda: self._think(job))
        else:
            self._think(job)

    def _think_when_heard(self, job: Job) -> None:
        if not any(self._hearing.pending(key) for key in job.material.keys):
            self._think(job)

    def _think(self, job: Job) -> None:
        if job.thinking or not self._alive(job):
            return
        job.thinking = True
        text_only = job.reply.response.output_modalities == ["text"]
        answer = self._brain.answer(question(job.material, self._hearing, text_only=text_only))
        job.answer = answer
        self._outbox.send(*(RawEvent(text) for text in answer.raw))
        self._outbox.later(answer.delay_ms, lambda: self._speak(job, answer))

    def _speak(self, job: Job, answer: Answer) -> None:
        if not self._alive(job):
            return
        if _breaks(answer) and not answer.break_after_ms:
            self._break(job, answer)
            return
        if answer.tone is not None:
            self._stream(job, answer, answer.tone.pcm24k())
        elif answer.say and job.reply.response.output_modalities == ["audio"]:
            voice = job.reply.response.audio.output.voice
            name = voice.id if isinstance(voice, VoiceId) else voice
            self._outbox.do(Speak(job.reply.response.id, answer.say, name, job.speed))
        else:
            self._stream(job, answer, None)

    def _stream(self, job: Job, answer: Answer, pcm24k: bytes | None) -> None:
        audible = pcm24k is not None and job.reply.response.output_modalities == ["audio"]
        audio = from_pcm24k(pcm24k, job.reply.response.audio.output.format) if audible and pcm24k else None
        job.reply.begin(answer.say, b"" if audible and audio is None else audio, answer.calls)
        self._step(job, answer)

    def _step(self, job: Job, answer: Answer) -> None:
        if not self._alive(job):
            return
        self._send(job, job.reply.step())
        if job.reply.sent_audio:
            self.has_spoken = True
        if _breaks(answer) and (job.reply.finished or job.reply.sent_audio_ms >= answer.break_after_ms):
            self._break(job, answer)
        elif job.reply.finished:
            self._finish(job, StatusDetails(type="completed"))
        else:
            self._outbox.later(answer.pace_ms, lambda: self._step(job, answer))

    def _break(self, job: Job, answer: Answer) -> None:
        if answer.failure:
            self._fail(job, answer.failure, f"The script says: {answer.failure}.")
        elif answer.abort:
            self._outbox.do(Abort())
        else:
            self._outbox.do(Close(answer.close_code, "the script says so"))

    def _fail(self, job: Job, code: str, message: str) -> None:
        detail = FailureDetail(type=code, code=code, message=message)
        self._finish(job, StatusDetails(type="failed", error=detail))

    def _finish(self, job: Job, details: StatusDetails) -> None:
        reply = job.reply
        del self._jobs[reply.response.id]
        self._send(job, reply.stop())
        reply.response.status = details.type
        reply.response.status_details = None if details.type == "completed" else details
        reply.response.usage = usage(
            prefix=job.material.prefix,
            cached_characters=job.cached_characters,
            input_characters=input_characters(job.material),
            input_audio_ms=job.material.audio_ms,
            said=reply.sent_text + reply.call_text,
            spoken_ms=reply.sent_audio_ms,
        )
        self._outbox.send(ResponseDone(response=reply.response))

    def _send(self, job: Job, events: list[Event]) -> None:
        """Send a response's events; in the conversation its items become the conversation's."""
        for event in events:
            self._outbox.send(event)
            if not job.in_conversation:
                continue
            if isinstance(event, OutputItemAdded):
                previous = self._conversation.add(Entry(event.item))
                self._outbox.send(ItemAdded(item=event.item, previous_item_id=previous))
            elif isinstance(event, OutputItemDone):
                self._keep(job, event)

    def _keep(self, job: Job, event: OutputItemDone) -> None:
        entry = self._conversation.find(event.item.id or "")
        if entry is None:  # the client deleted it while it was being made
            return
        entry.item = event.item
        if isinstance(event.item, Message):
            entry.audio = bytes(job.reply.sent_audio)
            entry.audio_format = job.reply.response.audio.output.format if entry.audio else None
        self._outbox.send(
            ItemDone(item=event.item, previous_item_id=self._conversation.before(event.item.id or ""))
        )

    def _alive(self, job: Job) -> bool:
        return job.reply.response.id in self._jobs

    def _active_in_conversation(self) -> str | None:
        return next((identity for identity, job in self._jobs.items() if job.in_conversation), None)

    def _response_object(self, params: ResponseParams, session: SessionObject) -> ResponseObject:
        output = session.audio.output
        own = params.audio.output
        return ResponseObject(
            id=self._outbox.new_id("resp"),
            conversation_id=self._conversation_id if params.conversation == "auto" else None,
            output_modalities=params.output_modalities or session.output_modalities,
            max_output_tokens=params.max_output_tokens or session.max_output_tokens,
            metadata=params.metadata,
            audio=ResponseAudio(
                output=ResponseOutput(format=own.format or output.format, voice=own.voice or output.voice)
            ),
        )


def _breaks(answer: Answer) -> bool:
    return bool(answer.failure or answer.close_code or answer.abort)


def _copy(response: ResponseObject) -> ResponseObject:
    """A response as it is now: the object itself changes while events wait to be sent."""
    return msgspec.structs.replace(response, output=list(response.output))


def _refuse_out_of_band(params: ResponseParams) -> None:
    if params.input is not None:
        raise Fault("unknown_parameter", "Unknown parameter: 'response.input'.", "response.input")
    if params.conversation == "none":
        raise Fault(
            "unknown_parameter", "Unknown parameter: 'response.conversation'.", "response.conversation"
        )
