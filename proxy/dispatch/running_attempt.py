"""One attempt while it runs: its entry in the record, and what its end means for the deployment."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self

from pydantic import SecretStr

from providers.emulation.plan_calls import CallPlan
from providers.failure import Failure, FailureKind, UpstreamError
from providers.models.refusals import if_model_refuses
from providers.target import Target
from providers.vendor_text.vet_message import hide_host
from proxy.deadlines import DeadlinePassed, Phase
from proxy.deployment_health.circuit_breaker import AnswerKind
from proxy.deployment_health.concurrency_limit import shows_overload
from proxy.deployment_health.deployment_queue import DeploymentQueue
from proxy.deployment_health.deployment_registry import Deployments
from proxy.deployment_health.last_failures import LastFailures, summary
from proxy.dispatch.attempt_loop import ClientRequest, PlannedRequest
from proxy.dispatch.next_deployment import Prepared
from proxy.dispatch.target_limiter import TargetLimiter
from proxy.errors import GatewayError
from proxy.request_outcomes import SUPERSEDED
from proxy.request_record import Attempt
from proxy.telemetry.metrics import Metrics
from proxy.upstream.mock_transport import SCHEME
from proxy.upstream.unanswered_usage import is_billed, usage_of_body, usage_of_call
from proxy.upstream.vendor_headers import passed_headers, request_id_in

LEAST_WAIT: Final = 5e-5
"""Seconds from which on taking a slot counts as a wait; less is the gateway's own work."""

Secrets = Callable[[Target], Sequence[SecretStr]]
"""Returns what calls of a target have lately carried besides its own credential."""


class SupersededError(Exception):
    """Another attempt of the same request answered first, and ended this one."""


def free_place(
    reports: "AttemptReports", prepared: Prepared, planned: PlannedRequest[ClientRequest]
) -> DeploymentQueue | None:
    """Take a place for an attempt at once, and return the queue that it is in. None where there is something to wait
    for: a place, or a limit that the operator wrote for a deployment. See `taken_place`."""
    return None if reports.limits.scopes else reports.deployments.take_free(prepared.target, planned.team.name)


async def taken_place(
    reports: "AttemptReports", prepared: Prepared, planned: PlannedRequest[ClientRequest]
) -> DeploymentQueue:
    """Take a place for an attempt, hold it to the limits of its deployment, and return the queue that the place is in.

    Raises UpstreamError: BUSY where no place came, which is an attempt as well, and where the deployment is at a limit;
    then the place is given back.
    """
    began = reports.now()
    try:
        return await _place_waited_for(reports, prepared, planned)
    finally:
        if (waited := reports.now() - began) >= LEAST_WAIT:
            planned.record.waits().queued += waited


async def _place_waited_for(
    reports: "AttemptReports", prepared: Prepared, planned: PlannedRequest[ClientRequest]
) -> DeploymentQueue:
    queue, team = reports.deployments.queue(prepared.target), planned.team.name
    if not queue.take_free(team):
        try:
            await queue.take(team)
        except UpstreamError as error:
            now, target, failure = reports.now(), prepared.target, error.failure
            attempt = Attempt(target.label, now, now, failure.kind.value, None, failure.message, name=target.name)
            planned.record.attempts.append(attempt)
            raise
    try:
        await reports.limits.hold(prepared.target, planned.record)
    except BaseException:
        queue.release(team)
        raise
    return queue


@dataclass(slots=True, eq=False)
class AttemptReports:
    """Where the ends of attempts are reported. `now` returns seconds of the event loop."""

    now: Callable[[], float]
    deployments: Deployments
    metrics: Metrics
    last_failures: LastFailures
    log: logging.Logger
    secrets: Secrets
    limits: TargetLimiter


class RunningAttempt:
    """Context manager around one attempt, which may take `limit` seconds until it is committed (None = what is left).
    It has a place in `queue`, which it gives back. Records the attempt, and reports its end, whatever it is, to the
    deployment's circuit breaker and limit. Leaves with UpstreamError where a limit of the attempt passed."""

    __slots__ = (
        *("_attempt", "_committed", "_inflight", "_planned", "_prepared", "_queue", "_reports", "_tracked"),
        "_unanswered",
    )

    def __init__(
        self,
        reports: AttemptReports,
        prepared: Prepared,
        planned: PlannedRequest[ClientRequest],
        queue: DeploymentQueue,
        answer: AnswerKind,
        limit: float | None,
    ) -> None:
        record, target = planned.record, prepared.target
        self._reports = reports
        self._prepared = prepared
        self._planned = planned
        self._queue = queue
        self._committed = False
        self._unanswered = record.unanswered
        attempt = self._attempt = Attempt(target.label, reports.now(), name=target.name)
        record.attempts.append(attempt)
        record.called, record.price, record.max_tokens = target.name, target.price, prepared.max_tokens
        record.emulated, record.dropped, record.passed = prepared.emulated, prepared.dropped, None
        breakers = reports.deployments.breakers
        self._tracked = breakers.begin(target, attempt.started, answer, planned.team.tenant)
        inflight = self._inflight = reports.metrics.inflight_row(attempt.deployment)
        inflight[0] += 1
        planned.deadlines.begin_attempt(limit)

    def __enter__(self) -> Self:
        return self

    def commit(self) -> None:
        """Note the first content of a stream: from now on the limits of the request hold alone."""
        self._committed = True
        self._read_head()
        self._planned.deadlines.end_attempt(None)
        begun = self._attempt.begun = self._reports.now()
        self._tracked.first_byte(begun)

    def adopt(self, planned: PlannedRequest[ClientRequest]) -> None:
        """Go on as an attempt of this request, whose record and deadlines count from now on."""
        self._planned, self._unanswered = planned, planned.record.unanswered

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._committed:
            error = self._planned.deadlines.end_attempt(error)
            if error is not None:
                self._count_unanswered(error)
        try:
            if error is None:
                self._succeeded()
            elif isinstance(error, UpstreamError):
                error.failure = _unquoted(
                    _attributed(error.failure, self._planned), self._prepared.target, self._reports.secrets
                )
                self._failed(error.failure)
            elif isinstance(error, DeadlinePassed) and error.phase is Phase.HEDGE:
                self._superseded()
                raise SupersededError from None
            elif isinstance(error, SupersededError):
                self._superseded()
            elif isinstance(error, DeadlinePassed):
                # A limit of this attempt alone is a failure of the upstream like others.
                raise UpstreamError(self._outlasted(error)) from None
            elif isinstance(error, asyncio.CancelledError | ConnectionError):
                # The upstream's connection errors have become UpstreamErrors: this one is the client's.
                self._left()
            elif isinstance(error, GatewayError) and not self._committed:
                # The client's demand on the context window cannot be met there, which only this attempt could tell.
                # A guard's refusal, which comes after the first content, says nothing of the deployment.
                self._attempt.outcome = FailureKind.INVALID_REQUEST.value
        finally:
            self._end()

    def _count_unanswered(self, error: BaseException) -> None:
        """Count the prompt of a call that ended before its usage was known, unless the caller has counted it."""
        sent, record = self._attempt.sent, self._planned.record
        if sent is None or record.unanswered is not self._unanswered or not is_billed(error, sent):
            return
        plan, size = self._prepared, len(sent.body)
        record.note_unanswered(usage_of_call(plan.request, size) if isinstance(plan, CallPlan) else usage_of_body(size))

    def _outlasted(self, late: DeadlinePassed) -> Failure:
        """Note that a limit has passed, and return that as a failure."""
        failure = Failure(FailureKind.TIMEOUT, late.message, ours=True)
        self._attempt.phase = late.phase.value
        now, target = self._reports.now(), self._prepared.target
        if self._planned.impatient(late.phase, now - self._attempt.started, target):
            _note(self._attempt, failure)
            self._tracked.outlasted(now)
        else:
            self._failed(failure)
        return failure

    def _superseded(self) -> None:
        self._attempt.outcome = SUPERSEDED
        self._tracked.superseded(self._reports.now())

    def _left(self) -> None:
        """Note that the client has left, or that the request as a whole was ended."""
        passed = self._planned.deadlines.passed
        if self._planned.record.finished:
            # The client had its whole answer, and left while the rest of the upstream's was being read.
            self._succeeded()
        elif passed is None or passed.phase in (Phase.CLIENT, Phase.DRAIN):
            self._attempt.outcome = "cancelled"
        else:
            self._outlasted(passed)

    def _succeeded(self) -> None:
        now = self._reports.now()
        self._tracked.succeeded(now)
        self._queue.limit.won(now)
        self._attempt.finished = now  # from here on there is nothing to abandon

    def _failed(self, failure: Failure) -> None:
        reports, target, tracked, queue = self._reports, self._prepared.target, self._tracked, self._queue
        now = reports.now()
        _note(self._attempt, failure)
        if target.base_url.startswith(SCHEME):
            return  # the mock fails where the request wants it to
        reports.last_failures.note(target, failure)
        opened = tracked.failed(now, failure)
        breaker = reports.deployments.breakers.of(target)
        if shows_overload(failure, opened) and not tracked.disputed:
            only_team = breaker.only_team if opened else None
            queue.limit.lost(failure.kind, now, self._attempt.started, queue.in_flight, only_team)
        if opened:
            wait = breaker.wait(now)
            reports.log.warning("%s: cooldown of %.1f s: %s", target.name, wait, summary(failure))

    def _read_head(self) -> None:
        """Record the vendor's id and the headers for the client from the head of the response, unless they hold part
        of the credential. Record how long making its connection took."""
        attempt, record, target = self._attempt, self._planned.record, self._prepared.target
        if attempt.sent is not None:
            attempt.connect = attempt.sent.connecting
        head, attempt.head = attempt.head, b""
        if not head:
            return
        vendor_id = request_id_in(head, record.request_id)
        passed = passed_headers(head, record.surface, target.profile.name)
        text = "\n".join([vendor_id, *passed.values()]) if passed else vendor_id
        if text and not target.credential.is_echoed_in(text, self._reports.secrets(target)):
            attempt.vendor_id, record.passed = vendor_id or attempt.vendor_id, passed

    def _end(self) -> None:
        attempt = self._attempt
        self._read_head()
        attempt.sent = None
        if not attempt.finished:
            attempt.finished = self._reports.now()
            self._tracked.abandoned(attempt.finished)
        self._queue.release(self._planned.team.name)
        self._inflight[0] -= 1


def _note(attempt: Attempt, failure: Failure) -> None:
    attempt.outcome, attempt.status, attempt.message = failure.kind.value, failure.status, failure.operator_message
    attempt.maybe_executed, attempt.cause = failure.maybe_executed, failure.cause
    attempt.vendor_id = failure.vendor_id


def _attributed(failure: Failure, planned: PlannedRequest[ClientRequest]) -> Failure:
    """Return the failure, blamed on the request where the client passed members through that may have changed the form
    of the answer; not where the answer is a web page."""
    if failure.kind is FailureKind.MALFORMED and planned.request.passes_unknown and not failure.evidence:
        return replace(failure, kind=FailureKind.NONCONFORMING)
    return if_model_refuses(failure)


def _unquoted(failure: Failure, target: Target, secrets: Secrets) -> Failure:
    """Return the failure without the operator's credential and the deployment's host, which the vendor may have
    repeated."""
    fetched = secrets(target)

    def conceal(text: str) -> str:
        return target.credential.conceal(text, fetched)

    def quoted(text: str) -> str:
        return conceal(hide_host(text, target.base_url, target.profile.base_url))

    code, param = (value and conceal(value) for value in (failure.code, failure.param))
    return replace(
        failure,
        message=conceal(failure.message) if failure.ours else quoted(failure.message),
        code=code,
        param=param,
        vendor_id="" if target.credential.is_echoed_in(failure.vendor_id, fetched) else failure.vendor_id,
        peer=conceal(failure.peer),
        evidence=quoted(failure.evidence),
        said=quoted(failure.said),
    )
