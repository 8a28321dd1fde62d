"""The gateway's public listener in this process, before a fake vendor, with the records of its requests.

Its end asserts that nothing is left behind. `whole_gateway` has the admin listener and the drain.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from providers.json_types import JsonObject, JsonValue
from proxy.dispatch.single_attempt import Dispatcher
from proxy.errors import OverloadReason
from proxy.gateway.handle_request import Gateway
from proxy.http_client.http_transport import HttpTransport
from proxy.limits.limit_registry import LimitRegistry
from proxy.listener.cors_and_host_names import BrowserGuard
from proxy.off_loop.answer_check_pool import AnswerChecks
from proxy.off_loop.request_threads import OffLoop
from proxy.overload.admission_limits import Admission, AdmissionLimits, ShedRules
from proxy.overload.event_loop_lag import Lags
from proxy.overload.malformed_requests import MalformedRequests
from proxy.overload.memory_usage import MemoryMeter
from proxy.overload.refuse_before_parsing import EarlyRefusal
from proxy.overload.refusing_connection import EarlyRefusingServer
from proxy.overload.start_queue import StartQueue, StartQueueRules
from proxy.process.choose_storage import GatewayFeatures, attach_features
from proxy.request_record import RequestRecord
from proxy.routing.snapshot import CurrentSnapshot
from proxy.teams.team_limiter import TeamLimiter
from proxy.telemetry.metrics import Metrics
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.proxy.kit.tables import digest_of, snapshot
from tests.support.vendor import FakeVendor

MAX_BODY = 100_000
BUILT_IN = AdmissionLimits()
CLIENT_KEY = "dk-canary-of-the-client"
OPERATOR_KEY = "sk-canary-of-the-operator"
AUTH = {"Authorization": f"Bearer {CLIENT_KEY}"}

TABLE = f"""
defaults: {{retries: {{attempts: 1}}}}
vendors:
  v:
    profile: openai_compatible
    api_key: {OPERATOR_KEY}
    base_url: "http://127.0.0.1:PORT/v1"
    allow_private: true
  local: {{profile: openai_compatible, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}}
models:
  v/m: {{}}
  v/hasty: {{timeouts: {{first_event: 300ms, idle: 300ms, total: 20s}}}}
  v/short: {{timeouts: {{total: 300ms}}}}
  v/two: {{context_window: 4096, deployments: {{eu: {{}}, us: {{context_window: 2048}}}}}}
  local/*: {{}}
routes:
  fast: {{targets: [v/m, v/two]}}
teams:
  search:
    keys: ["{digest_of(CLIENT_KEY)}"]
    models: [v/m, v/hasty, v/short, v/two/eu, fast, "local/*"]
  ads:
    keys: ["{digest_of("ads")}"]
    models: [v/two]
"""


@dataclass(slots=True)
class Rig:
    """A gateway that listens on `port`, its vendor, its load meters, and the records of its requests."""

    gateway: Gateway
    live: CurrentSnapshot
    metrics: Metrics
    vendor: FakeVendor
    lags: Lags
    memory: MemoryMeter
    line: StartQueue
    door: EarlyRefusal
    guard: BrowserGuard
    dispatcher: Dispatcher
    limits: TeamLimiter
    features: GatewayFeatures
    port: int = 0
    records: list[RequestRecord] = field(default_factory=list)
    turned_away: list[tuple[str, OverloadReason, int]] = field(default_factory=list)
    malformed: Counter[int] = field(default_factory=Counter)
    _told: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, record: RequestRecord) -> None:
        self.metrics.observe(record, record.cost)
        self.records.append(record)
        self._told.set()

    def tell_of_the_door(self, surface: str, status: int, reason: OverloadReason, count: int) -> None:
        self.metrics.shed_before_parsing(surface, status, reason, count)
        self.turned_away.append((surface, reason, count))

    async def finished(self, count: int) -> list[RequestRecord]:
        """Wait until `count` requests have been recorded, and return all records."""
        while len(self.records) < count:
            self._told.clear()
            await self._told.wait()
        return self.records

    async def post(self, path: str, body: JsonValue | bytes, headers: Mapping[str, str] | None = None) -> Answer:
        """Return the response to a POST with the team's key."""
        return await exchange(self.port, request("POST", path, body, {**AUTH, **(headers or {})}))

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Return the response to a GET with the team's key."""
        return await exchange(self.port, request("GET", path, None, AUTH if headers is None else headers))

    def sent(self) -> JsonObject:
        """Return the body of the last call of the vendor."""
        body: JsonObject = orjson.loads(self.vendor.requests[-1].body)
        return body

    def table(self, text: str) -> None:
        table = snapshot(text.replace("PORT", str(self.vendor.port)))
        self.live.swap(table)
        self.limits.use(table)
        self.dispatcher.limits.use(table)

    def series(self, prefix: str) -> dict[str, float]:
        """Return the samples whose name has this prefix: name with sorted labels to value."""
        return {
            " ".join(
                [sample.name.removeprefix("dragoman_"), *sorted(map("=".join, sample.labels.items()))]
            ): sample.value
            for family in text_string_to_metric_families(self.metrics.render().decode())
            for sample in family.samples
            if sample.name.startswith(f"dragoman_{prefix}")
        }


def ask(model: str = "v/m", **fields: JsonValue) -> JsonObject:
    """Return a text completion's body."""
    return {"model": model, "prompt": "hi", **fields}


@asynccontextmanager
async def rig(
    text: str = TABLE, limits: AdmissionLimits = BUILT_IN, wall: Callable[[], float] = time.time
) -> AsyncIterator[Rig]:
    """Yield a rig; `wall` returns unix seconds."""
    async with FakeVendor() as vendor:
        live = CurrentSnapshot(snapshot(text.replace("PORT", str(vendor.port))), 1_795_000_000, wall)
        metrics, http = Metrics(), HttpTransport()
        told: list[RequestRecord] = []
        lags, memory, loop = Lags(), MemoryMeter(()), asyncio.get_running_loop()
        line = StartQueue(StartQueueRules(), loop)
        # Any lag that sheds one request sheds every request here.
        admission = Admission(limits, ShedRules(), lags, line, memory, lambda: 0.0)
        checks = AnswerChecks()
        dispatcher = Dispatcher(http, metrics, OffLoop(checks))
        dispatcher.limits.registry, dispatcher.limits.wall = LimitRegistry(loop.time, wall), wall
        teams = TeamLimiter(dispatcher.limits.registry, loop.time, wall, lambda: 0.0)
        teams.use(live.snapshot)
        dispatcher.limits.use(live.snapshot)
        gateway = Gateway(live, dispatcher, teams, lambda record: made.tell(record), admission, line)
        guard = BrowserGuard("127.0.0.1", (), ())
        door = EarlyRefusal(gateway, admission, line, MAX_BODY, guard, lambda *refused: made.tell_of_the_door(*refused))
        features = attach_features(gateway, dispatcher, live.now)
        parts = gateway, live, metrics, vendor, lags, memory, line, door, guard, dispatcher, teams, features
        made = Rig(*parts, records=told)
        public = EarlyRefusingServer(
            gateway.handle, MAX_BODY, door, guard, gateway.refuse, MalformedRequests(made.malformed.update)
        )
        listener = await loop.create_server(public, "127.0.0.1", 0)
        made.port = listener.sockets[0].getsockname()[1]
        try:
            yield made
        finally:
            listener.close()
            public.pre_shutdown()
            await public.shutdown(0.5)
            await http.aclose()
            await gateway.idle.wait()
            await checks.aclose()
        assert gateway.in_flight == 0
        assert (admission.requests, admission.streams, admission.bodies.total, admission.arriving.total) == (0, 0, 0, 0)
        assert line.coming == 0
        assert gateway.deadlines == set()
        assert set(made.series("inflight_requests").values()) <= {0.0}
        await vendor.connected(0)


def gateway_fixture(text: str = TABLE) -> Callable[[], AsyncIterator[Rig]]:
    """Return a fixture that a module assigns to its own name: a rig with a configuration, for each test."""

    @pytest_asyncio.fixture
    async def made() -> AsyncIterator[Rig]:
        async with rig(text) as running:
            yield running

    return made
