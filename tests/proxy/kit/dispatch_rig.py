"""A dispatcher before deployments that behave as scripted, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typing_extensions import override

from providers.completion import Chunk, Completion
from providers.dialect import UpstreamRequest
from providers.failure import Failure, FailureKind, UpstreamError
from providers.target import Retries
from providers.unified_request import Operation, TextPrompt, UnifiedRequest
from proxy.deadlines import DeadlinePassed, Deadlines
from proxy.dispatch.exchange import Exchange
from proxy.dispatch.retry_rules import DeploymentRules
from proxy.dispatch.single_attempt import Dispatcher
from proxy.errors import GatewayError
from proxy.request_record import RequestRecord
from proxy.routing.request_plan import Plan
from proxy.routing.snapshot import ANYONE
from proxy.telemetry.metrics import Metrics
from proxy.upstream.transport import Repeats, UpstreamResponse
from tests.proxy.kit.in_process_checks import off_loop
from tests.proxy.kit.mark_streams import Body, Step
from tests.proxy.kit.mark_vendor import Scripted
from tests.proxy.kit.tables import snapshot
from tests.proxy.kit.virtual_time import run

T = TypeVar("T")

TABLE = snapshot(
    "vendors: {v: {profile: openai, api_key: k}}\n"
    "models: {v/m: {deployments: {a: {}, b: {}, c: {}, picky: {}, strict: {}, never: {}, "
    "narrow: {concurrent: 1}}}}"
)


class Worded(Scripted):
    """A dialect whose error bodies are the name of their kind, with the requested delay after a space."""

    @override
    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        kind, _, wait = body.decode().partition(" ")
        return Failure(
            FailureKind(kind), f"{sent.target.deployment} {kind}", status, retry_after=float(wait or 0) or None
        )


TARGETS = {target.deployment: replace(target, dialect=Worded()) for target in TABLE.models["v/m"].targets}
TARGETS["strict"] = replace(TARGETS["strict"], retries=Retries(3, "strict"))
TARGETS["never"] = replace(TARGETS["never"], retries=Retries(3, "off"))

Behaviour = Callable[[], Body | Failure]
Fallbacks = Mapping[FailureKind, Sequence[str]]
NO_FALLBACKS: Fallbacks = {}


def says(text: str, *before: Step) -> Behaviour:
    """Return a non-streaming response, or a stream of one chunk."""
    return lambda: Body(*before, f"+{text}".encode(), b"")


def refuses(kind: str, status: int = 500, after: float = 0.0) -> Behaviour:
    """Return an error after `after` seconds."""
    return lambda: Body(kind.encode(), b"", status=status, headers={"after": str(after)})


def fails(kind: FailureKind, unsent: bool = False) -> Behaviour:
    """Return no response at all, but a failure."""
    return lambda: Failure(kind, "no answer", unsent=unsent)


def hangs(*before: Step) -> Behaviour:
    """Return a response that never comes."""
    return lambda: Body(*before, 1e6, b"")


@dataclass
class Rig:
    """A dispatcher before deployments with scripted behaviours, one for each call; the last one repeats."""

    behaviours: dict[str, list[Behaviour]]
    rules: DeploymentRules = field(default_factory=DeploymentRules)
    asked: list[tuple[str, float]] = field(default_factory=list)
    given: list[Body] = field(default_factory=list)
    metrics: Metrics = field(default_factory=Metrics)
    record: RequestRecord = field(default_factory=lambda: RequestRecord("req-1", 0.0, "openai", "/", model="v/m"))
    draw: Callable[[], float] = lambda: 0.5
    time: float = 0.0

    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        name = request.target.deployment
        self.asked.append((name, asyncio.get_running_loop().time()))
        behaviours = self.behaviours[name]
        answer = behaviours[0]() if len(behaviours) == 1 else behaviours.pop(0)()
        if isinstance(answer, Failure):
            raise UpstreamError(answer)
        await asyncio.sleep(float(answer.headers.get("after", 0)))
        self.given.append(answer)
        return answer

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""

    @property
    def order(self) -> list[str]:
        """The deployments that were called."""
        return [name for name, _ in self.asked]

    def dispatcher(self) -> Dispatcher:
        """Return a new dispatcher, for a running loop."""
        return Dispatcher(self, self.metrics, off_loop(), self.rules, self.draw)

    def job(
        self, total: float = 600.0, hurried: bool = False, fallbacks: Fallbacks = NO_FALLBACKS
    ) -> Exchange[UnifiedRequest]:
        """Return a request for all deployments, in order."""
        lists = {kind: tuple(TARGETS[name] for name in names) for kind, names in fallbacks.items()}
        beside = {name for names in fallbacks.values() for name in names}
        targets = tuple(TARGETS[name] for name in self.behaviours if name not in beside)
        plan = Plan("v/m", "v/m", targets, False, (), lists)
        request = UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("hi",)), {})
        return Exchange(plan, ANYONE, request, self.record, Deadlines(total), total, hurried)

    def whole(self, total: float = 600.0, hurried: bool = False, fallbacks: Fallbacks = NO_FALLBACKS) -> str:
        """Return the text of a non-streaming response."""

        async def asked(dispatcher: Dispatcher, job: Exchange[UnifiedRequest]) -> Completion:
            return (await dispatcher.whole(job))[1]

        return self.run(asked, total, hurried, fallbacks).choices[0].text

    def streamed(self, total: float = 600.0) -> str:
        """Return the first texts of a stream."""

        async def asked(dispatcher: Dispatcher, job: Exchange[UnifiedRequest]) -> str:
            async with await dispatcher.streamed(job) as (_, stream):
                return "".join(event.text for event in stream.first() if isinstance(event, Chunk))

        return self.run(asked, total)

    def fails(self, way: Callable[[], object]) -> Failure:
        """Return the failure of a request."""
        with pytest.raises(UpstreamError) as caught:
            way()
        return caught.value.failure

    def run(
        self,
        work: Callable[[Dispatcher, Exchange[UnifiedRequest]], Awaitable[T]],
        total: float = 600.0,
        hurried: bool = False,
        fallbacks: Fallbacks = NO_FALLBACKS,
    ) -> T:
        """Return the result of `work` for one request."""

        async def main() -> T:
            job = self.job(total, hurried, fallbacks)
            try:
                with job.deadlines:
                    return await work(self.dispatcher(), job)
            finally:
                self.time = asyncio.get_running_loop().time()

        try:
            return run(main())
        finally:
            assert all(body.closed or body.released for body in self.given)
            assert self.series("inflight_requests") in ({}, dict.fromkeys(self.series("inflight_requests"), 0.0))

    def state(self) -> dict[str, float]:
        """Return the gauge of the deployments' states, by name."""
        return {name.rpartition("/")[2]: value for name, value in self.series("deployment_state").items()}

    def series(self, prefix: str) -> dict[str, float]:
        """Return the samples whose name has this prefix, by their label values."""
        return {
            " ".join(sample.labels.values()): sample.value
            for family in text_string_to_metric_families(self.metrics.render().decode())
            for sample in family.samples
            if sample.name.startswith(f"dragoman_{prefix}")
        }


def outcomes(rig: Rig) -> list[tuple[str, str]]:
    """Return the recorded outcome of each attempt."""
    return [(attempt.deployment.rpartition("/")[2], attempt.outcome) for attempt in rig.record.attempts]


async def outcome_of(dispatcher: Dispatcher, job: Exchange[UnifiedRequest]) -> str:
    """Return the text of a non-streaming response, or the failure, error code or deadline that ended the request."""
    try:
        with job.deadlines:
            return (await dispatcher.whole(job))[1].choices[0].text
    except UpstreamError as error:
        return error.failure.kind.value
    except GatewayError as error:
        return error.facts.code
    except DeadlinePassed as late:
        return late.phase.value


OK = says("ok")
