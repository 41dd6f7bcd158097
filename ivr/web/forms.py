"""A webhook's request, read with bounds and checked; what it says, typed."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.datastructures import ImmutableMultiDict
from starlette.requests import ClientDisconnect, HTTPConnection, Request

from ivr.web.deps import OVER, WebDeps
from ivr.web.streams import StreamCount
from ivr.wire.signature import Origin

MAX_FIELDS = 500
_CALL_SID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_RECORDING_SID = re.compile(r"RE[A-Za-z0-9]{1,62}")
_ACCOUNT_SID = re.compile(r"AC[0-9a-f]{32}")
"""Twilio's only form. What a test bench sends in its place is not held against its streams."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that is not Twilio's, or cannot be read: nothing was done for it."""

    status: int
    reason: str


@dataclass(frozen=True, slots=True)
class Webhook:
    """A signed webhook. Fields are empty where Twilio gave none, or a CallSid that cannot be one."""

    origin: Origin
    call_sid: str
    account_sid: str
    from_: str
    to: str
    stir: str
    is_machine: bool
    """A call of ours was answered by a machine, so far as Twilio can tell."""
    call_status: str
    dial_status: str
    dial_bridged: str
    digits: str
    queue_result: str
    queue_position: int
    queue_s: int
    recording_sid: str
    recording_status: str
    recording_s: int
    transcript: str
    stream_sid: str
    stream_event: str
    stream_error: str
    streams: StreamCount
    begins: bool
    """Our own query says that nothing was asked yet."""
    leg: int = 0
    """By the query of our own URL for the end of a dial: which of the call's it was."""
    for_call: str = ""
    """By the query of our own whisper URL: the call that somebody is called for."""
    is_empty: bool = False
    """By the query of our own URL behind a recording: nothing was recorded."""
    wants_text: bool = False
    """By the query of our own URL for a recording: it is to be transcribed."""

    @property
    def call_over(self) -> bool:
        """The caller is gone: what is answered is heard by nobody."""
        return self.call_status in OVER


def target_of(connection: HTTPConnection) -> str:
    """Path and query as they were sent."""
    path: bytes = connection.scope.get("raw_path") or connection.scope["path"].encode()
    query: bytes = connection.scope.get("query_string", b"")
    return (path + (b"?" + query if query else b"")).decode("latin-1")


async def read_webhook(request: Request, deps: WebDeps) -> Webhook | Refused:
    """Read the form within bounds and check its signature."""
    try:
        async with asyncio.timeout(deps.limits.body_s):
            body = await _body(request, deps.limits.body_bytes)
        if body is None:
            return Refused(413, "size")
        fields = parse_qsl(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except TimeoutError:
        return Refused(408, "slow")
    except (ClientDisconnect, ValueError):
        return Refused(400, "form")
    form = ImmutableMultiDict(fields)
    host = request.headers.get("host", "")
    signature = request.headers.get("x-twilio-signature", "")
    origin = deps.checker.origin(host)
    if origin is None or not deps.checker.check_post(target_of(request), host, form, signature):
        return Refused(403, "signature")
    return _webhook(origin, form, request.query_params)


async def _body(request: Request, limit: int) -> bytes | None:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            return None
    return bytes(body)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 6 else 0


def _webhook(origin: Origin, form: "ImmutableMultiDict[str, str]", query: Mapping[str, str]) -> Webhook:
    def field(name: str) -> str:
        return str(form.get(name, ""))

    for_call = query.get("call", "")
    caller, called = field("From"), field("To")
    if field("Direction") == "outbound-api":  # a call back: the caller is whom we called
        caller, called = called, caller
    call_sid, account_sid = field("CallSid"), field("AccountSid")
    return Webhook(
        origin=origin,
        call_sid=call_sid if _CALL_SID.fullmatch(call_sid) else "",
        account_sid=account_sid if _ACCOUNT_SID.fullmatch(account_sid) else "",
        from_=caller,
        to=called,
        is_machine=field("AnsweredBy").startswith(("machine", "fax")),
        stir=field("StirVerstat"),
        call_status=field("CallStatus"),
        dial_status=field("DialCallStatus"),
        dial_bridged=field("DialBridged").casefold(),
        digits=field("Digits"),
        queue_result=field("QueueResult"),
        queue_position=_number(field("QueuePosition")),
        queue_s=_number(field("QueueTime")),
        recording_sid=recording if _RECORDING_SID.fullmatch(recording := field("RecordingSid")) else "",
        recording_status=field("RecordingStatus"),
        recording_s=_number(field("RecordingDuration")),
        transcript=field("TranscriptionText"),
        stream_sid=field("StreamSid"),
        stream_event=field("StreamEvent"),
        stream_error=field("StreamError"),
        streams=StreamCount.of(query),
        begins="begin" in query,
        leg=_number(query.get("leg", "")),
        is_empty=query.get("empty") == "1",
        wants_text=query.get("text") == "1",
        for_call=for_call if _CALL_SID.fullmatch(for_call) else "",
    )
