"""The gateway's public listener in this process, before a fake vendor: real sockets on both sides, records to look at.

Leaving it makes sure that nothing is left behind. Never the admin listener or the drain; `proxy.app` has those.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from providers.unified import JsonObject, JsonValue
from proxy.admission import Admission, Lids, Reason, ShedRules
from proxy.answer_checks import AnswerChecks
from proxy.browser_guard import BrowserGuard
from proxy.dispatch import Dispatcher
from proxy.door import Door
from proxy.gateway import Gateway
from proxy.guarded import GuardedServer
from proxy.lag import Lags
from proxy.line import Line, LineRules
from proxy.live import Live
from proxy.malformed import Malformed
from proxy.memory import MemoryMeter
from proxy.metrics import Metrics
from proxy.off_loop import OffLoop
from proxy.record import RequestRecord
from proxy.upstream import HttpTransport
from tests.proxy.raw_client import Answer, exchange, request
from tests.proxy.tables import digest_of, snapshot
from tests.support.vendor import FakeVendor

MAX_BODY = 100_000
BUILT_IN = Lids()
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
    """A gateway that listens on `port`, its vendor, what presses on it, and what was told of each request."""

    gateway: Gateway
    live: Live
    metrics: Metrics
    vendor: FakeVendor
    lags: Lags
    memory: MemoryMeter
    line: Line
    door: Door
    guard: BrowserGuard
    port: int = 0
    records: list[RequestRecord] = field(default_factory=list)
    turned_away: list[tuple[str, Reason, int]] = field(default_factory=list)
    malformed: Counter[int] = field(default_factory=Counter)
    _told: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, record: RequestRecord) -> None:
        """Receive a finished record, as the log does."""
        self.metrics.observe(record)
        self.records.append(record)
        self._told.set()

    def tell_of_the_door(self, surface: str, reason: Reason, count: int) -> None:
        """Receive what was refused before it was parsed, as the log does."""
        self.metrics.shed_at_the_door(surface, reason, count)
        self.turned_away.append((surface, reason, count))

    async def finished(self, count: int) -> list[RequestRecord]:
        """Wait until that many requests were told of; all of them."""
        while len(self.records) < count:
            self._told.clear()
            await self._told.wait()
        return self.records

    async def post(self, path: str, body: JsonValue | bytes, headers: Mapping[str, str] | None = None) -> Answer:
        """The answer to a POST with the team's key."""
        return await exchange(self.port, request("POST", path, body, {**AUTH, **(headers or {})}))

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """The answer to a GET with the team's key."""
        return await exchange(self.port, request("GET", path, None, AUTH if headers is None else headers))

    def table(self, text: str) -> None:
        """Put another table in force."""
        self.live.swap(snapshot(text.replace("PORT", str(self.vendor.port))))

    def series(self, prefix: str) -> dict[str, float]:
        """The samples whose name begins so: name with its sorted labels to value."""
        return {
            " ".join(
                [sample.name.removeprefix("dragoman_"), *sorted(map("=".join, sample.labels.items()))]
            ): sample.value
            for family in text_string_to_metric_families(self.metrics.render().decode())
            for sample in family.samples
            if sample.name.startswith(f"dragoman_{prefix}")
        }


def ask(model: str = "v/m", **fields: JsonValue) -> JsonObject:
    """A text completion's body."""
    return {"model": model, "prompt": "hi", **fields}


@asynccontextmanager
async def rig(text: str = TABLE, lids: Lids = BUILT_IN, wall: Callable[[], float] = time.time) -> AsyncIterator[Rig]:
    """A rig for as long as the block; `wall` tells unix seconds."""
    async with FakeVendor() as vendor:
        live = Live(snapshot(text.replace("PORT", str(vendor.port))), 1_795_000_000, wall)
        metrics, http = Metrics(), HttpTransport()
        told: list[RequestRecord] = []
        lags, memory, loop = Lags(), MemoryMeter(()), asyncio.get_running_loop()
        line = Line(LineRules(), loop.time, loop.call_soon)
        # A lag that sheds anything at all sheds everything here.
        admission = Admission(lids, ShedRules(), lags, line, memory, lambda: 0.0)
        checks = AnswerChecks()
        dispatcher = Dispatcher(http, metrics, OffLoop(checks))
        gateway = Gateway(live, dispatcher, metrics, lambda record: made.tell(record), admission, line)
        guard = BrowserGuard("127.0.0.1", (), ())
        door = Door(gateway, admission, line, MAX_BODY, guard, lambda *refused: made.tell_of_the_door(*refused))
        made = Rig(gateway, live, metrics, vendor, lags, memory, line, door, guard, records=told)
        public = GuardedServer(gateway.handle, MAX_BODY, door, guard, gateway.refuse, Malformed(made.malformed.update))
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
        assert gateway.clocks == set()
        assert set(made.series("inflight_requests").values()) <= {0.0}
        await vendor.connected(0)
