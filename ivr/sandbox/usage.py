"""Token figures. The sandbox has no tokens; these follow the provider's rates so that costs come out alike.

Text: a token for 4 characters. Input audio: 10 tokens a second; output audio: 20. All rounded up.
"""

import math

from ivr.sandbox.events import CachedDetails, InputDetails, OutputDetails, Usage

_CHARS_PER_TOKEN = 4
_INPUT_AUDIO_TOKENS_PER_S = 10
_OUTPUT_AUDIO_TOKENS_PER_S = 20
_LIMIT_CHARS_PER_TOKEN = 3

INSTRUCTION_LIMIT_TOKENS = 16_384
"""Instructions and tools together; estimated at 3 characters a token, the pessimistic side."""


def text_tokens(characters: int) -> int:
    """Tokens of a text of that many characters."""
    return math.ceil(characters / _CHARS_PER_TOKEN)


def input_audio_tokens(duration_ms: float) -> int:
    """Tokens of the user's audio."""
    return math.ceil(duration_ms * _INPUT_AUDIO_TOKENS_PER_S / 1_000)


def output_audio_tokens(duration_ms: float) -> int:
    """Tokens of a reply's audio."""
    return math.ceil(duration_ms * _OUTPUT_AUDIO_TOKENS_PER_S / 1_000)


def limit_tokens(characters: int) -> int:
    """Tokens of instructions and tools, as counted against `INSTRUCTION_LIMIT_TOKENS`."""
    return math.ceil(characters / _LIMIT_CHARS_PER_TOKEN)


def common_prefix_length(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    low, high = 0, length
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def usage(
    *,
    prefix: str,
    cached_characters: int,
    input_characters: int,
    input_audio_ms: float,
    said: str,
    spoken_ms: float,
) -> Usage:
    """Figures of one response. `prefix`: its tools and instructions; `said`: its words and calls."""
    text_in = text_tokens(len(prefix) + input_characters)
    audio_in = input_audio_tokens(input_audio_ms)
    cached = min(text_in, cached_characters // _CHARS_PER_TOKEN)
    text_out = text_tokens(len(said))
    audio_out = output_audio_tokens(spoken_ms)
    return Usage(
        total_tokens=text_in + audio_in + text_out + audio_out,
        input_tokens=text_in + audio_in,
        output_tokens=text_out + audio_out,
        input_token_details=InputDetails(
            text_tokens=text_in,
            audio_tokens=audio_in,
            cached_tokens=cached,
            cached_tokens_details=CachedDetails(text_tokens=cached),
        ),
        output_token_details=OutputDetails(text_tokens=text_out, audio_tokens=audio_out),
    )
