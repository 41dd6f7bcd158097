"""Summaries by a chat model, of a server that speaks `/chat/completions` over a real socket."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from memory.costs import chat_usd
from memory.jobs import JobTools, process_page, refresh_thread
from memory.model import Exchange, Owner, Page
from memory.store import AudioPaths, Store
from memory.store_costs import CostKey
from memory.summarise import ChatModel, ChatSummariser, extract_page

ANA = Owner("bakery", "+12025550111")
SAID = ("Two loaves for Tuesday, but no nuts. My name is Oksana.", "That is 12.50, not before ten.")
AT = datetime(2026, 11, 30, tzinfo=UTC)
USAGE = {"prompt_tokens": 120, "completion_tokens": 20, "total_tokens": 140}


class ChatDouble:
    """Answers every request with `answer`; keeps what it was asked."""

    def __init__(self) -> None:
        self.answer = "The caller orders bread."
        self.usage: dict[str, int] | None = USAGE
        self.status = 200
        self.asked: list[dict[str, Any]] = []
        double = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                double.asked.append({"path": self.path, **json.loads(self.rfile.read(length))})
                body = json.dumps(double.body()).encode()
                self.send_response(double.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def body(self) -> dict[str, Any]:
        if self.status != 200:
            return {"error": {"message": "broken"}}
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": self.answer},
        }
        made = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        return made if self.usage is None else {**made, "usage": self.usage}


@pytest.fixture
def chat() -> Iterator[ChatDouble]:
    double = ChatDouble()
    thread = threading.Thread(target=double.server.serve_forever, args=(0.01,))
    thread.start()
    yield double
    double.server.shutdown()
    thread.join()
    double.server.server_close()


def summariser(chat: ChatDouble) -> ChatSummariser:
    return ChatSummariser(ChatModel("gpt-5.4-mini", "none", chat.url))


async def test_what_the_model_dropped_of_either_side_is_appended(chat: ChatDouble) -> None:
    made = summariser(chat)
    summary = await made.page(*SAID)
    for fact in ("Two", "Tuesday", "no nuts", "Oksana", "12.50", "not before ten"):
        assert fact in summary.text
    assert summary.text.startswith("The caller orders bread.")
    (asked,) = chat.asked
    assert (asked["path"], asked["model"]) == ("/v1/chat/completions", "gpt-5.4-mini")
    assert "Oksana" in asked["messages"][1]["content"]
    assert (await made.page("", "")).text == ""
    assert len(chat.asked) == 1
    await made.close()


async def test_a_summary_that_has_all_is_left_alone(chat: ChatDouble) -> None:
    chat.answer = "Oksana wants two loaves for Tuesday, no nuts, at 12.50; not before ten."
    made = summariser(chat)
    assert (await made.page(*SAID)).text == chat.answer
    await made.close()


async def test_it_costs_what_the_server_counted_else_an_estimate(chat: ChatDouble) -> None:
    made = summariser(chat)
    told = (await made.page(*SAID)).charge
    chat.usage = None
    untold = (await made.page(*SAID)).charge
    await made.close()
    assert told is not None and untold is not None
    assert (told.usd, told.is_estimate) == (chat_usd(120, 20, "gpt-5.4-mini"), False)
    assert untold.is_estimate
    assert untold.input_tokens > 60 and untold.output_tokens == 6


@pytest.mark.parametrize(("status", "answer"), [(400, "x"), (200, "")])
async def test_a_model_that_fails_is_replaced_by_extraction(
    chat: ChatDouble, status: int, answer: str
) -> None:
    chat.status, chat.answer = status, answer
    made = summariser(chat)
    summary = await made.page(*SAID)
    await made.close()
    assert summary.text == extract_page(*SAID)
    assert (summary.charge is None) == (status != 200)


async def test_summaries_count_as_their_calls_and_their_months(chat: ChatDouble, store: Store) -> None:
    """A page's and its thread's; made again, paid again."""
    made = summariser(chat)
    tools = JobTools(store, made)
    await store.open_call("CA1", ANA.business_id, ANA.caller, "+12025550100", "hash")
    page_id = await store.commit_page(ANA, Exchange("CA1", 1, *SAID), AudioPaths())
    assert page_id is not None
    for _ in range(2):
        await process_page(tools, page_id)
    (thread,) = await store.threads_of(ANA, [page_id])
    await refresh_thread(tools, thread.thread_id)
    await made.close()
    (page,) = await store.pages_by_id(ANA, [page_id])
    assert "no nuts" in page.summary
    once = chat_usd(120, 20, "gpt-5.4-mini")
    assert await store.spent_in_call("bakery", "CA1") == pytest.approx(2 * once)
    (summaries,) = await store.costs_by("bakery", CostKey.KIND, "UTC", None, None)
    assert (summaries.key, summaries.input_tokens, summaries.output_tokens) == ("summary", 240, 40)
    assert "no nuts" in (await store.threads_of(ANA, [page_id]))[0].summary


async def test_a_thread_keeps_what_its_pages_told(chat: ChatDouble) -> None:
    def page(number: int, summary: str) -> Page:
        ids = (number, "CA1", number)
        texts = ("", "", summary, "", "")
        return Page(*ids, *texts, 0, 0, False, "", AT)

    made = summariser(chat)
    summary = await made.thread(
        [page(1, "Caller: no nuts, please."), page(2, "Caller: for Tuesday at nine.")]
    )
    await made.close()
    assert summary.text == "The caller orders bread. Caller: no nuts, please. Caller: for Tuesday at nine."
