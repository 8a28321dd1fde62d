"""One response is read completely and parsed, before thousands are only counted: it must have all of the upstream's
text."""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import orjson

from providers.framing.parse_aws_eventstream import FrameParser
from tests.bench.load import LAST_CHUNK, OK, WrongAnswer, shown, whole_answer
from tests.bench.steady import Expected, unframed
from tests.bench.traffic import Ask, tokens
from tests.bench.vendors import Wire

WAIT = 60.0
"""Seconds for one response."""

PACE = 2
"""The most milliseconds between two chunks. At full pace a long stream would take as long as under load. Without a
pace, chunks would arrive together, and a proxy would frame them differently."""

SLACK = 16
"""Bytes by which non-streaming responses of one program may differ: a counter of requests in an id, a time."""


async def exchange(port: int, request: bytes, stream: bool) -> bytes:
    """Send a request and read its response to the end. Raise WrongAnswer, or TimeoutError after `WAIT`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = b""
    try:
        async with asyncio.timeout(WAIT):
            writer.write(request)
            while piece := await reader.read(2**18):
                data += piece
                if not data.startswith(OK[: len(data)]):
                    break
                if data.endswith(LAST_CHUNK) if stream else whole_answer(data):
                    return data
    finally:
        writer.close()
    raise WrongAnswer(shown(data))


def _openai_delta(delta: Mapping[str, Any]) -> str:
    """Return the text of a delta, or the arguments of its call."""
    calls = delta.get("tool_calls")
    return str(calls[0]["function"]["arguments"] if calls else delta.get("content") or "")


def _openai_text(body: bytes) -> list[str]:
    events = [orjson.loads(each) for each in re.findall(rb"^data: ?(\{.*\})\s*$", body, re.MULTILINE)]
    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    reasoning = [delta["reasoning_content"] for delta in deltas if delta.get("reasoning_content")]
    return reasoning or [text for delta in deltas if (text := _openai_delta(delta))]


_CLAUDE_TEXTS = ("text", "thinking", "partial_json")


def _claude_text(body: bytes) -> list[str]:
    events = [orjson.loads(each) for each in re.findall(rb"^data: ?(\{.*\})\s*$", body, re.MULTILINE)]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta" and not event["index"]]
    return [text for delta in deltas for name in _CLAUDE_TEXTS if (text := delta.get(name))]


def _amazon_text(body: bytes) -> list[str]:
    payloads = [orjson.loads(payload) for _, payload in FrameParser().feed(body)]
    return [payload["delta"]["text"] for payload in payloads if "delta" in payload]


TEXTS: Mapping[str, Callable[[bytes], list[str]]] = {
    "openai": _openai_text,
    "anthropic": _claude_text,
    "bedrock": _amazon_text,
}
"""The function that reads the parts of the text from a stream of each dialect."""


def expected_stream(data: bytes, wire: Wire, ask: Ask) -> Expected:
    """Return the expectation for each further stream. Raise WrongAnswer unless this one has all of the text and ends
    well."""
    body = unframed(data)
    if "".join(TEXTS[wire.name](body[:-2])) != "".join(tokens(ask.flavour, ask.chunks)) or wire.done not in body:
        raise WrongAnswer(shown(data))
    size = len(body)
    return Expected(size, size // 100 + SLACK, len(data), wire.event, body.count(wire.event), wire.done)


def expected_whole(data: bytes) -> Expected:
    """Return the expectation for each further non-streaming response. Raise WrongAnswer unless this one is JSON."""
    _, _, body = data.partition(b"\r\n\r\n")
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        raise WrongAnswer(shown(data)) from None
    return Expected(len(body), SLACK, len(data))


async def probe(port: int, request: bytes, wire: Wire, ask: Ask) -> Expected:
    """Send one request, and return the expectation for every further response. `wire` is the dialect of the program's
    responses.

    Raise WrongAnswer for any other text than the upstream's.
    """
    quick = replace(ask, pace=min(ask.pace, PACE)).mark.encode().ljust(len(ask.mark))
    data = await exchange(port, request.replace(ask.mark.encode(), quick), stream=bool(ask.chunks))
    if ask.chunks:
        return expected_stream(data, wire, ask)
    if b"the river runs south to the sea " * 20 not in data:
        raise WrongAnswer(shown(data))
    return expected_whole(data)
