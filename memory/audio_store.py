"""Audio files of pages, behind any fsspec URL (`file://`, `s3://`): WAV with µ-law at 8 kHz, so that people can play
them. All work is off the event loop.
"""

import asyncio
import contextlib
import os
import struct
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import fsspec
from fsspec.implementations.local import LocalFileSystem

from memory.errors import StorageUnavailable
from memory.model import Exchange

ULAW_RATE_HZ = 8_000
WAVE_FORMAT_MULAW = 7
_HEADER = struct.Struct("<4sI4s 4sIHHIIHHH 4sII 4sI")


class AudioStore:
    """Files below one URL. Paths are relative to it, with `/` between their parts."""

    def __init__(self, url: str, **options: Any) -> None:
        """`options` go to the file system (e.g. `endpoint_url` of an S3 server)."""
        self._fs, root = fsspec.core.url_to_fs(url, **options)
        self._root = str(root).rstrip("/")

    async def put(self, path: str, data: bytes) -> None:
        """Write a file. When this returns, it survives a power cut (locally) or its PUT was completed.

        Raises: `StorageUnavailable`.
        """
        try:
            await self._off_loop(self._put, path, data)
        except FileNotFoundError as error:  # no such bucket
            raise StorageUnavailable("audio store: no such place") from error

    async def get(self, path: str) -> bytes | None:
        """A file's content, None if there is none. Raises: `StorageUnavailable`."""
        try:
            return bytes(await self._off_loop(self._fs.cat_file, self._full(path)))
        except FileNotFoundError:
            return None

    async def delete(self, path: str) -> None:
        """Delete a file, with all its versions where the store keeps several; one that is not there is no error.

        Raises: `StorageUnavailable`.
        """
        with contextlib.suppress(FileNotFoundError):
            await self._off_loop(self._delete, path)

    def _delete(self, path: str) -> None:
        full = self._full(path)
        if not hasattr(self._fs, "call_s3"):
            self._fs.rm_file(full)
            return
        bucket, key, _ = self._fs.split_path(full)
        listed = self._fs.call_s3("list_object_versions", Bucket=bucket, Prefix=key)
        for version in (*listed.get("Versions", ()), *listed.get("DeleteMarkers", ())):
            if version["Key"] == key:  # the list also has keys that only begin like this one
                self._fs.call_s3("delete_object", Bucket=bucket, Key=key, VersionId=version["VersionId"])
        self._fs.invalidate_cache(full)

    async def untouched_since(self, when: datetime) -> list[str]:
        """All files last written before this time, unfinished ones too. Raises: `StorageUnavailable`."""
        try:
            return list(await self._off_loop(self._untouched_since, when))
        except FileNotFoundError:  # nothing was ever kept
            return []

    def _untouched_since(self, when: datetime) -> list[str]:
        found = self._fs.find(self._root, detail=True)
        return [name[len(self._root) + 1 :] for name, info in found.items() if _written_at(info) < when]

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}"

    def _put(self, path: str, data: bytes) -> None:
        if isinstance(self._fs, LocalFileSystem):
            _put_durably(Path(self._full(path)), data)
        else:
            self._fs.pipe_file(self._full(path), data)

    async def _off_loop(self, work: Any, *arguments: Any) -> Any:
        try:
            return await asyncio.to_thread(work, *arguments)
        except FileNotFoundError:
            raise
        except Exception as error:  # fsspec's drivers each raise their own kinds
            raise StorageUnavailable(f"audio store: {type(error).__name__}") from error


def audio_path(business_id: str, exchange: Exchange, side: str) -> str:
    """Where one side (`user` or `reply`) of an exchange lies. Names from outside cannot climb out of their folder."""
    folder = "/".join(quote(part, safe="").replace(".", "%2E") for part in (business_id, exchange.call_id))
    return f"{folder}/{exchange.exchange_no:05d}-{side}.wav"


def business_of(path: str) -> str:
    """Whose file it is that lies there."""
    return unquote(path.split("/", 1)[0])


def call_of(path: str) -> str:
    """The CallSid of the call that the file is of; empty where none of ours lies."""
    parts = path.split("/")
    return unquote(parts[1]) if len(parts) > 2 else ""


def _written_at(info: Mapping[str, Any]) -> datetime:
    """Local file systems tell seconds, S3 a time."""
    when = info.get("LastModified", info.get("mtime"))
    return when if isinstance(when, datetime) else datetime.fromtimestamp(float(when or 0.0), UTC)


def ulaw_to_wav(ulaw: bytes) -> bytes:
    """A WAV file (format 7, mono, 8 kHz) around µ-law samples."""
    padding = b"\x00" if len(ulaw) % 2 else b""  # chunks are of even length
    header = _HEADER.pack(
        b"RIFF",
        _HEADER.size - 8 + len(ulaw) + len(padding),
        b"WAVE",
        b"fmt ",
        18,
        WAVE_FORMAT_MULAW,
        1,
        ULAW_RATE_HZ,
        ULAW_RATE_HZ,
        1,
        8,
        0,
        b"fact",
        4,
        len(ulaw),
        b"data",
        len(ulaw),
    )
    return header + ulaw + padding


def wav_to_ulaw(wav: bytes) -> bytes:
    """The µ-law samples of a file that `ulaw_to_wav` made. Raises: `ValueError` for any other."""
    if len(wav) < _HEADER.size:
        raise ValueError("not a WAV file of ours: too short")
    fields = _HEADER.unpack_from(wav)
    riff, wave, audio_format, length = fields[0], fields[2], fields[5], fields[-1]
    if (riff, wave, audio_format) != (b"RIFF", b"WAVE", WAVE_FORMAT_MULAW):
        raise ValueError("not a µ-law WAV file")
    return wav[_HEADER.size : _HEADER.size + length]


def _put_durably(path: Path, data: bytes) -> None:
    """Temporary file → fsync → rename → fsync of the folder: the file is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    with unfinished.open("wb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())
    unfinished.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
