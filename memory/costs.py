"""What tokens cost, and how many tokens a form of a page will take. Pure, but for reading `prices.toml` once.

Estimates: audio 9.98 tokens a second, text 1.33 tokens a word (paper, section on projection).
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from typing import Protocol

AUDIO_TOKENS_PER_S = 9.98
REPLY_AUDIO_TOKENS_PER_S = 20.0
"""A provider counts its own voice twice as finely as the caller's."""
TEXT_TOKENS_PER_WORD = 1.33
MS_PER_WORD = 400.0
JSON_CHARACTERS_PER_TOKEN = 4
"""OpenAI's rule of thumb for text; JSON has few words to count."""
PER_MILLION = 1e-6
FALLBACK_MODEL = "gpt-realtime-2.1"
FALLBACK_TRANSCRIPTION = "gpt-realtime-whisper"
FALLBACK_PROMPTS = "gpt-4o-mini-tts"
FALLBACK_CHAT = "gpt-5.4-mini"

# Scripts without spaces: a character counts as a word there, or a long utterance would cost one.
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]|[^\s\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]+"
)


class TokenUsage(Protocol):
    """Tokens of one reply, as a provider counts them. Cached tokens are part of the input tokens."""

    @property
    def input_text_tokens(self) -> int: ...
    @property
    def input_audio_tokens(self) -> int: ...
    @property
    def cached_text_tokens(self) -> int: ...
    @property
    def cached_audio_tokens(self) -> int: ...
    @property
    def output_text_tokens(self) -> int: ...
    @property
    def output_audio_tokens(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """US dollars per million tokens."""

    text_in: float
    text_cached: float
    text_out: float
    audio_in: float
    audio_cached: float
    audio_out: float
    source: str
    estimate: bool = False
    input_limit_tokens: int = 96_000
    """What it can be given at once."""


@dataclass(frozen=True, slots=True)
class ChatPrice:
    """US dollars per million tokens of a model that makes summaries."""

    text_in: float
    text_out: float
    source: str
    estimate: bool = False


@dataclass(frozen=True, slots=True)
class MinutePrice:
    """US dollars per minute of audio: transcribed, or made of a text."""

    usd_per_minute: float
    source: str
    estimate: bool = False


@dataclass(frozen=True, slots=True)
class PriceTable:
    """The prices in `prices.toml`, as they were on `date`."""

    date: date
    models: Mapping[str, ModelPrice]
    transcription: Mapping[str, MinutePrice]
    prompts: Mapping[str, MinutePrice]
    chat: Mapping[str, ChatPrice]


def load_prices() -> PriceTable:
    """Read the table that is shipped with the package."""
    raw = tomllib.loads(files("memory").joinpath("prices.toml").read_text(encoding="utf-8"))
    return PriceTable(
        date=raw["date"],
        models={name: ModelPrice(**values) for name, values in raw["models"].items()},
        transcription={name: MinutePrice(**values) for name, values in raw["transcription"].items()},
        prompts={name: MinutePrice(**values) for name, values in raw["prompts"].items()},
        chat={name: ChatPrice(**values) for name, values in raw["chat"].items()},
    )


PRICES = load_prices()


def estimate_usd(usage: TokenUsage, model: str) -> float:
    """The price of one reply in US dollars. A model that the table lacks is priced as gpt-realtime-2.1."""
    price = price_of(model)
    # A provider that reports more cached than read must not make a reply cheaper than free.
    cached_text = min(usage.cached_text_tokens, usage.input_text_tokens)
    cached_audio = min(usage.cached_audio_tokens, usage.input_audio_tokens)
    total = (
        (usage.input_text_tokens - cached_text) * price.text_in
        + cached_text * price.text_cached
        + (usage.input_audio_tokens - cached_audio) * price.audio_in
        + cached_audio * price.audio_cached
        + usage.output_text_tokens * price.text_out
        + usage.output_audio_tokens * price.audio_out
    )
    return total * PER_MILLION


def transcription_usd(audio_ms: float, model: str) -> float:
    """The price of transcribing this much audio, in US dollars."""
    price = PRICES.transcription.get(model, PRICES.transcription[FALLBACK_TRANSCRIPTION])
    return audio_ms / 60_000 * price.usd_per_minute


def prompt_usd(audio_ms: float, model: str) -> float:
    """The price of this much sound made of texts, in US dollars."""
    price = PRICES.prompts.get(model, PRICES.prompts[FALLBACK_PROMPTS])
    return audio_ms / 60_000 * price.usd_per_minute


def chat_usd(tokens_in: float, tokens_out: float, model: str) -> float:
    """The price of one summary, in US dollars."""
    price = PRICES.chat.get(model, PRICES.chat[FALLBACK_CHAT])
    return (tokens_in * price.text_in + tokens_out * price.text_out) * PER_MILLION


def price_of(model: str) -> ModelPrice:
    """The table's price of a speech model; gpt-realtime-2.1's for one that it lacks."""
    return PRICES.models.get(model, PRICES.models[FALLBACK_MODEL])


def is_estimate(model: str) -> bool:
    """Whether the table's price for this model is not the vendor's own (or is another model's)."""
    price = PRICES.models.get(model)
    return price is None or price.estimate


def word_count(text: str) -> int:
    """Words, or characters of scripts written without spaces."""
    # Eight times faster, and a window is counted once a turn.
    return len(text.split()) if text.isascii() else len(_WORD.findall(text))


def spoken_ms(text: str) -> float:
    """How long it takes to say a text, by estimate: 150 words a minute."""
    return word_count(text) * MS_PER_WORD


def text_tokens(words: int) -> int:
    """Estimated tokens of a text with so many words, rounded up."""
    return -int(-words * TEXT_TOKENS_PER_WORD // 1)


def audio_tokens(audio_ms: float) -> int:
    """Estimated tokens of so much audio, rounded up."""
    return -int(-audio_ms / 1_000 * AUDIO_TOKENS_PER_S // 1)


def reply_audio_tokens(audio_ms: float) -> int:
    """Estimated tokens of so much of a model's own voice, rounded up."""
    return -int(-audio_ms / 1_000 * REPLY_AUDIO_TOKENS_PER_S // 1)


def json_tokens(text: str) -> int:
    """Estimated tokens of a text in JSON, rounded up."""
    return -(-len(text) // JSON_CHARACTERS_PER_TOKEN)
