"""Estimates the tokens of a conversation that no tokenizer can be asked for, for clients that plan by the number.

Rounded up: a client that takes a conversation for shorter than it is learns of its end from an error. Data of media is
no text, and what vendors take back of thinking unread is not counted.

Source: the "Vision" page of Anthropic for the tokens of an image, November 2026. The other numbers are rules of thumb.
"""

from collections.abc import Sequence

import orjson

from providers.emulation.join_extras import texts_of_details
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, TextPrompt, UnifiedRequest
from proxy.limits.token_estimate import BYTES_EACH
from proxy.teams.team_limiter import RequestSize

BYTES_PER_TOKEN = 3
"""UTF-8 bytes per token: fewer than of prose, since most of what agents send is code and JSON."""

PER_MESSAGE, PER_TOOL = 6, 12
"""Tokens around a message and a tool's definition."""

PER_MEDIUM = 1600
"""Tokens of an image of the largest size that is not made smaller, and the least of any other medium."""

_FILE_BYTES_PER_TOKEN = 5
"""Characters of a file's base64 that make a token."""

_OF_TEXT = ("text", "refusal")


def estimate_prompt(request: UnifiedRequest) -> int:
    """Return an estimate of the tokens of a conversation and its tools."""
    prompt, params = request.prompt, request.params
    tokens = _of_messages(prompt.messages) if isinstance(prompt, ChatPrompt) else 0
    if "tools" in params or "response_format" in params:
        tokens += _of_param(params.get("tools")) + _of_param(params.get("response_format"))
    return tokens


def _of_param(value: object) -> int:
    if not value:
        return 0
    return _of_bytes(len(orjson.dumps(value))) + PER_TOOL * (len(value) if isinstance(value, list) else 1)


def request_size(request: UnifiedRequest) -> RequestSize:
    """Return what a request may take of its team's limits, all its answers together."""
    prompt, params, answers = request.prompt, request.params, 1
    if isinstance(prompt, ChatPrompt):
        if prompt.plain and "tools" not in params and "response_format" not in params:
            # As `estimate_prompt`, in one loop: most requests of a team with limits pass here.
            tokens = 0
            for message in prompt.messages:
                content: str = message["content"]  # type: ignore[assignment]  # as `plain` says
                length = len(content) if content.isascii() else len(content.encode(errors="replace"))
                tokens += PER_MESSAGE - (-length // BYTES_PER_TOKEN)
            size = BYTES_PER_TOKEN * tokens
        else:
            size = BYTES_PER_TOKEN * estimate_prompt(request)
    elif isinstance(prompt, TextPrompt):
        size, answers = sum([len(text) for text in prompt.texts]), len(prompt.texts)
    else:
        size = BYTES_EACH * sum([len(sequence) for sequence in prompt.sequences])
        answers = len(prompt.sequences)
    if "n" in params or "best_of" in params:
        answers *= max(params.get("n", 1), params.get("best_of", 1))
    return size, params.get("max_tokens"), answers


def _of_messages(messages: Sequence[JsonObject]) -> int:
    tokens = 0
    for message in messages:
        content = message.get("content")
        if type(content) is str and len(message) == 2 and content.isascii():  # a role besides: most of them
            tokens += PER_MESSAGE - (-len(content) // BYTES_PER_TOKEN)
        else:
            tokens += _of_message(message)
    return tokens


def _of_message(message: JsonObject) -> int:
    content = message.get("content")
    tokens = PER_MESSAGE
    if isinstance(content, str):
        tokens += _of_text(content)
    elif isinstance(content, list):
        tokens += sum([_of_part(part) for part in content])
    if calls := message.get("tool_calls"):
        tokens += _of_bytes(len(orjson.dumps(calls)))
    details = message.get("reasoning_details")
    return tokens + sum(
        [_of_text(thought) for thought in texts_of_details(details if isinstance(details, list) else ())]
    )


def _of_part(part: JsonValue) -> int:
    if not isinstance(part, dict):
        return 0
    if part.get("type") in _OF_TEXT:
        return sum([_of_text(text) for name in _OF_TEXT if isinstance(text := part.get(name), str)])
    file = part.get("file")
    data = file.get("file_data") if isinstance(file, dict) else None
    return PER_MEDIUM if not isinstance(data, str) else max(PER_MEDIUM, len(data) // _FILE_BYTES_PER_TOKEN)


def _of_text(text: str) -> int:
    return _of_bytes(len(text) if text.isascii() else len(text.encode(errors="replace")))


def _of_bytes(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)
