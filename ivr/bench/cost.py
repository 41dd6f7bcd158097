"""What a turn costs with each memory strategy, by how much has been said: prices, assumptions, rows. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import msgspec

from memory.costs import (
    PER_MILLION,
    REPLY_AUDIO_TOKENS_PER_S,
    ModelPrice,
    chat_usd,
    price_of,
    text_tokens,
    transcription_usd,
)
from memory.model import Form, Window, WindowEntry
from memory.strategies import StrategyName
from memory.strategies_baselines import CHUNK_TURNS, CHUNK_WORDS, COMPACTED_SHARE, LAST_TURNS
from memory.summarise import (
    PAGE_PROMPT,
    PAGE_WORDS_MAX,
    THREAD_PROMPT,
    THREAD_SOURCE_WORDS_MAX,
    THREAD_WORDS_MAX,
)

WORDS_PER_MIN = 150
USER_AUDIO_TOKENS_PER_S = 9.98
CACHED_SHARES = (0.0, 0.5, 0.9, 1.0)
CALL_TOKENS = 40
"""A function call that a reply makes before it speaks."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the bench cannot measure, the same for every strategy.

    `prefix_tokens`: instructions, functions and state snapshot. `second_share`: turns whose first response only calls
    a function, so that the input is paid twice. `retry_share`: turns whose reply failed half-way and was asked for
    again.
    """

    model: str = "gpt-realtime-2.1"
    transcribe_model: str = "gpt-realtime-whisper"
    summary_model: str = "gpt-5.4-mini"
    prefix_tokens: int = 1_200
    second_share: float = 0.15
    retry_share: float = 0.02

    @property
    def price(self) -> ModelPrice:
        """The speech model's."""
        return price_of(self.model)


class Usd(msgspec.Struct, frozen=True):
    """One turn, by what it is for."""

    input: float
    output: float
    transcription: float
    summaries: float
    seconds_and_retries: float

    @property
    def total(self) -> float:
        """All of it."""
        parts = (self.input, self.output, self.transcription, self.summaries, self.seconds_and_retries)
        return sum(parts)


class Row(msgspec.Struct, frozen=True):
    """One strategy at one length of history. `tokens` are of the history shown; `forms` are pages by form.

    `budget_tokens` is None for the full history, which has none; `beyond_limit`: it is longer than the model can hold,
    the oldest is lost. `hit` and `verbatim` are None where nothing said so far is asked for.
    """

    history_min: float
    usd_per_turn: float
    cached_share: float
    tokens: float
    hit: float | None
    verbatim: float | None
    forms: dict[str, float]
    budget_tokens: int | None
    beyond_limit: bool
    usd: Usd


@dataclass(frozen=True, slots=True)
class Shape:
    """A typical exchange of the talk at hand: seconds of the caller's audio, words of either side."""

    user_s: float
    user_words: float
    reply_words: float

    @property
    def reply_s(self) -> float:
        """At a speaking rate of 150 words a minute."""
        return self.reply_words * 60 / WORDS_PER_MIN

    @property
    def page_tokens(self) -> float:
        """As a transcript, with a label a side."""
        return text_tokens(round(self.user_words + self.reply_words) + 2)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Mean tokens of a window's history."""

    text: float
    audio: float


def tokens_of(windows: Iterable[Window]) -> Tokens:
    """An audio page is the caller's audio and the reply's words."""
    listed = list(windows)
    audio = fmean(sum(map(_audio_tokens, window.entries)) for window in listed)
    return Tokens(fmean(window.tokens for window in listed) - audio, audio)


def _audio_tokens(entry: WindowEntry) -> float:
    if entry.form is not Form.AUDIO:
        return 0.0
    return entry.page.user_audio_ms / 1_000 * USER_AUDIO_TOKENS_PER_S


def turn_usd(
    strategy: StrategyName,
    history: Tokens,
    shape: Shape,
    given: Assumptions,
    *,
    budget_tokens: int,
    summarised: bool = True,
    cached_share: float = 0.0,
    threads_a_page: float = 1.0,
) -> Usd:
    """One turn: its input (the cached share of all but the turn itself at the cached price), its reply, the rest.

    `summarised`: some of the history is a summary by now (ours makes them from the first turn on). `threads_a_page`:
    how many threads a page joins; each is summarised anew.
    """
    price = given.price
    text, fresh = history.text + given.prefix_tokens, 1.0 - cached_share
    held = text * (fresh * price.text_in + cached_share * price.text_cached)
    held += history.audio * (fresh * price.audio_in + cached_share * price.audio_cached)
    asked = shape.user_s * USER_AUDIO_TOKENS_PER_S * price.audio_in
    taken_in = (held + asked) * PER_MILLION
    spoken = shape.reply_s * REPLY_AUDIO_TOKENS_PER_S * price.audio_out
    spoken += text_tokens(round(shape.reply_words)) * price.text_out
    given_out = spoken * PER_MILLION
    seconds = given.second_share * (taken_in + CALL_TOKENS * price.text_out * PER_MILLION)
    retries = given.retry_share * (taken_in + given_out / 2)
    return Usd(
        taken_in,
        given_out,
        transcription_usd(shape.user_s * 1_000, given.transcribe_model),
        summaries_usd(strategy, shape, given.summary_model, budget_tokens, history, threads_a_page)
        if summarised
        else 0.0,
        seconds + retries,
    )


def summaries_usd(
    strategy: StrategyName,
    shape: Shape,
    model: str,
    budget_tokens: int,
    history: Tokens,
    threads_a_page: float,
) -> float:
    """Summaries that the strategy needs, a turn, by a chat model. Pages found by likeness need none."""
    match strategy:
        case StrategyName.VTHREADS:
            page = chat_usd(_tokens(PAGE_PROMPT) + shape.page_tokens, text_tokens(PAGE_WORDS_MAX), model)
            source = min(text_tokens(THREAD_SOURCE_WORDS_MAX), max(history.text, shape.page_tokens))
            thread = chat_usd(_tokens(THREAD_PROMPT) + source, text_tokens(THREAD_WORDS_MAX), model)
            return page + threads_a_page * thread
        case StrategyName.HIERARCHICAL:
            source = _tokens(THREAD_PROMPT) + CHUNK_TURNS * shape.page_tokens
            return chat_usd(source, text_tokens(CHUNK_WORDS), model) / CHUNK_TURNS
        case StrategyName.COMPACTION:
            kept = budget_tokens / COMPACTED_SHARE + LAST_TURNS * shape.page_tokens
            turns = max(1.0, (budget_tokens - kept) / shape.page_tokens)
            once = chat_usd(_tokens(THREAD_PROMPT) + budget_tokens, budget_tokens / COMPACTED_SHARE, model)
            return once / turns
        case _:
            return 0.0


def _tokens(text: str) -> int:
    return text_tokens(len(text.split()))


def slope_share_per_h(rows: Sequence[Row], full_from_min: float) -> float | None:
    """How much a turn's price grows in an hour of talk, as a share of it: first to last row once the window is full.

    None for fewer than two rows.
    """
    settled = [row for row in rows if row.history_min >= full_from_min]
    if len(settled) < 2:
        return None
    first, last = settled[0], settled[-1]
    hours = (last.history_min - first.history_min) / 60
    return (last.usd_per_turn / first.usd_per_turn - 1.0) / hours


def cheapest(at_equal: Mapping[str, float | None]) -> str:
    """The name with the lowest price; None is for who cannot reach the quality at all."""
    return min((usd, name) for name, usd in at_equal.items() if usd is not None)[1]
