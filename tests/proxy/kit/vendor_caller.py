"""A caller before one scripted deployment, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest

from providers.completion import Completion
from providers.emulation.plan_calls import CallPlan, plan_calls
from providers.failure import Failure, UpstreamError
from providers.unified_request import Operation, TextPrompt, UnifiedRequest
from proxy.deadlines import Deadlines
from proxy.request_record import Attempt, RequestRecord
from proxy.upstream.call_vendor import UpstreamCaller
from proxy.upstream.send_call import CallSender
from proxy.upstream.vendor_stream import OpenStream
from tests.proxy.kit.in_process_checks import off_loop
from tests.proxy.kit.mark_streams import Body, Step
from tests.proxy.kit.mark_vendor import Door, Scripted
from tests.proxy.kit.tables import snapshot
from tests.proxy.kit.virtual_time import run

_T = TypeVar("_T")

ASKED = UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("hi",)), {})

TABLE = snapshot(
    "vendors: {v: {profile: openai, api_key: k}, mock: {}}\n"
    "models: {v/m: {deployments: {picky: {}, picky2: {}, good: {}, better: {}}}, mock/echo: {}}"
)
TARGETS = {target.deployment: replace(target, dialect=Scripted()) for target in TABLE.models["v/m"].targets}
GOOD = plan_calls(ASKED, TARGETS["good"])


@dataclass
class Rig:
    """A caller before a scripted transport."""

    door: Door
    prepared: CallPlan = GOOD
    record: RequestRecord = field(
        default_factory=lambda: RequestRecord("req-1", 0.0, "openai", "/", attempts=[Attempt("v/m", 0.0)])
    )
    answer: float | None = None
    time: float = 0.0

    def whole(self, expected: int = 1) -> Completion:
        self.prepared = plan_calls(replace(ASKED, params={"n": expected}), self.prepared.target)
        return run(self._asked(lambda caller, clock: caller.whole(self.prepared, self.record, clock, self.answer)))

    def streamed(self) -> OpenStream:
        """Return the stream up to its first content."""

        async def opened(caller: UpstreamCaller, clock: Deadlines) -> OpenStream:
            async with caller.streamed(self.prepared, self.record, clock) as stream:
                assert isinstance(stream, OpenStream)
                return stream

        return run(self._asked(opened))

    def fails(self, way: Callable[[], object]) -> Failure:
        """Return the failure of a response."""
        with pytest.raises(UpstreamError) as caught:
            way()
        return caught.value.failure

    async def _asked(self, work: Callable[[UpstreamCaller, Deadlines], Awaitable[_T]]) -> _T:
        try:
            with Deadlines(600.0) as clock:
                return await work(UpstreamCaller(CallSender(self.door), off_loop()), clock)
        finally:
            self.time = asyncio.get_running_loop().time()


def answers(*steps: Step, status: int = 200, delay: float = 0.0) -> Rig:
    """Return a rig whose vendor sends these steps."""
    return Rig(Door(Body(*steps, status=status, headers={"a": "b"}), delay))


def body_of(rig: Rig) -> Body:
    """Return the scripted response of the transport."""
    assert isinstance(rig.door.answer, Body)
    return rig.door.answer
