"""What the caller sent, on the clock that the model's VAD counts on: its appended audio."""

from ivr.core.units import LINE_RATE_HZ, ULAW_SILENCE, ms_to_ulaw_bytes

KEEP_QUIET_MS = 4_000
KEEP_LONGEST_MS = 120_000
"""A turn longer than this keeps its last two minutes as audio; its transcript is whole all the same."""
_KEEP_QUIET_BYTES = ms_to_ulaw_bytes(KEEP_QUIET_MS)


class InputTape:
    """A bounded recording, addressed in ms of audio given to the present model session."""

    def __init__(self) -> None:
        self._ulaw = bytearray()
        self._dropped_bytes = 0
        self._kept_from_ms: float | None = None

    def append(self, ulaw: bytes, missing_ms: int) -> None:
        """A frame as it was given to the model, with what was missing before it (kept as silence)."""
        if missing_ms:
            self._ulaw += ULAW_SILENCE * ms_to_ulaw_bytes(missing_ms)
        self._ulaw += ulaw
        # By whole seconds: moving the buffer for each frame would cost.
        if len(self._ulaw) > _KEEP_QUIET_BYTES + LINE_RATE_HZ:
            self._shorten()

    def _shorten(self) -> None:
        surplus = len(self._ulaw) - _KEEP_QUIET_BYTES
        if self._kept_from_ms is not None:
            kept_from = ms_to_ulaw_bytes(self._kept_from_ms) - self._dropped_bytes
            too_long = len(self._ulaw) - ms_to_ulaw_bytes(KEEP_LONGEST_MS)
            surplus = max(min(surplus, kept_from), too_long)
        if surplus > LINE_RATE_HZ:
            del self._ulaw[:surplus]
            self._dropped_bytes += surplus

    def keep_from(self, start_ms: float | None) -> None:
        """Keep all from here on, as far as it is still here: what is being spoken, or has no words yet."""
        self._kept_from_ms = start_ms

    def cut(self, start_ms: float, end_ms: float) -> bytes:
        """µ-law from `start_ms` to `end_ms`, as far as it is still here."""
        first = max(0, ms_to_ulaw_bytes(start_ms) - self._dropped_bytes)
        last = max(first, ms_to_ulaw_bytes(end_ms) - self._dropped_bytes)
        return bytes(self._ulaw[first:last])

    def length_ms(self) -> float:
        """Audio given to the model so far, in ms."""
        return (len(self._ulaw) + self._dropped_bytes) * 1_000 / LINE_RATE_HZ

    def restart(self) -> None:
        """A new model session counts from zero."""
        self._ulaw.clear()
        self._dropped_bytes = 0
        self._kept_from_ms = None
