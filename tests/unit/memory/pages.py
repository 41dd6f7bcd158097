"""Pages made for tests."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from memory.model import Page

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

BLANK = Page(
    page_id=1,
    call_id="CA1",
    exchange_no=1,
    user_text="",
    reply_text="",
    summary="",
    user_audio_path="",
    reply_audio_path="",
    user_audio_ms=0,
    reply_audio_ms=0,
    interrupted=False,
    user_item_id="",
    created_at=START,
)


def page(number: int, **fields: object) -> Page:
    """The page numbered so, one minute after the one before."""
    base = replace(BLANK, page_id=number, exchange_no=number, created_at=START + timedelta(minutes=number))
    return replace(base, **fields)  # type: ignore[arg-type]
