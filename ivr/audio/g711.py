"""µ-law ↔ PCM16 little-endian (ITU-T G.711), one byte against two a sample."""

import audioop
import sys

_SWAP = sys.byteorder == "big"  # audioop works in the machine's order, the wire is little-endian


def ulaw_to_pcm16(ulaw: bytes) -> bytes:
    """Expand µ-law to PCM16: twice as many bytes."""
    pcm16 = audioop.ulaw2lin(ulaw, 2)
    return audioop.byteswap(pcm16, 2) if _SWAP else pcm16


def pcm16_to_ulaw(pcm16: bytes) -> bytes:
    """Compress PCM16 to µ-law: half as many bytes. An odd last byte is half a sample and is left out."""
    whole = pcm16[: len(pcm16) & ~1]
    return audioop.lin2ulaw(audioop.byteswap(whole, 2) if _SWAP else whole, 2)
