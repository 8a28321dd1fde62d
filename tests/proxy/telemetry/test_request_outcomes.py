"""A request's end in its record: which side caused it, and the counts of a stream that broke."""

from typing import cast

import pytest
from aiohttp import web

from providers.failure import Failure, FailureKind, UpstreamError
from proxy.deadlines import DeadlinePassed, Phase
from proxy.request_record import Outcome, RequestRecord
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.request_outcomes import (
    abort_labels,
    outcome_of,
    record_cancelled,
    record_client_gone,
    record_failure,
    record_refusal,
)
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


def upstream(kind: FailureKind) -> UpstreamError:
    return UpstreamError(Failure(kind, "words", 500))


@looped(
    ("error", "committed", "outcome", "blamed"),
    [
        (upstream(FailureKind.SERVER), False, "upstream_error", ("upstream", "server")),
        (upstream(FailureKind.CONTEXT_LENGTH), False, "client_error", ("upstream", "context_length")),
        (upstream(FailureKind.SERVER), True, "truncated", ("upstream", "server")),
        (upstream(FailureKind.TIMEOUT), False, "timeout", ("upstream", "timeout")),
        (DeadlinePassed(Phase.TOTAL, 1), False, "timeout", ("upstream", "timeout")),
        (DeadlinePassed(Phase.IDLE, 1), True, "timeout", ("upstream", "timeout")),
        (DeadlinePassed(Phase.DRAIN, 0), True, "truncated", ("gateway", "shutdown")),
        (DeadlinePassed(Phase.DRAIN, 0), False, "error", ("gateway", "shutdown")),
    ],
)
def test_an_end_is_told_by_who_caused_it(
    error: UpstreamError | DeadlinePassed, committed: bool, outcome: Outcome, blamed: tuple[str, str]
) -> None:
    record = RequestRecord("id", 0.0, "openai", "/")
    record.first_content = 1.0 if committed else None
    failure = record_failure(record, error)
    assert failure.message
    assert record.outcome == outcome
    assert abort_labels(error) == blamed


@looped("phase", Phase)
def test_every_deadline_has_words_without_gaps(phase: Phase) -> None:
    record = RequestRecord("id", 0.0, "openai", "/")
    failure = record_failure(record, DeadlinePassed(phase, 2.5))
    assert "{" not in failure.message
    assert ("2.5 s" in failure.message) is (phase not in (Phase.DRAIN, Phase.HEDGE))


OUTCOMES = {400: "client_error", 401: "denied", 403: "denied", 413: "client_error", 500: "error", 502: "upstream_error"}
OUTCOMES |= {429: "upstream_error"}


@looped(("status", "outcome"), OUTCOMES.items())
def test_an_error_s_outcome_follows_its_status(status: int, outcome: str) -> None:
    assert outcome_of(status) == outcome


@looped(
    ("code", "known", "outcome"),
    [
        ("overloaded", "ok", "upstream_error"),
        ("overloaded", "timeout", "timeout"),
        ("model_not_allowed", "ok", "denied"),
        ("plugin_failed", "ok", "error"),
    ],
)
def test_a_refusal_has_the_outcome_that_is_known(code: str, known: Outcome, outcome: Outcome) -> None:
    record = RequestRecord("id", 0.0, "openai", "/", outcome=known)
    record_refusal(record, code, 503)
    assert (record.code, record.outcome, record.status) == (code, outcome, 0)


class Connection:
    """A client's request with the only attribute that is read: whether its connection is open."""

    def __init__(self, *, stands: bool) -> None:
        self.transport = object() if stands else None


def counted_by(metrics: Metrics) -> list[bytes]:
    """Return the lines of our own metrics; the metrics of the process change by themselves."""
    return [line for line in metrics.render().splitlines() if line.startswith(b"dragoman_")]


@looped(
    ("stands", "first_content", "keep_alives", "status", "counted"),
    [
        (False, None, 0, 499, False),
        (False, None, 1, 200, True),
        (False, 1.0, 0, 200, True),
        (True, None, 0, 503, False),
        (True, None, 1, 200, True),
    ],
)
def test_a_stream_whose_head_was_sent_ends_early(
    stands: bool, first_content: float | None, keep_alives: int, status: int, counted: bool
) -> None:
    metrics, record = Metrics(), RequestRecord("id", 0.0, "openai", "/", stream=True, keep_alives=keep_alives)
    record.first_content, record.status = first_content, 200 if counted else 0
    record_cancelled(record, metrics, cast(web.BaseRequest, Connection(stands=stands)))
    assert (record.status, b"dragoman_stream_aborts_total{" in metrics.render()) == (status, counted)
    before = counted_by(metrics)
    record_client_gone(record, metrics)
    assert record.outcome == "client_gone"
    assert stands or counted_by(metrics) == before
