"""Finish reasons that no dialect's table knows: which of them mean failure, whoever says them.

Never a vendor's own table: a dialect asks it first. Never `stop` for a word that nobody knows: only ends known to be
good are told as good.
"""

import re
from collections.abc import Mapping

from providers.failure import Failure, FailureKind, UpstreamError

_MAX_WORD = 64
_BROKEN: Mapping[str, FailureKind] = {
    **dict.fromkeys(
        ("error", "errored", "fail", "failed", "failure", "exception", "abort", "aborted"), FailureKind.SERVER
    ),
    **dict.fromkeys(("cancel", "canceled", "cancelled", "interrupted", "disconnected"), FailureKind.SERVER),
    **dict.fromkeys(("timeout", "timedout"), FailureKind.TIMEOUT),
    "overloaded": FailureKind.OVERLOADED,
    # The model wrote what is no answer; asked again it may write another.
    "malformed": FailureKind.NONCONFORMING,
}
_PARTS = re.compile(r"[^a-z]+")


def own_word(word: str) -> str:
    """A finish reason that the dialect does not know, as the vendor wrote it. Raises UpstreamError for one that says
    that the answer was broken off, by itself or as a part (`internal_error`), and for what is no word at all.

    Vendors add words several times a year, most of them harmless, and none of them is known to be a good end.
    """
    if not word or len(word) > _MAX_WORD or not (word.isascii() and word.isprintable()):
        raise UpstreamError(Failure(FailureKind.MALFORMED, "The upstream's answer has no word for a finish reason."))
    said = word.lower()
    for part in (*_PARTS.split(said), _PARTS.sub("", said)):
        if part in _BROKEN:
            raise broken_off(word, _BROKEN[part])
    return word


def broken_off(word: str, kind: FailureKind) -> UpstreamError:
    """The vendor has ended its answer with a word that means failure."""
    return UpstreamError(Failure(kind, f"The upstream broke its answer off with the finish reason {word!r}."))
