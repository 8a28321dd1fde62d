"""Converts between the two forms of log probabilities: chat's `content` list and completion's four arrays.

Sources: OpenAI OpenAPI 2.3.0 (`ChatCompletionTokenLogprob`, `CreateCompletionResponse.choices.logprobs`); the offsets
of the arrays count code points from the start of prompt and completion together, as a recorded OpenAI stream shows.
"""

import codecs
from collections.abc import Iterable, Mapping
from itertools import chain, repeat

from providers.completion import FLOOR_LOGPROB, ContentLogprobs, LegacyLogprobs, TokenLogprob

_UTF8 = codecs.getincrementaldecoder("utf-8")


class Offsets:
    """The offset of each token of one choice, in code points, across the chunks of a stream.

    `base` is the offset at which the text begins: the prompt's length, or 0 if the text repeats the prompt or the
    prompt's text is unknown. A token that begins within a character has the offset of that character.
    """

    __slots__ = ("_decoder", "_position")

    def __init__(self, base: int = 0) -> None:
        self._position = base
        # An invalid UTF-8 sequence counts as the replacement characters that a reader would see.
        self._decoder = _UTF8("replace")

    def of_tokens(self, tokens: Iterable[TokenLogprob]) -> tuple[int, ...]:
        """Return the offsets of the next tokens, from their bytes if the vendor reported them."""
        return tuple([self._next(token_bytes(token)) for token in tokens])

    def of_texts(self, texts: Iterable[str]) -> tuple[int, ...]:
        """Return the offsets of the next tokens, from their texts."""
        return tuple([self._next(text.encode(errors="replace")) for text in texts])

    def _next(self, data: bytes) -> int:
        start = self._position
        self._position += len(self._decoder.decode(data))
        return start


def token_bytes(token: TokenLogprob) -> bytes:
    """Return the token's bytes. If they are missing or invalid, return the bytes of its text."""
    try:
        return token.token.encode(errors="replace") if token.bytes is None else bytes(token.bytes)
    except ValueError:  # a number above 255 is not a byte
        return token.token.encode(errors="replace")


def floor_logprob(logprob: float) -> float:
    """Return the log probability, or FLOOR_LOGPROB for NaN and for any lower number, such as -inf: JSON has neither NaN
    nor -inf."""
    return logprob if logprob > FLOOR_LOGPROB else FLOOR_LOGPROB


def to_legacy(logprobs: ContentLogprobs, offsets: Offsets) -> LegacyLogprobs:
    """Return the four arrays of a `content` list, or of the `refusal` list if `content` is empty.

    Each map of `top_logprobs` holds the alternatives and the sampled token, so it may have one entry more than
    requested. If two tokens have the same text, the map holds the more likely token.
    """
    tokens = logprobs.content or logprobs.refusal
    return LegacyLogprobs(
        tuple([token.token for token in tokens]),
        tuple([floor_logprob(token.logprob) for token in tokens]),
        tuple([_alternatives(token) for token in tokens]),
        offsets.of_tokens(tokens),
    )


def _alternatives(token: TokenLogprob) -> Mapping[str, float]:
    listed: dict[str, float] = {}
    for entry in (*token.top, token):
        logprob = floor_logprob(entry.logprob)
        if logprob >= listed.get(entry.token, FLOOR_LOGPROB):
            listed[entry.token] = logprob
    return listed


def to_content(logprobs: LegacyLogprobs) -> ContentLogprobs:
    """Return the `content` list that corresponds to four arrays.

    A token without a log probability is left out, since the list cannot hold it. Such a token is the first token of an
    echoed prompt, or stands at the end of a vendor's arrays of unequal lengths.
    """
    tops = chain(logprobs.top_logprobs or (), repeat(None))
    positions = zip(logprobs.tokens, logprobs.token_logprobs, tops, strict=False)
    return ContentLogprobs(
        tuple([_entry(token, logprob, _ranked(top)) for token, logprob, top in positions if logprob is not None])
    )


def _ranked(top: Mapping[str, float] | None) -> tuple[TokenLogprob, ...]:
    if not top:
        return ()
    return tuple([_entry(token, top[token], ()) for token in sorted(top, key=lambda name: -floor_logprob(top[name]))])


def _entry(token: str, logprob: float, top: tuple[TokenLogprob, ...]) -> TokenLogprob:
    return TokenLogprob(token, floor_logprob(logprob), tuple(token.encode(errors="replace")), top)
