"""Everything that a vendor can make large in its response, and the cost of reading it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import orjson

from providers.completion import Chunk, ContentLogprobs, TokenLogprob
from providers.dialect import UpstreamRequest
from providers.dialects.gemini.partial_arguments import ArgumentAssembler
from providers.dialects.shared.read_json import load_json
from providers.emulation.collect_stream import Gatherer
from providers.emulation.stop_strings import StopScanner
from providers.failure import UpstreamError
from providers.framing.parse_ndjson import NDJSONParser
from providers.framing.parse_sse import SSEParser
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import LogprobsWanted, Params
from tests.bench.dialects import STREAMS
from tests.bench.streams import words
from tests.providers.dialects.kit import chat_request, sent_for, target_of, text_request

Work = Callable[[], object]


def decode(sent: UpstreamRequest, pieces: Iterable[bytes]) -> int:
    """Return the number of events in a stream. An invalid event ends it."""
    decoder = sent.target.dialect.stream(sent)
    events = 0
    try:
        for piece in pieces:
            for _ in decoder.feed(piece):
                events += 1
        for _ in decoder.finish():
            events += 1
    except UpstreamError:
        return events
    return events


def cut(whole: bytes, size: int) -> list[bytes]:
    """Return the bytes in parts of `size` bytes."""
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def stream_work(name: str, form: str, size: int) -> Work:
    """Return the work of decoding a stream of `size` text chunks: in the vendor's reads, all at once or byte by
    byte."""
    stream = STREAMS[name]
    sent, pieces = stream.sent(), stream.write(words(size))
    whole = b"".join(pieces)
    fed = {"events": pieces, "at once": [whole], "in bytes": cut(whole, 1)}[form]
    return lambda: decode(sent, fed)


@dataclass(frozen=True, slots=True)
class Flood:
    """Bytes of a vendor in one shape. `work` returns the work at a size, `size` is the smaller size."""

    name: str
    work: Callable[[int], Work]
    size: int


@cache
def _sent(profile: str, chat: bool = True, model: str = "tiny", scored: bool = False) -> UpstreamRequest:
    params: Params = {"max_tokens": 1000}
    if scored:
        params["logprobs"] = LogprobsWanted(1, "content")
    asked = chat_request(**params) if chat else text_request("The sky", **params)
    return sent_for(replace(asked, stream=True), target_of(profile, model))


def _event(value: JsonValue, name: str = "") -> bytes:
    head = b"event: %b\n" % name.encode() if name else b""
    return head + b"data: " + orjson.dumps(value) + b"\n\n"


def _openai(delta: JsonObject, index: int = 0, finish: str | None = None) -> bytes:
    return _event({"id": "a", "choices": [{"index": index, "delta": delta, "finish_reason": finish}]})


def _openai_calls(count: int) -> Work:
    function: JsonObject = {"name": "f", "arguments": "{"}
    calls: list[JsonObject] = [{"index": n, "id": f"c{n}", "function": function} for n in range(count)]
    pieces = [_openai({"tool_calls": [call]}) for call in calls]
    return lambda: decode(_sent("openai"), [*pieces, _openai({}, 0, "tool_calls"), b"data: [DONE]\n\n"])


def _openai_choices(count: int) -> Work:
    pieces = [_openai({"content": "x"}, n, "stop") for n in range(count)]
    return lambda: decode(_sent("openai"), [*pieces, b"data: [DONE]\n\n"])


def _anthropic_arguments(count: int) -> Work:
    block: JsonObject = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    start = _event({"type": "content_block_start", "index": 0, "content_block": block})
    delta: JsonObject = {"type": "input_json_delta", "partial_json": "1"}
    piece = _event({"type": "content_block_delta", "index": 0, "delta": delta})
    return lambda: decode(_sent("anthropic"), [start, *[piece] * count])


def _gemini_arguments(count: int) -> Work:
    piece: list[JsonValue] = [{"jsonPath": "$.a", "stringValue": "x" * 50}]

    def work() -> None:
        given = ArgumentAssembler()
        for _ in range(count):
            given.add_partial(piece)
        given.complete()

    return work


def _gemini_bare(count: int) -> Work:
    return lambda: decode(_sent("gemini", model="gemini-2.5-flash"), [b"{}\n" * count])


def _gemini_bare_in_bytes(count: int) -> Work:
    text = b'{"a":"' + b"x" * count
    return lambda: decode(_sent("gemini", model="gemini-2.5-flash"), cut(text, 1))


def _sglang_new_only(scored: bool) -> Callable[[int], Work]:
    """Return events of a server that sends only new text, and counts tokens."""

    def make(count: int) -> Work:
        def event(number: int) -> bytes:
            meta: JsonObject = {"completion_tokens": number + 1, "finish_reason": None}
            if scored:
                meta["output_token_logprobs"] = [[-0.5, 7, "x" * 20]]
            return _event({"text": "x" * 20, "output_ids": [7], "meta_info": meta})

        pieces = [event(number) for number in range(count)]
        return lambda: decode(_sent("sglang_native", chat=False, scored=scored), pieces)

    return make


def _watsonx_tokens(count: int) -> Work:
    """Return events with tokens that were not requested, after a long prompt: both grow."""
    asked = text_request("x" * (500 * count), max_tokens=1000)
    sent = sent_for(replace(asked, stream=True), target_of("watsonx", "tiny"))
    result: JsonObject = {"generated_text": "x", "generated_tokens": [{"text": "x"}], "stop_reason": "not_finished"}
    return lambda: decode(sent, [_event({"results": [result]}, "message")] * count)


def _stops(stop: Callable[[int], str], piece: str) -> Callable[[int], Work]:
    """Return chunks that are, for a long time, the beginning of a stop sequence."""

    def make(count: int) -> Work:
        def work() -> None:
            scanner = StopScanner((stop(count), "zz"), keep=False)
            for _ in range(count):
                for _ in scanner.feed(Chunk(text=piece)):
                    pass

        return work

    return make


def _scored_stops(count: int) -> Work:
    """Return one chunk with all the tokens, which then leave one by one."""
    tokens = tuple([TokenLogprob("a", -1.0, (97,)) for _ in range(count)])
    first = Chunk(text="a" * count, logprobs=ContentLogprobs(tokens))

    def work() -> None:
        scanner = StopScanner(("a" * count + "b",), keep=False)
        for chunk in (first, *[Chunk(text="a")] * count):
            for _ in scanner.feed(chunk):
                pass

    return work


def _gathered(count: int) -> Work:
    def work() -> None:
        gatherer = Gatherer(1)
        for _ in range(count):
            gatherer.add(Chunk(text="x", logprobs=ContentLogprobs((TokenLogprob("x", -1.0),))))
        gatherer.add(Chunk(finish_reason="stop"))
        gatherer.completion()

    return work


def _framed(make: Callable[[], SSEParser | NDJSONParser], unit: bytes, size: int) -> Callable[[int], Work]:
    """Return the work of a frame parser that is fed with many of a unit, in reads of a size."""

    def work(count: int) -> Work:
        pieces = cut(unit * count, size)

        def feed() -> None:
            parser = make()
            for piece in pieces:
                for _ in parser.feed(piece):
                    pass

        return feed

    return work


def _nested_logprobs(count: int) -> Work:
    text = b'{"choices":[{"text":"x","finish_reason":"stop","logprobs":{"content":[%b]}}]}'
    body = text % b",".join([b'{"token":"x","logprob":-1,"top_logprobs":[{"token":"x","logprob":-1}]}'] * count)
    return lambda: load_json(body)


FLOODS: Sequence[Flood] = (
    Flood("calls of OpenAI's", _openai_calls, 800),
    Flood("choices of OpenAI's", _openai_choices, 800),
    Flood("arguments of Anthropic's", _anthropic_arguments, 1500),
    Flood("arguments of Gemini's in pieces", _gemini_arguments, 5000),
    Flood("bare texts of Google's", _gemini_bare, 3000),
    Flood("a bare text of Google's in bytes", _gemini_bare_in_bytes, 8000),
    Flood("SGLang's new text", _sglang_new_only(scored=False), 2000),
    Flood("SGLang's new tokens", _sglang_new_only(scored=True), 1200),
    Flood("watsonx's tokens", _watsonx_tokens, 1500),
    Flood("a stop that comes in characters", _stops(lambda n: "a" * 8 * n, "a" * 8), 1500),
    Flood("a stop that nearly comes", _stops(lambda n: "ab" * 50 + "c", "ab" * 10), 1200),
    Flood("tokens behind a stop", _scored_stops, 1500),
    Flood("chunks gathered", _gathered, 3000),
    Flood("a line in bytes", _framed(SSEParser, b"x", 1), 10_000),
    Flood("comments", _framed(SSEParser, b": keep-alive\n\n", 4096), 10_000),
    Flood("empty data", _framed(SSEParser, b"data:\n", 4096), 20_000),
    Flood("lines of one event", _framed(SSEParser, b"data: x\r\n", 7), 3000),
    Flood("a line of NDJSON in bytes", _framed(NDJSONParser, b"x", 1), 10_000),
    Flood("log probabilities", _nested_logprobs, 4000),
)
