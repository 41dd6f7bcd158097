"""What the media bench makes of its notes: delays by audio position, JSON by the contract's keys."""

import json
from pathlib import Path
from typing import cast

import msgspec
import numpy as np
import pytest
from rich.console import Console

from ivr.bench.media import Delay, Figures, ServerKind, in_delays_ms, out_delays_ms
from ivr.bench.media_report import most_carried, show, write_json
from ivr.bench.model import CYCLE_MS, Session
from ivr.bench.stages import Stage
from ivr.bench.websocket import WebSocketEnd
from ivr.wire.realtime_out import encode_append

FIGURES = Figures(5.0, Delay(1.0, 2.0), Delay(3.0, 4.0), 0.2, 7, peers_late_ms=0.4, others_on_core=0.01)


def test_a_frame_is_there_when_all_of_its_audio_is() -> None:
    """Three frames sent at 0, 20, 40 ms; a server that holds 10 ms back, so each is complete with the next."""
    sent_s = np.array([0.0, 0.020, 0.040])
    heard_s, heard_ms = np.array([0.003, 0.023, 0.043]), np.array([10.0, 30.0, 50.0])
    delays = in_delays_ms(sent_s, heard_s, heard_ms, (0.0, 1.0))
    np.testing.assert_allclose(delays, [23.0, 23.0])  # the last one never came
    np.testing.assert_allclose(in_delays_ms(sent_s, heard_s, heard_ms, (0.01, 0.03)), [23.0])


def test_a_reply_is_there_with_the_first_sound_after_its_first_delta() -> None:
    spoke_s, came_s = np.array([1.0, 5.0, 9.0]), np.array([0.5, 1.004, 1.024, 5.01])
    np.testing.assert_allclose(out_delays_ms(spoke_s, came_s, (0.0, 10.0)), [4.0, 10.0])
    np.testing.assert_allclose(out_delays_ms(spoke_s, came_s, (2.0, 10.0)), [10.0])


@pytest.mark.parametrize(
    ("late_ms", "others", "is_sound"),
    [(0.4, 0.01, True), (9.0, 0.01, False), (0.4, 0.2, False), (0.4, float("nan"), True)],
)
def test_figures_of_a_busy_machine_are_not_sound(late_ms: float, others: float, is_sound: bool) -> None:
    figures = Figures(5.0, Delay(1.0, 2.0), Delay(3.0, 4.0), 0.2, 7, late_ms, others)
    assert figures.is_sound == is_sound


def test_the_json_has_the_keys_of_the_contract(tmp_path: Path) -> None:
    path = tmp_path / "media.json"
    write_json({ServerKind.OURS: {10: FIGURES}}, [Stage("frame", 3.0, 50.0)], path)
    of_ten = json.loads(path.read_text())["servers"]["ours"]["calls"]["10"]
    assert of_ten["cpu_ms_per_call_s"] == 5.0
    assert of_ten["in_ms"] == {"p50": 1.0, "p99": 2.0}
    assert of_ten["out_ms"] == {"p50": 3.0, "p99": 4.0}
    assert of_ten["rss_mb_per_call"] == 0.2


def with_p99(in_ms: float, out_ms: float) -> Figures:
    return Figures(5.0, Delay(1.0, in_ms), Delay(1.0, out_ms), 0.2, 7, peers_late_ms=0.4, others_on_core=0.01)


@pytest.mark.parametrize(
    ("p99_ms", "carried", "advice"),
    [
        ({20: (3.0, 3.0), 50: (16.0, 40.0), 60: (9.0, 41.0)}, 50, "IVR_MAX_CALLS=50"),
        ({60: (41.0, 9.0), 20: (3.0, 3.0), 70: (3.0, 3.0)}, 20, "IVR_MAX_CALLS=20"),
        ({20: (3.0, 3.0)}, 20, "try more"),
        ({20: (50.0, 3.0)}, None, "try fewer"),
    ],
)
def test_the_limit_of_calls_is_what_a_core_carried_in_time(
    p99_ms: dict[int, tuple[float, float]], carried: int | None, advice: str
) -> None:
    ours = {calls: with_p99(*p99) for calls, p99 in p99_ms.items()}
    assert most_carried(ours) == carried
    out = Console(record=True, width=200)
    show({ServerKind.OURS: ours}, [], out)
    assert advice in out.export_text()


class End:
    """Keeps what the model says."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def send(self, message: bytes) -> None:
        self.said.append(msgspec.json.decode(message)["type"])


def test_the_model_hears_a_turn_in_each_cycle_and_counts_what_it_heard() -> None:
    end = End()
    session = Session(cast(WebSocketEnd, end))
    session.begin()
    session.receive(
        b'{"type":"session.update","session":{"audio":{"input":{"format":{"type":"audio/pcm"},'
        b'"turn_detection":{"type":"server_vad","create_response":false}}}}}'
    )
    frame = encode_append(bytes(960))
    for _ in range(CYCLE_MS // 20 + 50):
        session.receive(frame)
    assert end.said == [
        "session.created",
        "session.updated",
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.input_audio_transcription.completed",
        "input_audio_buffer.speech_started",
    ]
    notes = session.notes()
    assert notes.heard_ms[:3] == [20.0, 40.0, 60.0]
    assert len(notes.heard_s) == len(notes.heard_ms) == CYCLE_MS // 20 + 50


@pytest.mark.parametrize("size", [958, 960, 961, 962])
def test_audio_is_measured_from_its_base64_whatever_the_padding(size: int) -> None:
    session = Session(cast(WebSocketEnd, End()))
    session.receive(encode_append(bytes(size)))
    session.receive(encode_append(bytes(size)).replace(b'":"', b'": "').replace(b'","', b'", "'))
    assert session.notes().heard_ms == [size / 48, 2 * size / 48]
