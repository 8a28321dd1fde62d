"""Runs FailoverBench's scenarios with gateways in a typical configuration, two fake vendors, and a client that detects
incomplete responses.

The pace is the number of real seconds that one second of the bench takes in these runs.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import orjson

from providers.json_types import JsonObject
from proxy.dispatch.retry_rules import DeploymentRules
from proxy.process.assemble_app import Addresses, running
from proxy.process.load_table import Source
from tests.faults import failover_wall as wall
from tests.faults.failover_scenarios import PROMPT, Scenario
from tests.faults.failover_verdicts import End, Got, Seen, Tried
from tests.faults.fault_rig import OPERATOR_KEY, UNHURRIED, UNLINED
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Received, Script

FIRST_EVENT: Final = 10.0
IDLE: Final = 10.0
"""The limits `first_event` and `idle` of the configuration, in seconds of the bench. The bench sets the same limits for
its own reference client."""

PROBE: Final = 10.0
"""Seconds that the healthy request after a scenario may take."""

PATIENCE: Final = 4
"""The client waits this many times as long as a request may take, because a busy machine is late. The run's clock
decides whether the request took too long."""

SLACK: Final = 1.0
"""Seconds of tolerance above the longest time of a request, at any pace."""

AT_ANY_PORT: Final = Addresses("127.0.0.1", 0, "127.0.0.1", 0)


TABLE: Final = """\
version: 1
server: {port: 0, admin: {port: 0}, watch: false, drain_grace: 0s, drain_timeout: 1s}
defaults:
  api_key: "${KEY}"
  allow_private: true
  timeouts: {LIMITS}
  retries: {same_deployment: 1}
vendors:
  main: {profile: openai_compatible, base_url: "http://127.0.0.1:${MAIN}/v1"}
  spare: {profile: openai_compatible, base_url: "http://127.0.0.1:${SPARE}/v1"}
"""
"""The head of the configuration. It sets nothing that the bench leaves at its default. The bench gives each gateway
retries at the same provider."""


def main_model(scenario: Scenario) -> str:
    return f"{scenario.id.lower()}-main"


def spare_model(scenario: Scenario) -> str:
    return f"{scenario.id.lower()}-spare"


def table(scenarios: Sequence[Scenario], pace: float) -> str:
    """Return a configuration of two vendors, with a route from the first to the second for each scenario. The second is
    also the target for prompts that are too long: the bench configures such a fallback for every gateway that supports
    it."""
    models, routes = [], []
    for each in scenarios:
        main, spare = f"main/{main_model(each)}", f"spare/{spare_model(each)}"
        models += [f"  {main}: {{}}", f"  {spare}: {{}}"]
        routes.append(f"  {each.id}: {{targets: [{main}, {spare}], fallbacks: {{context_window: [{spare}]}}}}")
    limits = f"first_event: {FIRST_EVENT * pace * 1000:.0f}ms, idle: {IDLE * pace * 1000:.0f}ms"
    return "\n".join([TABLE.replace("LIMITS", limits), "models:", *models, "routes:", *routes, ""])


NO_TIMES: Final = frozenset(
    {
        *("window_share", "jitter", "slow_start_from", "hanging_times", "hanging_slowness"),
        *("spread", "useful_share", "share"),
    }
)
"""The rules that are a share, a factor or a rate. Among the other rules, integers are counts and floats are seconds."""


def paced(pace: float) -> DeploymentRules:
    """Return the built-in rules with their times scaled by `pace`."""
    built_in = DeploymentRules()
    health, retries = built_in.health, built_in.retries
    budget = replace(retries.budget, worth=retries.budget.worth * pace, per_second=retries.budget.per_second / pace)
    return replace(
        built_in,
        health=replace(health, **_scaled(asdict(health), pace)),
        retries=replace(retries, **_scaled(asdict(retries), pace), budget=budget),
    )


def _scaled(rules: dict[str, Any], pace: float) -> dict[str, Any]:
    times = {name: value for name, value in rules.items() if isinstance(value, float) and name not in NO_TIMES}
    return {name: seconds * pace for name, seconds in times.items()}


TICK: Final = 0.01
"""Seconds between two readings of the clock."""


class LoopClock:
    """A clock in seconds that stops while the event loop is late.

    Gateways, vendors and clients share one loop. If the machine is busy, all of them are late, and the gateway did not
    cause this delay. If a gateway waits too long, the loop is idle and the clock goes on, so the wait is counted in
    full.
    """

    __slots__ = ("late",)

    def __init__(self) -> None:
        self.late = 0.0

    def __call__(self) -> float:
        return time.monotonic() - self.late

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Subtract the loop's delays from the clock, for the duration of the block."""
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            task.cancel()

    async def _watch(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(TICK)
            self.late += max(0.0, time.monotonic() - before - 2 * TICK)


@dataclass(slots=True)
class Run:
    """One run of one scenario, with the requests that its two vendors received. The times of requests are in seconds of
    the bench since the run began."""

    scenario: Scenario
    pace: float
    clock: LoopClock = field(default_factory=LoopClock)
    begun: float = 0.0
    primary: list[Tried] = field(default_factory=list)
    fallback: list[Tried] = field(default_factory=list)

    def now(self) -> float:
        return (self.clock() - self.begun) / self.pace

    def at_primary(self, received: Received) -> Script:
        return self._heard(received, self.scenario.primary, self.primary)

    def at_fallback(self, received: Received) -> Script:
        return self._heard(received, self.scenario.fallback, self.fallback)

    def _heard(self, received: Received, model: wall.Model, tries: list[Tried]) -> Script:
        asked = wall.Asked(received, len(tries) + 1, self.now(), self.pace)
        script = model(asked)
        late = self.clock.late / self.pace
        tries.append(Tried(asked.since, asked.size, wall.answered(script), wall.unfit(script), late))
        return script


@dataclass(frozen=True, slots=True)
class Stand:
    """The port to which requests are sent, and a run for each scenario's id."""

    port: int
    runs: dict[str, Run]


@asynccontextmanager
async def _vendors(scenarios: Sequence[Scenario], pace: float) -> AsyncIterator[tuple[FakeVendor, FakeVendor, Stand]]:
    """Run a primary and a fallback vendor for the duration of the block. Yield them with a run for each scenario."""
    clock = LoopClock()
    runs = {each.id: Run(each, pace, clock) for each in scenarios}
    async with clock.running(), FakeVendor() as main, FakeVendor() as spare:
        for run in runs.values():
            main.answer_model(main_model(run.scenario), run.at_primary)
            spare.answer_model(spare_model(run.scenario), run.at_fallback)
        yield main, spare, Stand(main.port, runs)


@asynccontextmanager
async def gateway(folder: Path, scenarios: Sequence[Scenario], pace: float) -> AsyncIterator[Stand]:
    """Run a gateway in front of its two vendors, for the duration of the block."""
    async with _vendors(scenarios, pace) as (main, spare, stand):
        path = folder / "gateway.yaml"
        path.write_text(table(scenarios, pace), encoding="utf-8")
        source = Source(path, {"KEY": OPERATOR_KEY, "MAIN": str(main.port), "SPARE": str(spare.port)})
        # A busy machine makes the shared event loop late, which does not mean that a gateway is overloaded.
        with (
            patch("proxy.process.assemble_app.ShedRules", lambda: UNHURRIED),
            patch("proxy.process.assemble_app.StartQueueRules", lambda: UNLINED),
        ):
            async with running(source, source.load(), AT_ANY_PORT, BytesIO(), paced(pace)) as app:
                yield replace(stand, port=int(app.url.rpartition(":")[2]))


async def asked(port: int, model: str, stream: bool) -> Answer:
    """Return the response to the bench's question."""
    body: JsonObject = {"model": model, "messages": [{"role": "user", "content": PROMPT}], "stream": stream}
    if stream:
        body["stream_options"] = {"include_usage": True}
    return await exchange(port, request("POST", "/v1/chat/completions", body))


@dataclass(frozen=True, slots=True)
class Read:
    """The text that a client reads from a response, or the error."""

    text: str = ""
    model: str = ""
    usage: bool = False
    error: str = ""


def whole(answer: Answer) -> Read:
    """Read a non-streaming response."""
    if answer.status != 200 or not answer.whole:
        return _refused(answer)
    body: Any = answer.json()
    return Read(body["choices"][0]["message"]["content"], body["model"], bool(body.get("usage")))


def streamed(answer: Answer) -> Read:
    """Read a stream. An event that contains an error is an error. An event that is not JSON is skipped."""
    if answer.status != 200:
        return _refused(answer)
    read = Read()
    texts: list[str] = []
    for event in answer.events():
        if event == b"[DONE]":
            return replace(read, text="".join(texts))
        try:
            frame: Any = orjson.loads(event)
        except orjson.JSONDecodeError:
            continue
        if frame.get("error"):
            return Read(error=f"in the stream: {frame['error']['code']}")
        texts += [choice["delta"].get("content") or "" for choice in frame["choices"]]
        read = replace(read, model=frame["model"] or read.model, usage=read.usage or bool(frame.get("usage")))
    if not answer.whole:
        return Read(error="the connection ended within the body")
    return replace(read, text="".join(texts))


def _refused(answer: Answer) -> Read:
    return Read(error=f"{answer.status} {answer.code}" if answer.whole else "the connection ended within the body")


async def _got(asking: Callable[[], Any], reading: Callable[[Answer], Read], run: Run, longest: float) -> Got:
    """Return the result of a client that gives up after `longest` seconds of the bench."""
    at = run.now()

    def ended(end: End, read: Read) -> Got:
        elapsed = run.now() - at
        return Got(at, elapsed, end, read.text == wall.TEXT, read.model, read.usage, read.error)

    try:
        async with asyncio.timeout(PATIENCE * longest * run.pace + SLACK):
            read = reading(await asking())
        if run.now() - at > longest + SLACK / run.pace:
            raise TimeoutError
    except TimeoutError:
        return ended("hang", Read(error="no end"))
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        return ended("error", Read(error=type(error).__name__))
    return ended("error" if read.error else "success", read)


async def played(port: int, model: str, run: Run) -> tuple[Got, ...]:
    """Return the client's results for the requests of a scenario."""
    run.begun = run.clock()
    scenario, got = run.scenario, []
    for number in range(scenario.asked.count):
        await asyncio.sleep((number * scenario.asked.every - run.now()) * run.pace)
        got.append(await _got(lambda: asked(port, model, True), streamed, run, scenario.longest))
    return tuple(got)


async def before_gateway(stand: Stand, scenario: Scenario) -> Seen:
    """Run a scenario through the gateway, then send one healthy request. Return the results of both."""
    run, spare = stand.runs[scenario.id], spare_model(scenario)
    got = await played(stand.port, scenario.id, run)
    seen = Seen(got, tuple(run.primary), tuple(run.fallback), spare, scenario.outage)
    probe = await _got(lambda: asked(stand.port, f"spare/{spare}", False), whole, run, PROBE)
    return replace(seen, alive=probe.end == "success" and probe.complete)


async def without_gateway(stand: Stand, scenario: Scenario) -> Seen:
    """Return the client's results directly from the primary, without a gateway and a fallback."""
    run = stand.runs[scenario.id]
    got = await played(stand.port, main_model(scenario), run)
    return Seen(got, tuple(run.primary), outage=scenario.outage)


async def repeated(folder: Path, scenarios: Sequence[Scenario], times: int, pace: float) -> dict[str, list[Seen]]:
    """Return `times` runs of each scenario, by the scenario's id. Each run of a scenario has a gateway of its own.

    Scenarios of one request run one after the other. Scenarios of many requests, which mostly wait, run beside them.
    """
    async with AsyncExitStack() as stack:
        stands = []
        for number in range(times):
            place = folder / str(number)
            place.mkdir()
            stands.append(await stack.enter_async_context(gateway(place, scenarios, pace)))
        seen: dict[str, list[Seen]] = {}

        async def lane(own: Sequence[Scenario]) -> None:
            for scenario in own:
                seen[scenario.id] = await asyncio.gather(*(before_gateway(stand, scenario) for stand in stands))

        async with asyncio.TaskGroup() as lanes:
            lanes.create_task(lane([each for each in scenarios if each.asked.count > 1]))
            lanes.create_task(lane([each for each in scenarios if each.asked.count == 1]))
    return seen


async def directly(scenarios: Sequence[Scenario], pace: float) -> dict[str, Seen]:
    """Return one run of each scenario without a gateway, all at once, by the scenario's id."""
    async with _vendors(scenarios, pace) as (_, _, stand):
        found = await asyncio.gather(*(without_gateway(stand, scenario) for scenario in scenarios))
    return {scenario.id: each for scenario, each in zip(scenarios, found, strict=True)}
