"""What can go wrong with an upstream, and what each kind means for the client and for the next try.

Never holds an HTTP client's exceptions, a retry loop, or text that a vendor sent and nobody vetted.

Sources: status meanings from the vendors' error pages and SDKs as of November 2026; the table of verdicts is ours.
"""

import re
from dataclasses import dataclass
from enum import StrEnum


class FailureKind(StrEnum):
    """Why an attempt failed; the value is the `outcome` label of the attempts metric."""

    CONNECT = "connect"
    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    QUOTA = "quota"
    AUTH = "auth"
    INVALID_REQUEST = "invalid_request"
    CONTEXT_LENGTH = "context_length"
    CONTENT_FILTER = "content_filter"
    NOT_FOUND = "not_found"
    OVERLOADED = "overloaded"
    SERVER = "server"
    TRUNCATED = "truncated"
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a kind means: the client's status, error type and code; whether the next deployment may be tried, whether the
    same one may be asked again, and whether it speaks against the deployment's health."""

    status: int
    type: str
    code: str
    try_next: bool
    retry_same: bool
    counts_against: bool


VERDICTS: dict[FailureKind, Verdict] = {
    FailureKind.CONNECT: Verdict(502, "server_error", "upstream_error", True, True, True),
    FailureKind.TIMEOUT: Verdict(504, "server_error", "upstream_timeout", True, False, True),
    FailureKind.RATE_LIMITED: Verdict(429, "requests", "rate_limit_exceeded", True, True, False),
    FailureKind.QUOTA: Verdict(429, "insufficient_quota", "insufficient_quota", True, False, False),
    FailureKind.AUTH: Verdict(502, "server_error", "upstream_auth_failed", True, False, True),
    FailureKind.INVALID_REQUEST: Verdict(400, "invalid_request_error", "invalid_value", False, False, False),
    FailureKind.CONTEXT_LENGTH: Verdict(400, "invalid_request_error", "context_length_exceeded", False, False, False),
    FailureKind.CONTENT_FILTER: Verdict(400, "invalid_request_error", "content_filter", False, False, False),
    FailureKind.NOT_FOUND: Verdict(502, "server_error", "upstream_error", True, False, True),
    FailureKind.OVERLOADED: Verdict(503, "server_error", "overloaded", True, True, True),
    FailureKind.SERVER: Verdict(502, "server_error", "upstream_error", True, True, True),
    FailureKind.TRUNCATED: Verdict(502, "server_error", "upstream_error", True, True, True),
    FailureKind.MALFORMED: Verdict(502, "server_error", "malformed_upstream", True, False, True),
}


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt. `message` is safe to show to a client: written by us, or passed through `vet`.

    `status` is the upstream's HTTP status where there was one, `code` and `param` its own words when they are worth
    passing on, `retry_after` seconds.
    """

    kind: FailureKind
    message: str
    status: int | None = None
    code: str | None = None
    param: str | None = None
    retry_after: float | None = None


class UpstreamError(Exception):
    """An attempt failed; carries the `Failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.kind.value, failure.message)
        self.failure = failure


class Refusal(Exception):
    """A deployment cannot honour the request as asked; raised by `Dialect.encode` before anything is sent.

    `code` is `unsupported_parameter`, `invalid_value` or `conflicting_parameters`; `param` is the unified field's name.
    """

    def __init__(self, param: str, message: str, code: str = "unsupported_parameter") -> None:
        super().__init__(message)
        self.param = param
        self.message = message
        self.code = code


MAX_MESSAGE = 500
_SECRET = re.compile(
    r"(?i)\b(?:sk|pk|rk|key|gsk|fw|xai|hf|nvapi|org|proj)[-_][A-Za-z0-9_*-]{6,}"
    r"|\bBearer\s+\S+|\bAKIA[A-Z0-9]{12,}|\beyJ[\w-]+\.[\w-]+\.[\w-]*"
)
_ADDRESS = re.compile(
    r"(?i)\b[a-z][a-z0-9+.-]*://\S+|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|(?<![\w.])/(?:[\w.-]+/)+[\w.-]+"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def vet(text: str) -> str:
    """A vendor's message made fit to show: one line, capped, without keys, organisation ids, addresses or paths."""
    capped = text[: 4 * MAX_MESSAGE]
    clean = _ADDRESS.sub("[address]", _SECRET.sub("[redacted]", _CONTROL.sub(" ", capped)))
    return clean if len(clean) <= MAX_MESSAGE else clean[: MAX_MESSAGE - 1] + "…"
