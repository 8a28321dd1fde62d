"""Notes in a request's record how the request ended, and returns the labels for the metric of aborted streams."""

from collections.abc import Mapping
from typing import Final

from aiohttp import web

from providers.failure import UNKNOWN_MODEL, VERDICTS, Failure, FailureKind, UpstreamError
from proxy.deadlines import DeadlinePassed, Phase
from proxy.errors import NOT_ALLOWED, PLUGIN_FAILED, upstream_failed
from proxy.request_record import Outcome, RequestRecord
from proxy.telemetry.metrics import Metrics

_OUTCOMES: Final[Mapping[str, Outcome]] = {NOT_ALLOWED: "denied", PLUGIN_FAILED: "error"}
"""Outcomes that do not follow from the status of the response, by the code of the error."""


def stream_begun(record: RequestRecord) -> bool:
    """Return whether the client has received the head of a stream, with its first content or with an earlier
    keep-alive."""
    return record.first_content is not None or (record.stream and record.keep_alives > 0)


def record_client_gone(record: RequestRecord, metrics: Metrics) -> None:
    """Record that the client is gone, unless it has the complete response. A status that was sent stays unchanged."""
    if record.finished or record.outcome == "client_gone":
        return
    record.outcome, record.status = "client_gone", record.status or 499
    if stream_begun(record):
        metrics.abort("client", "disconnect", record.model)


def record_cancelled(record: RequestRecord, metrics: Metrics, http: web.BaseRequest) -> None:
    """Record that the request's task was cancelled: because its client is gone, or because the gateway ends."""
    if http.transport is None:
        record_client_gone(record, metrics)
    elif not record.finished and record.outcome == "ok":
        failed = upstream_failed(record_failure(record, DeadlinePassed(Phase.DRAIN, 0.0)))
        record.status, record.code = record.status or failed.facts.status, failed.facts.code
        if stream_begun(record):
            metrics.abort("gateway", "shutdown", record.model)


def record_refusal(record: RequestRecord, code: str, status: int) -> None:
    """Record the code of an error, and its outcome unless an outcome is recorded. `status` is the status that the
    client gets or would get."""
    record.code = code
    if record.outcome == "ok":
        record.outcome = _OUTCOMES.get(code) or outcome_of(status)


def outcome_of(status: int) -> Outcome:
    """Return the outcome for an error status. The status 429 means here that every vendor requested a wait."""
    if status in (401, 403):
        return "denied"
    if status < 500 and status != 429:
        return "client_error"
    return "error" if status == 500 else "upstream_error"


def record_failure(record: RequestRecord, error: UpstreamError | DeadlinePassed) -> Failure:
    """Record how a request failed, and return the failure."""
    committed = record.first_content is not None
    if isinstance(error, DeadlinePassed) and error.phase is Phase.DRAIN:
        record.outcome = "truncated" if committed else "error"
        return Failure(FailureKind.OVERLOADED, error.message)
    failure = error.failure if isinstance(error, UpstreamError) else Failure(FailureKind.TIMEOUT, error.message)
    if failure.kind is FailureKind.TIMEOUT:
        record.outcome = "timeout"
    elif committed:
        record.outcome = "truncated"
    elif failure.withheld:
        record.outcome = "limited"
    else:
        own = VERDICTS[failure.kind].status == 400 or failure.code == UNKNOWN_MODEL
        record.outcome = "client_error" if own else "upstream_error"
    return failure


def abort_labels(error: UpstreamError | DeadlinePassed) -> tuple[str, str]:
    """Return the labels of `stream_aborts_total`: the side that ended a stream early, and the reason."""
    if isinstance(error, UpstreamError):
        return "upstream", error.failure.kind.value
    return ("gateway", "shutdown") if error.phase is Phase.DRAIN else ("upstream", FailureKind.TIMEOUT.value)
