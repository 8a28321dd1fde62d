"""Divides log probabilities between two tokens and joins them again, both as a `content` list and as arrays."""

from collections.abc import Sequence
from typing import TypeVar

from providers.completion import ContentLogprobs, LegacyLogprobs, Logprobs
from providers.emulation.logprobs import to_content, token_bytes

_T = TypeVar("_T")


def text_of_tokens(logprobs: Logprobs) -> str:
    """Return the text of the tokens, without the tokens of a refusal. Incomplete characters are replaced."""
    if isinstance(logprobs, LegacyLogprobs):
        return "".join(logprobs.tokens)
    return b"".join([token_bytes(token) for token in logprobs.content]).decode(errors="replace")


def slice_logprobs(logprobs: Logprobs, first: int, last: int | None = None) -> Logprobs:
    """Return the log probabilities of the tokens from `first` up to but not including `last`. Without `last`, return
    the log probabilities of all tokens from `first` on, including the tokens of a refusal."""
    place = slice(first, last)
    if isinstance(logprobs, ContentLogprobs):
        return ContentLogprobs(logprobs.content[place], logprobs.refusal if last is None else ())
    return LegacyLogprobs(
        logprobs.tokens[place],
        logprobs.token_logprobs[place],
        None if logprobs.top_logprobs is None else logprobs.top_logprobs[place],
        None if logprobs.text_offset is None else logprobs.text_offset[place],
    )


def join_logprobs(parts: Sequence[Logprobs]) -> Logprobs | None:
    """Return the log probabilities joined into one object; `None` if there are no log probabilities. A mixture of both
    forms becomes a `content` list."""
    if len(parts) <= 1:
        return parts[0] if parts else None
    arrays = [part for part in parts if isinstance(part, LegacyLogprobs)]
    if len(arrays) == len(parts):
        return _join_arrays(arrays)
    lists = [to_content(part) if isinstance(part, LegacyLogprobs) else part for part in parts]
    return ContentLogprobs(
        tuple([token for part in lists for token in part.content]),
        tuple([token for part in lists for token in part.refusal]),
    )


def _join_arrays(parts: Sequence[LegacyLogprobs]) -> LegacyLogprobs:
    """Join arrays. The result has alternatives if any part has alternatives, and offsets only if every part has
    offsets."""
    tops = None
    if any(part.top_logprobs is not None for part in parts):
        tops = tuple([top for part in parts for top in _padded(part.top_logprobs or (), len(part.tokens))])
    return LegacyLogprobs(
        tuple([token for part in parts for token in part.tokens]),
        tuple([value for part in parts for value in _padded(part.token_logprobs, len(part.tokens))]),
        tops,
        _offsets(parts),
    )


def _offsets(parts: Sequence[LegacyLogprobs]) -> tuple[int, ...] | None:
    offsets: list[int] = []
    for part in parts:
        if part.text_offset is None:
            return None
        offsets += part.text_offset
    return tuple(offsets)


def _padded(values: Sequence[_T | None], size: int) -> list[_T | None]:
    """Pad an array that a vendor left shorter than its tokens, so that later entries stay aligned."""
    return [*values[:size], *[None] * (size - len(values))]
