"""`ivr voicemail`: the messages that callers left at a business."""

import asyncio
from pathlib import Path
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table

from callflows.model import Business
from callflows.parse import load_folder
from ivr.errors import CallthreadError
from ivr.foundations import audio_store, flow_folder
from ivr.observe import mask_number
from ivr.operate import opened
from ivr.settings import Settings
from ivr.voicemail import NO_TRANSCRIPT
from memory.store import Voicemail

MOST = 10_000


async def print_messages(settings: Settings, out: Console, business_id: str, limit: int) -> None:
    """Print a business's messages, newest first. Raises: `CallthreadError`."""
    zone = ZoneInfo(_business(settings, business_id).timezone)
    async with opened(settings) as store:
        messages = await store.list_voicemails(business_id, limit)
    if not messages:
        out.print(f"{business_id}: no messages")
        return
    table = Table("recording", "when", "from", "s", "told", "said")
    for each in messages:
        when = each.created_at.astimezone(zone).strftime("%Y-%m-%d %H:%M")
        caller = mask_number(each.caller) if each.caller else "withheld"
        told = "yes" if each.told_at is not None else "no"
        table.add_row(each.recording_sid, when, caller, str(each.duration_s), told, each.transcript)
    out.print(table)


async def show_message(settings: Settings, out: Console, business_id: str, recording: str) -> None:
    """Print one message with all of what was said. Raises: `CallthreadError`."""
    zone = ZoneInfo(_business(settings, business_id).timezone)
    message = await _message(settings, business_id, recording)
    caller = mask_number(message.caller) if message.caller else "a withheld number"
    when = message.created_at.astimezone(zone).strftime("%Y-%m-%d %H:%M")
    out.print(f"{recording}: {message.duration_s} s from {caller} at {when}, call {message.call_sid}")
    out.print("the business was told of it" if message.told_at is not None else "nobody was told of it yet")
    out.print(message.transcript or _no_text(message), markup=False, soft_wrap=True)


def _no_text(message: Voicemail) -> str:
    if not message.wants_text:
        return "not written down: `transcribe: true` in its node asks for that"
    return NO_TRANSCRIPT if message.told_at is not None else "not written down yet: does `ivr worker` run?"


async def _message(settings: Settings, business_id: str, recording: str) -> Voicemail:
    async with opened(settings) as store:
        messages = await store.list_voicemails(business_id, MOST)
    message = next((each for each in messages if each.recording_sid == recording), None)
    if message is None:
        raise CallthreadError(f"{business_id} has no message {recording!r}; `ivr voicemail list` shows them")
    return message


async def save_message(
    settings: Settings, out: Console, business_id: str, recording: str, file: Path
) -> None:
    """Write a message's recording to a file. Raises: `CallthreadError`."""
    _business(settings, business_id)
    message = await _message(settings, business_id, recording)
    wav = await audio_store(settings).get(message.audio_path) if message.audio_path else None
    if wav is None:
        raise CallthreadError(f"the recording {recording} is not here yet: does `ivr worker` run?")
    await asyncio.to_thread(file.write_bytes, wav)
    out.print(f"{file}: {message.duration_s} s")


def _business(settings: Settings, business_id: str) -> Business:
    known = load_folder(flow_folder(settings)).businesses
    if business_id not in known:
        raise CallthreadError(f"there is no business {business_id!r}; there are: {', '.join(known)}")
    return known[business_id]
