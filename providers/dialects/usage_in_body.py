"""Reads the usage that a vendor reports in a body that is no answer otherwise: it is billed all the same.

The names are those of the APIs: OpenAI's, Anthropic's and the Responses API's `usage`, Bedrock's and Cohere's, Gemini's
`usageMetadata`, Ollama's counts, SGLang's `meta_info`, watsonx's counts; Jina and Voyage report a total alone.

Reads the usage that a vendor reports in a response that is relayed unread: near its beginning or its end.

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

_HOLDERS: Final = (
    ("usage",),
    ("usageMetadata",),
    ("usage", "tokens"),
    ("meta", "tokens"),
    ("meta", "billed_units"),
    ("meta_info",),
    (),
)

_PROMPT: Final = (
    "prompt_tokens",
    "input_tokens",
    "inputTokens",
    "promptTokenCount",
    "prompt_eval_count",
    "input_token_count",
    "inputTextTokenCount",
)
_ANSWER: Final = (
    "completion_tokens",
    "output_tokens",
    "outputTokens",
    "candidatesTokenCount",
    "eval_count",
    "generated_token_count",
)
_TOTAL: Final = "total_tokens"
_BESIDE: Final = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""Parts of a prompt that Anthropic counts beside it."""

_THOUGHTS: Final = "thoughtsTokenCount"
"""A part of an answer that Gemini counts beside it."""


def usage_in_body(body: bytes) -> Usage | None:
    """Return the usage in a body, None if there is none that can be read."""
    try:
        data: JsonValue = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    for held in _held(data):
        prompt, answer = _first(held, _PROMPT), _first(held, _ANSWER)
        if prompt is None and answer is None:
            prompt = count_of(held.get(_TOTAL))
        if prompt is not None or answer is not None:
            beside = sum([count_of(held.get(name)) or 0 for name in _BESIDE])
            return reported_usage((prompt or 0) + beside, (answer or 0) + (count_of(held.get(_THOUGHTS)) or 0))
    return None


def _held(data: JsonValue) -> Iterator[Mapping[str, JsonValue]]:
    for path in _HOLDERS:
        found = data
        for step in path:
            found = found.get(step) if isinstance(found, dict) else None
        if isinstance(found, dict):
            yield found


def _first(held: Mapping[str, JsonValue], names: Sequence[str]) -> int | None:
    counts = [count for name in names if (count := count_of(held.get(name))) is not None]
    return counts[0] if counts else None


_READABLE: Final = ("application/json", "text/event-stream")
"""Types whose bytes hold quotes of a text only escaped, so that no text can be taken for a usage."""

_SEEN: Final = 8192
"""Bytes at each end that are searched for a usage."""

_USAGE: Final = re.compile(rb'"usage"\s*:\s*(?:\{(?:[^{}]|\{[^{}]*\})*\})')
"""An object with at most one level of objects below it."""


@dataclass(slots=True, eq=False)
class UsageWatch:
    """Holds the first and the last 8 KiB of a response of the type `content_type`."""

    content_type: str
    _head: bytes = b""
    _tail: bytes = b""

    def see(self, chunk: bytes) -> None:
        """Look at the next bytes of the response."""
        if len(self._head) < _SEEN:
            self._head += chunk[: _SEEN - len(self._head)]
        self._tail = chunk[-_SEEN:] if len(chunk) >= _SEEN else (self._tail + chunk)[-_SEEN:]

    def usage(self) -> Usage | None:
        """Return the last usage at an end of the response, `None` if there is none in tokens."""
        if not self.content_type.strip().lower().startswith(_READABLE):
            return None
        for end in (self._tail, self._head):
            if found := _USAGE.findall(end):
                return usage_in_body(b"{%b}" % found[-1])
        return None
