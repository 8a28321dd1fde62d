"""Traffic with stalls, through a dispatcher in virtual time. The deployments bill all generated tokens."""

import asyncio
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from providers.completion import Chunk, Usage
from providers.dialect import UpstreamRequest
from providers.emulation.estimate_missing_usage import estimate_usage
from providers.unified_request import Operation, TextPrompt, UnifiedRequest
from proxy.deadlines import Deadlines
from proxy.dispatch.exchange import Exchange
from proxy.dispatch.single_attempt import Dispatcher
from proxy.hedging.hedge_rules import HedgeRules
from proxy.request_record import RequestRecord
from proxy.routing.request_plan import Plan
from proxy.routing.snapshot import ANYONE
from proxy.telemetry.metrics import Metrics
from proxy.upstream.transport import Repeats, Take, UpstreamResponse, read_each
from tests.proxy.kit.dispatch_rig import Worded
from tests.proxy.kit.in_process_checks import off_loop
from tests.proxy.kit.tables import snapshot
from tests.proxy.kit.virtual_time import run

NAMES = ("eu", "us", "asia", "home")
TABLE = snapshot(
    f"vendors: {{v: {{profile: openai, api_key: k}}}}\n"
    f"models: {{v/m: {{deployments: {{{', '.join(f'{name}: {{}}' for name in NAMES)}}}}}}}"
)
TARGETS = tuple(replace(target, dialect=Worded()) for target in TABLE.models["v/m"].targets)
REQUEST = UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("a prompt of some words",)), {}, stream=True)
PROMPT = estimate_usage(REQUEST, 0).prompt_tokens
ANSWER = 1
"""Tokens of each response, which come with its first content."""

Delay = Callable[[random.Random, str, float], float]
"""The seconds to the first content of a call, by its deployment and the time."""


def usual(rng: random.Random, name: str, now: float) -> float:
    """Return a lognormal delay with a median of 0.6 s; one in fifty stalls for 5 to 30 s."""
    if rng.random() < 0.02:
        return rng.uniform(5.0, 30.0)
    return 0.6 * math.exp(rng.gauss(0.0, 0.5))


class Billed:
    """A response whose first content comes after a delay. Its vendor bills the prompt, and the response if it was
    generated before the connection was closed.
    """

    status = 200
    head = b""

    def __init__(self, delay: float, bill: list[int]) -> None:
        self.headers: dict[str, str] = {}
        self.open = True
        self._delay = delay
        self._bill = bill
        self._steps = [b"+ok . ", b"#", b""]
        bill[0] += PROMPT

    def take_all(self) -> bytes | None:
        return None

    async def read(self) -> bytes:
        if self._delay:
            await asyncio.sleep(self._delay)
            self._delay = 0.0
            self._bill[0] += ANSWER
        return self._steps.pop(0) if len(self._steps) > 1 else b""

    async def each(self, take: Take) -> None:
        await read_each(self, take)

    def release(self) -> None:
        self.open = False

    def close(self) -> None:
        self.open = False


@dataclass
class Vendors:
    """Deployments whose calls take as long as `delay` returns. `bill` holds the tokens of all of them."""

    delay: Delay
    seed: int
    bill: list[int] = field(default_factory=lambda: [0])
    given: list[Billed] = field(default_factory=list)
    calls: int = 0

    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        request.note_written()
        self.calls += 1
        # Each call of a request has the same delay in every run.
        rng = random.Random(f"{self.seed} {request_id} {request.target.deployment}")
        delay = self.delay(rng, request.target.deployment, asyncio.get_running_loop().time())
        self.given.append(Billed(delay, self.bill))
        return self.given[-1]

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""


@dataclass
class Outcome:
    """The outcome of one run: when each request began, the seconds to its first content, the late requests with their
    start, deployment and hedge outcome, the booked tokens, and the calls that are left open.
    """

    vendors: Vendors
    waits: list[float] = field(default_factory=list)
    booked: int = 0
    began: list[float] = field(default_factory=list)
    late: list[tuple[float, str, str]] = field(default_factory=list)
    left: int = 0

    @property
    def hedges(self) -> list[str]:
        """The hedge outcome of each late request."""
        return [hedge for _, _, hedge in self.late]

    def quantile(self, share: float) -> float:
        """Return a quantile of the waits."""
        return sorted(self.waits)[min(len(self.waits) - 1, int(share * len(self.waits)))]


def simulated(
    hedge: HedgeRules | None, requests: int, delay: Delay = usual, rate: float = 25.0, members: int = 2, seed: int = 7
) -> Outcome:
    """Run `requests` requests, which arrive at random, at deployments in rotation."""
    outcome = Outcome(Vendors(delay, seed))
    arrivals = random.Random(seed)

    async def one(dispatcher: Dispatcher, number: int) -> None:
        turn = number % members
        targets: Sequence[object] = (*TARGETS[turn:members], *TARGETS[:turn])
        plan = Plan("v/m", "v/m", targets, False, (), hedge=hedge)  # type: ignore[arg-type]  # Targets, rotated
        record = RequestRecord(f"r{number}", 0.0, "openai", "/", model="v/m")
        job = Exchange(plan, ANYONE, REQUEST, record, Deadlines(600.0), 600.0)
        began = asyncio.get_running_loop().time()
        outcome.began.append(began)
        with job.deadlines:
            async with await dispatcher.streamed(job) as (_, stream):
                outcome.waits.append(asyncio.get_running_loop().time() - began)
                text = sum(len(event.text) for event in stream.first() if isinstance(event, Chunk))
                assert text == len("ok")
                record.usage = Usage(PROMPT, ANSWER)
                await stream.finish()
        if record.hedge is not None:
            outcome.late.append((began, NAMES[turn], record.hedge))
        record.bill_unanswered()
        outcome.booked += 0 if record.counted is None else record.counted.total_tokens

    async def main() -> None:
        dispatcher = Dispatcher(outcome.vendors, Metrics(), off_loop(), None, arrivals.random)
        running: set[asyncio.Task[None]] = set()
        for number in range(requests):
            await asyncio.sleep(arrivals.expovariate(rate))
            task = asyncio.ensure_future(one(dispatcher, number))
            running.add(task)
            task.add_done_callback(running.discard)
        await asyncio.gather(*running)
        outcome.left = len(dispatcher.hedges.tasks) + sum(each.open for each in outcome.vendors.given)

    run(main())
    return outcome
