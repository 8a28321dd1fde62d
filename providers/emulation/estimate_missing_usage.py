"""Estimates the usage of responses for which the vendor reports no usage.

Everything that the model read and wrote counts: tools and the response format count as prompt, reasoning and tool calls
count as completion. A stream gets the same estimate as the equivalent non-streaming response.
"""

from dataclasses import replace

import orjson

from providers.completion import Choice, Chunk, Completion, Extras, ToolCall, ToolCallDelta, Usage
from providers.emulation.join_extras import texts_of_details
from providers.unified_request import ChatPrompt, TextPrompt, TokenPrompt, UnifiedRequest

BYTES_PER_TOKEN = 4
"""The approximate number of UTF-8 bytes per token, for common vocabularies and English prose."""


def with_usage(request: UnifiedRequest, completion: Completion) -> Completion:
    """Return the response with a usage: the vendor's usage, or an estimate if the vendor reported no usage."""
    if completion.usage is not None:
        return completion
    return replace(completion, usage=estimate_usage(request, sum(map(size_written, completion.choices))))


def estimate_usage(request: UnifiedRequest, size: int) -> Usage:
    """Return the estimated usage of a response whose texts, reasoning and calls have `size` bytes together. Echoed
    prompts do not count as completion."""
    return Usage(
        _prompt_tokens(request) + _tokens_beside_prompt(request),
        tokens_of_size(max(0, size - _size_of_echo(request))),
        estimated=True,
    )


def early_usage(reported: Usage | None, estimate: Usage) -> Usage:
    """Return the usage of a stream that ended early: the counts that the vendor has reported, and estimates of the
    other counts. A reported prompt of 0 tokens is ignored, since some servers report 0 until they have counted the
    tokens."""
    if reported is None:
        return estimate
    if not reported.estimated:
        return reported
    prompt = reported.prompt_tokens or estimate.prompt_tokens
    completion = max(reported.completion_tokens, estimate.completion_tokens)
    return replace(reported, prompt_tokens=prompt, completion_tokens=completion)


def let_conversation_go(request: UnifiedRequest) -> None:
    """Free the memory of a conversation that is not sent again, but keep the estimate of its tokens."""
    if isinstance(request.prompt, ChatPrompt) and request.prompt.tokens is None:
        request.prompt.free_messages(_prompt_tokens(request))


def _size_of_echo(request: UnifiedRequest) -> int:
    if not request.params.get("echo") or not isinstance(request.prompt, TextPrompt):
        return 0
    return request.params.get("n", 1) * sum(map(size_of, request.prompt.texts))


def size_of(text: str) -> int:
    """Return the length of a text in UTF-8 bytes."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def size_written(said: Choice | Chunk) -> int:
    """Return how many bytes of UTF-8 a model wrote for a choice or a chunk. The sizes of all chunks add up to the size
    of their choice."""
    text = said.text
    size = len(text) if text.isascii() else size_of(text)
    if said.reasoning or said.tool_calls or said.refusal or said.extras is not None:
        refusal = said.refusal if said.refusal != text else None
        size += _size_beside_text(said.reasoning, refusal, said.extras) + sum(map(_size_of_call, said.tool_calls))
    return size


def _size_beside_text(reasoning: str | None, refusal: str | None, extras: Extras | None) -> int:
    """Return the number of bytes that a model wrote in addition to text and calls. Reasoning details are counted only
    if there is no reasoning text, because they repeat that text."""
    size = size_of(refusal) if refusal else 0
    if reasoning:
        return size + size_of(reasoning)
    return size if extras is None else size + sum(map(size_of, texts_of_details(extras.reasoning_details)))


def _size_of_call(call: ToolCall | ToolCallDelta) -> int:
    return size_of(call.arguments) + (size_of(call.name) if call.name else 0)


def tokens_of_size(size: int) -> int:
    """Return the estimated tokens of a text of `size` bytes."""
    return -(-size // BYTES_PER_TOKEN)


def _tokens_beside_prompt(request: UnifiedRequest) -> int:
    """Return the estimated tokens of the tools and the response format, which a model reads with its prompt."""
    held = (request.params.get("tools"), request.params.get("response_format"))
    return sum([tokens_of_size(len(orjson.dumps(value))) for value in held if value])


def _prompt_tokens(request: UnifiedRequest) -> int:
    match request.prompt:
        case TextPrompt(texts):
            return sum([tokens_of_size(size_of(text)) for text in texts])
        case TokenPrompt(sequences):
            return sum(map(len, sequences))
        case ChatPrompt(_, _, int(tokens)):
            return tokens
        case ChatPrompt(messages):
            return sum([tokens_of_size(len(orjson.dumps(message))) for message in messages])
