"""The two memories of a Realtime session, both pure: which response is which reply, what may be updated.

The codec proper is in `realtime_in` (server → us) and `realtime_out` (us → server).
"""

from dataclasses import dataclass, field

from ivr.core.commands import SessionConfig, StartReply
from ivr.core.events import (
    ModelEvent,
    ModelFault,
    ReplyCall,
    ReplyDone,
    ReplyPcm,
    ReplyStatus,
    ReplyText,
)
from ivr.wire.realtime_in import (
    AudioDelta,
    CallDone,
    ErrorEvent,
    OutputItem,
    ReplyEvent,
    Response,
    ResponseCreated,
    ResponseDone,
    SpokenDelta,
)
from ivr.wire.realtime_out import ModelProfile, encode_cancel, encode_reply, encode_session, reply_of_event

_HARMLESS = frozenset({"response_cancel_not_active"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one server event comes to: events for the core, messages back to the server."""

    events: tuple[ModelEvent | ReplyPcm, ...] = ()
    send: tuple[bytes, ...] = ()
    over: bool = False
    """The session has ended."""


NOTHING = Outcome()


@dataclass(slots=True)
class _Reply:
    reply_id: str
    response_id: str = ""
    wanted: bool = True
    seen_calls: set[str] = field(default_factory=set)


class Replies:
    """Binds the server's response ids to our reply ids, from `StartReply` to each reply's one `ReplyDone`.

    Events of responses that nobody asked for are dropped. Of a cancelled reply only its `ReplyDone` comes,
    with the tokens it cost. A call is reported once, however many events name it.
    """

    def __init__(self) -> None:
        self._open: dict[str, _Reply] = {}
        self._bound: dict[str, _Reply] = {}

    @property
    def busy(self) -> bool:
        """Whether any reply is still to come or being made at the server."""
        return bool(self._open)

    def start(self, command: StartReply) -> bytes:
        """Await a reply; returns the message that asks for it. Reply ids are unique within a session."""
        self._open[command.reply_id] = _Reply(command.reply_id)
        return encode_reply(command)

    def cancel(self, reply_id: str) -> tuple[bytes, ...]:
        """Want nothing more of a reply. One the server has not created yet is cancelled when it appears."""
        reply = self._open.get(reply_id)
        if reply is None or not reply.wanted:
            return ()
        reply.wanted = False
        return (encode_cancel(reply.response_id),) if reply.response_id else ()

    def receive(self, event: ReplyEvent) -> Outcome:
        """Take one event of a reply."""
        match event:
            case AudioDelta():
                return self._audio(event)
            case SpokenDelta():
                return self._spoken(event)
            case CallDone():
                return self._call(event)
            case ResponseCreated():
                return self._created(event)
            case ResponseDone():
                return self._done(event)

    def refused(self, event: ErrorEvent) -> Outcome:
        """Take an error: it is harmless, or a `ModelFault`, or ends the reply whose request it refuses."""
        error = event.error
        if error.name in _HARMLESS:
            return NOTHING
        reply = self._open.get(reply_of_event(error.event_id))
        if reply is None or reply.response_id:
            return Outcome((ModelFault(error.name, (error.message or "")[:300]),))
        del self._open[reply.reply_id]
        return Outcome((ReplyDone(reply.reply_id, ReplyStatus.FAILED, error.name),))

    def _created(self, event: ResponseCreated) -> Outcome:
        reply = self._bind(event.response)
        if reply is None or reply.wanted:
            return NOTHING
        return Outcome(send=(encode_cancel(reply.response_id),))

    def _bind(self, response: Response) -> _Reply | None:
        reply = self._open.get(response.reply_id)
        if reply is None or reply.response_id not in ("", response.id):
            return None
        reply.response_id = response.id
        self._bound[response.id] = reply
        return reply

    def _audio(self, event: AudioDelta) -> Outcome:
        reply = self._wanted(event.response_id)
        return Outcome((ReplyPcm(reply.reply_id, event.delta),)) if reply else NOTHING

    def _spoken(self, event: SpokenDelta) -> Outcome:
        reply = self._wanted(event.response_id)
        return Outcome((ReplyText(reply.reply_id, event.delta),)) if reply else NOTHING

    def _call(self, event: CallDone) -> Outcome:
        reply = self._wanted(event.response_id)
        if reply is None or not event.name:
            return NOTHING
        return Outcome(_once(reply, event.call_id, event.name, event.arguments))

    def _done(self, event: ResponseDone) -> Outcome:
        response = event.response
        reply = self._bound.pop(response.id, None) or self._bind(response)
        if reply is None:
            return NOTHING
        self._bound.pop(response.id, None)
        del self._open[reply.reply_id]
        usage = response.usage.core() if response.usage else None
        done = ReplyDone(reply.reply_id, response.end_status(), response.code(), usage)
        return Outcome((*_unseen_calls(reply, response.output or []), done))

    def _wanted(self, response_id: str) -> _Reply | None:
        reply = self._bound.get(response_id)
        return reply if reply is not None and reply.wanted else None


def _unseen_calls(reply: _Reply, output: list[OutputItem]) -> tuple[ReplyCall, ...]:
    """The calls that only `response.done` brought. One broken off by the end of the reply is none."""
    if not reply.wanted:
        return ()
    return tuple(
        call
        for item in output
        if item.type == "function_call" and item.status in (None, "completed")
        for call in _once(reply, item.call_id or "", item.name or "", item.arguments or "")
    )


def _once(reply: _Reply, call_id: str, name: str, arguments: str) -> tuple[ReplyCall, ...]:
    if not call_id or not name or call_id in reply.seen_calls:
        return ()
    reply.seen_calls.add(call_id)
    return (ReplyCall(reply.reply_id, call_id, name, arguments),)


class SessionSettings:
    """Writes `session.update`s so that none is refused for what it holds.

    The voice goes out until the first reply is asked for and never again: once a session has spoken, an
    update that names a voice is refused whole. The speed goes out when it changes, between replies only.
    """

    def __init__(self, profile: ModelProfile) -> None:
        self._profile = profile
        self._config: SessionConfig | None = None
        self._sent_speed: float | None = None
        self._voice_open = True
        self._updates = 0

    def reply_asked(self) -> None:
        """A reply was asked for: the session may have spoken from now on."""
        self._voice_open = False

    def update(self, config: SessionConfig, *, busy: bool) -> bytes:
        """The message that brings these settings into force; `busy` while a reply is being made."""
        self._config = config
        self._updates += 1
        send_speed = not busy and config.speed != self._sent_speed
        if send_speed:
            self._sent_speed = config.speed
        return encode_session(config, self._profile, self.event_id, voice=self._voice_open, speed=send_speed)

    def at_rest(self) -> tuple[bytes, ...]:
        """No reply is being made: the update that brings a speed which had to wait, if there is one."""
        config = self._config
        if config is None or config.speed == self._sent_speed:
            return ()
        return (self.update(config, busy=False),)

    @property
    def event_id(self) -> str:
        """Id of the newest update, as a refusal names it."""
        return f"session.{self._updates}"
