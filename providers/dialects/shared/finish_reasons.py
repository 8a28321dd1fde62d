"""Translates vendors' finish reasons to the common ones, and recognizes unknown reasons that mean failure."""

import re
from collections.abc import Mapping

from providers.completion import FinishReason
from providers.failure import Failure, FailureKind, UpstreamError

_MAX_WORD = 64
_FAILURE_WORDS: Mapping[str, FailureKind] = {
    **dict.fromkeys(
        ("error", "errored", "fail", "failed", "failure", "exception", "abort", "aborted"), FailureKind.SERVER
    ),
    **dict.fromkeys(("cancel", "canceled", "cancelled", "interrupted", "disconnected"), FailureKind.SERVER),
    **dict.fromkeys(("timeout", "timedout"), FailureKind.TIMEOUT),
    "overloaded": FailureKind.OVERLOADED,
    # The model wrote no valid response; another attempt may succeed. `load` and `unload`: Ollama has only loaded or
    # unloaded the model, also by its API of OpenAI's form (`openai/openai.go`; ollama issue 8395).
    **dict.fromkeys(("malformed", "load", "unload"), FailureKind.NONCONFORMING),
}
_WORD_SEPARATORS = re.compile(r"[^a-z]+")


def read_finish_reason(
    reason: str, plain: Mapping[str, FinishReason], shown: Mapping[str, FinishReason] | None = None
) -> tuple[str, str | None]:
    """Return the common finish reason, and the vendor's own reason if that is more specific, otherwise `None`.

    `plain` maps reasons that mean the same as a common reason. `shown` maps reasons that are more specific. An unknown
    reason is returned as both. Raises UpstreamError if the reason means failure.
    """
    if common := plain.get(reason):
        return common, None
    return (shown or {}).get(reason) or vendor_finish_reason(reason), reason


def vendor_finish_reason(word: str) -> str:
    """Return a finish reason that the dialect does not know, unchanged.

    Raises UpstreamError if the reason or a part of it (as in `internal_error`) means failure, and if the reason is
    empty, too long or not printable ASCII. Vendors add several reasons a year, most of them harmless. An unknown reason
    never becomes `stop`, which is only for ends that are known to be good. APIs with a fixed list of reasons return a
    reason of that list, and this word as `native_finish_reason`.
    """
    if not word or len(word) > _MAX_WORD or not (word.isascii() and word.isprintable()):
        raise UpstreamError(
            Failure(FailureKind.MALFORMED, "The upstream's response has a finish reason that is not a word.")
        )
    lowered = word.lower()
    for part in (*_WORD_SEPARATORS.split(lowered), _WORD_SEPARATORS.sub("", lowered)):
        if part in _FAILURE_WORDS:
            raise finish_error(word, _FAILURE_WORDS[part])
    return word


def finish_error(word: str, kind: FailureKind) -> UpstreamError:
    """Return the error for a response whose finish reason means failure."""
    return UpstreamError(Failure(kind, f"The upstream ended its response with the finish reason {word!r}."))
