"""One call's way from the line to the model: µ-law 8 kHz in, PCM16 24 kHz out, holes concealed."""

from ivr.audio.conceal import Concealer
from ivr.audio.g711 import ulaw_to_pcm16
from ivr.audio.resample import Upsampler

_ULAW_BYTES_A_MS = 8


class Inbound:
    """Keeps the concealer's and the filter's state. Three samples come out for one, 1.5 ms later."""

    __slots__ = ("_concealer", "_fed_bytes", "_upsampler")

    def __init__(self) -> None:
        self._concealer = Concealer()
        self._upsampler = Upsampler()
        self._fed_bytes = 0

    @property
    def fed_ms(self) -> float:
        """How much audio has been made for the model, concealed parts included."""
        return self._fed_bytes / _ULAW_BYTES_A_MS

    def frame(self, ulaw: bytes, missing_ms: int = 0) -> bytes:
        """The next frame as PCM16 24 kHz, after `missing_ms` of concealment for the hole before it."""
        pcm8k = ulaw_to_pcm16(ulaw)
        concealed = self._concealer.missing(missing_ms, pcm8k) if missing_ms else b""
        pcm8k = concealed + self._concealer.good(pcm8k)
        self._fed_bytes += len(pcm8k) // 2
        return self._upsampler.feed(pcm8k)
