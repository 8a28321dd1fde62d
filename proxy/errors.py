"""The errors that clients can get: the only exception whose text reaches clients, and a function for each error.

No message repeats a vendor's unvetted text or an internal exception's text.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from math import ceil

from providers.failure import GATEWAY_MESSAGES, UNKNOWN_ITEM, UNKNOWN_MODEL, VERDICTS, Failure, FailureKind, Refusal

MAX_RETRY_AFTER = 60
"""Seconds. The Stainless SDKs (openai 1.x, scale-gp, fireworks) ignore a longer Retry-After or do not retry at all."""

DAY = 86400
"""The longest wait in seconds, requested by a vendor, that is passed on to clients."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One problem of a request body. `loc` is the path within the body: field names and list indices."""

    loc: tuple[str | int, ...]
    message: str
    code: str = "invalid_value"

    @property
    def param(self) -> str | None:
        """The field's name, dotted below the first level; `None` for a problem of the whole body."""
        return ".".join(str(part) for part in self.loc) or None


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """Status, type, code, message and param of an OpenAI-shaped error, and the headers of its response.

    `problems` are the entries of a `detail` list. The other fields repeat the first problem, for surfaces whose errors
    have no such list. `validation` marks an invalid request body, whose status the surface decides (400 or 422).
    """

    status: int
    type: str
    code: str
    message: str
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[FieldProblem, ...] = ()
    validation: bool = False


class GatewayError(Exception):
    """A response that is an error. A surface renders `facts`; `logged` is the code for the log, which clients never
    see."""

    def __init__(self, facts: ErrorFacts, logged: str | None = None) -> None:
        super().__init__(facts.status, facts.code)
        self.facts = facts
        self.logged = logged or facts.code


class PluginError(GatewayError):
    """The error of a request that a plugin refused or could not check; `reason` is for the operator's log."""

    def __init__(self, facts: ErrorFacts, plugin: str, reason: str) -> None:
        super().__init__(facts)
        self.plugin = plugin
        self.reason = reason


PLUGIN_FAILED = "plugin_failed"
"""The code of the error for a request that a failing plugin could not check."""

NO_RETRY = {"x-should-retry": "false"}


def invalid_request(problems: tuple[FieldProblem, ...]) -> GatewayError:
    """Return the error for an invalid body; the first problem gives its code, message and param."""
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


def field_refused(refusal: Refusal) -> GatewayError:
    """Return the error for a field that no deployment can honour."""
    return invalid_request((FieldProblem((refusal.param,), refusal.message, refusal.code),))


def invalid_key() -> GatewayError:
    """Return the error for a key of no team."""
    message = "Incorrect API key: it belongs to no team of this gateway."
    return GatewayError(ErrorFacts(401, "invalid_request_error", "invalid_api_key", message, headers=NO_RETRY))


def expired_key(ends: float) -> GatewayError:
    """Return the error for a team's key that expired at `ends`, in unix seconds, a time that its holder may learn."""
    when = datetime.fromtimestamp(ends, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    facts = ErrorFacts(
        401, "invalid_request_error", "invalid_api_key", f"This API key expired on {when}.", headers=NO_RETRY
    )
    return GatewayError(facts, "expired_api_key")


def conflicting_keys(header: str) -> GatewayError:
    """Return the error for a header that occurs twice with different keys."""
    message = f"The request has two headers '{header}' with different API keys; send one key."
    facts = ErrorFacts(400, "invalid_request_error", "conflicting_parameters", message, headers=NO_RETRY)
    return GatewayError(facts)


def too_many_wrong_keys(wait: float) -> GatewayError:
    """Return the error for an address that sent too many wrong keys; `wait` is in seconds."""
    message = "Too many requests with a wrong API key came from this address."
    headers = {**NO_RETRY, "retry-after": str(ceil(wait))}
    return GatewayError(ErrorFacts(429, "rate_limit_error", "rate_limit_exceeded", message, headers=headers))


NOT_ALLOWED = "model_not_allowed"


def model_not_allowed(model: str) -> GatewayError:
    """Return the error for a model that the team may not use, but whose name it may know."""
    message = f"This key is not allowed to use the model '{model}'."
    return GatewayError(ErrorFacts(403, "permission_error", NOT_ALLOWED, message, "model"))


def model_not_found(model: str, nearest: tuple[str, ...]) -> GatewayError:
    """Return the error for a name that no entry of the configuration matches."""
    return GatewayError(_unknown(model, nearest))


def model_hidden(model: str, nearest: tuple[str, ...]) -> GatewayError:
    """Return the error for another team's model: the client gets the error for an unknown name, and the log gets the
    real code."""
    return GatewayError(_unknown(model, nearest), NOT_ALLOWED)


def _unknown(model: str, nearest: tuple[str, ...]) -> ErrorFacts:
    hint = f" Did you mean {' or '.join(repr(name) for name in nearest)}?" if nearest else ""
    message = f"The model '{model}' does not exist or is not available to this key.{hint}"
    return ErrorFacts(404, "invalid_request_error", "model_not_found", message, "model")


def previous_response_not_found(response_id: str) -> GatewayError:
    """Return the error for continuing a response that is not stored, or whose predecessors are not all stored."""
    message = (
        f"Previous response with id '{_shown(response_id)}' not found. It was not stored, has expired or was deleted; "
        "send the conversation's items in 'input' instead."
    )
    facts = ErrorFacts(
        400, "invalid_request_error", "previous_response_not_found", message, "previous_response_id", NO_RETRY
    )
    return GatewayError(facts)


def conversation_too_long(how: str) -> GatewayError:
    """Return the error for a request whose conversation is too long; `how` is the predicate of the first sentence."""
    message = f"The conversation before this request {how}; send the items that matter in 'input' instead."
    return invalid_request((FieldProblem(("previous_response_id",), message),))


def responses_not_stored() -> GatewayError:
    """Return the error for a request that continues a response if the operator has disabled storing them."""
    message = "Responses are not stored here; send the conversation's items in 'input' instead."
    return invalid_request((FieldProblem(("previous_response_id",), message, "unsupported_parameter"),))


def response_not_found(response_id: str) -> GatewayError:
    """Return the error for a response that is not stored for this key."""
    message = f"Response with id '{_shown(response_id)}' not found."
    return GatewayError(ErrorFacts(404, "invalid_request_error", "not_found", message, "id", NO_RETRY))


def stored_responses_unreachable() -> GatewayError:
    """Return the error for a response that is not stored here, while the store that processes share is unreachable."""
    message = "Stored responses cannot be reached at the moment. Try again shortly."
    verdict = VERDICTS[FailureKind.BUSY]
    return GatewayError(ErrorFacts(verdict.status, verdict.type, verdict.code, message, headers={"retry-after": "2"}))


def operation_not_served(why: str) -> GatewayError:
    """Return the error for an operation of a known API that the gateway does not offer; `why` is a sentence."""
    return GatewayError(ErrorFacts(404, "invalid_request_error", "not_found", why, headers=NO_RETRY))


def refused_by_plugin(name: str, reason: str, code: str) -> PluginError:
    """Return the error for a request that a plugin refused because of the texts of the request or of its response."""
    message = f"Refused by the plugin '{name}': {reason}"
    return PluginError(ErrorFacts(400, "invalid_request_error", code, message, headers=NO_RETRY), name, reason)


def plugin_failed(name: str, why: str) -> PluginError:
    """Return the error for a request that a failing plugin could not check; `why` is for the operator."""
    message = f"The plugin '{name}', which has to check this request, failed. Try again shortly."
    verdict = VERDICTS[FailureKind.BUSY]
    return PluginError(ErrorFacts(verdict.status, verdict.type, PLUGIN_FAILED, message), name, why)


def not_found(path: str) -> GatewayError:
    """Return the error for an unknown path."""
    message = f"Unknown path '{path}'."
    return GatewayError(ErrorFacts(404, "invalid_request_error", "not_found", message))


def usage_unknown() -> GatewayError:
    """Return the error for a client that requests its team's usage from a gateway without teams."""
    return usage_refused(404, "not_found", "This gateway has no teams, and so no usage of a team.")


def usage_refused(status: int, code: str, message: str) -> GatewayError:
    """Return the error for a usage report that cannot be made."""
    kind = {403: "permission_error", 503: "server_error"}.get(status, "invalid_request_error")
    headers = {"retry-after": "2"} if status == 503 else {}
    return GatewayError(ErrorFacts(status, kind, code, message, headers=headers))


def method_not_allowed(method: str, allowed: str) -> GatewayError:
    """Return the error for a method that a path does not support; `allowed` lists the supported ones."""
    message = f"Method {method} is not allowed here; use {allowed}."
    headers = {"allow": allowed}
    return GatewayError(ErrorFacts(405, "invalid_request_error", "method_not_allowed", message, headers=headers))


def websocket_refused(method: str) -> GatewayError:
    """Return the error for a WebSocket upgrade on a path that expects a request with another method.

    After a 426 Codex CLI 0.169.0 continues over HTTP at once; after a 404 or 405 it offers WebSocket six times more,
    and after a 400 it gives up (tried in November 2026).
    """
    message = f"WebSocket is not supported here; send a request with {method}."
    headers = {"upgrade": "HTTP/1.1"}
    return GatewayError(ErrorFacts(426, "invalid_request_error", "upgrade_required", message, headers=headers))


def bad_http(message: str, status: int = 400) -> GatewayError:
    """Return the error for bytes that are not a readable request, or for a request that did not arrive completely."""
    return GatewayError(ErrorFacts(status, "invalid_request_error", "bad_request", message))


def host_not_served(host: str, setting: str) -> GatewayError:
    """Return the error for a Host that is not a name of this listener (RFC 9110 15.5.20); `setting` lists the names."""
    message = f"The host '{_shown(host)}' is not served here; the operator lists the names of the gateway in {setting}."
    return GatewayError(ErrorFacts(421, "invalid_request_error", "host_not_served", message, headers=NO_RETRY))


def origin_not_allowed(origin: str | None, setting: str | None) -> GatewayError:
    """Return the error for a web page of another origin. `origin` is its Origin header, `None` if the browser sent no
    such header; `setting` lists the allowed origins, `None` if the listener has no such setting."""
    page = "A web page of another site" if origin is None else f"A web page of the origin '{_shown(origin)}'"
    hint = "" if setting is None else f"; the operator lists allowed origins in {setting}"
    message = f"{page} may not call this listener{hint}."
    return GatewayError(ErrorFacts(403, "permission_error", "origin_not_allowed", message, headers=NO_RETRY))


def not_json(content_type: str) -> GatewayError:
    """Return the error for a body of another media type: browsers let any page send some types without a preflight."""
    message = f"A body of type '{_shown(content_type)}' is refused; send JSON with 'content-type: application/json'."
    return GatewayError(ErrorFacts(415, "invalid_request_error", "unsupported_media_type", message, headers=NO_RETRY))


def _shown(value: str) -> str:
    """Return a header's value for use in a message: at most 100 characters of printable ASCII."""
    return "".join(each if " " <= each <= "~" else "?" for each in value[:100])


def too_large(limit: int) -> GatewayError:
    """Return the error for a body above the limit, in bytes."""
    message = f"The request body is larger than {limit} bytes."
    return GatewayError(ErrorFacts(413, "invalid_request_error", "request_too_large", message))


def internal_error() -> GatewayError:
    """Return the error for a bug in the gateway; the log has the details."""
    return GatewayError(ErrorFacts(500, "server_error", "internal_error", "The gateway failed to handle the request."))


_FAILED_BY: Mapping[FailureKind, str] = {
    FailureKind.CONNECT: "could not be reached",
    FailureKind.TLS: "has a certificate that could not be accepted",
    FailureKind.TIMEOUT: "did not answer in time",
    FailureKind.AUTH: "refused the gateway's credential",
    FailureKind.NO_MODEL: "did not have the model",
    FailureKind.OVERLOADED: "was overloaded",
    FailureKind.TRUNCATED: "cut off its responses",
    FailureKind.MALFORMED: "sent invalid responses",
}
"""The words for the failure that opened a deployment's circuit breaker. The word for all other kinds is "failed"."""


def no_healthy_deployment(wait: float, why: FailureKind | None) -> GatewayError:
    """Return the error for a request whose deployments all have an open circuit breaker. `why` is the kind of failure
    that opened the first one; the next circuit becomes half-open in `wait` seconds."""
    failed = "failed" if why is None else _FAILED_BY.get(why, "failed")
    message = f"No deployment that could answer is healthy at the moment; the first of them {failed}."
    headers = {"retry-after": _seconds(wait)}
    return GatewayError(ErrorFacts(503, "server_error", "no_healthy_deployment", message, headers=headers))


def out_of_service(name: str, by_route: bool) -> GatewayError:
    """Return the error for a route or a model whose deployments are all out of service."""
    message = f"Every deployment of the {'route' if by_route else 'model'} '{name}' is out of service."
    return GatewayError(ErrorFacts(503, "server_error", "no_healthy_deployment", message, "model", headers=NO_RETRY))


def cooling_down(wait: float, why: FailureKind | None) -> GatewayError:
    """Return the error for a request whose deployments are all in a cooldown that their vendors asked for. The next
    cooldown ends in `wait` seconds. If `why` is QUOTA, the error reports a spent quota."""
    if why is FailureKind.QUOTA:
        return upstream_failed(Failure(FailureKind.QUOTA, GATEWAY_MESSAGES[FailureKind.QUOTA]))
    message = "Every deployment that could answer is rate limited by its vendor at the moment."
    facts = ErrorFacts(429, "requests", "rate_limit_exceeded", message, headers=vendors_wait(wait))
    return GatewayError(facts)


def _seconds(wait: float) -> str:
    """Return whole seconds for a header, rounded up, between 1 and the longest wait that clients obey."""
    return str(max(1, min(MAX_RETRY_AFTER, ceil(wait))))


class OverloadReason(StrEnum):
    """The reason why an overloaded gateway refuses a request; the value is the `reason` label of `shed_total`."""

    REQUESTS = "requests"
    STREAMS = "streams"
    BODY_BYTES = "body_bytes"
    QUEUE = "queue"
    LOOP_LAG = "loop_lag"
    MEMORY = "memory"


_OVERLOAD_MESSAGES: Mapping[OverloadReason, str] = {
    OverloadReason.REQUESTS: "The gateway has reached its limit of concurrent requests.",
    OverloadReason.STREAMS: "The gateway has reached its limit of open streams.",
    OverloadReason.BODY_BYTES: "The gateway has reached its limit of memory for request bodies.",
    OverloadReason.QUEUE: "The gateway has more requests waiting than it can serve in time.",
    OverloadReason.LOOP_LAG: "The gateway is too busy for another request.",
    OverloadReason.MEMORY: "The gateway is short of memory.",
}


def overloaded(reason: OverloadReason, retry_after: int = 1) -> GatewayError:
    """Return the error of an overloaded gateway, without `x-should-retry: false`, because SDKs may retry."""
    verdict = VERDICTS[FailureKind.BUSY]
    headers = {"retry-after": str(retry_after)}
    message = f"{_OVERLOAD_MESSAGES[reason]} Try again shortly."
    return GatewayError(ErrorFacts(verdict.status, verdict.type, verdict.code, message, headers=headers))


def upstream_failed(failure: Failure, attempts: int = 1) -> GatewayError:
    """Return the error for the failure of the last of `attempts` attempts.

    The error for an invalid request has the upstream's status (400 to 422 only). A credential that the vendor refused
    never becomes a 401. A model that the vendor does not know becomes a 404 only if the client alone named it; the same
    holds for an item that the client names by an id. Vendors' SDKs repeat a request twice unless `x-should-retry`
    forbids it, which would multiply our attempts.
    """
    verdict = VERDICTS[failure.kind]
    status, code = verdict.status, verdict.code
    if failure.kind in (FailureKind.INVALID_REQUEST, FailureKind.UNSUPPORTED):
        status = failure.status if failure.status in (400, 409, 413, 422) else status
        status, code = (404, "invalid_value") if failure.code == UNKNOWN_ITEM else (status, failure.code or code)
    if failure.withheld and failure.code == VERDICTS[FailureKind.QUOTA].code:
        code = failure.code
    if failure.kind is FailureKind.NOT_FOUND and failure.code == UNKNOWN_MODEL:
        unknown = ErrorFacts(404, "invalid_request_error", UNKNOWN_MODEL, failure.message, "model", dict(NO_RETRY))
        return GatewayError(unknown)
    spent = attempts > 1 and failure.kind is not FailureKind.BUSY and not failure.withheld
    headers = {} if verdict.passes and not spent else dict(NO_RETRY)
    if failure.retry_after is not None and verdict.passes:
        if failure.withheld:
            milliseconds = max(1, ceil(failure.retry_after * 1000))
            headers |= known_wait(milliseconds, failure.retry_after > MAX_RETRY_AFTER or code == failure.code)
        else:
            headers |= vendors_wait(failure.retry_after)
    param = "prompt" if failure.kind is FailureKind.CONTEXT_LENGTH else failure.param
    kind = failure.code if failure.withheld and failure.code else verdict.type
    return GatewayError(ErrorFacts(status, kind, code, failure.message, param, headers))


def vendors_wait(seconds: float) -> dict[str, str]:
    """Return the headers for a wait that a vendor requested, at most a day. They forbid a retry if the wait is longer
    than a minute, which SDKs ignore."""
    after = {"retry-after": str(max(1, min(DAY, ceil(seconds))))}
    return after | (NO_RETRY if seconds > MAX_RETRY_AFTER else {})


def known_wait(milliseconds: int, hopeless: bool) -> dict[str, str]:
    """Return the headers for one of the operator's limits, which allows the request again after `milliseconds`. The
    gateway knows this time exactly, so the client gets it. The headers forbid a retry if it is `hopeless`."""
    after = {"retry-after": str(-(-milliseconds // 1000))}
    return after | (NO_RETRY if hopeless else {"retry-after-ms": str(milliseconds)})
