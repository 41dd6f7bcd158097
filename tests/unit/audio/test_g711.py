"""µ-law against the table of ITU-T G.711, worked out here."""

import numpy as np

from ivr.audio.g711 import pcm16_to_ulaw, ulaw_to_pcm16


def expanded(code: int) -> int:
    """Segment and step as the recommendation defines them, on a 16-bit scale."""
    code = ~code & 0xFF
    magnitude = ((((code & 0x0F) << 3) + 0x84) << (code >> 4 & 7)) - 0x84
    return -magnitude if code & 0x80 else magnitude


def test_all_codes_expand_as_the_recommendation_says() -> None:
    values = np.frombuffer(ulaw_to_pcm16(bytes(range(256))), "<i2").tolist()
    assert values == [expanded(code) for code in range(256)]
    assert (values[0xFF], values[0x7F], values[0x00]) == (0, 0, -32_124)


def test_every_code_survives_the_round_trip_but_negative_zero() -> None:
    back = pcm16_to_ulaw(ulaw_to_pcm16(bytes(range(256))))
    assert back == bytes(0xFF if code == 0x7F else code for code in range(256))


def test_half_a_sample_is_left_out() -> None:
    assert pcm16_to_ulaw(b"\0\0\0") == b"\xff"
    assert pcm16_to_ulaw(b"") == ulaw_to_pcm16(b"") == b""
