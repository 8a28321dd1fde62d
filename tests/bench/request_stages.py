"""The cost of each stage of one chat request in pure code: `python -m tests.bench.request_stages`.

A request of 2 KB and a response of 1.2 KB go through every stage in a loop, without a socket. They take the common
path: one team with a key, one deployment, nothing to emulate. Figures are minima of short turns in CPU time, with warm
caches. In a running gateway the same work costs about half as much again.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

import orjson
from aiohttp import HttpVersion11
from multidict import CIMultiDict, CIMultiDictProxy

from providers.completion import Completion
from providers.dialect import UpstreamRequest
from providers.emulation.estimate_missing_usage import with_usage
from providers.emulation.plan_calls import CallPlan
from providers.target import Target
from providers.unified_request import Operation, UnifiedRequest
from proxy.deployment_health.breaker_registry import Breakers
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.dispatch.next_deployment import Candidates, prepared_for
from proxy.dispatch.prefer_honouring import honouring_first
from proxy.gateway.gateway_headers import answer_headers
from proxy.listener.buffered_response import header_lines, response_head
from proxy.request_record import RequestRecord, request_id
from proxy.routing.deployment_load import IDLE, Load
from proxy.routing.request_plan import Plan
from proxy.routing.resolve_model import plan_for
from proxy.routing.snapshot import Key, Snapshot
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.request.heavy_body import is_heavy
from proxy.surfaces.surface import AnswerFacts
from proxy.teams.client_keys import identify, permit_extras
from proxy.upstream.request_headers import call_headers
from tests.proxy.kit.tables import digest_of, snapshot
from tests.support.openai_wire import chat

KEY = "sk-bench"
REQUEST_BYTES, ANSWER_BYTES = 2048, 1200
TURNS, LOOPS = 60, 300

TABLE = f"""\
vendors:
  bench: {{profile: openai_compatible, base_url: "http://127.0.0.1:9/v1", allow_private: true, api_key: sk-up}}
models:
  bench/model: {{context_window: 128000}}
teams:
  search: {{keys: ["{digest_of(KEY)}"], models: ["bench/*"]}}
"""


def padded(body: Mapping[str, object], text: str, length: int) -> bytes:
    """Return a body as JSON of `length` bytes. `text` in it is lengthened to reach that."""
    written = orjson.dumps(body)
    return written.replace(text.encode(), text.encode() + b"x" * (length - len(written)), 1)


REQUEST = padded(
    {
        "model": "bench/model",
        "messages": [
            {"role": "system", "content": "You are terse."},
            {"role": "user", "content": "Shall I compare thee to a summer's day? "},
        ],
        "max_tokens": 64,
        "temperature": 0.5,
    },
    "summer's day? ",
    REQUEST_BYTES,
)
ANSWER = padded(chat("Thou art more lovely. "), "more lovely. ", ANSWER_BYTES)

HEADERS = CIMultiDictProxy(
    CIMultiDict(
        {"Host": "127.0.0.1", "Authorization": f"Bearer {KEY}", "Content-Type": "application/json", "Accept": "*/*"}
    )
)


@dataclass(slots=True)
class OneRequest:
    """The inputs and outputs of one request's stages, in their order. Each stage can run any number of times."""

    table: Snapshot = field(default_factory=lambda: snapshot(TABLE))
    breakers: Breakers = field(default_factory=lambda: Breakers(HealthRules(), lambda: 0.5))
    load: Load = IDLE
    key: Key = field(init=False)
    request: UnifiedRequest = field(init=False)
    planned: Plan = field(init=False)
    prepared: CallPlan = field(init=False)
    completion: Completion = field(init=False)
    record: RequestRecord = field(init=False)
    body: bytes = b""

    @property
    def sent(self) -> UpstreamRequest:
        """Return the only call of the request."""
        return self.prepared.calls[0].sent

    def ids(self) -> None:
        """Make the record with its id."""
        self.record = RequestRecord(request_id(HEADERS), 0.0, OPENAI.name, "/v1/chat/completions", "127.0.0.1")

    def identify(self) -> None:
        """Find the team of the key."""
        self.key = identify(self.table, HEADERS, OPENAI.key_headers, 0.0)

    def parse(self) -> None:
        """Parse and check the body."""
        is_heavy(REQUEST)
        self.request = OPENAI.parse(Operation.CHAT, REQUEST, None)

    def plan(self) -> None:
        """Find the targets of the model's name."""
        planned = plan_for(self.table, self.key.team, self.request.model, OPENAI.name, self.load)
        permit_extras(self.key.team, self.request)
        self.planned = honouring_first(planned, self.request, self.key.team)

    def prepare(self) -> None:
        """Choose the first target that can be called, and encode its call."""
        team = self.key.team
        candidates = Candidates(self.breakers, team.tenant, self._prepare)
        prepared = candidates.first(self.planned, 0.0)
        assert isinstance(prepared, CallPlan), "the common way waits for nothing"
        self.prepared = prepared

    def _prepare(self, target: Target) -> CallPlan:
        return prepared_for(self.request, target, self.key.team)

    def call_headers(self) -> None:
        """Make the head of the call."""
        call_headers(self.sent, self.sent.target.credential.headers(), self.record.request_id)

    def decode(self) -> None:
        """Decode the response of the vendor."""
        completion = self.sent.target.dialect.decode(self.sent, ANSWER)
        self.completion = with_usage(self.prepared.request, completion)

    def render(self) -> None:
        """Render the response for the client."""
        facts = AnswerFacts(self.record.request_id, 1_795_000_000, self.planned.served_name(self.prepared.target))
        self.body = OPENAI.renderer(self.prepared.request, facts).completion(self.completion)

    def answer_head(self) -> None:
        """Make the head of the response."""
        headers = {"x-request-id": self.record.request_id, **answer_headers(self.record)}
        response_head(HttpVersion11, 200, header_lines(headers), len(self.body), True)


STAGES: Mapping[str, Callable[[OneRequest], None]] = MappingProxyType(
    {
        "ids": OneRequest.ids,
        "identify": OneRequest.identify,
        "parse": OneRequest.parse,
        "plan": OneRequest.plan,
        "candidates, prepare, encode": OneRequest.prepare,
        "call headers": OneRequest.call_headers,
        "decode": OneRequest.decode,
        "render": OneRequest.render,
        "answer head": OneRequest.answer_head,
    }
)
"""The stages in their order."""


def costs(turns: int = TURNS, loops: int = LOOPS) -> Mapping[str, float]:
    """Return the microseconds of each stage. The stages alternate, so that all run under the same conditions."""
    one = OneRequest()
    least = dict.fromkeys(STAGES, float("inf"))
    for _ in range(turns):
        for name, stage in STAGES.items():
            run = partial(stage, one)
            began = time.process_time()
            for _ in range(loops):
                run()
            least[name] = min(least[name], (time.process_time() - began) / loops * 1e6)
    return least


def lines(found: Mapping[str, float]) -> list[str]:
    """Return the figures as lines, with their sum."""
    return [f"{us:6.2f}  {name}" for name, us in {**found, "sum": sum(found.values())}.items()]


def main() -> None:
    """Print the figures."""
    print("us   stage of one request of 2 KB and its answer of 1.2 KB")
    print("\n".join(lines(costs())))


if __name__ == "__main__":
    main()
