"""The fixtures that the SDK's types refuse although they are correct, each with the refusal and the reason."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class KnownRefusal:
    """`says` is part of the judge's message; `why` is the reason why the fixture is correct."""

    says: str
    why: str


_UNKNOWN = "made of what no version knows yet"
_NO_OBJECT = "the vendor's chunks do not name their kind"
_EMPTY_OBJECT = "the vendor opens a stream with the filter's verdict on the prompt, in an otherwise empty chunk"
_FINISH = "the vendor has a word of its own for the end"
_UNCOUNTED = "made without the counts that the vendor's type has always"

KNOWN_REFUSALS: Final[Mapping[str, KnownRefusal]] = {
    "anthropic/checks/uncounted.json": KnownRefusal("usage", _UNCOUNTED),
    "anthropic/checks/uncounted.sse": KnownRefusal("validation errors", _UNCOUNTED),
    "bedrock/checks/uncounted.events": KnownRefusal("usage", _UNCOUNTED),
    "bedrock/checks/uncounted.json": KnownRefusal("usage", _UNCOUNTED),
    "openai/openai/checks/noise.sse": KnownRefusal("shape", _UNKNOWN),
    "openai/openai/checks/unknown.json": KnownRefusal("sunset", _UNKNOWN),
    "anthropic/answers/unknown.json": KnownRefusal("hologram", _UNKNOWN),
    "anthropic/streams/noise.sse": KnownRefusal("JSONDecodeError", f"{_UNKNOWN}, with keep-alives in between"),
    "bedrock/answers/unknown.json": KnownRefusal("SDK_UNKNOWN_MEMBER", _UNKNOWN),
    "bedrock/answers/redacted.json": KnownRefusal(
        "tool_use", "the service names the type of any call, its model only that of its own tools' calls"
    ),
    "bedrock/streams/noise.events": KnownRefusal("hologramStart", _UNKNOWN),
    "cohere/answers/unknown.json": KnownRefusal("hologram", _UNKNOWN),
    "cohere/streams/noise.sse": KnownRefusal("hologram-start", _UNKNOWN),
    "gemini/answers/unknown.json": KnownRefusal("SUNSET", _UNKNOWN),
    "gemini/streams/noise.sse": KnownRefusal("hologram", _UNKNOWN),
    "gemini/streams/error_event.sse": KnownRefusal(
        "error", "an error in the stream, which the SDK's type of a chunk has not"
    ),
    "llamacpp/streams/noise.sse": KnownRefusal("'index' is a required property", _UNKNOWN),
    "ollama/streams/noise.ndjson": KnownRefusal("zero-length", f"{_UNKNOWN}, with empty lines in between"),
    "tgi/streams/noise.sse": KnownRefusal("novelty", _UNKNOWN),
    "openai/azure/chat.sse": KnownRefusal("object", _EMPTY_OBJECT),
    "openai/github_models/chat.sse": KnownRefusal("object", _EMPTY_OBJECT),
    "openai/openai_compatible/empty_head.sse": KnownRefusal("object", _EMPTY_OBJECT),
    "openai/databricks/chat.sse": KnownRefusal("content", "the vendor's reasoning models answer in parts"),
    "openai/databricks/reasoning.json": KnownRefusal("content", "the vendor's reasoning models answer in parts"),
    "openai/databricks/error.sse": KnownRefusal("error_code", "an error in the stream, in the vendor's own shape"),
    "openai/deepseek/overloaded.sse": KnownRefusal("insufficient_system_resource", _FINISH),
    "openai/huggingface/whole.json": KnownRefusal("eos_token", _FINISH),
    "openai/sglang/abort.sse": KnownRefusal("abort", _FINISH),
    "openai/tgi/completion.sse": KnownRefusal("stop_sequence", _FINISH),
    "openai/zai/overflow.json": KnownRefusal("model_context_window_exceeded", _FINISH),
    "openai/xai/tools.sse": KnownRefusal("finish_reason", "the vendor has an empty word where a choice has not ended"),
    "openai/localai/text_error.sse": KnownRefusal(
        "finish_reason", "the server leaves out what it has not, and errs in words"
    ),
    "openai/openai_compatible/array_error.json": KnownRefusal("list", "an error in a list, with status 200"),
    "openai/openai_compatible/multiline.sse": KnownRefusal(
        "created", "of the smallest shape, to show one event in lines"
    ),
    "openai/openai_compatible/whole_instead_of_stream.json": KnownRefusal("id", "calls as some servers write them"),
    "openai/perplexity/chat.sse": KnownRefusal("object", "the vendor's chunks are named as whole answers are"),
    "openai/together/completion.sse": KnownRefusal(
        "token", "the SDK asks for a token beside the choices; it is in each now"
    ),
    "openai/vllm/echo.json": KnownRefusal("token_logprobs", "the first token of a prompt has no probability"),
    "openai/zai/chat.sse": KnownRefusal("object", _NO_OBJECT),
    "openai/zai/network.sse": KnownRefusal("object", _NO_OBJECT),
    "openai/zai/sensitive.sse": KnownRefusal("object", _NO_OBJECT),
}
"""The known refusals, by the fixture's name."""
