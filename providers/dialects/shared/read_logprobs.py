"""Reads the log probabilities in vendors' responses, in the shape of chats or of the completion API, or as one
number."""

from collections.abc import Mapping
from math import isfinite

from providers.completion import FLOOR_LOGPROB, ContentLogprobs, LegacyLogprobs, Logprobs, TokenLogprob
from providers.dialects.shared.read_json import text_of
from providers.json_types import JsonObject, JsonValue


def logprobs_of(raw: JsonValue, text: str) -> Logprobs | None:
    """Return the log probabilities of a choice, otherwise `None`.

    llama.cpp responds in the shape of chats on both routes. Together's streams have one number, which is the log
    probability of `text`.
    """
    if isinstance(raw, dict):
        content, refusal = _tokens(raw.get("content")), _tokens(raw.get("refusal"))
        if content or refusal:
            return ContentLogprobs(content, refusal)
        tokens = raw.get("tokens")
        return _legacy(raw, tokens) if isinstance(tokens, list) and tokens else None
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return LegacyLogprobs((text,), (logprob(raw),), None, None)
    return None


def _tokens(raw: JsonValue) -> tuple[TokenLogprob, ...]:
    return tuple([_token(entry, _alternatives(entry.get("top_logprobs"))) for entry in objects_in(raw)])


def _alternatives(raw: JsonValue) -> tuple[TokenLogprob, ...]:
    """Return the alternatives of a token. They are read only one level deep, so that no vendor controls the depth of
    the stack."""
    return tuple([_token(entry, ()) for entry in objects_in(raw)])


def objects_in(raw: JsonValue) -> list[JsonObject]:
    """Return the objects in a list; an empty list if the value is not a list."""
    return [entry for entry in raw if isinstance(entry, dict)] if isinstance(raw, list) else []


def _token(entry: JsonObject, top: tuple[TokenLogprob, ...]) -> TokenLogprob:
    raw_bytes = entry.get("bytes")
    return TokenLogprob(
        text_of(entry.get("token")),
        logprob(entry.get("logprob")),
        tuple([byte for byte in raw_bytes if isinstance(byte, int)]) if isinstance(raw_bytes, list) else None,
        top,
    )


def logprob(raw: JsonValue) -> float:
    """Return a log probability, or FLOOR_LOGPROB if the vendor's value is null or minus infinity."""
    if isinstance(raw, int | float) and isfinite(raw):
        return float(raw)
    return FLOOR_LOGPROB


def _legacy(raw: JsonObject, tokens: list[JsonValue]) -> LegacyLogprobs:
    values, tops, offsets = raw.get("token_logprobs"), raw.get("top_logprobs"), raw.get("text_offset")
    known = [offset for offset in offsets if isinstance(offset, int)] if isinstance(offsets, list) else []
    # SGLang sends -1 for every offset.
    usable = len(known) == len(tokens) and all(offset >= 0 for offset in known)
    return LegacyLogprobs(
        tokens=tuple(str(token) for token in tokens),
        token_logprobs=tuple(None if value is None else logprob(value) for value in values)
        if isinstance(values, list)
        else (),
        top_logprobs=tuple(_top(entry) for entry in tops) if isinstance(tops, list) else None,
        text_offset=tuple(known) if usable else None,
    )


def _top(raw: JsonValue) -> Mapping[str, float] | None:
    return {token: logprob(value) for token, value in raw.items()} if isinstance(raw, dict) else None
