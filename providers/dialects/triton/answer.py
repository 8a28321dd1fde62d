"""Decodes the responses of Triton's generate extension, streamed or not, into the common completion shape.

Responses have no finish reason, and streams do not mark their last event. A stream is complete if its body ends after a
complete event.

Sources: triton-inference-server/server `docs/protocol/extension_generate.md`; NVIDIA/TensorRT-LLM
`tensorrt_llm_bls/config.pbtxt` and `model_instance_state.cc`: each event of a stream counts only its own tokens, and
the text includes the stop word. November 2026.
"""

from collections.abc import Iterable, Iterator

import orjson

from providers.completion import Chunk, Completion, StreamEvent, Usage, count_of, partial_usage, reported_usage
from providers.dialect import UpstreamRequest
from providers.dialects.shared.decode_stream import NOTHING, event_object
from providers.dialects.shared.errors import failure_in_body, is_error
from providers.dialects.shared.prompt import guess_finish
from providers.dialects.shared.read_json import json_object, malformed
from providers.emulation.collect_stream import Gatherer
from providers.emulation.stop_strings import StopScanner
from providers.failure import UpstreamError
from providers.framing.parse_sse import SSEParser
from providers.json_types import JsonObject, JsonValue
from providers.request_fields import STOP_STRING


def decode_answer(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a complete 2xx body. Raises UpstreamError."""
    reader, gatherer = TritonReader(sent), Gatherer(1)
    for events in (reader.response(json_object(body)), reader.ending()):
        for event in events:
            gatherer.add(event)
    return gatherer.completion()


_END_OF_BODY = "\n"
"""The name of the event that stands for the end of the body. No event of a stream can have this name."""


class UntilEnd:
    """The `Frames` of server-sent events, with an additional event for the end of the body."""

    __slots__ = ("_events",)

    def __init__(self) -> None:
        self._events = SSEParser()

    def only(self, data: bytes) -> tuple[str, bytes] | None:
        return self._events.only(data)

    def feed(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        return self._events.feed(data)

    def finish(self) -> Iterator[tuple[str, bytes]]:
        yield from self._events.finish()
        yield _END_OF_BODY, b""


class TritonReader:
    """The `Reader` of Triton's events."""

    __slots__ = ("_began", "_generated", "_limit", "_prompt", "_scanner", "_target", "complete")

    def __init__(self, sent: UpstreamRequest) -> None:
        body = orjson.loads(sent.body)
        stops = tuple(body.get("stop_words", ()))
        self.complete = self._began = False
        self._limit: int = body["max_tokens"]
        self._target = sent.target
        self._scanner = StopScanner(stops, STOP_STRING in sent.emulated) if stops else None
        self._prompt: int | None = None
        self._generated: int | None = None

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        if name != _END_OF_BODY:
            return self.response(event_object(payload))
        self.complete = self._began
        return self.ending() if self._began else NOTHING

    def response(self, answer: JsonObject) -> Iterable[StreamEvent]:
        """Return the common events of one JSON response. Raises UpstreamError."""
        if is_error(answer):
            raise UpstreamError(failure_in_body(self._target.profile, answer))
        text = _single(answer.get("text_output"))
        if not isinstance(text, str):
            raise malformed("has no text")
        self._began = True
        prompt = count_of(_single(answer.get("num_input_tokens")))
        generated = count_of(_single(answer.get("num_output_tokens")))
        if prompt is not None:
            self._prompt = prompt
        if generated is not None:
            self._generated = generated + (self._generated or 0)
        return self._scanned(Chunk(text=text)) if text else NOTHING

    def ending(self) -> Iterator[StreamEvent]:
        """Yield the finish reason and the token counts. The engine itself lowers the limit to the space that is left in
        the context window."""
        finish = guess_finish(self._target, self._limit, self._prompt, self._generated)
        yield from self._scanned(Chunk(finish_reason=finish))
        usage = reported_usage(self._prompt, self._generated)
        if usage is not None:
            yield usage

    def usage_so_far(self) -> Usage | None:
        return partial_usage(self._prompt, self._generated)

    def _scanned(self, chunk: Chunk) -> Iterator[StreamEvent]:
        return iter((chunk,)) if self._scanner is None else iter(self._scanner.feed(chunk))


def _single(value: JsonValue) -> JsonValue:
    """Return the element of an output tensor, which may be nested in lists of one element."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value
