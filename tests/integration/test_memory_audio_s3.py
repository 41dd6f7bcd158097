"""Audio files on an S3 server (moto in a thread, over real sockets)."""

import boto3  # type: ignore[import-untyped]
import pytest
from moto.server import ThreadedMotoServer

from memory.audio_store import AudioStore
from memory.errors import StorageUnavailable

KEYS = {"key": "test", "secret": "test"}


async def test_files_go_to_a_bucket_and_come_back() -> None:
    server = ThreadedMotoServer(port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        ).create_bucket(Bucket="calls")
        audio = AudioStore("s3://calls/audio", **KEYS, client_kwargs={"endpoint_url": endpoint})
        await audio.put("bakery/CA1/00001-user.wav", b"RIFF")
        assert await audio.get("bakery/CA1/00001-user.wav") == b"RIFF"
        assert await audio.get("bakery/CA1/00002-user.wav") is None
        lost = AudioStore("s3://nobucket/audio", **KEYS, client_kwargs={"endpoint_url": endpoint})
        with pytest.raises(StorageUnavailable):
            await lost.put("a.wav", b"RIFF")
    finally:
        server.stop()
