"""Between the line and the model: what waits, what is inserted, and whose clock is whose."""

from ivr.core.commands import Hear
from ivr.core.events import LineFrame
from ivr.core.hearing import Hearing
from ivr.core.media import AGAIN_MAX_MS, WAITING_MAX_MS, InboundMedia
from ivr.core.speaking import SpeakingRate

FIRST_MS = 135


def frame(no: int) -> LineFrame:
    return LineFrame(no + 2, no + 1, FIRST_MS + 20 * no, b"\x30" * 160)


def feed(media: InboundMedia, numbers: range) -> list[Hear]:
    """Frames on time; a number that is left out was lost."""
    return [hear for no in numbers if (hear := media.receive(frame(no), 20.0 * no)) is not None]


def ready(silence_ms: int = 500, longest_insert_ms: int = 2_000) -> InboundMedia:
    media = InboundMedia(silence_ms, longest_insert_ms)
    assert media.ready() == []
    return media


def test_less_is_inserted_than_the_silence_that_ends_a_turn_and_never_more_than_the_bound() -> None:
    for silence_ms, inserted_ms in ((500, 400), (100, 0), (50, 0), (1_500, 1_400), (5_000, 2_000)):
        media = ready(silence_ms)
        feed(media, range(50))
        (first, *_) = feed(media, range(50 + 500, 560))
        assert first.missing_ms == inserted_ms
        assert media.reception.lost_ms == 10_000
        assert media.tape.length_ms() == 1_000 + inserted_ms + 200


def test_the_model_s_clock_maps_to_the_caller_s_over_a_hole_that_was_cut_short() -> None:
    media = ready()
    feed(media, range(50))
    feed(media, range(150, 200))
    assert media.stream_ms(0) == FIRST_MS
    assert media.stream_ms(1_000) == FIRST_MS + 1_000
    assert media.stream_ms(1_400) == FIRST_MS + 3_000  # the hole of 2 s went in as 400 ms
    assert media.stream_ms(2_400) == FIRST_MS + 4_000


def test_a_new_session_s_clock_begins_where_what_waited_began() -> None:
    media = ready()
    feed(media, range(100))
    media.lost(media.tape.length_ms())
    assert feed(media, range(100, 150)) == []
    waited = media.ready()
    assert len(waited) == 50
    assert media.stream_ms(0) == FIRST_MS + 2_000
    assert media.stream_ms(media.tape.length_ms()) == FIRST_MS + 3_000


def test_a_new_session_hears_again_what_the_last_one_did_not_understand() -> None:
    media = ready()
    feed(media, range(100))
    media.lost(1_500)
    feed(media, range(100, 150))
    waited = media.ready()
    assert b"".join(hear.ulaw for hear in waited) == media.tape.cut(0, 1_500)
    assert sum(len(hear.ulaw) for hear in waited) == 1_500 * 8
    assert media.stream_ms(0) == FIRST_MS + 1_500
    assert media.stream_ms(media.tape.length_ms()) == FIRST_MS + 3_000


def test_between_two_sessions_half_a_minute_is_kept() -> None:
    media = ready()
    feed(media, range(100))
    media.lost(0)
    media.lost(0)  # an attempt to open another one failed
    feed(media, range(100, 2_100))
    assert sum(len(hear.ulaw) for hear in media.ready()) == AGAIN_MAX_MS * 8 == len(media.tape.cut(0, 1e9))


def test_what_waits_is_bounded_with_its_holes() -> None:
    media = InboundMedia(5_000, 4_900)
    for block in range(20):
        feed(media, range(400 * block, 400 * block + 20))  # 0.4 s, then 7.6 s of nothing
    waited = media.ready()
    assert sum(20 + hear.missing_ms for hear in waited) == media.tape.length_ms() <= WAITING_MAX_MS
    assert media.stream_ms(media.tape.length_ms()) == FIRST_MS + 20 * (400 * 19 + 20)


def test_times_of_speech_are_the_caller_s() -> None:
    """20 words in 4 s, two of which were lost: 300 words a minute, not the 500 of the model's clock."""
    media = ready()
    rate = SpeakingRate("en")
    hearing = Hearing(rate, media, prefix_ms=300)
    feed(media, range(100))
    hearing.speech_started("u1", 1_700)
    feed(media, range(200, 325))
    assert hearing.speech_stopped("u1", 4_900, 500, now_ms=6_500.0)
    assert hearing.open.speech_ended_at_ms == 6_000
    hearing.words("u1", "word " * 20, 7_000)
    assert rate.estimate() == 300


def test_the_silence_after_speech_counts_in_whole_though_part_of_it_was_lost() -> None:
    media = ready()
    hearing = Hearing(SpeakingRate("en"), media, prefix_ms=300)
    feed(media, range(100))
    hearing.speech_started("u1", 700)
    feed(media, range(160, 165))  # 1.2 s lost right behind the last word
    assert hearing.speech_stopped("u1", 2_500, 500, now_ms=3_300.0)
    assert hearing.open.speech_ended_at_ms == 2_000
