"""One call's way from the model to the line: PCM16 24 kHz in, µ-law 8 kHz out, one item after another."""

from ivr.audio.g711 import pcm16_to_ulaw
from ivr.audio.resample import Downsampler


class Outbound:
    """Keeps the filter's state through one item. Deltas may be cut at any byte."""

    __slots__ = ("_downsampler",)

    def __init__(self) -> None:
        self._downsampler = Downsampler()

    def feed(self, pcm24k: bytes) -> bytes:
        """Convert the next delta of the item; any number of bytes, also none, may come of it."""
        return pcm16_to_ulaw(self._downsampler.feed(pcm24k))

    def flush(self) -> bytes:
        """The item's end: its last 3 ms. The next item starts from nothing."""
        return pcm16_to_ulaw(self._downsampler.flush())

    def drop(self) -> None:
        """The item was cancelled: forget its split sample and its filter state."""
        self._downsampler.reset()
