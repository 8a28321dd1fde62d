"""Estimates the usage of answers whose vendor reports none."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import orjson

from providers.completion import Completion, Usage
from providers.unified_request import ChatPrompt, TextPrompt, TokenPrompt, UnifiedRequest

BYTES_PER_TOKEN = 4
"""UTF-8 bytes per token of common vocabularies in English prose, roughly."""


def with_usage(request: UnifiedRequest, completion: Completion) -> Completion:
    """Return the answer with a usage: the vendor's, or an estimate where it reported none."""
    if completion.usage is not None:
        return completion
    size = sum([size_of(choice.text) for choice in completion.choices])
    return replace(completion, usage=estimate_usage(request, size))


def estimate_usage(request: UnifiedRequest, size: int) -> Usage:
    """Return an estimated usage of an answer whose texts have `size` bytes together. Echoed prompts do not count as
    generated."""
    return counted_prompt(request)(size)


def counted_prompt(request: UnifiedRequest) -> Callable[[int], Usage]:
    """Return `estimate_usage` of a request whose prompt has been counted, and is not asked for again."""
    return partial(_estimate, _prompt_tokens(request), _repeated(request))


def _estimate(prompt_tokens: int, repeated: int, size: int) -> Usage:
    return Usage(prompt_tokens, _tokens(max(0, size - repeated)), estimated=True)


def _repeated(request: UnifiedRequest) -> int:
    if not request.params.get("echo") or not isinstance(request.prompt, TextPrompt):
        return 0
    return request.params.get("n", 1) * sum(map(size_of, request.prompt.texts))


def size_of(text: str) -> int:
    """Return the length of a text in UTF-8 bytes."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def _tokens(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)


def _prompt_tokens(request: UnifiedRequest) -> int:
    match request.prompt:
        case TextPrompt(texts):
            return sum([_tokens(size_of(text)) for text in texts])
        case TokenPrompt(sequences):
            return sum(map(len, sequences))
        case ChatPrompt(messages):
            return sum([_tokens(len(orjson.dumps(message))) for message in messages])
