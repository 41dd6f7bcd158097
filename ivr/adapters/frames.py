"""One text message as one WebSocket frame (RFC 6455), without what the library does for all kinds of frames."""

import os
from collections.abc import Iterator
from struct import Struct

# In C where the library was built with it, which its module for it alone does not promise.
from websockets.frames import apply_mask as apply_mask  # type: ignore[attr-defined]

_WHOLE_TEXT = 0x81
_MASKED = 0x80
_LONG, _VERY_LONG = 126, 127


def text_frame(payload: bytes) -> bytes:
    """As a server sends it: not masked."""
    return _head(len(payload), 0) + payload


def masked_text_frame(payload: bytes) -> bytes:
    """As a client sends it."""
    mask = _next_mask()
    return _head(len(payload), _MASKED) + mask + apply_mask(payload, mask)


def _masks() -> Iterator[bytes]:
    """Four bytes that nobody can foretell (RFC 6455, 10.3), each used once; one system call for many."""
    while True:
        some = os.urandom(4_096)
        yield from (some[at : at + 4] for at in range(0, len(some), 4))


_next_mask = _masks().__next__
_long_head = Struct(">BBH").pack


def _head(size: int, masked: int) -> bytes:
    if size < _LONG:
        return bytes((_WHOLE_TEXT, masked | size))
    if size < 1 << 16:
        return _long_head(_WHOLE_TEXT, masked | _LONG, size)
    return bytes((_WHOLE_TEXT, masked | _VERY_LONG)) + size.to_bytes(8, "big")
