"""Translates Gemini's finish reasons into the common finish reasons, and lists the reasons that mean failure.

Sources: `google-genai` 3.4.0 types `FinishReason`, `BlockedReason`, November 2026.
"""

from collections.abc import Mapping

from providers.completion import FinishReason
from providers.dialects.shared.finish_reasons import read_finish_reason
from providers.failure import Failure, FailureKind, UpstreamError
from providers.vendor_text.vet_message import vet

_PLAIN: Mapping[str, FinishReason] = {"STOP": "stop", "MAX_TOKENS": "length"}
_PRECISE: Mapping[str, FinishReason] = {
    "CONTINUATION": "length",
    **dict.fromkeys(
        (
            "SAFETY",
            "RECITATION",
            "LANGUAGE",
            "OTHER",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
            "IMAGE_OTHER",
            "MODEL_ARMOR",
            "ESCALATION",
            "PUP_LIMITED_DISABLED",
        ),
        "content_filter",
    ),
}
_FAILURES: Mapping[str, FailureKind] = {
    # The model wrote an invalid response; a retry may give a valid one.
    "MALFORMED_FUNCTION_CALL": FailureKind.NONCONFORMING,
    "MALFORMED_RESPONSE": FailureKind.NONCONFORMING,
    "UNEXPECTED_TOOL_CALL": FailureKind.NONCONFORMING,
    "TOO_MANY_TOOL_CALLS": FailureKind.NONCONFORMING,
    "NO_IMAGE": FailureKind.NONCONFORMING,
    "MISSING_THOUGHT_SIGNATURE": FailureKind.INVALID_REQUEST,
}

BLOCKED = "PROMPT_BLOCKED_"
"""The prefix that marks a block reason among the finish reasons. The vendor gives the reason why a prompt was blocked
in a different enum from finish reasons."""


def check_finish(finish: str, message: str | None) -> None:
    """Raise UpstreamError for a finish reason that means failure."""
    if finish in _FAILURES:
        detail = f": {vet(message)}" if message else "."
        raise UpstreamError(Failure(_FAILURES[finish], f"The upstream broke its answer off with {finish}{detail}"))


def finish_reason(reason: str, called: bool) -> tuple[str, str | None]:
    """Return the common finish reason, and the vendor's own reason if it is more specific, otherwise `None`. `called`
    is true if the choice has a tool call; the common reason `stop` is then replaced by `tool_calls`."""
    if reason.startswith(BLOCKED):
        return "content_filter", reason.removeprefix(BLOCKED)
    finish, native = read_finish_reason(reason, _PLAIN, _PRECISE)
    return "tool_calls" if called and finish == "stop" and native is None else finish, native
