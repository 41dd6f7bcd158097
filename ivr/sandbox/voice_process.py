"""The process behind `Voice`: text in, PCM16 24 kHz out. `python -m ivr.sandbox.voice_process`."""

import sys

import numpy as np
import soxr
from hibari import SAMPLE_RATE, Hibari

from ivr.sandbox.voice import SpeakJob, SpeakResult
from ivr.sandbox.worker import own_stdout, serve_jobs

_SEED = 1
"""The same words sound the same each time."""


class Speaker:
    """The loaded voice."""

    def __init__(self) -> None:
        self._voice = Hibari(threads=1)

    def speak(self, job: SpeakJob) -> SpeakResult:
        """Pitch is made by speaking slower or faster and resampling back to the wanted length."""
        try:
            audio = self._voice(job.text, speed=job.speed / job.pitch, seed=_SEED)
        except (ValueError, KeyError, IndexError, RuntimeError) as error:
            sys.stderr.write(f"voice: {error!r}\n")
            return SpeakResult(b"", fault=type(error).__name__)
        if job.pitch != 1.0 and len(audio):
            audio = soxr.resample(audio, SAMPLE_RATE * job.pitch, SAMPLE_RATE)
        pcm = (np.clip(audio, -1.0, 1.0) * 32_767.0).astype("<i2")
        return SpeakResult(pcm.tobytes())


def main() -> None:
    """Warm up, then serve."""
    out = own_stdout()
    speaker = Speaker()
    speaker.speak(SpeakJob("Warm up, please: one, two, three.", 1.0, 1.0))
    serve_jobs(SpeakJob, speaker.speak, out)


if __name__ == "__main__":
    main()
