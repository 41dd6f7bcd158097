"""The caller's side of the sound: speech and key presses, cut into 20 ms frames."""

from collections import deque
from dataclasses import dataclass

from ivr.phone.line import FRAME_BYTES, FRAME_MS, SILENCE, SILENT_FRAME, is_voiced

DIGITS = frozenset("0123456789*#ABCD")
_DIGIT_FRAMES = 200 // FRAME_MS
_WAIT_FRAMES = 500 // FRAME_MS


def check_keys(digits: str) -> None:
    """Raises ValueError where a key is none that a telephone has, or `w`."""
    if not DIGITS.issuperset(digits.replace("w", "")):
        raise ValueError("keys are 0-9, *, #, A-D, and w for half a second")


@dataclass(frozen=True)
class Mouthful:
    """One frame of the caller: 160 bytes, a key pressed in it or "", and the words of the utterance it is of.

    `ends`: this frame is the utterance's last.
    """

    ulaw: bytes = SILENT_FRAME
    digit: str = ""
    said: str = ""
    ends: bool = False
    voiced: bool = False


_SILENT = Mouthful()


class Mouth:
    """A queue of frames to say; silence when there is none."""

    def __init__(self) -> None:
        self._queue: deque[Mouthful] = deque()

    @property
    def busy(self) -> bool:
        return bool(self._queue)

    def say(self, ulaw: bytes, text: str) -> None:
        """Queue speech; the last frame is filled up with silence (0xFF: 0x00 would be a bang)."""
        starts = range(0, len(ulaw), FRAME_BYTES)
        frames = [ulaw[at : at + FRAME_BYTES].ljust(FRAME_BYTES, SILENCE) for at in starts]
        for at, frame in enumerate(frames, start=1):
            ends = at == len(frames)
            self._queue.append(Mouthful(frame, said=text, ends=ends, voiced=is_voiced(frame)))

    def press(self, digits: str) -> None:
        """Queue key presses, 200 ms each; `w` waits half a second. Raises ValueError on anything else."""
        check_keys(digits)
        for key in digits:
            if key == "w":
                self._queue.extend([_SILENT] * _WAIT_FRAMES)
            else:
                self._queue.append(Mouthful(digit=key))
                self._queue.extend([_SILENT] * (_DIGIT_FRAMES - 1))

    def frame(self) -> Mouthful:
        """The next 20 ms."""
        return self._queue.popleft() if self._queue else _SILENT
