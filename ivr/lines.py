"""Callers who wait in a line, by the database: whichever worker the telephone network asks, it answers alike."""

import asyncio
import io
import wave
from collections.abc import Callable

import structlog

from callflows import engine
from callflows.engine import FlowState
from callflows.model import Business
from ivr.audio.files import BadAudioFile
from ivr.audio.g711 import ulaw_to_pcm16
from ivr.begun import as_begun
from ivr.core.setup import moved, restore
from ivr.shelf import Flows
from ivr.web.deps import LeaveLine, MusicPiece, PlaceInLine, WaitOn
from memory.calls import CallRow, CallStatus
from memory.store import Store

RATE_HZ = 8_000

log = structlog.get_logger()


def flow_of(row: CallRow, business: Business) -> FlowState:
    """Where the flow of a call stands."""
    return FlowState.from_json(restore(row.snapshot).flow_json, business)


async def waiting(store: Store, book: Flows, place: PlaceInLine) -> WaitOn | LeaveLine:
    """What who waits hears next. Why they leave is written before they do. Raises: `memory.errors`."""
    row = await store.get_call(place.call_sid)
    business = None if row is None else await as_begun(book, store, row)
    if row is None or business is None or row.status is CallStatus.ACTIVE:
        return WaitOn()  # that it has left its stream is not written yet
    flow = flow_of(row, business)
    is_by_keys = row.status is CallStatus.FAILED and flow.is_away()
    if not (is_by_keys or row.status is CallStatus.TRANSFERRED) or place.leg not in (0, flow.trip.no):
        return LeaveLine("over")
    told = engine.held(business, flow, engine.InLine(place.position, place.waited_s, place.key))
    if isinstance(told, engine.Hold):
        return WaitOn(told.text, told.language, bool(told.music), told.leave, told.for_s)
    if flow.trip.came != told.value:
        await _keep(store, row, engine.leaving(flow, told))
    return LeaveLine(told.value)


async def _keep(store: Store, row: CallRow, flow: FlowState) -> None:
    """Nothing but the flow's state changes. Somebody who was faster has written the same, or moved the call on."""
    kept = moved(row.snapshot, flow, restore(row.snapshot).opening)
    if row.status is CallStatus.FAILED:  # it goes on by keys
        await store.save_after_end(row.call_sid, kept)
        return
    await store.return_call(row.call_sid, row.snapshot, kept, CallStatus.TRANSFERRED)


async def hold_music(
    store: Store, book: Flows, piece: MusicPiece, read: Callable[[str], bytes]
) -> bytes | None:
    """Some of the sound that who waits hears, as a WAV file; None: there is none. Raises: `memory.errors`."""
    row = await store.get_call(piece.call_sid)
    business = None if row is None else await as_begun(book, store, row)
    if row is None or business is None:
        return None
    told = engine.held(business, flow_of(row, business), engine.InLine())
    if not isinstance(told, engine.Hold) or not told.music:
        return None
    try:
        ulaw = await asyncio.to_thread(read, told.music)
    except (OSError, BadAudioFile) as error:
        log.warning("hold_music_unreadable", error=type(error).__name__)
        return None
    return as_wav(piece_of(ulaw, piece.from_s, piece.for_s)) if ulaw else None


def piece_of(ulaw: bytes, from_s: int, for_s: int) -> bytes:
    """Some seconds of a sound that begins again where it ends."""
    start, length = from_s * RATE_HZ % len(ulaw), for_s * RATE_HZ
    return (ulaw[start:] + ulaw * (length // len(ulaw) + 1))[:length]


def as_wav(ulaw: bytes) -> bytes:
    """µ-law 8 kHz as a WAV file, 16 bits."""
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE_HZ)
        file.writeframes(ulaw_to_pcm16(ulaw))
    return made.getvalue()
