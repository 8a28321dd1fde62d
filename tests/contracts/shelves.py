"""The shelf of fixtures that each dialect has for the sixteen checks of every adapter, and why it cannot have one.

Never a check.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from providers.dialect import Target, UpstreamRequest
from providers.eventstream import encode
from providers.unified import UnifiedRequest
from tests.contracts.answers import ROOT, frames
from tests.providers.dialects import bedrock_kit
from tests.providers.dialects.native_kit import chat_request, sent_for, target_of, text_request

RAW: Final = "it takes raw prompts alone"
UNFILTERED: Final = "nothing there filters answers"
WHOLE: Final = "its answers come whole"


@dataclass(frozen=True, slots=True)
class Shelf:
    """A deployment, a request it takes, and its fixtures by what they show, as paths in the folder of fixtures.

    `whole` are bodies, `streams` streams, both under the same names: `text`, `tool`, `tools` (two calls), `length`,
    `filtered`, `unknown` (words nobody knows, and comments in between), `uncounted` (no usage), and of streams alone
    `error_first` and `error_after_text`. One mapping for both says that whole answers are asked for as streams.
    `cannot` says why a name is on neither. `framed` puts a stream into the frames it comes in; `ends_with_its_body`
    says that nothing in a stream is its end.

    `context` is the status and the body of an error with sizes, `limited` the body of a 429, where the vendor has one
    of its own, and `limits` the status and the code that a client gets for it.
    """

    target: Target
    request: UnifiedRequest
    whole: Mapping[str, str]
    streams: Mapping[str, str]
    context: tuple[int, str]
    limited: str = ""
    cannot: Mapping[str, str] = field(default_factory=dict)
    framed: Callable[[bytes], bytes] = lambda data: data
    limits: tuple[int, str] = (429, "rate_limit_exceeded")
    ends_with_its_body: bool = False

    def call(self, stream: bool) -> UpstreamRequest:
        """The call to which the fixtures are answers."""
        return sent_for(replace(self.request, stream=stream), self.target)

    def body(self, name: str) -> bytes:
        """A whole answer."""
        return self.stream(name) if self.whole is self.streams else (ROOT / self.whole[name]).read_bytes()

    def stream(self, name: str) -> bytes:
        """A stream."""
        return self.framed((ROOT / self.streams[name]).read_bytes())

    def too_many(self) -> bytes:
        """The body of a 429."""
        return (ROOT / self.limited).read_bytes() if self.limited else b""


def named(folder: str, suffix: str, **files: str) -> dict[str, str]:
    """Paths of files that have one folder and one ending."""
    return {name: f"{folder}/{file}.{suffix}" for name, file in files.items()}


def same(folder: str, suffix: str, names: str, **files: str) -> dict[str, str]:
    """The same for files that are called as what they show; `files` are those that are not."""
    return named(folder, suffix, **{name: name for name in names.split()}, **files)


def parts(data: bytes) -> bytes:
    """A container's stream in Amazon's frames, cut where no event ends."""
    headers = {":event-type": "PayloadPart", ":content-type": "application/octet-stream", ":message-type": "event"}
    return b"".join(encode(headers, data[start : start + 199]) for start in range(0, len(data), 199))


def chunks(data: bytes) -> bytes:
    """Anthropic's events in the frames of InvokeModel; what is no JSON comes as an event of a kind nobody knows."""
    events = re.findall(rb"^data: ?(.*)$", data, re.MULTILINE)
    return b"".join(
        bedrock_kit.chunk(event) if event.startswith(b"{") else bedrock_kit.event("hologram", event) for event in events
    )


_AMAZON = "https://runtime.sagemaker.eu-west-1.amazonaws.com"
_GOOGLE = "https://europe-west4-aiplatform.googleapis.com"
_BROKEN = "error_first error_after_text"
_OPENAI_STREAMS = {
    **same("openai/openai/checks", "sse", f"text tool length filtered uncounted {_BROKEN}", unknown="noise"),
    "tools": "openai/openai/tools.sse",
}
_OPENAI_WHOLE = same("openai/openai/checks", "json", "text tool tools length filtered unknown uncounted")
_CLAUDE_STREAMS = {
    **same("anthropic/streams", "sse", f"text tools length {_BROKEN}", filtered="refusal", unknown="noise"),
    "uncounted": "anthropic/checks/uncounted.sse",
}
_CLAUDE_WHOLE = {
    **same("anthropic/answers", "json", "text tools length unknown", filtered="refusal"),
    "uncounted": "anthropic/checks/uncounted.json",
}
_CLAUDE_CONTEXT = (400, "anthropic/errors/error_400_context.json")
_TGI_STREAMS = same("tgi/streams", "sse", f"text length {_BROKEN}", unknown="noise", uncounted="noise")
"""Whole answers are asked for as streams too."""
_REPLICATE = {
    **same("replicate/answers", "json", "text length", uncounted="string"),
    "unknown": "replicate/checks/unknown.json",
    "error_first": "replicate/errors/failed.json",
}
"""A stream is made of the whole answer."""

_WATSONX = target_of("watsonx", base_url="https://eu-de.ml.cloud.ibm.com/projects/p")
_NO_CALLS = {"tool": RAW, "tools": RAW}

SHELVES: Final[Mapping[str, Shelf]] = {
    "openai": Shelf(
        target_of("openai", "gpt-4o-mini"),
        chat_request(),
        _OPENAI_WHOLE,
        _OPENAI_STREAMS,
        (400, "openai/openai/error_400_context.json"),
        "openai/openai/error_429_rate.json",
    ),
    "sagemaker": Shelf(
        target_of("sagemaker", base_url=_AMAZON),
        chat_request(),
        _OPENAI_WHOLE,
        _OPENAI_STREAMS,
        (424, "sagemaker/errors/error_424_context.json"),
        framed=parts,
    ),
    "anthropic": Shelf(
        target_of("anthropic", max_output_tokens=100),
        chat_request(),
        _CLAUDE_WHOLE,
        _CLAUDE_STREAMS,
        _CLAUDE_CONTEXT,
        "anthropic/errors/error_429.json",
    ),
    "anthropic_vertex": Shelf(
        target_of(
            "vertex_anthropic", max_output_tokens=100, base_url=f"{_GOOGLE}/v1/projects/p/locations/europe-west4"
        ),
        chat_request(),
        _CLAUDE_WHOLE,
        _CLAUDE_STREAMS,
        _CLAUDE_CONTEXT,
    ),
    "bedrock_anthropic": Shelf(
        bedrock_kit.target(profile="bedrock_anthropic"),
        chat_request(),
        _CLAUDE_WHOLE,
        _CLAUDE_STREAMS,
        (400, "bedrock/errors/400_too_long.json"),
        "bedrock/errors/429.json",
        framed=chunks,
    ),
    "bedrock": Shelf(
        bedrock_kit.target(),
        chat_request(),
        {
            **same("bedrock/answers", "json", "text tools length filtered unknown"),
            "uncounted": "bedrock/checks/uncounted.json",
        },
        {
            **same("bedrock/streams", "events", f"text tools length {_BROKEN}", filtered="guardrail", unknown="noise"),
            "uncounted": "bedrock/checks/uncounted.events",
        },
        (400, "bedrock/errors/400_window.json"),
        "bedrock/errors/429.json",
        framed=frames,
    ),
    "bedrock_invoke": Shelf(
        bedrock_kit.target("amazon.titan-text-express-v1", "bedrock_invoke"),
        text_request(),
        {**same("bedrock/titan", "json", "length filtered unknown uncounted"), "text": "bedrock/invoke/titan.json"},
        {
            **same("bedrock/titan", "events", f"length filtered unknown uncounted {_BROKEN}"),
            "text": "bedrock/invoke/titan.events",
        },
        (400, "bedrock/errors/400_window.json"),
        "bedrock/errors/429.json",
        _NO_CALLS,
        frames,
    ),
    "cohere": Shelf(
        target_of("cohere", "command-a-03-2025"),
        chat_request(),
        same("cohere/answers", "json", "text tools length unknown", filtered="toxic", uncounted="unknown"),
        {
            **same("cohere/streams", "sse", f"text tools length {_BROKEN}", unknown="noise", uncounted="noise"),
            "filtered": "cohere/checks/toxic.sse",
        },
        (400, "cohere/errors/error_400_context.json"),
        "cohere/errors/error_429_rate.json",
    ),
    "gemini": Shelf(
        target_of("gemini", "gemini-2.5-flash"),
        chat_request(),
        same("gemini/answers", "json", "text tools length unknown", filtered="safety", uncounted="no_usage"),
        {
            **same("gemini/streams", "sse", "text tools length error_first", filtered="recitation", unknown="noise"),
            "error_after_text": "gemini/streams/error_event.sse",
            "uncounted": "gemini/checks/uncounted.sse",
        },
        (400, "gemini/errors/context.json"),
        "gemini/errors/rate_limit.json",
    ),
    "ollama": Shelf(
        target_of("ollama_native"),
        chat_request(),
        same("ollama/answers", "json", "tools length unknown", text="chat", uncounted="unknown"),
        same("ollama/streams", "ndjson", f"tools length {_BROKEN}", text="chat", unknown="noise", uncounted="noise"),
        (400, "ollama/errors/error_400_context.json"),
        cannot={"filtered": UNFILTERED},
    ),
    "llamacpp": Shelf(
        target_of("llamacpp_native"),
        text_request(),
        same("llamacpp/answers", "json", "text unknown", length="limit", uncounted="unknown"),
        same("llamacpp/streams", "sse", f"text {_BROKEN}", length="limit", unknown="noise", uncounted="noise"),
        (400, "llamacpp/errors/error_400_context.json"),
        cannot={**_NO_CALLS, "filtered": UNFILTERED},
    ),
    "sglang": Shelf(
        target_of("sglang_native"),
        text_request(),
        same("sglang/answers", "json", "text length unknown", uncounted="unknown"),
        {
            **same("sglang/streams", "sse", "text length error_after_text", unknown="noise", uncounted="noise"),
            "error_first": "sglang/streams/error_context.sse",
        },
        (400, "sglang/errors/error_400_context.json"),
        cannot={**_NO_CALLS, "filtered": UNFILTERED},
    ),
    "tgi": Shelf(
        target_of("tgi_native"),
        text_request(),
        _TGI_STREAMS,
        _TGI_STREAMS,
        (422, "tgi/errors/error_422_context.json"),
        cannot={**_NO_CALLS, "filtered": UNFILTERED},
        # The engine has no limits of rate: its 429 is a full queue.
        limits=(503, "overloaded"),
    ),
    "sagemaker_tgi": Shelf(
        target_of("sagemaker_tgi", base_url=_AMAZON),
        text_request(),
        _TGI_STREAMS,
        _TGI_STREAMS,
        (424, "sagemaker/errors/error_424_context.json"),
        cannot={**_NO_CALLS, "filtered": UNFILTERED},
        framed=parts,
    ),
    "triton": Shelf(
        target_of("triton", max_output_tokens=16),
        text_request(),
        {**same("triton/answers", "json", "text length uncounted"), "unknown": "triton/checks/unknown.json"},
        {**same("triton/streams", "sse", f"text length uncounted {_BROKEN}"), "unknown": "triton/checks/noise.sse"},
        (500, "triton/errors/error_500_context.json"),
        "triton/errors/error_429.json",
        {**_NO_CALLS, "filtered": UNFILTERED},
        ends_with_its_body=True,
    ),
    "llm_engine": Shelf(
        target_of("llm_engine", max_output_tokens=16),
        text_request(),
        {**same("llm_engine/answers", "json", "text length uncounted"), "unknown": "llm_engine/checks/unknown.json"},
        {
            **same("llm_engine/streams", "sse", f"text length uncounted {_BROKEN}"),
            "unknown": "llm_engine/checks/noise.sse",
        },
        (400, "llm_engine/errors/error_400_context.json"),
        "llm_engine/errors/error_429.json",
        {**_NO_CALLS, "filtered": UNFILTERED},
    ),
    "watsonx": Shelf(
        _WATSONX,
        text_request(),
        same("watsonx/answers", "json", "text length uncounted", unknown="new_word"),
        same("watsonx/streams", "sse", f"text length {_BROKEN}", unknown="noise", uncounted="noise"),
        (400, "watsonx/errors/error_400_context.json"),
        "watsonx/errors/error_429.json",
        {**_NO_CALLS, "filtered": UNFILTERED},
    ),
    "watsonx_chat": Shelf(
        _WATSONX,
        chat_request(),
        {**_OPENAI_WHOLE, **named("watsonx/answers", "json", text="chat", tool="chat_tools")},
        {
            **_OPENAI_STREAMS,
            **named("watsonx/streams", "sse", text="chat", tool="chat_tools", error_after_text="chat_error"),
        },
        (400, "watsonx/errors/error_400_context.json"),
        "watsonx/errors/error_429.json",
    ),
    "replicate": Shelf(
        target_of("replicate", "meta/llama"),
        text_request(max_tokens=16),
        _REPLICATE,
        _REPLICATE,
        (200, "replicate/errors/too_long.json"),
        "replicate/errors/error_429.json",
        {**_NO_CALLS, "filtered": UNFILTERED, "error_after_text": WHOLE},
    ),
}
"""By the dialect's name; one that speaks two wires has two."""
