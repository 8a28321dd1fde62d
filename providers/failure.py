"""Failures of upstream calls, and what each kind means for the client and for further attempts.

Sources: status meanings from the vendors' error pages and SDKs as of November 2026; the verdicts are the gateway's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from providers.context_overflow import MAX_TEXT, Overflow


class FailureKind(StrEnum):
    """Why an attempt failed; the value is the `outcome` label of the attempts metric."""

    CONNECT = "connect"
    TLS = "tls"
    BUSY = "busy"
    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    QUOTA = "quota"
    AUTH = "auth"
    FORBIDDEN = "forbidden"
    INVALID_REQUEST = "invalid_request"
    UNSUPPORTED = "unsupported"
    CONTEXT_LENGTH = "context_length"
    CONTENT_FILTER = "content_filter"
    NOT_FOUND = "not_found"
    NO_MODEL = "model_not_found"
    OVERLOADED = "overloaded"
    SERVER = "server"
    TRUNCATED = "truncated"
    MALFORMED = "malformed"
    NONCONFORMING = "nonconforming"
    TOO_LARGE = "too_large"
    LOOP = "loop"
    STALE = "stale"


class Cause(StrEnum):
    """Why there was no connection, for a CONNECT, a TLS or a TIMEOUT before anything was sent."""

    DNS = "dns"
    WITHHELD = "withheld_address"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    TIMEOUT = "connect_timeout"
    CLOSED = "closed"
    OTHER = "connect"
    CERTIFICATE_EXPIRED = "certificate_expired"
    CERTIFICATE_EARLY = "certificate_not_yet_valid"
    CERTIFICATE_HOST = "certificate_wrong_host"
    CERTIFICATE_AUTHORITY = "certificate_unknown_authority"
    CERTIFICATE = "certificate"
    HANDSHAKE = "tls_handshake"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a kind means: the client's status, error type and code; whether another deployment may be called, whether
    the same one may be called again where there is no other, whether it counts against the deployment's health, and
    whether the cause may have passed when the client repeats the request."""

    status: int
    type: str
    code: str
    try_next: bool
    retry_same: bool
    counts_against: bool
    passes: bool


VERDICTS: dict[FailureKind, Verdict] = {
    FailureKind.CONNECT: Verdict(502, "server_error", "upstream_error", True, False, True, True),
    FailureKind.TLS: Verdict(502, "server_error", "upstream_error", True, False, True, False),
    FailureKind.BUSY: Verdict(503, "server_error", "overloaded", True, False, False, True),
    FailureKind.TIMEOUT: Verdict(504, "server_error", "upstream_timeout", True, False, True, False),
    FailureKind.RATE_LIMITED: Verdict(429, "requests", "rate_limit_exceeded", True, True, False, True),
    FailureKind.QUOTA: Verdict(429, "insufficient_quota", "insufficient_quota", True, False, False, False),
    FailureKind.AUTH: Verdict(502, "server_error", "upstream_auth_failed", True, False, True, False),
    # Of this request alone: a firewall, the region or a check of the account decides on each request.
    FailureKind.FORBIDDEN: Verdict(502, "server_error", "upstream_error", True, False, False, False),
    FailureKind.INVALID_REQUEST: Verdict(400, "invalid_request_error", "invalid_value", False, False, False, False),
    # The model does not take a part of the request; another model may.
    FailureKind.UNSUPPORTED: Verdict(400, "invalid_request_error", "unsupported_parameter", True, False, False, False),
    FailureKind.CONTEXT_LENGTH: Verdict(
        400, "invalid_request_error", "context_length_exceeded", False, False, False, False
    ),
    FailureKind.CONTENT_FILTER: Verdict(400, "invalid_request_error", "content_filter", False, False, False, False),
    FailureKind.NOT_FOUND: Verdict(502, "server_error", "upstream_error", True, False, False, False),
    FailureKind.NO_MODEL: Verdict(502, "server_error", "upstream_error", True, False, True, False),
    FailureKind.OVERLOADED: Verdict(503, "server_error", "overloaded", True, True, True, True),
    FailureKind.SERVER: Verdict(502, "server_error", "upstream_error", True, True, True, True),
    FailureKind.TRUNCATED: Verdict(502, "server_error", "upstream_error", True, False, True, True),
    FailureKind.MALFORMED: Verdict(502, "server_error", "malformed_upstream", True, False, True, False),
    # The answer breaks the request's constraint, which a client can make impossible to keep.
    FailureKind.NONCONFORMING: Verdict(502, "server_error", "malformed_upstream", True, True, False, True),
    # One request for more tokens than a minute's limit, which smaller requests can still use.
    FailureKind.TOO_LARGE: Verdict(429, "requests", "rate_limit_exceeded", True, False, False, False),
    # Another target may lead back as well, and each turn would call every target. A client can cause it.
    FailureKind.LOOP: Verdict(508, "server_error", "loop_detected", False, False, False, False),
    # The server closed an idle connection just as it was used again.
    FailureKind.STALE: Verdict(502, "server_error", "upstream_error", True, False, False, True),
}

MAYBE_EXECUTED: frozenset[FailureKind] = frozenset(
    {
        FailureKind.TIMEOUT,
        FailureKind.SERVER,
        FailureKind.TRUNCATED,
        FailureKind.MALFORMED,
        FailureKind.NONCONFORMING,
        FailureKind.STALE,
    }
)
"""Kinds after which an answer may have been generated, and may be billed, unless `Failure.unsent`. With the others the
vendor was not reached or refused the request."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt. `message` is safe to show to a client: written by the gateway, or passed through `vet`.

    `status` is the upstream's HTTP status where there was one, `code` and `param` its own where they are worth passing
    on, `retry_after` seconds; of a call that was withheld `code` is what
    the limit counts, or `insufficient_quota` of a spent budget. `overflow` holds the sizes
    that a CONTEXT_LENGTH reported, or an INVALID_REQUEST about the most tokens of an answer. `unsent` says that the
    upstream cannot have read the request. `cause` says why there was no connection. For the operator alone are `peer`,
    the `host:port` that could not be reached, `evidence`, a vetted part of the body that came instead of an answer, and
    `said`, the vendor's vetted words if the message is the gateway's, or else those of a provider behind the vendor.
    `vendor_id` is the vendor's id of the request if it was in the body. `ours` says that no part of the message is the
    vendor's.
    """

    kind: FailureKind
    message: str
    status: int | None = None
    code: str | None = None
    param: str | None = None
    retry_after: float | None = None
    overflow: Overflow | None = None
    unsent: bool = False
    cause: Cause | None = None
    peer: str = ""
    evidence: str = ""
    said: str = ""
    vendor_id: str = ""
    ours: bool = False

    @property
    def with_peer(self) -> str:
        """The message, with the peer that could not be reached."""
        return f"{self.message.removesuffix('.')} ({self.peer})." if self.peer else self.message

    @property
    def operator_message(self) -> str:
        """The message for the operator's log, with the evidence and the vendor's own words."""
        message = f"{self.with_peer} It began: {self.evidence}" if self.evidence else self.with_peer
        return f"{message} The vendor said: {self.said}" if self.said else message

    @property
    def maybe_executed(self) -> bool:
        """Whether the vendor may have generated an answer, and bill it."""
        return not self.unsent and self.kind in MAYBE_EXECUTED

    @property
    def withheld(self) -> bool:
        """Whether a limit that the operator has set kept the call from being made: vendors refuse what they got."""
        return self.unsent and self.kind is FailureKind.RATE_LIMITED


class UpstreamError(Exception):
    """A failed attempt; carries the `Failure`. `counted` says that what the call used has been counted."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.kind.value, failure.message)
        self.failure = failure
        self.counted = False


class Refusal(Exception):
    """A request that a deployment cannot honour; raised by `Dialect.encode` before anything is sent.

    `code` is `unsupported_parameter`, `invalid_value` or `conflicting_parameters`; `param` is the unified field's name.
    """

    def __init__(self, param: str, message: str, code: str = "unsupported_parameter") -> None:
        super().__init__(message)
        self.param = param
        self.message = message
        self.code = code


DENIALS = frozenset({FailureKind.AUTH, FailureKind.NO_MODEL})
"""Kinds of which one failure is enough to open the circuit: only the operator can correct their cause."""

AGAINST_ALL = frozenset(
    {kind for kind, verdict in VERDICTS.items() if verdict.counts_against}
    | {FailureKind.RATE_LIMITED, FailureKind.QUOTA}
)
"""Kinds after which no request is sent to a deployment for a while. Statuses and codes lead to them; a message does
only where the whole of it matches, since vendors quote what clients sent."""


OUR_WORDS: Mapping[FailureKind, str] = {
    FailureKind.AUTH: "The upstream refused the gateway's credential.",
    FailureKind.NOT_FOUND: "The upstream does not know this model or path; the routing table names one it lacks.",
    FailureKind.NO_MODEL: "The upstream does not have this model, or not for the gateway's account.",
    FailureKind.FORBIDDEN: "The upstream does not serve this request to the gateway's account.",
    FailureKind.QUOTA: "The upstream's account has no credit left.",
}
"""Messages in place of the vendor's, for kinds that are about the operator's account and that no client can change."""


UNKNOWN_MODEL = "model_not_found"
"""The code of a NOT_FOUND that is the client's: it named a model of its own, and the vendor has none of that name."""


UNKNOWN_ITEM = "item_not_found"
"""The code of an UNSUPPORTED that names what the client refers to by an id, such as a file, and the vendor lacks."""


ENDED_EARLY = "The upstream's stream ended before its answer did."


STATUS_KINDS: Mapping[int, FailureKind] = {
    401: FailureKind.AUTH,
    402: FailureKind.QUOTA,
    403: FailureKind.AUTH,
    404: FailureKind.NOT_FOUND,
    408: FailureKind.TIMEOUT,
    409: FailureKind.SERVER,
    429: FailureKind.RATE_LIMITED,
    503: FailureKind.OVERLOADED,
    504: FailureKind.TIMEOUT,
}
"""What a status means on most vendors' APIs."""


def kind_of_status(status: int | None, known: Mapping[int, FailureKind]) -> FailureKind:
    """Return what a status means where nothing else decides: as in `known`, or by its class; None for an error within
    an answer."""
    if status is None or status >= 500:
        return known.get(status or 500, FailureKind.SERVER)
    # Redirects are not followed.
    return known.get(status, FailureKind.INVALID_REQUEST if status >= 400 else FailureKind.MALFORMED)


def message_text(value: object) -> str:
    """Return the part of a vendor's text that is read; empty where it is no text."""
    return value[:MAX_TEXT] if isinstance(value, str) else ""
