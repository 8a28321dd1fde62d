"""Vendors' finish reasons in the common words, and which of the unknown ones mean failure."""

import re
from collections.abc import Mapping

from providers.completion import FinishReason
from providers.failure import Failure, FailureKind, UpstreamError

_MAX_WORD = 64
_BROKEN: Mapping[str, FailureKind] = {
    **dict.fromkeys(
        ("error", "errored", "fail", "failed", "failure", "exception", "abort", "aborted"), FailureKind.SERVER
    ),
    **dict.fromkeys(("cancel", "canceled", "cancelled", "interrupted", "disconnected"), FailureKind.SERVER),
    **dict.fromkeys(("timeout", "timedout"), FailureKind.TIMEOUT),
    "overloaded": FailureKind.OVERLOADED,
    # The model wrote no valid answer; another attempt may succeed. Ollama has only loaded or unloaded the model, also
    # by its API of OpenAI's form (`openai/openai.go`; ollama issue 8395).
    **dict.fromkeys(("malformed", "load", "unload"), FailureKind.NONCONFORMING),
}
_PARTS = re.compile(r"[^a-z]+")


def read_finish_reason(
    reason: str, plain: Mapping[str, FinishReason], shown: Mapping[str, FinishReason] | None = None
) -> tuple[str, str | None]:
    """Return the common finish reason, and the vendor's own unless it says no more than the common one.

    `plain` has the common reason of those that say no more, `shown` of those that do. An unknown one is both. Raises
    UpstreamError for one that means failure.
    """
    if common := plain.get(reason):
        return common, None
    return (shown or {}).get(reason) or vendor_finish_reason(reason), reason


def vendor_finish_reason(word: str) -> str:
    """Return a finish reason that the dialect does not know, as the vendor wrote it.

    Raises UpstreamError for one that means failure, by itself or as a part (`internal_error`), and for what is no word.
    Vendors add several a year, most of them harmless; none of them is `stop` here, which is only for ends known to be
    good. APIs with a list of reasons return one of these, and this word as `native_finish_reason`.
    """
    if not word or len(word) > _MAX_WORD or not (word.isascii() and word.isprintable()):
        raise UpstreamError(Failure(FailureKind.MALFORMED, "The upstream's answer has no word for a finish reason."))
    said = word.lower()
    for part in (*_PARTS.split(said), _PARTS.sub("", said)):
        if part in _BROKEN:
            raise finish_error(word, _BROKEN[part])
    return word


def finish_error(word: str, kind: FailureKind) -> UpstreamError:
    """Return the error for an answer that ended with a word that means failure."""
    return UpstreamError(Failure(kind, f"The upstream broke its answer off with the finish reason {word!r}."))
