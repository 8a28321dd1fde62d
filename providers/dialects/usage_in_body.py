"""Reads the usage in a body that is otherwise not a usable response, because the vendor bills the usage all the same.

The field names are from these APIs: `usage` of OpenAI, Anthropic and the Responses API, usage of Bedrock and Cohere,
Gemini's `usageMetadata`, Ollama's counts, SGLang's `meta_info`, watsonx's counts. Jina and Voyage report only a total.

It also reads the usage in a response that is relayed without being parsed, if it is near the beginning or the end.

Sources: OpenAI OpenAPI 2.3.0, `usage` of images, of transcriptions (which may be a duration), and of the events
`image_generation.completed`, `transcript.text.done` and `speech.audio.done`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from providers.completion import Usage, count_of, reported_usage
from providers.json_types import JsonValue

_USAGE_PATHS: Final = (
    ("usage",),
    ("usageMetadata",),
    ("usage", "tokens"),
    ("meta", "tokens"),
    ("meta", "billed_units"),
    ("meta_info",),
    (),
)

_PROMPT_COUNTS: Final = (
    "prompt_tokens",
    "input_tokens",
    "inputTokens",
    "promptTokenCount",
    "prompt_eval_count",
    "input_token_count",
    "inputTextTokenCount",
)
_RESPONSE_COUNTS: Final = (
    "completion_tokens",
    "output_tokens",
    "outputTokens",
    "candidatesTokenCount",
    "eval_count",
    "generated_token_count",
)
_TOTAL: Final = "total_tokens"
_EXTRA_PROMPT_COUNTS: Final = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""Parts of a prompt that Anthropic does not include in the prompt's count."""

_EXTRA_REASONING_COUNT: Final = "thoughtsTokenCount"
"""A part of a response that Gemini does not include in the response's count."""


def usage_in_body(body: bytes) -> Usage | None:
    """Return the usage in a body; `None` if there is no usage that can be read."""
    try:
        data: JsonValue = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    for counts_object in _objects_with_counts(data):
        prompt, answer = _first(counts_object, _PROMPT_COUNTS), _first(counts_object, _RESPONSE_COUNTS)
        if prompt is None and answer is None:
            prompt = count_of(counts_object.get(_TOTAL))
        if prompt is not None or answer is not None:
            extra_tokens = sum([count_of(counts_object.get(name)) or 0 for name in _EXTRA_PROMPT_COUNTS])
            return reported_usage(
                (prompt or 0) + extra_tokens, (answer or 0) + (count_of(counts_object.get(_EXTRA_REASONING_COUNT)) or 0)
            )
    return None


def _objects_with_counts(data: JsonValue) -> Iterator[Mapping[str, JsonValue]]:
    for path in _USAGE_PATHS:
        found = data
        for step in path:
            found = found.get(step) if isinstance(found, dict) else None
        if isinstance(found, dict):
            yield found


def _first(counts_object: Mapping[str, JsonValue], names: Sequence[str]) -> int | None:
    counts = [count for name in names if (count := count_of(counts_object.get(name))) is not None]
    return counts[0] if counts else None


_SEARCHED_TYPES: Final = ("application/json", "text/event-stream")
"""Content types in which quotes inside a text are escaped, so that no text can be mistaken for a usage."""

_BYTES_SEARCHED: Final = 8192
"""The number of bytes at each end of the response that are searched for a usage."""

_USAGE_PATTERN: Final = re.compile(rb'"usage"\s*:\s*(?:\{(?:[^{}]|\{[^{}]*\})*\})')
"""A `usage` object with at most one level of nested objects."""


@dataclass(slots=True, eq=False)
class UsageWatch:
    """The first and the last 8 KiB of a response of the type `content_type`."""

    content_type: str
    _head: bytes = b""
    _tail: bytes = b""

    def see(self, chunk: bytes) -> None:
        """Store the next bytes of the response, as far as they belong to one of its ends."""
        if len(self._head) < _BYTES_SEARCHED:
            self._head += chunk[: _BYTES_SEARCHED - len(self._head)]
        self._tail = (
            chunk[-_BYTES_SEARCHED:] if len(chunk) >= _BYTES_SEARCHED else (self._tail + chunk)[-_BYTES_SEARCHED:]
        )

    def usage(self) -> Usage | None:
        """Return the last usage near the end of the response, otherwise near its beginning; `None` if there is no usage
        in tokens."""
        if not self.content_type.strip().lower().startswith(_SEARCHED_TYPES):
            return None
        for end in (self._tail, self._head):
            if found := _USAGE_PATTERN.findall(end):
                return usage_in_body(b"{%b}" % found[-1])
        return None
