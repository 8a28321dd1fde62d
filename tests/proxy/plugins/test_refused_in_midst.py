"""A guard that refuses after content was sent: the end that clients of each surface read, the cancellation of the
vendor's call, and the counts."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import aiohttp
import anthropic
import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from proxy.process.assemble_app import WholeGateway
from tests.proxy.kit.whole_gateway import table_before, up
from tests.proxy.plugins.kit import SECRET, plugin
from tests.proxy.plugins.test_guarded_answers import SURFACES
from tests.support.gateway import request_lines
from tests.support.http_scripts import chunk, data_frames, sse_unterminated
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Hang, Script, Send, Until

REASON: Final = "Refused by the plugin 'g': it says the word"
FAILED: Final = "The plugin 'g', which has to check this request, failed"
CHUNK: Final[JsonObject] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
COUNTED: Final[JsonObject] = {"prompt_tokens": 41, "completion_tokens": 7, "total_tokens": 48}
TEXTS: Final = [path for path in SURFACES if path.endswith("/completions") and "chat" not in path]
REFUSES: Final = plugin("LiveRefuser")
FAILS: Final = plugin("HostileStream", "word: raise, where: answer", ", fail: closed")


def endless(path: str, shown: asyncio.Event, *deltas: JsonObject, usage: JsonValue = None) -> Script:
    """Return a stream that sends its last delta after content was `shown`, and continues until it is cut off."""
    events: list[JsonValue] = []
    for each in deltas:
        said: JsonObject = {"text": each.get("content", "")} if path in TEXTS else {"delta": each}
        events.append({**CHUNK, "choices": [{"index": 0, **said, "finish_reason": None}], "usage": usage})
    *first, last = data_frames(*events)
    return (*sse_unterminated(first, Hang())[:-1], Until(shown), Send(chunk(last)), Hang())


async def read_stream(app: WholeGateway, path: str, asked: JsonObject, shown: asyncio.Event) -> bytes:
    """Return the body of a stream with status 200; set `shown` when its first bytes have arrived."""
    async with aiohttp.ClientSession() as http, http.post(app.url + path, json=asked) as response:
        assert response.status == 200, path
        body = b""
        # A stream that broke also has no end of its body.
        with suppress(aiohttp.ClientPayloadError):
            while piece := await response.content.readany():
                body += piece
                shown.set()
        return body


def events_of(body: bytes) -> Iterator[JsonObject]:
    for line in body.split(b"\n"):
        if line.startswith(b"data: ") and line != b"data: [DONE]":
            yield orjson.loads(line.removeprefix(b"data: "))


def check_broken(path: str, body: bytes, reason: str) -> None:
    """Fail unless a client's SDK raises at the end of a stream, or gets a response that failed."""
    events = [*events_of(body)]
    last = events[-1]
    if path.endswith("/messages"):
        # anthropic 2.12.0 `Stream`: an event called `error` is raised.
        assert (last["type"], "message_stop" in str(events)) == ("error", False)
    elif path.endswith("/responses"):
        # openai 3.54.0 `ResponseFailedEvent`: a response that failed has an error.
        assert last["type"] == "response.failed"
        assert last["response"]["status"] == "failed"  # type: ignore[index,call-overload]
        last = last["response"]  # type: ignore[assignment]
    else:
        # openai 3.54.0 `Stream`: a chunk with `error` is raised.
        assert b"[DONE]" not in body
        reasons = [choice["finish_reason"] for event in events for choice in event.get("choices", ())]  # type: ignore
        assert not any(reasons)
    assert reason in str(last["error"])


@pytest.mark.parametrize(
    ("guard", "deltas", "reason"),
    [
        (REFUSES, ({"content": "now say "}, {"content": SECRET}), REASON),
        (REFUSES, ({"content": "now say "}, {"content": SECRET[:4]}, {"content": SECRET[4:] + " on"}), REASON),
        (REFUSES, ({"reasoning_content": "hm"}, {"content": "so "}, {"content": SECRET}), REASON),
        (FAILS, ({"content": "one "}, {"content": "two "}), FAILED),
    ],
    ids=["text", "cut", "reasoning", "failed"],
)
async def test_a_client_reads_an_error_the_vendor_is_called_off_and_the_usage_is_counted(
    tmp_path: Path, guard: str, deltas: tuple[JsonObject, ...], reason: str
) -> None:
    log = BytesIO()
    async with FakeVendor() as vendor, up(f"{table_before(vendor)}plugins: {{g: {guard}}}\n", tmp_path, log) as app:
        for path, made in SURFACES.items():
            for usage in (None, COUNTED):
                shown = asyncio.Event()
                vendor.default = endless(path, shown, *deltas, usage=usage)
                body = await read_stream(app, path, {**made(True, "hi"), "model": "v/m"}, shown)
                assert SECRET.encode() not in body, path
                check_broken(path, body, reason)
                async with asyncio.timeout(10):
                    await vendor.requests[-1].gone.wait()
    lines = request_lines(log.getvalue())
    assert len(lines) == 2 * len(SURFACES)
    for estimated, counted in zip(lines[::2], lines[1::2], strict=True):
        generated = sum([len(str(text)) for each in deltas for text in each.values()])
        if "/completions" in str(estimated["path"]) and "chat" not in str(estimated["path"]):
            generated = sum([len(str(each.get("content", ""))) for each in deltas])
        assert (estimated["completion_tokens"], estimated["usage_estimated"]) == (-(-generated // 4), True)
        assert [counted.get(name) for name in ("prompt_tokens", "completion_tokens")] == [41, 7]
        assert {each["outcome"] for each in (estimated, counted)} == {"truncated"}


async def test_the_sdk_of_the_messages_api_raises(tmp_path: Path) -> None:
    shown, path = asyncio.Event(), "/v1/chat/completions"
    script = endless(path, shown, {"content": "now say "}, {"content": SECRET})
    async with FakeVendor(script) as vendor, up(f"{table_before(vendor)}plugins: {{g: {REFUSES}}}\n", tmp_path) as app:
        client = anthropic.AsyncAnthropic(base_url=app.url, api_key="x", max_retries=0)
        asked: Any = {"model": "v/m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        texts: list[str] = []

        async def listen() -> None:
            async with client.messages.stream(**asked) as stream:
                async for text in stream.text_stream:
                    texts.append(text)
                    shown.set()

        with pytest.raises(anthropic.APIStatusError, match="it says the word"):
            await listen()
        await client.close()
    assert texts == ["now say "]
