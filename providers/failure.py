"""What can go wrong with an upstream, and what each kind means for the client and for the next try.

Never holds an HTTP client's exceptions, a retry loop, or text that a vendor sent and nobody vetted.

Sources: status meanings from the vendors' error pages and SDKs as of November 2026; the table of verdicts is ours.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import StrEnum

from providers.context import MAX_TEXT, Overflow


class FailureKind(StrEnum):
    """Why an attempt failed; the value is the `outcome` label of the attempts metric."""

    CONNECT = "connect"
    TLS = "tls"
    BUSY = "busy"
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
    NONCONFORMING = "nonconforming"
    TOO_LARGE = "too_large"
    LOOP = "loop"
    STALE = "stale"


class Cause(StrEnum):
    """Why no connection came about: what a CONNECT, a TLS or a TIMEOUT before anything was sent was."""

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
    """What a kind means: the client's status, error type and code; whether the next deployment may be tried, whether
    the same one may be asked again where there is no other, whether it speaks against the deployment's health, and
    whether it may be over when the client asks again."""

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
    FailureKind.INVALID_REQUEST: Verdict(400, "invalid_request_error", "invalid_value", False, False, False, False),
    FailureKind.CONTEXT_LENGTH: Verdict(
        400, "invalid_request_error", "context_length_exceeded", False, False, False, False
    ),
    FailureKind.CONTENT_FILTER: Verdict(400, "invalid_request_error", "content_filter", False, False, False, False),
    FailureKind.NOT_FOUND: Verdict(502, "server_error", "upstream_error", True, False, False, False),
    FailureKind.OVERLOADED: Verdict(503, "server_error", "overloaded", True, True, True, True),
    FailureKind.SERVER: Verdict(502, "server_error", "upstream_error", True, True, True, True),
    FailureKind.TRUNCATED: Verdict(502, "server_error", "upstream_error", True, False, True, True),
    FailureKind.MALFORMED: Verdict(502, "server_error", "malformed_upstream", True, False, True, False),
    # The model's answer breaks what the request asked of it: a client can ask for what no answer keeps.
    FailureKind.NONCONFORMING: Verdict(502, "server_error", "malformed_upstream", True, True, False, True),
    # One request for more than a whole minute's tokens: others still have theirs.
    FailureKind.TOO_LARGE: Verdict(429, "requests", "rate_limit_exceeded", True, False, False, False),
    # Another target may lead back as well, and each would be asked at every turn. A client can bring it about.
    FailureKind.LOOP: Verdict(508, "server_error", "loop_detected", False, False, False, False),
    # An idle connection was closed as it was used again, as every server does with those it has kept long enough.
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
"""Kinds after which an answer may have been generated, and may be billed, unless `Failure.unsent` rules that out. The
others say that the vendor was not reached or would not have the request."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt. `message` is safe to show to a client: written by us, or passed through `vet`.

    `status` is the upstream's HTTP status where there was one, `code` and `param` its own words when they are worth
    passing on, `retry_after` seconds. `overflow` says what a CONTEXT_LENGTH told of sizes, or an INVALID_REQUEST that
    was about the most tokens of an answer. `unsent` says that the upstream cannot have read the request. `cause` says
    why there was no connection. For the operator alone are `peer`, the `host:port` that none came about to, and
    `evidence`, a vetted piece of what came instead of an answer. `ours` says that no word of the message is a vendor's.
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
    ours: bool = False

    @property
    def placed(self) -> str:
        """The message, with whom no connection came about to."""
        return f"{self.message.removesuffix('.')} ({self.peer})." if self.peer else self.message

    @property
    def told(self) -> str:
        """The message for the operator's log, with what no client learns."""
        return f"{self.placed} It began: {self.evidence}" if self.evidence else self.placed

    @property
    def maybe_executed(self) -> bool:
        """Whether the vendor may have generated an answer, and bill it, all the same."""
        return not self.unsent and self.kind in MAYBE_EXECUTED


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


AGAINST_ALL = frozenset(
    {kind for kind, verdict in VERDICTS.items() if verdict.counts_against}
    | {FailureKind.RATE_LIMITED, FailureKind.QUOTA}
)
"""Kinds after which a deployment is left alone, for everybody. Statuses and codes give them; a text does only where it
is a fixed sentence of the vendor's from its first word to its last: vendors quote what clients sent them."""


OUR_WORDS: Mapping[FailureKind, str] = {
    FailureKind.AUTH: "The upstream refused the gateway's credential.",
    FailureKind.NOT_FOUND: "The upstream does not know this model or path; the routing table names one it lacks.",
    FailureKind.QUOTA: "The upstream's account has no credit left.",
}
"""Said instead of the vendor's words where those are about the operator's account and nothing a client can change."""


ENDED_EARLY = "The upstream's stream ended before its answer did."


def kind_of_status(status: int | None, known: Mapping[int, FailureKind]) -> FailureKind:
    """What a status means where nothing else tells: as `known`, or by its class. None: the error was in an answer."""
    if status is None or status >= 500:
        return known.get(status or 500, FailureKind.SERVER)
    # Redirects are not followed, so one is an answer that makes no sense.
    return known.get(status, FailureKind.INVALID_REQUEST if status >= 400 else FailureKind.MALFORMED)


def message_text(value: object) -> str:
    """A vendor's text as far as it is worth reading; empty where it is none."""
    return value[:MAX_TEXT] if isinstance(value, str) else ""


MAX_MESSAGE = 500
_SECRET = re.compile(
    r"(?i)\b(?:sk|pk|rk|xai|nvapi)[-_][\w*-]{6,}"
    r"|\b(?:gsk|fw|hf)_[\w*-]{6,}"
    # Ordinary words begin like these (key-holder); an id has a digit.
    r"|\b(?:key|org|proj)[-_](?=[a-z_*-]*\d)[\w*-]{6,}"
    r"|\bBearer\s+\S+|\bA[KS]IA[A-Z0-9]{12,}|\bAIza[\w-]{20,}|\bya29\.[\w.-]+|\beyJ[\w-]+\.[\w-]+\.[\w-]*"
    # Keys without a mark of their own are long runs of letters and digits.
    r"|\b(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{32,}\b"
)
_ADDRESS = re.compile(
    r"(?i)\b[a-z][a-z0-9+.-]*://\S+"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"
    r"|(?<![\w:])\[?(?:(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|(?:(?:[0-9a-f]{1,4}:)+|:)(?::[0-9a-f]{1,4})+)(?:%\w+)?\]?(?::\d+)?\b"
    r"|\b(?:localhost|(?:[a-z0-9-]+\.)+[a-z][a-z0-9-]*):\d{2,5}\b"
    r"|\b[a-z]:\\[^\s'\"]+"
    r"|(?<![\w.])/(?:[\w.-]+/)+[\w.-]+"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def vet(text: str) -> str:
    """A vendor's message made fit to show: one line, capped, without keys, organisation ids, addresses or paths."""
    if len(text) > 2 * MAX_MESSAGE:
        # Not within a word: half a key would not be recognised as one.
        text = text[: 2 * MAX_MESSAGE].rpartition(" ")[0] + " …"
    clean = _ADDRESS.sub("[address]", _SECRET.sub("[redacted]", _CONTROL.sub(" ", text)))
    return clean if len(clean) <= MAX_MESSAGE else clean[: MAX_MESSAGE - 1] + "…"


_SECONDS = re.compile(r"\d{1,15}(?:\.\d{1,15})?", re.ASCII)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds a vendor asks to wait, from `retry-after-ms` or `retry-after`; `headers` has lower-case names.

    A date is held against the answer's own `date`, so that no clock is needed and the vendor's may be wrong.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        # float() knows more spellings of numbers than HTTP does.
        if _SECONDS.fullmatch(text):
            return float(text) / unit
    try:
        wait = parsedate_to_datetime(headers.get("retry-after", "")) - parsedate_to_datetime(headers.get("date", ""))
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, wait.total_seconds())
