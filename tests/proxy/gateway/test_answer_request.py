"""One request's end: whose doing it was, and how long it may take to come."""

from dataclasses import replace
from typing import cast

import pytest

from providers.emulation.split_into_calls import plan_calls
from providers.failure import Failure, FailureKind, UpstreamError
from providers.unified_request import ChatPrompt, Operation, TextPrompt, UnifiedRequest
from proxy.deadlines import DeadlinePassed, Phase
from proxy.dispatch.attempt_loop import PlannedRequest
from proxy.errors import GatewayError
from proxy.gateway.answer_request import abort_labels, let_body_go, let_conversation_go, make_job, record_failure
from proxy.relay.relay_to_client import Relay
from proxy.request_record import Outcome, RequestRecord
from proxy.routing.deployment_load import IDLE
from proxy.routing.resolve_model import plan
from proxy.routing.snapshot import ANYONE
from tests.proxy.kit.tables import snapshot
from tests.proxy.kit.virtual_time import run

TABLE = snapshot(
    "vendors: {v: {profile: openai, api_key: k}}\n"
    "models: {v/m: {deployments: {quick: {timeouts: {total: 10s}}, slow: {timeouts: {total: 5m}}}}}"
)


def upstream(kind: FailureKind) -> UpstreamError:
    return UpstreamError(Failure(kind, "words", 500))


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("phase", Phase)
def test_every_deadline_has_words_without_gaps(phase: Phase) -> None:
    record = RequestRecord("id", 0.0, "openai", "/")
    failure = record_failure(record, DeadlinePassed(phase, 2.5))
    assert "{" not in failure.message
    assert ("2.5 s" in failure.message) is (phase is not Phase.DRAIN)


def job(timeout: float | None = None, **headers: str) -> PlannedRequest[UnifiedRequest]:
    asked = UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("hi",)), {}, timeout=timeout)
    planned = plan(TABLE, ANYONE, "v/m", "openai", IDLE)
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def main() -> PlannedRequest[UnifiedRequest]:
        return make_job(planned, ANYONE, asked, named, RequestRecord("id", 0.0, "openai", "/"), heavy=False)

    return run(main())


def test_a_request_has_as_long_as_the_most_patient_of_its_deployments() -> None:
    assert (job().total, job().hurried) == (300.0, False)


@pytest.mark.parametrize(
    ("timeout", "header", "total"),
    [
        (20.0, None, 20.0),
        (None, "7.5", 7.5),
        (20.0, "7", 7.0),
        (5.0, "7", 5.0),
        (None, "301", 300.0),
        (600.0, None, 300.0),
    ],
)
def test_whoever_sends_it_may_shorten_that(timeout: float | None, header: str | None, total: float) -> None:
    made = job(timeout, **({} if header is None else {"x_request_timeout": header}))
    assert (made.total, made.hurried) == (total, total < 300)


@pytest.mark.parametrize(
    "header", ["", "soon", "-1", "0", "0.0", "nan", "inf", "1e9", "0x10", "1_0", "٣", "7 s", "1" * 400]
)
def test_what_is_no_time_is_refused_by_name(header: str) -> None:
    with pytest.raises(GatewayError) as caught:
        job(x_request_timeout=header)
    assert (caught.value.facts.status, caught.value.facts.param) == (400, "x-request-timeout")


def test_the_body_of_a_begun_stream_is_let_go_but_not_those_of_calls_to_come() -> None:
    (target,) = TABLE.models["v/m"].targets[:1]
    alone = plan_calls(UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("hi",)), {}), target)
    several = plan_calls(UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("a", "b")), {"best_of": 2}), target)
    for prepared in (alone, several):
        let_body_go(prepared)
    assert [call.sent.body for call in alone.calls] == [b""]
    assert all(call.sent.body for call in several.calls)


class _Counts:
    """Notes when it is to count the prompt."""

    def __init__(self) -> None:
        self.counted = 0

    def count_prompt(self) -> None:
        self.counted += 1


def test_a_conversation_is_counted_and_let_go_but_not_that_of_calls_to_come() -> None:
    (target,) = TABLE.models["v/m"].targets[:1]
    for calls, left in (1, 0), (2, 1):
        prompt, relay = ChatPrompt(({"role": "user", "content": "hi"},)), _Counts()
        asked = UnifiedRequest(Operation.CHAT, "v/m", prompt, {})
        prepared = plan_calls(asked, target)
        let_conversation_go(replace(prepared, calls=prepared.calls * calls), asked, cast(Relay, relay))
        assert (len(prompt.messages), relay.counted) == (left, 1 - left)
