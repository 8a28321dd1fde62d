"""Cuts log probabilities between two tokens and joins them again, in either form."""

from collections.abc import Sequence
from typing import TypeVar

from providers.completion import ContentLogprobs, LegacyLogprobs, Logprobs
from providers.emulation.logprobs import to_content, token_bytes

_T = TypeVar("_T")


def spell(logprobs: Logprobs) -> str:
    """Return the text that the tokens make, without those of a refusal; incomplete characters are replaced."""
    if isinstance(logprobs, LegacyLogprobs):
        return "".join(logprobs.tokens)
    return b"".join([token_bytes(token) for token in logprobs.content]).decode(errors="replace")


def slice_logprobs(logprobs: Logprobs, first: int, last: int | None = None) -> Logprobs:
    """Return the tokens from `first` to before `last`, or to the end, which includes the tokens of a refusal."""
    place = slice(first, last)
    if isinstance(logprobs, ContentLogprobs):
        return ContentLogprobs(logprobs.content[place], logprobs.refusal if last is None else ())
    return LegacyLogprobs(
        logprobs.tokens[place],
        logprobs.token_logprobs[place],
        None if logprobs.top_logprobs is None else logprobs.top_logprobs[place],
        None if logprobs.text_offset is None else logprobs.text_offset[place],
    )


def join_logprobs(pieces: Sequence[Logprobs]) -> Logprobs | None:
    """Return the pieces in one; None for no piece. Pieces of both forms become a `content` list."""
    if len(pieces) <= 1:
        return pieces[0] if pieces else None
    arrays = [piece for piece in pieces if isinstance(piece, LegacyLogprobs)]
    if len(arrays) == len(pieces):
        return _one(arrays)
    lists = [to_content(piece) if isinstance(piece, LegacyLogprobs) else piece for piece in pieces]
    return ContentLogprobs(
        tuple([token for piece in lists for token in piece.content]),
        tuple([token for piece in lists for token in piece.refusal]),
    )


def _one(pieces: Sequence[LegacyLogprobs]) -> LegacyLogprobs:
    """Join arrays; alternatives are kept where some piece has them, offsets only where every piece does."""
    tops = None
    if any(piece.top_logprobs is not None for piece in pieces):
        tops = tuple([top for piece in pieces for top in _padded(piece.top_logprobs or (), len(piece.tokens))])
    return LegacyLogprobs(
        tuple([token for piece in pieces for token in piece.tokens]),
        tuple([value for piece in pieces for value in _padded(piece.token_logprobs, len(piece.tokens))]),
        tops,
        _offsets(pieces),
    )


def _offsets(pieces: Sequence[LegacyLogprobs]) -> tuple[int, ...] | None:
    offsets: list[int] = []
    for piece in pieces:
        if piece.text_offset is None:
            return None
        offsets += piece.text_offset
    return tuple(offsets)


def _padded(values: Sequence[_T | None], size: int) -> list[_T | None]:
    """Pad an array that some vendor left shorter than its tokens, so that what follows keeps its place."""
    return [*values[:size], *[None] * (size - len(values))]
