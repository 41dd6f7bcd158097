from hypothesis import given
from hypothesis import strategies as st

from ivr.phone.line import SILENT_FRAME
from ivr.phone.network import Network, Packet, Uplink, gilbert_trace


def _deliver(network: Network, frames: int) -> list[tuple[int, Packet]]:
    """(when, packet) of every frame, looked for every 20 ms until all have come."""
    uplink, arrived = Uplink(network), []
    for frame in range(frames + 200):
        now_ms = frame * 20
        if frame < frames:
            uplink.offer(frame, SILENT_FRAME, "", now_ms)
        arrived += [(now_ms, packet) for packet in uplink.due(now_ms)]
    return arrived


def test_a_clean_network_delivers_every_frame_at_once() -> None:
    arrived = _deliver(Network(), 50)

    assert [(when, packet.index) for when, packet in arrived] == [(20 * at, at) for at in range(50)]


def test_lost_frames_are_those_of_the_trace_repeated() -> None:
    arrived = _deliver(Network(lost=(False, True, False)), 9)

    assert [packet.index for _, packet in arrived if packet.lost] == [1, 4, 7]


def test_a_late_frame_holds_up_those_behind_it_then_they_come_in_a_burst() -> None:
    delays = (0, 0, 100) + (0,) * 97
    arrived = _deliver(Network(delay_ms=delays), 10)

    assert [when for when, _ in arrived] == [0, 20, 140, 140, 140, 140, 140, 140, 160, 180]


def test_what_is_lost_holds_nothing_up() -> None:
    delays = (0, 400) + (0,) * 98
    arrived = _deliver(Network(lost=(False, True) + (False,) * 98, delay_ms=delays), 4)

    assert [when for when, packet in arrived if not packet.lost] == [0, 40, 60]


@given(st.lists(st.integers(0, 500), min_size=1, max_size=30), st.lists(st.booleans(), max_size=30))
def test_order_is_kept_and_nothing_is_doubled(delays: list[int], lost: list[bool]) -> None:
    arrived = _deliver(Network(lost=tuple(lost), delay_ms=tuple(delays)), 40)

    assert [packet.index for _, packet in arrived] == list(range(40))


def test_timestamps_count_lost_frames() -> None:
    uplink = Uplink(Network(first_timestamp_ms=171))

    assert uplink.timestamp_ms(Packet(7, SILENT_FRAME)) == 171 + 140


def test_a_gilbert_trace_has_the_loss_and_bursts_of_its_parameters() -> None:
    to_bad, to_good = 0.05, 0.4
    trace = gilbert_trace(to_bad, to_good, 40_000, seed=3)

    lost = sum(trace)
    bursts = sum(now and not before for before, now in zip((False, *trace), trace, strict=False))
    assert abs(lost / len(trace) - to_bad / (to_bad + to_good)) < 0.01
    assert abs(lost / bursts - 1 / to_good) < 0.15
    assert trace == gilbert_trace(to_bad, to_good, 40_000, seed=3)
