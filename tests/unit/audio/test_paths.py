"""The two ways through a call's audio: holes concealed on the way in, items kept apart on the way out."""

from itertools import pairwise

import pytest

from ivr.audio.g711 import pcm16_to_ulaw, ulaw_to_pcm16
from ivr.audio.inbound import Inbound
from ivr.audio.outbound import Outbound
from ivr.audio.resample import Downsampler, Upsampler
from tests.unit.audio.signals import from_pcm16, snr_db, to_pcm16, tone


def test_inbound_puts_the_concealed_part_first_and_counts_what_it_fed() -> None:
    ulaw = pcm16_to_ulaw(to_pcm16(tone(200, 100)))
    inbound = Inbound()
    assert len(inbound.frame(ulaw, 0)) == 100 * 48
    after_hole = inbound.frame(b"\xff" * 160, 40)
    assert len(after_hole) == 60 * 48
    assert inbound.fed_ms == 160
    sound = from_pcm16(after_hole)
    assert abs(sound[: 10 * 24]).max() > 12_000
    assert abs(sound[55 * 24 :]).max() < 100


def test_inbound_without_holes_is_a_plain_conversion() -> None:
    ulaw = bytes(range(256)) * 5
    whole = Upsampler().feed(ulaw_to_pcm16(ulaw))
    inbound = Inbound()
    assert b"".join(inbound.frame(ulaw[at : at + 160], 0) for at in range(0, len(ulaw), 160)) == whole


def test_inbound_takes_frames_of_any_length() -> None:
    inbound = Inbound()
    assert inbound.frame(b"", 0) == b""
    assert len(inbound.frame(b"\xff", -3)) == 6
    assert inbound.fed_ms == 0.125


def test_b002_outbound_is_the_conversion_of_the_unsplit_audio() -> None:
    pcm24k = to_pcm16(tone(1_000, 2_000, rate_hz=24_000))
    whole = Downsampler()
    expected = pcm16_to_ulaw(whole.feed(pcm24k) + whole.flush())
    outbound = Outbound()
    outbound.feed(pcm24k[:4_063])
    outbound.drop()  # cancelled on an odd byte
    cuts = [0, 4_063, 5_760, 5_761, 5_763, 6_762, 30_001, len(pcm24k)]
    out = b"".join(outbound.feed(pcm24k[a:b]) for a, b in pairwise(cuts))
    assert out + outbound.flush() == expected
    assert outbound.flush() == b""


@pytest.mark.parametrize("frequency_hz", [300, 1_000, 3_000])
def test_out_and_in_again_sounds_as_well_as_mu_law_can(frequency_hz: int) -> None:
    sound = tone(frequency_hz, 500, rate_hz=24_000)
    outbound, inbound = Outbound(), Inbound()
    back = from_pcm16(inbound.frame(outbound.feed(to_pcm16(sound)), 0))
    # 35.5 + 35.5 samples at 24 kHz of filters, less the 2 by which the output grid runs behind.
    assert snr_db(back[69 + 300 :], sound[300 : len(back) - 69]) > 33
