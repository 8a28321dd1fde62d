"""lm-evaluation-harness through the gateway: its requests and scores are the same as without a gateway.

The recordings come from the real harness and a real vLLM: `tests/fixtures/lm_eval/README.md`.
"""

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
import pytest_asyncio

from providers.json_types import JsonValue
from tests.e2e.kit import CLIENTS, totals
from tests.proxy.kit.tables import digest_of
from tests.support.engine import Engine
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.http_scripts import body_answer
from tests.support.looped import looped
from tests.support.scoring_client import SCENARIOS, Endpoint, Scores, order, score
from tests.support.scoring_engine import running_scorer
from tests.support.scoring_record import Exchange, load
from tests.support.vendor import FakeVendor, unscripted
from tests.support.vendor_script import Received, Script

pytestmark = pytest.mark.asyncio(loop_scope="module")

Wire = dict[str, Any]  # Any: a response from the wire

KEY = "sk-evaluation"
MODEL = "tiny"
RECORDINGS = {name: load(name) for name in SCENARIOS}
PROFILES = looped("profile", ["vllm", "openai_compatible"])
PATHS = (
    "/v1/completions",
    "/completions",
    "/inference/v1/completions",
    "/v4/beta/completions",
    "/v5/completions",
    "/api/v1/compatibility/openai/v1/completions",
)


def table_of(upstream: str, teams: str = "") -> str:
    """Return a configuration with the same upstream under both profiles."""
    return f"""\
version: 1
vendors:
  vllm: {{base_url: "{upstream}/v1"}}
  openai_compatible: {{base_url: "{upstream}/v1"}}
defaults: {{allow_private: true, completions: true}}
models:
  vllm/{MODEL}: {{context_window: 8192}}
  openai_compatible/{MODEL}: {{context_window: 8192}}
{teams}"""


TEAMS = f"""\
teams:
  evaluation:
    keys: ["{digest_of(KEY)}"]
    models: ["*"]
"""


def exact(value: JsonValue) -> bytes:
    """Return JSON for comparison: the order of keys does not count, but `true`, 1 and 1.0 differ."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def classic(answer: Wire) -> list[JsonValue]:
    """Return the fields of each choice that a client of the classic completions reads, including the four arrays of
    `logprobs`."""
    names = ("index", "text", "logprobs", "finish_reason")
    return [[choice[name] for name in names] for choice in answer["choices"]]


RECORDED = [exchange for name in SCENARIOS for exchange in RECORDINGS[name].exchanges]
ANSWERS: Mapping[bytes, str] = {exact(orjson.loads(one["body"])): one["answer"] for one in RECORDED}


def replay(request: Received) -> Script:
    """Return the recorded response to this request. Return a 501 for any other."""
    body = request.json()
    assert isinstance(body, dict)
    answer = ANSWERS.get(exact(body)) if request.path == "/v1/completions" else None
    if answer is None:
        return unscripted(request)
    return body_answer(200, answer.encode(), [("content-type", "application/json")])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def vendor() -> AsyncIterator[FakeVendor]:
    async with FakeVendor(replay) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(vendor: FakeVendor, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningGateway]:
    """A gateway without teams, because the harness's recorded requests have an empty key."""
    async with running_gateway(table_of(vendor.base_url), tmp_path_factory.mktemp("gateway")) as running:
        yield running


async def through(gateway: RunningGateway, path: str, model: str, exchange: Exchange) -> Wire:
    """Return the gateway's non-streaming response to a recorded request, unchanged but for the model's name."""
    body = exchange["body"].replace(f'"model": "{MODEL}"', f'"model": "{model}"').encode()
    async with (
        aiohttp.ClientSession(gateway.url) as http,
        http.post(path, data=body, headers=exchange["headers"]) as response,
    ):
        text = await response.text()
    assert response.status == 200, text
    assert {"x-dragoman-emulated", "x-dragoman-dropped"}.isdisjoint(response.headers)
    return dict(orjson.loads(text))


@PROFILES
@looped("path", PATHS)
@looped("scenario", SCENARIOS)
async def test_a_recorded_exchange_passes_unchanged(
    vendor: FakeVendor, gateway: RunningGateway, profile: str, path: str, scenario: str
) -> None:
    for exchange in RECORDINGS[scenario].exchanges:
        before = len(vendor.requests)
        answer = await through(gateway, path, f"{profile}/{MODEL}", exchange)
        (heard,) = vendor.requests[before:]
        assert exact(orjson.loads(heard.body)) == exact(orjson.loads(exchange["body"]))
        recorded = orjson.loads(exchange["answer"])
        assert exact(classic(answer)) == exact(classic(recorded))
        assert totals(answer["usage"]) == totals(recorded["usage"])


@PROFILES
@looped("scenario", SCENARIOS)
async def test_a_recorded_prompt_keeps_its_form(
    vendor: FakeVendor, gateway: RunningGateway, profile: str, scenario: str
) -> None:
    for exchange in RECORDINGS[scenario].exchanges:
        before = len(vendor.requests)
        await through(gateway, PATHS[0], f"{profile}/{MODEL}", exchange)
        (heard,) = vendor.requests[before:]
        assert exact(heard.json()) == exact(orjson.loads(exchange["body"]))


def tally(scores: list[Scores]) -> "Counter[bool]":
    """Return how many pairs are greedy, and how many are not."""
    return Counter(greedy for one in scores for _, greedy in one.pairs)


class TestTheHarness:
    """The client itself, in its own environment."""

    pytestmark = CLIENTS

    @PROFILES
    async def test_it_computes_the_recorded_scores_through_the_gateway(
        self, vendor: FakeVendor, tmp_path: Path, profile: str
    ) -> None:
        before = len(vendor.requests)
        async with running_gateway(table_of(vendor.base_url, TEAMS), tmp_path) as gateway:
            endpoint = Endpoint(f"{gateway.url}/v1/completions", f"{profile}/{MODEL}")
            scores = await score([order(scenario, endpoint) for scenario in SCENARIOS.values()], KEY)
        assert scores == [recording.scores for recording in RECORDINGS.values()]
        heard = [exact(orjson.loads(request.body)) for request in vendor.requests[before:]]
        assert Counter(heard) == Counter(exact(orjson.loads(exchange["body"])) for exchange in RECORDED)

    @pytest.mark.engine
    @PROFILES
    async def test_a_real_engine_gives_it_the_same_scores_with_and_without_the_gateway(
        self, engine: Engine, tmp_path: Path, profile: str
    ) -> None:
        async with running_scorer(engine) as upstream, running_gateway(table_of(upstream, TEAMS), tmp_path) as gateway:
            direct = Endpoint(f"{upstream}/v1/completions", MODEL)
            behind = Endpoint(f"{gateway.url}/v1/completions", f"{profile}/{MODEL}")
            orders = [order(scenario, endpoint) for endpoint in (direct, behind) for scenario in SCENARIOS.values()]
            scores = await score(orders, KEY)
        half = len(SCENARIOS)
        assert scores[half:] == scores[:half]
        assert set(tally(scores)) == {True, False}
