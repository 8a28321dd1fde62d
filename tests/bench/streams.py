"""A stream of every dialect with as many pieces of text as wanted, after the dialect's own fixture.

Never decodes. Every stream says the same text, and comes as vendors send it: an event a piece.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import orjson

from providers.dialect import UpstreamRequest
from providers.eventstream import encode
from providers.unified import JsonObject, JsonValue, UnifiedRequest
from tests.providers.dialects.bedrock_kit import chunk, frame
from tests.providers.dialects.native_kit import chat_request, fixture, sent_for, target_of, text_request

FAMILY_TIMES = 1.5
FRAMED_TIMES = 2.0
"""How many times the family's chunk one may cost: of a native dialect, and of one in Amazon's frames."""

Writer = Callable[[Sequence[str]], list[bytes]]

_WORDS = ("The", " sky", " over", " Oslo", " is", " blue", ":", " 3", " °C", ",", " clear", ".", "\n")


def words(count: int) -> list[str]:
    """Pieces of a text, about as long as tokens are."""
    return [_WORDS[place % len(_WORDS)] for place in range(count)]


@dataclass(frozen=True, slots=True)
class Form:
    """A fixture to be made longer: its first and last events stay, and the one behind the first is said again with each
    piece in the place of `text`."""

    path: str
    first: int
    last: int
    text: str

    def __call__(self, pieces: Sequence[str]) -> list[bytes]:
        """The events, each with the line ends behind it."""
        whole = fixture(*self.path.split("/"))
        events = _EVENT.findall(whole) if self.path.endswith(".sse") else whole.splitlines(keepends=True)
        said, written = events[self.first], _json(self.text)
        assert said.count(written) == 1, f"{self.path}: not once {self.text!r} in event {self.first}"
        repeated = [said.replace(written, _json(piece)) for piece in pieces]
        return [*events[: self.first], *repeated, *events[len(events) - self.last :]]


_EVENT = re.compile(rb".+?(?:\r\n\r\n|\n\n)", re.DOTALL)


def _json(text: str) -> bytes:
    return orjson.dumps(text)


@dataclass(frozen=True, slots=True)
class Framed:
    """The same in a frame each."""

    inner: Writer
    put: Callable[[bytes], bytes]

    def __call__(self, pieces: Sequence[str]) -> list[bytes]:
        """The frames."""
        return [self.put(event) for event in self.inner(pieces)]


def _converse(line: bytes) -> bytes:
    return frame(line.decode().rstrip("\n"))


def _invoked(event: bytes) -> bytes:
    """The JSON of an event in a frame of InvokeModel."""
    return chunk(event.rpartition(b"data: ")[2].rstrip(b"\n"))


def _part(event: bytes) -> bytes:
    headers = {":event-type": "PayloadPart", ":content-type": "application/octet-stream", ":message-type": "event"}
    return encode(headers, event)


def _repeated(pieces: Sequence[str]) -> list[bytes]:
    """SGLang's events, each with all that was said before it."""
    form = cast(JsonObject, orjson.loads(fixture("sglang", "streams", "text.sse").partition(b"\n")[0][6:]))
    told = cast(JsonObject, form["meta_info"])

    def event(count: int, **meta: JsonValue) -> bytes:
        ids: list[JsonValue] = [*range(1000, 1000 + count)]
        known: JsonObject = {**told, "completion_tokens": count, **meta}
        said: JsonObject = {"text": "".join(pieces[:count]), "output_ids": ids, "meta_info": known}
        return b"data: %b\n\n" % orjson.dumps(said)

    last = event(len(pieces), finish_reason={"type": "stop", "matched": 2})
    return [*(event(place + 1) for place in range(len(pieces))), last, b"data: [DONE]\n\n"]


def _prediction(pieces: Sequence[str]) -> list[bytes]:
    """Replicate's one answer, cut behind each piece of its output."""
    form = cast(JsonObject, orjson.loads(fixture("replicate", "answers", "text.json")))
    head, _, tail = orjson.dumps({**form, "output": []}).partition(b'"output":[')
    return [head + b'"output":[', *(_json(piece) + b"," for piece in pieces[:-1]), _json(pieces[-1]), tail]


@dataclass(frozen=True, slots=True)
class Stream:
    """A kind of stream: the call that it answers, what writes it, the most that a chunk may cost, in chunks of the
    family, and how many pieces are worth a look."""

    profile: str
    asked: UnifiedRequest
    write: Writer
    limit: float = FAMILY_TIMES
    counts: tuple[int, ...] = (200,)
    model: str = "tiny"

    def sent(self) -> UpstreamRequest:
        """The call."""
        return sent_for(replace(self.asked, stream=True), target_of(self.profile, self.model))


_CHAT = chat_request(max_tokens=1000)
_TEXT = text_request("The sky", max_tokens=1000)
_OPENAI = Form("openai/openai_chat.sse", 1, 3, " Pa")
_ANTHROPIC = Form("anthropic/streams/text.sse", 3, 3, "Checking ")
_TGI = Form("tgi/streams/text.sse", 0, 1, " is blue")
_LLAMA = "meta.llama3-1-8b-instruct-v1:0"

FAMILY = "openai"

STREAMS: Mapping[str, Stream] = {
    "openai": Stream("openai", _CHAT, _OPENAI, 1),
    "anthropic": Stream("anthropic", _CHAT, _ANTHROPIC),
    "anthropic_vertex": Stream("vertex_anthropic", _CHAT, _ANTHROPIC),
    "bedrock": Stream(
        "bedrock", _CHAT, Framed(Form("bedrock/streams/text.events", 1, 3, "Checking "), _converse), FRAMED_TIMES
    ),
    "bedrock_anthropic": Stream("bedrock_anthropic", _CHAT, Framed(_ANTHROPIC, _invoked), FRAMED_TIMES),
    "bedrock_invoke": Stream(
        "bedrock_invoke",
        _TEXT,
        Framed(Form("bedrock/invoke/llama.events", 0, 1, " It is"), _invoked),
        FRAMED_TIMES,
        model=_LLAMA,
    ),
    "bedrock_invoke, list": Stream(
        "bedrock_invoke",
        _TEXT,
        Framed(Form("bedrock/invoke/mistral.events", 0, 1, " It is"), _invoked),
        FRAMED_TIMES,
        model="mistral.mistral-7b-instruct-v0:2",
    ),
    "cohere": Stream("cohere", _CHAT, Form("cohere/streams/text.sse", 2, 2, "Checking ")),
    "gemini": Stream("gemini", _CHAT, Form("gemini/streams/text.sse", 0, 1, "Checking "), model="gemini-2.5-flash"),
    "llamacpp": Stream("llamacpp_native", _TEXT, Form("llamacpp/streams/text.sse", 0, 1, " is")),
    "llm_engine": Stream("llm_engine", _TEXT, Form("llm_engine/streams/text.sse", 0, 1, " is blue")),
    "ollama": Stream("ollama_native", _CHAT, Form("ollama/streams/chat.ndjson", 0, 1, "Checking ")),
    "ollama, prompt": Stream("ollama_native", _TEXT, Form("ollama/streams/generate.ndjson", 0, 1, " is")),
    "replicate": Stream("replicate", _TEXT, _prediction, model="meta/meta-llama-3-70b"),
    "sagemaker": Stream("sagemaker", _CHAT, Framed(_OPENAI, _part), FRAMED_TIMES),
    "sagemaker_tgi": Stream("sagemaker_tgi", _TEXT, Framed(_TGI, _part), FRAMED_TIMES),
    "sglang": Stream("sglang_native", _TEXT, _repeated, counts=(200, 400)),
    "tgi": Stream("tgi_native", _TEXT, _TGI),
    "triton": Stream("triton", _TEXT, Form("triton/streams/text.sse", 0, 0, " is blue")),
    "watsonx": Stream("watsonx", _TEXT, Form("watsonx/streams/text.sse", 1, 1, " is blue")),
    "watsonx, chat": Stream("watsonx", _CHAT, Form("watsonx/streams/chat.sse", 1, 2, "It is blue")),
}
"""By the name of the dialect, and of another of its wires behind it."""


def dialect_of(name: str) -> str:
    """The dialect of a stream."""
    return name.partition(",")[0]
