"""Queries go before pages, and those that wait together are encoded together."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from memory.embed_queue import MICRO_BATCH_TEXTS, EmbedQueue
from memory.embed_wire import EmbedRequest
from memory.errors import EncodingFailed


class Encoder:
    """Gives each text's length as its vector; keeps what it was given; waits at the first until it is let go."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.begun = threading.Event()
        self.go = threading.Event()

    def __call__(self, texts: list[str]) -> Sequence[int]:
        self.batches.append(texts)
        self.begun.set()
        assert self.go.wait(10)
        if "bad" in texts:
            raise ValueError("bad text")
        return [len(text) for text in texts]


async def behind_a_first(encoder: Encoder, *requests: EmbedRequest) -> list[list[int] | BaseException]:
    """The answers to requests that all come while another is being encoded."""
    queue: EmbedQueue[int] = EmbedQueue()
    server = asyncio.create_task(queue.serve(encoder))
    first = asyncio.create_task(queue.ask(EmbedRequest(["first"])))
    await asyncio.to_thread(encoder.begun.wait, 10)
    asked = [asyncio.create_task(queue.ask(request)) for request in requests]
    await asyncio.sleep(0)  # each has put its request into the queue
    encoder.go.set()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert await first == [5]
    server.cancel()
    return answers


async def test_requests_that_wait_together_are_encoded_together_and_each_gets_its_own() -> None:
    encoder = Encoder()
    answers = await behind_a_first(encoder, EmbedRequest(["a", "bb"]), EmbedRequest(["ccc"]))
    assert answers == [[1, 2], [3]]
    assert encoder.batches == [["first"], ["a", "bb", "ccc"]]


async def test_queries_go_before_pages_that_came_earlier_and_are_not_mixed_with_them() -> None:
    encoder = Encoder()
    await behind_a_first(encoder, EmbedRequest(["page"]), EmbedRequest(["query"], urgent=True))
    assert encoder.batches == [["first"], ["query"], ["page"]]


async def test_a_micro_batch_is_bounded_and_keeps_the_order_of_arrival() -> None:
    encoder = Encoder()
    requests = [EmbedRequest([f"text {number:02}"]) for number in range(MICRO_BATCH_TEXTS + 3)]
    await behind_a_first(encoder, *requests)
    assert [len(batch) for batch in encoder.batches] == [1, MICRO_BATCH_TEXTS, 3]
    assert [text for batch in encoder.batches[1:] for text in batch] == [one.texts[0] for one in requests]


async def test_a_request_of_more_texts_than_a_micro_batch_is_answered_whole() -> None:
    encoder = Encoder()
    texts = [str(number) for number in range(3 * MICRO_BATCH_TEXTS)]
    assert await behind_a_first(encoder, EmbedRequest(texts)) == [[len(text) for text in texts]]


async def test_one_bad_text_fails_its_own_request_only() -> None:
    encoder = Encoder()
    good, bad, other = await behind_a_first(
        encoder, EmbedRequest(["good"]), EmbedRequest(["bad"]), EmbedRequest(["other"])
    )
    assert (good, other) == ([4], [5])
    assert isinstance(bad, EncodingFailed)
    assert encoder.batches[1:] == [["good", "bad", "other"], ["good"], ["bad"], ["other"]]


async def test_an_asker_who_left_costs_the_others_nothing() -> None:
    encoder = Encoder()
    queue: EmbedQueue[int] = EmbedQueue()
    server = asyncio.create_task(queue.serve(encoder))
    gone = asyncio.create_task(queue.ask(EmbedRequest(["gone"])))
    await asyncio.to_thread(encoder.begun.wait, 10)
    gone.cancel()
    stays = asyncio.create_task(queue.ask(EmbedRequest(["stays"])))
    await asyncio.sleep(0)
    encoder.go.set()
    assert await stays == [5]
    with pytest.raises(asyncio.CancelledError):
        await gone
    server.cancel()
