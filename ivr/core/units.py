"""Constants and conversions of the telephone line and of the speech model's audio.

Line: µ-law, 8 kHz, one byte a sample (ITU-T G.711). Model: PCM16 little-endian, 24 kHz.
"""

LINE_RATE_HZ = 8_000
MODEL_RATE_HZ = 24_000
FRAME_MS = 20
FRAME_BYTES = LINE_RATE_HZ * FRAME_MS // 1_000
ULAW_SILENCE = b"\xff"
"""µ-law for zero. 0x00 would be full scale: a bang (ITU-T G.711, table 2a)."""


def ulaw_ms(ulaw: bytes | bytearray | memoryview) -> float:
    """Duration of µ-law audio at the line's rate, in ms."""
    return len(ulaw) * 1_000 / LINE_RATE_HZ


def ms_to_ulaw_bytes(duration_ms: float) -> int:
    """How many µ-law bytes last `duration_ms`, rounded down."""
    return int(duration_ms * LINE_RATE_HZ // 1_000)


def pcm24k_ms(pcm: bytes) -> float:
    """Duration of PCM16 audio at the model's rate, in ms."""
    return len(pcm) * 1_000 / (2 * MODEL_RATE_HZ)
