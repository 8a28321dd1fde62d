"""One attempt while it runs: its entry in the record, and the effect of its end on the deployment's health."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

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
from proxy.dispatch.exchange import ClientRequest, Exchange
from proxy.dispatch.next_deployment import P, Prepared
from proxy.dispatch.target_limiter import TargetLimiter
from proxy.errors import GatewayError
from proxy.request_outcomes import SUPERSEDED
from proxy.request_record import Attempt
from proxy.telemetry.metrics import Metrics
from proxy.upstream.call_vendor import SingleStream
from proxy.upstream.mock_transport import SCHEME
from proxy.upstream.unanswered_usage import is_billed, usage_of_body, usage_of_call
from proxy.upstream.vendor_headers import passed_headers, request_id_in

S = TypeVar("S")

LEAST_WAIT: Final = 5e-5
"""The least seconds for which taking a slot counts as a wait. A shorter time is the gateway's own work."""

Secrets = Callable[[Target], Sequence[SecretStr]]
"""Returns the secrets that recent calls of a target contained besides the target's own credential."""


class SupersededError(Exception):
    """Another attempt of the same request got its response first, and ended this one."""


async def taken_slot(
    reports: "AttemptReports", prepared: Prepared, exchange: Exchange[ClientRequest]
) -> DeploymentQueue:
    """Take a slot for an attempt, reserve its need in the limits of its deployment, and return the queue of the slot.

    Raises UpstreamError: BUSY if no slot became free, which counts as an attempt, and the failure of a limit if the
    deployment is at one; then the slot is given back.
    """
    began = reports.now()
    try:
        return await _slot_waited_for(reports, prepared, exchange)
    finally:
        if (waited := reports.now() - began) >= LEAST_WAIT:
            exchange.record.waits().queued += waited


async def _slot_waited_for(
    reports: "AttemptReports", prepared: Prepared, exchange: Exchange[ClientRequest]
) -> DeploymentQueue:
    queue, team = reports.deployments.queue(prepared.target), exchange.team.name
    if not queue.take_free(team):
        try:
            await queue.take(team)
        except UpstreamError as error:
            now, target, failure = reports.now(), prepared.target, error.failure
            attempt = Attempt(target.label, now, now, failure.kind.value, None, failure.message, name=target.name)
            exchange.record.attempts.append(attempt)
            raise
    try:
        await reports.limits.hold(prepared.target, exchange.record)
    except BaseException:
        queue.release(team)
        raise
    return queue


@dataclass(slots=True, eq=False)
class AttemptReports:
    """The objects to which the beginning and the end of each attempt are reported. `now` returns seconds of the event
    loop."""

    now: Callable[[], float]
    deployments: Deployments
    metrics: Metrics
    last_failures: LastFailures
    log: logging.Logger
    secrets: Secrets
    limits: TargetLimiter


class RunningAttempt(Generic[P, S]):
    """One attempt from its beginning to the end of its response. It has a slot in `queue`, which it gives back. Its
    entry is in the record of the exchange, and its end, whatever it is, is reported to the circuit breaker and the
    limit of the deployment.

    It is a context manager around an attempt whose response is read as a whole. Once `opened` has been called, it is an
    asynchronous context manager around the response that has begun. Until the response is complete or `opened` is
    called, the attempt may take `limit` seconds (`None`: the request's remaining time). The context manager raises
    UpstreamError if one of the attempt's own limits has passed.
    """

    __slots__ = (
        *("_attempt", "_begun", "_closing", "_committed", "_exchange", "_inflight", "_prepared", "_queue", "_reports"),
        *("_tracked", "_unanswered"),
    )

    def __init__(
        self,
        reports: AttemptReports,
        prepared: P,
        exchange: Exchange[ClientRequest],
        queue: DeploymentQueue,
        answer: AnswerKind,
        limit: float | None,
    ) -> None:
        record, target = exchange.record, prepared.target
        self._reports = reports
        self._prepared = prepared
        self._exchange = exchange
        self._queue = queue
        self._committed = False
        self._unanswered = record.unanswered
        attempt = self._attempt = Attempt(target.label, reports.now(), name=target.name)
        record.attempts.append(attempt)
        record.called, record.price, record.max_tokens = target.name, target.price, prepared.max_tokens
        record.emulated, record.dropped, record.passed = prepared.emulated, prepared.dropped, None
        breakers = reports.deployments.breakers
        self._tracked = breakers.begin(target, attempt.started, answer, exchange.team.tenant)
        inflight = self._inflight = reports.metrics.inflight_row(attempt.deployment)
        inflight[0] += 1
        if limit is not None:
            exchange.deadlines.begin_attempt(limit)

    def __enter__(self) -> Self:
        return self

    def opened(self, begun: S, closing: AbstractAsyncContextManager[S]) -> None:
        """Note that a response has begun, which `closing` closes. From now on only the limits of the request apply."""
        self._begun, self._closing = begun, closing
        self._committed = True
        self._read_head()
        self._exchange.deadlines.end_attempt(None)
        begin = self._attempt.begun = self._reports.now()
        self._tracked.first_byte(begin)

    def adopt(self, exchange: Exchange[ClientRequest]) -> None:
        """Continue as an attempt of this exchange, whose record and deadlines apply from now on."""
        self._exchange, self._unanswered = exchange, exchange.record.unanswered
        closing: object = self._closing
        if isinstance(closing, SingleStream):
            closing.record = exchange.record

    async def __aenter__(self) -> tuple[P, S]:
        return self._prepared, self._begun

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._closing.__aexit__(kind, error, traceback)
        except BaseException as failed:
            self.__exit__(type(failed), failed, failed.__traceback__)
            raise
        self.__exit__(kind, error, traceback)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._committed:
            error = self._exchange.deadlines.end_attempt(error)
            if error is not None:
                self._count_unanswered(error)
        try:
            if error is None:
                self._succeeded()
            elif isinstance(error, UpstreamError):
                error.failure = _unquoted(
                    _attributed(error.failure, self._exchange), self._prepared.target, self._reports.secrets
                )
                self._failed(error.failure)
            elif isinstance(error, DeadlinePassed) and error.phase is Phase.HEDGE:
                self._superseded()
                raise SupersededError from None
            elif isinstance(error, SupersededError):
                self._superseded()
            elif isinstance(error, DeadlinePassed):
                # A passed limit of this attempt alone is a failure of the upstream like any other.
                raise UpstreamError(self._outlasted(error)) from None
            elif isinstance(error, asyncio.CancelledError | ConnectionError):
                # Connection errors of the upstream have become UpstreamErrors, so this error is the client's.
                self._left()
            elif isinstance(error, GatewayError) and not self._committed:
                # The deployment's context window is too small for the request, as only this attempt could find out. A
                # guard refuses a response only after its first content, and its refusal says nothing about the
                # deployment.
                self._attempt.outcome = FailureKind.INVALID_REQUEST.value
        finally:
            self._end()

    def _count_unanswered(self, error: BaseException) -> None:
        """Count the prompt of a call that ended before its usage was known, unless the caller has counted it."""
        sent, record = self._attempt.sent, self._exchange.record
        if sent is None or record.unanswered is not self._unanswered or not is_billed(error, sent):
            return
        prepared, size = self._prepared, len(sent.body)
        used = usage_of_call(prepared.request, size) if isinstance(prepared, CallPlan) else usage_of_body(size)
        record.note_unanswered(used)

    def _outlasted(self, late: DeadlinePassed) -> Failure:
        """Note that a time limit has passed, and return the failure for it."""
        failure = Failure(FailureKind.TIMEOUT, late.message, ours=True)
        self._attempt.phase = late.phase.value
        now, target = self._reports.now(), self._prepared.target
        if self._exchange.impatient(late.phase, now - self._attempt.started, target):
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
        passed = self._exchange.deadlines.passed
        if self._exchange.record.finished:
            # The client had its complete response, and left while the rest of the upstream's response was being read.
            self._succeeded()
        elif passed is None or passed.phase in (Phase.CLIENT, Phase.DRAIN):
            self._attempt.outcome = "cancelled"
        else:
            self._outlasted(passed)

    def _succeeded(self) -> None:
        now = self._reports.now()
        self._tracked.succeeded(now)
        self._queue.limit.won(now)
        self._attempt.finished = now  # from now on there is no upstream work to abandon

    def _failed(self, failure: Failure) -> None:
        reports, target, tracked, queue = self._reports, self._prepared.target, self._tracked, self._queue
        now = reports.now()
        _note(self._attempt, failure)
        if target.base_url.startswith(SCHEME):
            return  # the mock fails only if the request asks it to
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
        """Record the vendor's id and the headers for the client from the head of the response, unless they hold part of
        the credential. Record how long it took to make the connection."""
        attempt, record, target = self._attempt, self._exchange.record, self._prepared.target
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
        self._queue.release(self._exchange.team.name)
        self._inflight[0] -= 1


def _note(attempt: Attempt, failure: Failure) -> None:
    attempt.outcome, attempt.status, attempt.message = failure.kind.value, failure.status, failure.operator_message
    attempt.maybe_executed, attempt.cause = failure.maybe_executed, failure.cause
    attempt.vendor_id = failure.vendor_id


def _attributed(failure: Failure, exchange: Exchange[ClientRequest]) -> Failure:
    """Return the failure. It is attributed to the request if the client passed fields through that may have changed the
    form of the response, unless the response is a web page."""
    if failure.kind is FailureKind.MALFORMED and exchange.request.passes_unknown and not failure.evidence:
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
