"""The fixtures that no SDK would read as they are, each with what its judge says of it and the reason. Never one that
could be written so that it passes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Explained:
    """`says` is in the judge's words; `why` the fixture is right all the same."""

    says: str
    why: str


_UNKNOWN = "made of what no version knows yet"
_NO_OBJECT = "the vendor's chunks do not name their kind"
_EMPTY_OBJECT = "the vendor opens a stream with the filter's verdict on the prompt, in an otherwise empty chunk"
_FINISH = "the vendor has a word of its own for the end"
_UNCOUNTED = "made without the counts that the vendor's type has always"

EXPLAINED: Final[Mapping[str, Explained]] = {
    "anthropic/checks/uncounted.json": Explained("usage", _UNCOUNTED),
    "anthropic/checks/uncounted.sse": Explained("validation errors", _UNCOUNTED),
    "bedrock/checks/uncounted.events": Explained("usage", _UNCOUNTED),
    "bedrock/checks/uncounted.json": Explained("usage", _UNCOUNTED),
    "openai/openai/checks/noise.sse": Explained("shape", _UNKNOWN),
    "openai/openai/checks/unknown.json": Explained("sunset", _UNKNOWN),
    "anthropic/answers/unknown.json": Explained("hologram", _UNKNOWN),
    "anthropic/streams/noise.sse": Explained("JSONDecodeError", f"{_UNKNOWN}, with keep-alives in between"),
    "bedrock/answers/unknown.json": Explained("SDK_UNKNOWN_MEMBER", _UNKNOWN),
    "bedrock/streams/noise.events": Explained("hologramStart", _UNKNOWN),
    "cohere/answers/unknown.json": Explained("hologram", _UNKNOWN),
    "cohere/streams/noise.sse": Explained("hologram-start", _UNKNOWN),
    "gemini/answers/unknown.json": Explained("SUNSET", _UNKNOWN),
    "gemini/streams/noise.sse": Explained("hologram", _UNKNOWN),
    "gemini/streams/error_event.sse": Explained(
        "error", "an error in the stream, which the SDK's type of a chunk has not"
    ),
    "llamacpp/streams/noise.sse": Explained("'index' is a required property", _UNKNOWN),
    "ollama/streams/noise.ndjson": Explained("zero-length", f"{_UNKNOWN}, with empty lines in between"),
    "tgi/streams/noise.sse": Explained("novelty", _UNKNOWN),
    "openai/azure/chat.sse": Explained("object", _EMPTY_OBJECT),
    "openai/github_models/chat.sse": Explained("object", _EMPTY_OBJECT),
    "openai/openai_compatible/empty_head.sse": Explained("object", _EMPTY_OBJECT),
    "openai/databricks/chat.sse": Explained("content", "the vendor's reasoning models answer in parts"),
    "openai/databricks/reasoning.json": Explained("content", "the vendor's reasoning models answer in parts"),
    "openai/databricks/error.sse": Explained("error_code", "an error in the stream, in the vendor's own shape"),
    "openai/deepseek/overloaded.sse": Explained("insufficient_system_resource", _FINISH),
    "openai/huggingface/whole.json": Explained("eos_token", _FINISH),
    "openai/sglang/abort.sse": Explained("abort", _FINISH),
    "openai/tgi/completion.sse": Explained("stop_sequence", _FINISH),
    "openai/zai/overflow.json": Explained("model_context_window_exceeded", _FINISH),
    "openai/xai/tools.sse": Explained("finish_reason", "the vendor has an empty word where a choice has not ended"),
    "openai/localai/text_error.sse": Explained(
        "finish_reason", "the server leaves out what it has not, and errs in words"
    ),
    "openai/openai_compatible/array_error.json": Explained("list", "an error in a list, with status 200"),
    "openai/openai_compatible/multiline.sse": Explained("created", "of the smallest shape, to show one event in lines"),
    "openai/openai_compatible/whole_instead_of_stream.json": Explained("id", "calls as some servers write them"),
    "openai/perplexity/chat.sse": Explained("object", "the vendor's chunks are named as whole answers are"),
    "openai/together/completion.sse": Explained(
        "token", "the SDK asks for a token beside the choices; it is in each now"
    ),
    "openai/vllm/echo.json": Explained("token_logprobs", "the first token of a prompt has no probability"),
    "openai/zai/chat.sse": Explained("object", _NO_OBJECT),
    "openai/zai/network.sse": Explained("object", _NO_OBJECT),
    "openai/zai/sensitive.sse": Explained("object", _NO_OBJECT),
}
"""By the fixture's name."""
