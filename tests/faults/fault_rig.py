"""The whole gateway in this process with two faulty vendors, and a ledger of everything that requests hold."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Final, cast
from unittest.mock import patch

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from providers.json_types import JsonObject, JsonValue
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.deployment_health.concurrency_limit import ConcurrencyRules
from proxy.dispatch.retry_rules import DeploymentRules, RetryRules
from proxy.overload.admission_limits import ShedRules
from proxy.overload.start_queue import StartQueueRules
from proxy.process.assemble_app import Addresses, WholeGateway, running
from proxy.process.load_table import Source
from proxy.teams.retry_budget import BudgetRules
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.support.forked_program import fork_child
from tests.support.gateway import request_lines
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Script

KEY: Final = "dk-canary-of-the-client"
OPERATOR_KEY: Final = "sk-canary-of-the-operator"
AUTH: Final = {"Authorization": f"Bearer {KEY}"}

TABLE: Final = f"""\
version: 1
server: {{port: 0, admin: {{port: 0}}, watch: false, drain_grace: 0s, drain_timeout: 1s}}
defaults:
  api_key: "${{KEY}}"
  allow_private: true
  timeouts: {{connect: 500ms, first_event: 500ms, idle: 500ms, total: 4s, progress: 1500ms, stream: 3s}}
vendors:
  one: {{profile: openai_compatible, base_url: "http://127.0.0.1:${{ONE}}/v1"}}
  two: {{profile: openai_compatible, base_url: "http://127.0.0.1:${{TWO}}/v1"}}
models:
  one/m: {{}}
  two/m: {{}}
routes:
  both: {{targets: [one/m, two/m]}}
teams:
  search: {{keys: ["{digest_of(KEY)}"], models: ["one/m", "two/m", both]}}
"""
"""`one/m` has one deployment. `both` falls back from it to `two/m`. Times are a tenth or less of the built-in ones."""

PATIENT: Final = TABLE.replace("1500ms", "9s").replace("500ms", "9s").replace("4s", "9s").replace("3s", "9s")
"""For responses that a test delays, because the machine may be slow."""

SCALED: Final = DeploymentRules(
    HealthRules(
        window=3.0,
        forgive=6.0,
        slow_start=1.0,
        cooldown=0.5,
        longest_cooldown=0.5,
        requested_least=0.1,
        requested_most=6.0,
        quota=30.0,
        auth=6.0,
        hanging_age=0.5,
        panic_every=0.1,
    ),
    ConcurrencyRules(wait=0.1),
    RetryRules(elsewhere=0.005, first=0.025, throttled=0.1, longest_asked=1.5, useful=0.2),
)
"""The built-in rules with a tenth of their times."""

COUNTED: Final = replace(SCALED, retries=replace(SCALED.retries, budget=BudgetRules(per_request=0.0, per_second=0.0)))
"""The scaled rules with retry budgets that do not refill, so that spent retries can be counted."""

UNHURRIED: Final = ShedRules(lag_from=1e9, lag_to=2e9)
"""No request is refused because a busy machine made the event loop late; tests/proxy/test_shed.py tests that."""

UNLINED: Final = StartQueueRules(at_once=10**9)
"""No request waits in the start queue for that reason; tests/proxy/overload/test_refusing_connection.py tests that."""

SETTLED_WITHIN: Final = 10.0
"""Seconds within which every resource that a request held must be released."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Everything that requests hold at one moment."""

    tasks: int
    acquired: int
    in_flight: int
    clocks: int
    admitted: tuple[int, int, int]
    gauge: float
    places: int

    @property
    def settled(self) -> bool:
        """Return whether no request holds anything. Idle connections to a vendor may stay."""
        return not (self.acquired or self.in_flight or self.clocks or any(self.admitted) or self.gauge or self.places)


@dataclass(slots=True)
class Rig:
    """A gateway under a fault. `stream` is how `ask` sends. Both fake vendors respond well until they are scripted
    otherwise.

    `answers` are the responses to `ask` and `post`, in order.
    """

    app: WholeGateway
    one: FakeVendor
    two: FakeVendor
    log: BytesIO
    stream: bool = False
    asked: int = 0
    path: Path = field(default_factory=Path)
    answers: list[Answer] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.app.url.rpartition(":")[2])

    async def ask(self, model: str = "one/m", path: str = "/v1/completions", **fields: JsonValue) -> Answer:
        return await self.post({"model": model, "prompt": "hi", "stream": self.stream, **fields}, path)

    async def post(
        self, body: JsonValue | bytes, path: str = "/v1/completions", headers: Mapping[str, str] | None = None
    ) -> Answer:
        self.asked += 1
        answer = await exchange(self.port, request("POST", path, body, {**AUTH, **(headers or {})}))
        self.answers.append(answer)
        return answer

    async def good(self) -> Script:
        return ok(self.stream)

    async def logged(self) -> list[JsonObject]:
        """Wait until each request so far is in the access log, and return its lines."""
        while len(lines := self.lines()) < self.asked:  # noqa: ASYNC110 - a buffer has no event
            await asyncio.sleep(0.001)
        return lines

    def lines(self) -> list[JsonObject]:
        """Return the access log's lines about requests so far. A line that counts several requests is repeated."""
        lines = request_lines(self.log.getvalue())
        return [line for line in lines for _ in range(cast(int, line.get("count", 1)))]

    async def exposition(self) -> str:
        """Return the current text of the metrics."""
        headers = {"Cache-Control": "no-cache"}
        async with aiohttp.ClientSession() as http, http.get(f"{self.app.admin_url}/metrics", headers=headers) as got:
            return await got.text()

    async def series(self, prefix: str) -> dict[str, float]:
        """Return the samples whose name begins with `prefix`, as `samples` does."""
        return samples(await self.exposition(), prefix)

    async def attempts(self, deployment: str, outcome: str) -> float:
        """Return how often an attempt at a deployment had this outcome."""
        name = f"attempts_total deployment={deployment} outcome={outcome}"
        return (await self.series("attempts_total")).get(name, 0.0)

    def forget(self) -> None:
        """Reset the health of every deployment, so that a case with many failures checks each of them."""
        self.app.front.dispatcher.deployments.breakers._known.clear()

    async def ledger(self) -> Ledger:
        """Return the current ledger."""
        app, deployments = self.app, self.app.front.dispatcher.deployments
        gauges = await self.series("inflight_requests")
        return Ledger(
            # A fake vendor runs one task for each of its connections.
            tasks=len(asyncio.all_tasks()) - self.one.open_connections - self.two.open_connections,
            acquired=app.front.transport.pool.in_use,
            in_flight=app.front.gateway.in_flight,
            clocks=len(app.front.gateway.deadlines),
            admitted=(app.front.admission.requests, app.front.admission.streams, app.front.admission.bodies.total),
            gauge=sum(gauges.values()),
            places=sum(places.in_flight + places.waiting for places in deployments._queues.values()),
        )

    async def settled(self, before: Ledger) -> Ledger:
        loop = asyncio.get_running_loop()
        end = loop.time() + SETTLED_WITHIN
        while True:
            now = await self.ledger()
            if (now.settled and now.tasks <= before.tasks) or loop.time() >= end:
                return now
            await asyncio.sleep(0.01)


def samples(exposition: str, prefix: str) -> dict[str, float]:
    """Return the samples whose name begins with `prefix`: the name with its sorted labels to the value. Parse only
    their lines."""
    begin = f"dragoman_{prefix}"
    named = (begin, f"# HELP {begin}", f"# TYPE {begin}")
    lines = [line for line in exposition.splitlines(keepends=True) if line.startswith(named)]
    return {
        " ".join([sample.name.removeprefix("dragoman_"), *sorted(map("=".join, sample.labels.items()))]): sample.value
        for family in text_string_to_metric_families("".join(lines))
        for sample in family.samples
        if sample.name.startswith(begin)
    }


def ok(stream: bool, text: str = "hello") -> Script:
    """Return a good response."""
    return sse_answer(completion_frames([text])) if stream else json_answer(200, completion(text, "m"))


def answering(text: str) -> Callable[[object], Script]:
    """Return a vendor that always responds well, with a stream if the request wants one."""

    def answer(received: object) -> Script:
        body = received.json()  # type: ignore[attr-defined]  # a Received
        return ok(bool(body.get("stream")), text)

    return answer


def descriptors() -> int:
    """Return the number of open files and sockets of this process."""
    return len(os.listdir("/proc/self/fd"))


@asynccontextmanager
async def rig(folder: Path, stream: bool = False, table: str | None = None) -> AsyncIterator[Rig]:
    """Run a gateway and its vendors for the duration of the block."""
    async with FakeVendor(answering("one")) as one, FakeVendor(answering("two")) as two:
        path = folder / "gateway.yaml"
        path.write_text(table or TABLE, encoding="utf-8")
        source = Source(path, {"KEY": OPERATOR_KEY, "ONE": str(one.port), "TWO": str(two.port)})
        log = BytesIO()
        # Log lines are written at once, because otherwise every case would wait for the flush. The ledger's process is
        # forked, because its start is not the subject of a case.
        with (
            patch("proxy.accounting.loader_process.start_child", fork_child),
            patch("proxy.telemetry.log_writer.FLUSH_EVERY", 0.0),
            patch("proxy.process.assemble_app.ShedRules", lambda: UNHURRIED),
            patch("proxy.process.assemble_app.StartQueueRules", lambda: UNLINED),
        ):
            async with running(source, source.load(), Addresses("127.0.0.1", 0, "127.0.0.1", 0), log, COUNTED) as app:
                yield Rig(app, one, two, log, stream, path=path)
