"""Failures of upstream calls, and the meaning of each kind for the client and for further attempts.

Sources: the meanings of statuses are from the vendors' error pages and SDKs as of November 2026. The verdicts are the
gateway's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from providers.context_overflow import MAX_TEXT, Overflow


class FailureKind(StrEnum):
    """The reason why an attempt failed. The value is the `outcome` label of the attempts metric."""

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
    """The reason why there was no connection, for CONNECT, TLS, and a TIMEOUT before anything was sent."""

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
    """The meaning of a kind.

    `status`, `type` and `code` are the client's status, error type and error code. `try_next` is true if another
    deployment may be called, `retry_same` if the same deployment may be called again when there is no other.
    `counts_against` is true if the failure counts against the deployment's health. `passes` is true if the cause may be
    gone when the client repeats the request.
    """

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
    # The failure concerns this request alone: a firewall, the region or a check of the account decides on each request.
    FailureKind.FORBIDDEN: Verdict(502, "server_error", "upstream_error", True, False, False, False),
    FailureKind.INVALID_REQUEST: Verdict(400, "invalid_request_error", "invalid_value", False, False, False, False),
    # The model does not accept a part of the request; another model may.
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
    # The response breaks the request's constraint. A client can write a constraint that no response fits.
    FailureKind.NONCONFORMING: Verdict(502, "server_error", "malformed_upstream", True, True, False, True),
    # One request needs more tokens than the limit of a minute. Smaller requests can still be sent.
    FailureKind.TOO_LARGE: Verdict(429, "requests", "rate_limit_exceeded", True, False, False, False),
    # Another target may lead back to this gateway as well, and each round would call every target. A client can cause
    # this failure.
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
"""Kinds after which the vendor may have generated a response, and may bill it, unless `Failure.unsent`. With the other
kinds the vendor was not reached or refused the request."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt. `message` may be returned to a client: the gateway wrote it, or it passed through `vet`.

    `status` is the upstream's HTTP status, if there was one. `code` and `param` are the upstream's, if they are useful
    to the client. For a call that was not made, `code` is the amount that the limit counts, or `insufficient_quota` for
    a spent budget. `retry_after` is in seconds. `overflow` holds the sizes that a CONTEXT_LENGTH reported, or an
    INVALID_REQUEST about the most tokens of a response. `unsent` is true if the upstream cannot have read the request.
    `cause` is the reason why there was no connection. `vendor_id` is the vendor's id of the request, if it was in the
    body. `ours` is true if no part of the message is the vendor's.

    Three fields are for the operator alone. `peer` is the `host:port` that could not be reached. `evidence` is a vetted
    part of the body that came instead of a response. `said` is the vendor's vetted message if `message` is the
    gateway's, or else the message of a provider behind the vendor.
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
        """The message for the operator's log, with the evidence and the vendor's own message."""
        message = f"{self.with_peer} It began: {self.evidence}" if self.evidence else self.with_peer
        return f"{message} The vendor said: {self.said}" if self.said else message

    @property
    def maybe_executed(self) -> bool:
        """Whether the vendor may have generated a response, and may bill it."""
        return not self.unsent and self.kind in MAYBE_EXECUTED

    @property
    def withheld(self) -> bool:
        """Whether the call was not made because of a limit that the operator has set. A vendor's own limit only refuses
        calls that were sent."""
        return self.unsent and self.kind is FailureKind.RATE_LIMITED


class UpstreamError(Exception):
    """A failed attempt, with its `Failure`. `counted` is true if the usage of the call has been counted."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.kind.value, failure.message)
        self.failure = failure
        self.counted = False


class Refusal(Exception):
    """A request that a deployment does not support. `Dialect.encode` raises it before anything is sent.

    `code` is `unsupported_parameter`, `invalid_value` or `conflicting_parameters`. `param` is the unified field's name.
    """

    def __init__(self, param: str, message: str, code: str = "unsupported_parameter") -> None:
        super().__init__(message)
        self.param = param
        self.message = message
        self.code = code


CIRCUIT_OPENING_KINDS = frozenset({FailureKind.AUTH, FailureKind.NO_MODEL})
"""Kinds for which one failure opens the circuit: only the operator can correct their cause."""

COOLDOWN_KINDS = frozenset(
    {kind for kind, verdict in VERDICTS.items() if verdict.counts_against}
    | {FailureKind.RATE_LIMITED, FailureKind.QUOTA}
)
"""Kinds after which no request is sent to a deployment for a while. The kinds are recognised by statuses and codes. A
message leads to such a kind only if a pattern matches the whole message, since vendors quote the texts of clients."""


GATEWAY_MESSAGES: Mapping[FailureKind, str] = {
    FailureKind.AUTH: "The upstream refused the gateway's credential.",
    FailureKind.NOT_FOUND: "The upstream does not know this model or path; the configuration names one that it lacks.",
    FailureKind.NO_MODEL: "The upstream does not have this model, or not for the gateway's account.",
    FailureKind.FORBIDDEN: "The upstream does not serve this request to the gateway's account.",
    FailureKind.QUOTA: "The upstream's account has no credit left.",
}
"""Messages that replace the vendor's, for kinds that concern the operator's account and that no client can correct."""


UNKNOWN_MODEL = "model_not_found"
"""The code of a NOT_FOUND that the client caused: it requested a model by its own name, and the vendor has no such
model."""


UNKNOWN_ITEM = "item_not_found"
"""The code of an UNSUPPORTED for an object, such as a file, that the client refers to by an id and the vendor does not
have."""


ENDED_EARLY = "The upstream's stream ended before the response was complete."


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
"""The meaning of a status on most vendors' APIs."""


def kind_of_status(status: int | None, known: Mapping[int, FailureKind]) -> FailureKind:
    """Return the meaning of a status if nothing else decides: the kind in `known`, or the kind of its class. `status`
    is `None` for an error within a response."""
    if status is None or status >= 500:
        return known.get(status or 500, FailureKind.SERVER)
    # Redirects are not followed.
    return known.get(status, FailureKind.INVALID_REQUEST if status >= 400 else FailureKind.MALFORMED)


def message_text(value: object) -> str:
    """Return the part of a vendor's text that the gateway reads; an empty text if the value is no text."""
    return value[:MAX_TEXT] if isinstance(value, str) else ""
