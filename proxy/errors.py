"""What a client may be told: the one exception whose text reaches callers.

Never holds a vendor's unvetted words or an internal exception's text.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil

from providers.failure import OUR_WORDS, VERDICTS, Failure, FailureKind, Refusal
from proxy.admission import Reason

MAX_RETRY_AFTER = 60
"""Seconds; the Stainless SDKs ignore a longer Retry-After (openai 1.x, scale-gp, fireworks) or do not retry at all."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a request body. `loc` is the path within the body, field names and list indices."""

    loc: tuple[str | int, ...]
    message: str
    code: str = "invalid_value"

    @property
    def param(self) -> str | None:
        """The field's name, dotted below the first level; None when the body itself is at fault."""
        return ".".join(str(part) for part in self.loc) or None


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """Status, type, code, message and param of an OpenAI-shaped error, and the headers that go with it.

    `problems` is what a `detail` list is made of; surfaces without one show the first only, which the other members
    repeat. `validation` marks a fault of the request body, whose status is the surface's own (400 or 422).
    """

    status: int
    type: str
    code: str
    message: str
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    validation: bool = False


class GatewayError(Exception):
    """An answer that is not a completion. Carries the `ErrorFacts` that a surface renders; `logged` is the code for the
    operator's log, where that says more than the client may learn."""

    def __init__(self, facts: ErrorFacts, logged: str | None = None) -> None:
        super().__init__(facts.status, facts.code)
        self.facts = facts
        self.logged = logged or facts.code


NO_RETRY = {"x-should-retry": "false"}


def invalid_request(problems: tuple[Problem, ...]) -> GatewayError:
    """A body that breaks the rules; the first problem leads."""
    first = problems[0]
    facts = ErrorFacts(
        400,
        "invalid_request_error",
        first.code,
        first.message,
        first.param,
        problems=problems,
        validation=True,
    )
    return GatewayError(facts)


def refused(refusal: Refusal) -> GatewayError:
    """No deployment can honour a field."""
    return invalid_request((Problem((refusal.param,), refusal.message, refusal.code),))


def invalid_key() -> GatewayError:
    """No key, or one that no team has."""
    message = "Incorrect or missing API key. Send it as 'Authorization: Bearer KEY', 'x-api-key' or 'api-key'."
    return GatewayError(ErrorFacts(401, "invalid_request_error", "invalid_api_key", message, headers=NO_RETRY))


def expired_key(ends: float) -> GatewayError:
    """A key that was a team's until then, in unix seconds: whoever has it may know that it was one."""
    when = datetime.fromtimestamp(ends, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    facts = ErrorFacts(
        401, "invalid_request_error", "invalid_api_key", f"This API key expired on {when}.", headers=NO_RETRY
    )
    return GatewayError(facts, "expired_api_key")


def conflicting_keys(header: str) -> GatewayError:
    """One header comes twice with different keys."""
    message = f"The request has two headers '{header}' with different API keys; send one key."
    facts = ErrorFacts(400, "invalid_request_error", "conflicting_parameters", message, headers=NO_RETRY)
    return GatewayError(facts)


def too_many_guesses(wait: float) -> GatewayError:
    """An address goes on presenting wrong keys; `wait` is in seconds."""
    message = "Too many requests with a wrong API key came from this address."
    headers = {**NO_RETRY, "retry-after": str(ceil(wait))}
    return GatewayError(ErrorFacts(429, "rate_limit_error", "rate_limit_exceeded", message, headers=headers))


NOT_ALLOWED = "model_not_allowed"


def model_not_allowed(model: str) -> GatewayError:
    """The key's team may not ask for this name, of which its own names tell it anyway."""
    message = f"This key is not allowed to use the model '{model}'."
    return GatewayError(ErrorFacts(403, "permission_error", NOT_ALLOWED, message, "model"))


def model_not_found(model: str, nearest: tuple[str, ...]) -> GatewayError:
    """Nothing in the table resolves the name."""
    return GatewayError(_unknown(model, nearest))


def model_hidden(model: str, nearest: tuple[str, ...]) -> GatewayError:
    """The name is for others: the same answer as for one that does not exist. The log tells the two apart."""
    return GatewayError(_unknown(model, nearest), NOT_ALLOWED)


def _unknown(model: str, nearest: tuple[str, ...]) -> ErrorFacts:
    hint = f" Did you mean {' or '.join(repr(name) for name in nearest)}?" if nearest else ""
    message = f"The model '{model}' does not exist or is not available to this key.{hint}"
    return ErrorFacts(404, "invalid_request_error", "model_not_found", message, "model")


def not_found(path: str) -> GatewayError:
    """No such route."""
    message = f"Unknown path '{path}'."
    return GatewayError(ErrorFacts(404, "invalid_request_error", "not_found", message))


def method_not_allowed(method: str, allowed: str) -> GatewayError:
    """The path exists, the method does not."""
    message = f"Method {method} is not allowed here; use {allowed}."
    headers = {"allow": allowed}
    return GatewayError(ErrorFacts(405, "invalid_request_error", "method_not_allowed", message, headers=headers))


def bad_http(message: str, status: int = 400) -> GatewayError:
    """The bytes were not a request that can be read, or did not come."""
    return GatewayError(ErrorFacts(status, "invalid_request_error", "bad_request", message))


def host_not_served(host: str, setting: str) -> GatewayError:
    """The Host is no name of this listener (RFC 9110 15.5.20); `setting` is where the operator lists more."""
    message = f"The host '{_shown(host)}' is not served here; the operator lists the names of the gateway in {setting}."
    return GatewayError(ErrorFacts(421, "invalid_request_error", "host_not_served", message, headers=NO_RETRY))


def origin_not_allowed(origin: str | None, setting: str | None) -> GatewayError:
    """A web page asks that may not: `origin` is its Origin header, where its browser sent one; `setting` is where the
    operator lists others, where there is such a place."""
    page = "A web page of another site" if origin is None else f"A web page of the origin '{_shown(origin)}'"
    hint = "" if setting is None else f"; the operator lists origins that may in {setting}"
    message = f"{page} may not call this listener{hint}."
    headers = {**NO_RETRY, "vary": "Origin"}
    return GatewayError(ErrorFacts(403, "permission_error", "origin_not_allowed", message, headers=headers))


def not_json(content_type: str) -> GatewayError:
    """A body of another media type: a browser lets any page send some of them unasked."""
    message = f"A body of type '{_shown(content_type)}' is not taken; send JSON with 'content-type: application/json'."
    return GatewayError(ErrorFacts(415, "invalid_request_error", "unsupported_media_type", message, headers=NO_RETRY))


def _shown(value: str) -> str:
    """A header's value in a message: short, and printable ASCII."""
    return "".join(each if " " <= each <= "~" else "?" for each in value[:100])


def too_large(limit: int) -> GatewayError:
    """The body passed the limit, in bytes."""
    message = f"The request body is larger than {limit} bytes."
    return GatewayError(ErrorFacts(413, "invalid_request_error", "request_too_large", message))


def internal() -> GatewayError:
    """A fault of ours; the log has the rest."""
    return GatewayError(ErrorFacts(500, "server_error", "internal_error", "The gateway failed to handle the request."))


_LEFT_ALONE: Mapping[FailureKind, str] = {
    FailureKind.CONNECT: "could not be reached",
    FailureKind.TLS: "has a certificate that could not be accepted",
    FailureKind.TIMEOUT: "did not answer in time",
    FailureKind.AUTH: "refused the gateway's credential",
    FailureKind.OVERLOADED: "was overloaded",
    FailureKind.TRUNCATED: "broke off its answers",
    FailureKind.MALFORMED: "gave answers that made no sense",
}
"""What a deployment did that is left alone; the other kinds say no more than that it failed."""


def no_healthy_deployment(wait: float, why: FailureKind | None) -> GatewayError:
    """Every deployment that could answer is left alone, the first of them after such a failure; one is asked again in
    `wait` seconds."""
    told = "failed" if why is None else _LEFT_ALONE.get(why, "failed")
    message = f"No deployment that could answer is healthy at the moment; the first of them {told}."
    headers = {"retry-after": _seconds(wait)}
    return GatewayError(ErrorFacts(503, "server_error", "no_healthy_deployment", message, headers=headers))


def cooling_down(wait: float, why: FailureKind | None) -> GatewayError:
    """Every deployment that could answer has said to wait, one of them for no more than `wait` seconds, or has no
    credit."""
    if why is FailureKind.QUOTA:
        return upstream_failed(Failure(FailureKind.QUOTA, OUR_WORDS[FailureKind.QUOTA]))
    message = "Every deployment that could answer is rate limited by its vendor at the moment."
    headers = {"retry-after": _seconds(wait)}
    return GatewayError(ErrorFacts(429, "requests", "rate_limit_exceeded", message, headers=headers))


def _seconds(wait: float) -> str:
    """As a header says it: never earlier than asked for, and no longer than clients obey."""
    return str(max(1, min(MAX_RETRY_AFTER, ceil(wait))))


_FULL: Mapping[Reason, str] = {
    Reason.REQUESTS: "The gateway has as many requests under way as it takes.",
    Reason.STREAMS: "The gateway has as many streams open as it takes.",
    Reason.BODY_BYTES: "The gateway holds as much of request bodies as it takes.",
    Reason.QUEUE: "The gateway has more requests waiting than it gets to in time.",
    Reason.LOOP_LAG: "The gateway is too busy for another request.",
    Reason.MEMORY: "The gateway is short of memory.",
}


def overloaded(reason: Reason, retry_after: int = 1) -> GatewayError:
    """The gateway itself has too much to do; `retry_after` is seconds. Trying again is welcome, which is why nothing
    forbids it to the vendors' SDKs."""
    verdict = VERDICTS[FailureKind.BUSY]
    headers = {"retry-after": str(retry_after)}
    message = f"{_FULL[reason]} Try again shortly."
    return GatewayError(ErrorFacts(verdict.status, verdict.type, verdict.code, message, headers=headers))


def upstream_failed(failure: Failure, attempts: int = 1) -> GatewayError:
    """The last of so many attempts' failure as the client sees it.

    A fault of the request keeps the upstream's status (400 to 422 only); a bad credential of ours is never a 401. The
    vendors' SDKs try twice more unless they are told not to, which would multiply what has been tried here.
    """
    verdict = VERDICTS[failure.kind]
    status, code = verdict.status, verdict.code
    if failure.kind is FailureKind.INVALID_REQUEST:
        status = failure.status if failure.status in (400, 409, 413, 422) else status
        code = failure.code or code
    spent = attempts > 1 and failure.kind is not FailureKind.BUSY
    headers = {} if verdict.passes and not spent else dict(NO_RETRY)
    if failure.retry_after is not None and verdict.passes:
        headers["retry-after"] = _seconds(failure.retry_after)
    param = "prompt" if failure.kind is FailureKind.CONTEXT_LENGTH else failure.param
    return GatewayError(ErrorFacts(status, verdict.type, code, failure.message, param, headers))
