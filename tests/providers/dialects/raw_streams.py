"""Streams of several wire formats as raw bytes, read in chunks of many sizes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pytest

from providers.completion import StreamEvent
from providers.dialect import UpstreamRequest
from providers.failure import Failure, FailureKind, UpstreamError
from tests.providers.dialects.bedrock.kit import event as aws_event
from tests.providers.dialects.kit import chat_request, chunks, sent_for, target_of, text_request

DONE: Final = b"data: [DONE]\n\n"
STOP: Final = b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
ENDED: Final = b'data: {"id":"c","choices":[{"index":0,"text":"","finish_reason":"stop"}]}\n\n'


def said(text: bytes, index: bytes = b"0") -> bytes:
    return b'data: {"id":"c","choices":[{"index":%b,"delta":{"content":"%b"},"finish_reason":null}]}\n\n' % (
        index,
        text,
    )


def completed(text: bytes, index: bytes = b"0") -> bytes:
    return b'data: {"id":"c","choices":[{"index":%b,"text":"%b","finish_reason":null}]}\n\n' % (index, text)


def chat(row: str = "openai", **params: object) -> UpstreamRequest:
    return sent_for(chat_request(**params), target_of(row))


def legacy(row: str = "fireworks", **params: object) -> UpstreamRequest:
    return sent_for(text_request(**params), target_of(row))


def played(sent: UpstreamRequest, stream: bytes, size: int = 4096) -> tuple[list[StreamEvent], Failure | None]:
    """Return the events of a stream that is fed in chunks, including runs of text, and the failure that ended it."""
    decoder = sent.target.dialect.stream(sent)
    lead = getattr(decoder, "lead", lambda piece: None)
    events: list[StreamEvent] = []
    try:
        for start in range(0, len(stream), size):
            piece = stream[start : start + size]
            if (found := lead(piece)) is not None:
                events += found[0].chunks()
                piece = found[1]
            for event in decoder.feed(piece) if piece else ():
                events.append(event)
        for event in decoder.finish():
            events.append(event)
    except UpstreamError as error:
        return events, error.failure
    assert decoder.complete
    return events, None


def pieces_of(stream: bytes) -> list[int]:
    """Return chunk sizes: one byte, every size up to beyond an event, and the whole stream."""
    return [*range(1, 8), *range(8, 160, 13), len(stream)]


def told(sent: UpstreamRequest, *parts: bytes, kind: FailureKind = FailureKind.MALFORMED) -> list[StreamEvent]:
    """Assert that a stream breaks for any chunk size, and return its events."""
    stream = b"".join(parts)
    found = [played(sent, stream, size) for size in pieces_of(stream)]
    assert {failure and failure.kind for _, failure in found} == {kind}
    assert all(events == found[0][0] for events, _ in found)
    return found[0][0]


def good(sent: UpstreamRequest, *parts: bytes) -> list[StreamEvent]:
    """Assert that a stream ends well for any chunk size, and return its events."""
    stream = b"".join(parts)
    found = [played(sent, stream, size) for size in pieces_of(stream)]
    assert [failure for _, failure in found if failure] == []
    assert all(events == found[0][0] for events, _ in found)
    return found[0][0]


def ends(events: list[StreamEvent]) -> list[tuple[int, str]]:
    return [(chunk.index, chunk.finish_reason) for chunk in chunks(events) if chunk.finish_reason]


def candidate(text: bytes, rest: bytes = b"") -> bytes:
    return b'data: {"candidates":[{"content":{"role":"model","parts":[{"text":"%b"}]}%b}]}\r\n\r\n' % (text, rest)


OVER: Final = b'data: {"candidates":[{"finishReason":"STOP","index":0}]}\r\n\r\n'


def gemini() -> UpstreamRequest:
    return chat("gemini")


CLAUDE_HEAD: Final = (
    b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":1}}}\n\n'
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
    b'"content_block":{"type":"text","text":""}}\n\n'
)
CLAUDE_END: Final = (
    b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},'
    b'"usage":{"output_tokens":1}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)
COHERE_END: Final = b'event: message-end\ndata: {"type":"message-end","delta":{"finish_reason":"COMPLETE"}}\n\n'


def claude(text: bytes) -> bytes:
    event = b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%b"}}' % text
    return b"event: content_block_delta\ndata: %b\n\n" % event


def cohere(text: bytes) -> bytes:
    event = b'{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"%b"}}}}' % text
    return b"event: content-delta\ndata: %b\n\n" % event


def line(text: bytes) -> bytes:
    return b'{"message":{"role":"assistant","content":"%b"},"done":false}\n' % text


def responses(text: bytes) -> bytes:
    event = b'{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"%b"}' % text
    return b"event: response.output_text.delta\ndata: %b\n\n" % event


RESPONSES_END: Final = (
    b'event: response.completed\ndata: {"type":"response.completed","response":{"status":"completed","output":[]}}\n\n'
)


def converse(text: bytes) -> bytes:
    return aws_event("contentBlockDelta", b'{"contentBlockIndex":0,"delta":{"text":"%b"}}' % text)


CONVERSE_END: Final = (
    b'{"contentBlockIndex":0}',
    b'{"stopReason":"end_turn"}',
    b'{"usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}',
)


def native_responses() -> UpstreamRequest:
    call = chat()
    object.__setattr__(call, "native", True)
    return call


@dataclass(frozen=True)
class Wire:
    """A wire format: the call, the start of a stream, an event of text, and the end."""

    call: Callable[[], UpstreamRequest]
    head: bytes
    say: Callable[[bytes], bytes]
    end: bytes


WIRES: Final = {
    "openai": Wire(chat, b"", said, STOP + DONE),
    "completions": Wire(legacy, b"", completed, ENDED + DONE),
    "anthropic": Wire(lambda: chat("anthropic"), CLAUDE_HEAD, claude, CLAUDE_END),
    "gemini": Wire(gemini, b"", candidate, OVER),
    "bedrock": Wire(
        lambda: chat("bedrock"),
        b"",
        converse,
        b"".join(map(aws_event, ("contentBlockStop", "messageStop", "metadata"), CONVERSE_END)),
    ),
    "responses": Wire(native_responses, b"", responses, RESPONSES_END),
    "cohere": Wire(lambda: chat("cohere"), b"", cohere, COHERE_END),
    "ollama": Wire(
        lambda: chat("ollama_native"), b"", line, b'{"message":{"content":""},"done":true,"done_reason":"stop"}\n'
    ),
}
every_wire = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
