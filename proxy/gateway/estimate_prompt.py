"""Estimates the tokens of a conversation if no tokenizer can count them, for clients that plan by the number.

The estimate is rounded up, because a client that underestimates a conversation runs into an error at the context
window. Data of media is not counted as text, and reasoning that vendors take back unread is not counted.

Source: the "Vision" page of Anthropic for the tokens of an image, November 2026. The other numbers are rules of thumb.
"""

from collections.abc import Sequence

import orjson

from providers.client_extras.answer_amounts import UNLIMITED, asked_amounts
from providers.emulation.join_extras import texts_of_details
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from providers.unified_request import ChatPrompt, TextPrompt, UnifiedRequest
from proxy.limits.limit import MOST_TOKENS
from proxy.limits.token_estimate import DEFAULT_OUTPUT_TOKENS, TEXT_BYTES_PER_TOKEN
from proxy.teams.team_limiter import RequestSize

BYTES_PER_TOKEN = 3
"""UTF-8 bytes per token: fewer than for prose, because agents send mostly code and JSON."""

PER_MESSAGE, PER_TOOL = 6, 12
"""Additional tokens for each message, and for each definition of a tool."""

PER_MEDIUM = 1600
"""Tokens of an image of the largest size that vendors do not scale down, and the least tokens of any other medium."""

_FILE_BYTES_PER_TOKEN = 5
"""Characters of a file's base64 text per token."""

_MOST_FIELDS = 256
"""The most fields of a client's own body that are searched for amounts on the event loop."""

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


def request_size(
    request: UnifiedRequest, targets: Sequence[Target] = (), prompt_tokens: int | None = None
) -> RequestSize:
    """Return the most that a request takes of its team's limits at any of the targets, for all its responses together.
    `prompt_tokens` is the result of `estimate_prompt`, if it is known already."""
    prompt, params, answers = request.prompt, request.params, 1
    if isinstance(prompt, ChatPrompt):
        if prompt_tokens is not None:
            size = BYTES_PER_TOKEN * prompt_tokens
        elif prompt.plain and "tools" not in params and "response_format" not in params:
            # This does the same as `estimate_prompt` in one loop, because most requests of a team with limits pass
            # here.
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
        size = TEXT_BYTES_PER_TOKEN * sum([len(sequence) for sequence in prompt.sequences])
        answers = len(prompt.sequences)
    if "n" in params or "best_of" in params:
        candidates = max(params.get("n", 1), params.get("best_of", 1))
        answers *= candidates
        if candidates > 1 and any(_repeats_prompt(request, target) for target in targets):
            size *= candidates
    if request.unknown or request.extra_params or request.native is not None:
        return _with_members(request, targets, size, answers)
    return size, _most_sent(request, targets), answers


def is_short_work(request: UnifiedRequest) -> bool:
    """Return whether `request_size` takes less than a millisecond once the tokens of the prompt are known."""
    if not isinstance(request.prompt, ChatPrompt) or request.unknown or request.extra_params:
        return False
    return request.native is None or len(request.native.body) <= _MOST_FIELDS


def _most_sent(request: UnifiedRequest, targets: Sequence[Target]) -> int | None:
    """Return the client's `max_tokens` as sent to the target with the greatest limit of its own; `None` if the client
    gave no limit."""
    most = request.params.get("max_tokens")
    if most is None:
        return None
    return _held(most, targets)


def _held(amount: int, targets: Sequence[Target]) -> int:
    """Return a number of tokens that a client requests, lowered to the greatest limit of its own that any target
    has."""
    limits = [amount if target.max_output_tokens is None else target.max_output_tokens for target in targets]
    return min(amount, max(limits, default=amount))


def _with_members(request: UnifiedRequest, targets: Sequence[Target], size: int, answers: int) -> RequestSize:
    """Return the size of a request with fields that go to vendors unchanged. It includes the tokens that the fields let
    a vendor generate, and their text, which is read with the prompt."""
    added = [members for members in (request.unknown, request.extra_params) if members]
    size += sum([len(orjson.dumps(members)) for members in added])
    most = _most_sent(request, targets)
    if request.native is not None:
        added.append(request.native.body)
    asked = asked_amounts({target.profile.dialect for target in targets}, added)
    answers *= min(MOST_TOKENS, round(asked.answers))
    if asked.limit is None and not asked.added:
        return size, most, answers
    usual = (targets[0].max_output_tokens if targets else None) or DEFAULT_OUTPUT_TOKENS
    limits = [usual if most is None else most]
    if asked.limit is not None:
        limits.append(usual if asked.limit == UNLIMITED else _held(min(MOST_TOKENS, round(asked.limit)), targets))
    return size, max(limits) + _held(min(MOST_TOKENS, round(asked.added)), targets), answers


def _repeats_prompt(request: UnifiedRequest, target: Target) -> bool:
    """Return whether a target needs a separate call for each choice, each of which reads the prompt again."""
    try:
        return not target.dialect.capabilities(request, target)["n"].native
    except Refusal:
        return False  # the target is not called


def _of_messages(messages: Sequence[JsonObject]) -> int:
    tokens = 0
    for message in messages:
        content = message.get("content")
        if type(content) is not str or "reasoning_details" in message:
            tokens += _of_message(message)
            continue
        # This does the same as `_of_message`, but without a call for each message. Nearly all conversations consist of
        # such messages.
        size = len(content) if content.isascii() else len(content.encode(errors="replace"))
        tokens += PER_MESSAGE - (-size // BYTES_PER_TOKEN)
        if calls := message.get("tool_calls"):
            tokens -= -len(orjson.dumps(calls)) // BYTES_PER_TOKEN
    return tokens


def _of_message(message: JsonObject) -> int:
    content = message.get("content")
    tokens = PER_MESSAGE
    if isinstance(content, str):
        tokens += _of_text(content)
    elif isinstance(content, list):
        tokens += _of_parts(content)
    if calls := message.get("tool_calls"):
        tokens += _of_bytes(len(orjson.dumps(calls)))
    if "reasoning_details" not in message:
        return tokens
    details = message["reasoning_details"]
    return tokens + sum(
        [_of_text(thought) for thought in texts_of_details(details if isinstance(details, list) else ())]
    )


def _of_parts(parts: Sequence[JsonValue]) -> int:
    tokens = 0
    for part in parts:
        if (
            type(part) is dict
            and part.get("type") == "text"
            and len(part) == 2
            and type(text := part.get("text")) is str
        ):
            # This does the same as `_of_part`, but without a call for each part.
            tokens -= -(len(text) if text.isascii() else len(text.encode(errors="replace"))) // BYTES_PER_TOKEN
        else:
            tokens += _of_part(part)
    return tokens


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
