"""8 ↔ 24 kHz: quality, delay, and the same bits however the stream is cut."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivr.audio.resample import Downsampler, Upsampler
from tests.unit.audio.signals import from_pcm16, snr_db, to_pcm16, tone

DELAY_SAMPLES = 23
"""Of both directions together, at 8 kHz: 2.875 ms."""


def in_frames(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def there_and_back(pcm8k: bytes, size: int) -> bytes:
    up, down = Upsampler(), Downsampler()
    return b"".join(down.feed(up.feed(frame)) for frame in in_frames(pcm8k, size))


@pytest.mark.parametrize("frequency_hz", [300, 440, 1_000, 1_700, 2_300, 2_800, 3_000])
@pytest.mark.parametrize("size", [320, 16_000])
def test_a_tone_comes_back_within_3_ms_and_70_db(frequency_hz: int, size: int) -> None:
    """Against the tone itself, merely shifted: neither level nor phase is fitted."""
    pcm8k = to_pcm16(tone(frequency_hz, 1_000))
    back = from_pcm16(there_and_back(pcm8k, size))[DELAY_SAMPLES:]
    sent = from_pcm16(pcm8k)[: len(back)]
    assert snr_db(back[100:], sent[100:]) >= 70
    assert DELAY_SAMPLES / 8 <= 3


@pytest.mark.parametrize("frequency_hz", [300, 1_000, 2_000, 3_000])
def test_upsampling_leaves_no_image(frequency_hz: int) -> None:
    up = from_pcm16(Upsampler().feed(to_pcm16(tone(frequency_hz, 1_000))))[200:]
    spectrum = np.abs(np.fft.rfft(up * np.blackman(len(up))))
    spectrum_hz = np.fft.rfftfreq(len(up), 1 / 24_000)
    assert spectrum[spectrum_hz > 4_800].max() < spectrum.max() * 10 ** (-70 / 20)


@pytest.mark.parametrize("frequency_hz", [5_000, 7_000, 11_000])
def test_downsampling_lets_nothing_fold_back(frequency_hz: int) -> None:
    down = from_pcm16(Downsampler().feed(to_pcm16(tone(frequency_hz, 500, rate_hz=24_000))))[50:]
    assert np.abs(down).max() <= 16_000 * 10 ** (-70 / 20)


@pytest.mark.parametrize("make", [Upsampler, Downsampler])
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(0, 2_500),
    cuts=st.lists(st.integers(0, 5_000), max_size=12),
)
def test_a_stream_cut_anywhere_gives_the_bits_of_one_piece(
    make: type[Upsampler] | type[Downsampler], seed: int, count: int, cuts: list[int]
) -> None:
    data = np.random.default_rng(seed).integers(-32_768, 32_768, count).astype("<i2").tobytes()
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    whole, cut = make(), make()
    pieces = b"".join(cut.feed(data[a:b]) for a, b in pairwise(edges))
    assert pieces + cut.flush() == whole.feed(data) + whole.flush()


def test_b002_a_sample_split_between_deltas_is_put_together_and_dropped_at_the_items_end() -> None:
    data = to_pcm16(tone(1_000, 2_000, rate_hz=24_000))
    whole = Downsampler()
    expected = whole.feed(data) + whole.flush()
    sizes = [4_063, 1_697, 1, 2, 999, 4_063, 77]
    down, rest, out = Downsampler(), data, b""
    for size in sizes * (len(data) // sum(sizes) + 1):
        out += down.feed(rest[:size])
        rest = rest[size:]
    assert out + down.flush() == expected
    down.feed(data[:4_001])
    down.reset()  # cancelled on an odd byte
    assert down.feed(data) + down.flush() == expected
    down.feed(b"\x55")
    down.flush()  # ended on an odd byte
    assert down.feed(data) + down.flush() == expected


@pytest.mark.parametrize("samples", [1, 2, 3, 160, 161, 162])
def test_the_tail_is_flushed_to_its_last_sample(samples: int) -> None:
    """As if silence had followed for ever."""
    loud = to_pcm16(np.full(samples, 20_000.0))
    for make, rest in ((Upsampler, 69), (Downsampler, 23)):
        stream, endless = make(), make()
        flushed = stream.feed(loud) + stream.flush()
        forever = endless.feed(loud + bytes(2_000))
        assert forever.startswith(flushed)
        assert not any(forever[len(flushed) :])
        assert len(flushed) // 2 in (samples * 3 + rest, samples // 3 + rest, samples // 3 + rest + 1)


@pytest.mark.parametrize("make", [Upsampler, Downsampler])
def test_nothing_is_carried_into_the_next_item(make: type[Upsampler] | type[Downsampler]) -> None:
    stream = make()
    stream.feed(to_pcm16(np.full(500, 30_000.0)))
    assert stream.flush()
    assert stream.flush() == b""
    assert not any(stream.feed(bytes(1_000)))


def test_full_scale_is_limited_not_wrapped() -> None:
    square = np.where(np.arange(800) // 8 % 2, 32_767.0, -32_768.0)
    up = from_pcm16(Upsampler().feed(to_pcm16(square)))
    middle = up[36:][4 * 3 :: 8 * 3][:90]  # in the middle of each half period
    assert (middle[1::2] * middle[:-1:2] < 0).all()
    assert np.abs(up).max() >= 32_767
