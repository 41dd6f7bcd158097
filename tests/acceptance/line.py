"""What a caller says and hears, and what the telephone company posts."""

import audioop
from collections.abc import Mapping
from xml.etree import ElementTree

import numpy as np

from ivr.phone import service as phone
from ivr.phone.record import CallRecord, EventKind
from ivr.phone.script import AfterReply, Say
from tests.acceptance.businesses import ANN, DENTAL


def speech(duration_ms: int = 450, hz: int = 300) -> bytes:
    """What the model's voice detection takes for speech, µ-law 8 kHz."""
    seconds = np.arange(8 * duration_ms) / 8_000
    pcm = (8_000 * np.sin(2 * np.pi * hz * seconds)).astype("<i2")
    return audioop.lin2ulaw(pcm.tobytes(), 2)


def say(text: str = "", gap_ms: int = 350) -> Say:
    """The caller speaks, once the far side has been heard out."""
    return Say(speech(), text, AfterReply(gap_ms))


def pitch_hz(ulaw: bytes) -> float:
    """The strongest tone of some µ-law audio."""
    pcm = np.frombuffer(audioop.ulaw2lin(ulaw, 2), "<i2").astype(np.float64)
    spectrum = np.abs(np.fft.rfft(pcm * np.hanning(len(pcm)), 1 << 16))
    return float(spectrum.argmax()) * 8_000 / (1 << 16)


def network_voice(text: str) -> bytes:
    """How the network says a `<Say>`: shorter than life."""
    return speech(400 if text else 0, 200)


def heard_pitches_hz(record: CallRecord) -> list[float]:
    """The tone of each stretch in which the far side was heard."""
    return [
        pitch_hz(record.heard_between(e.at_ms, e.until_ms))
        for e in record.of(EventKind.HEARD)
        if e.until_ms is not None and e.until_ms - e.at_ms >= 100
    ]


async def webhook(service: phone.Service, path: str, form: Mapping[str, str]) -> tuple[int, str]:
    """A signed webhook: status and TwiML."""
    async with phone.open_http() as http:
        url = service.voice_url.removesuffix(phone.VOICE_PATH) + path
        answer = await phone.Webhooks(service, http).ask(url, "POST", tuple(form.items()), "once")
    return answer.status, answer.text


def arrival(call_sid: str, caller: str = ANN.number, to: str = DENTAL) -> dict[str, str]:
    """What Twilio posts when a call arrives."""
    return {"CallSid": call_sid, "AccountSid": "AC1", "From": caller, "To": to, "CallStatus": "ringing"}


def stream_of(twiml: str) -> tuple[str, dict[str, str]]:
    """Where the document has the stream opened, and with which parameters."""
    (stream,) = ElementTree.fromstring(twiml).iter("Stream")
    return stream.attrib["url"], {p.attrib["name"]: p.attrib["value"] for p in stream.iter("Parameter")}
