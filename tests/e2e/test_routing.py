"""The upstream that a request reaches, the call that it receives, and when the request is abandoned: real HTTP on both
sides of the gateway."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from tests.e2e.kit import line_of
from tests.proxy.kit.raw_client import Answer, connected, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.support import openai_wire
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.http_scripts import chunk, head, json_answer, sse_answer
from tests.support.looped import looped
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Behaviour, Hang, Received, Script, Send

pytestmark = pytest.mark.asyncio(loop_scope="module")

UPSTREAM_KEY, OWN_KEY = "sk-upstream-of-one", "sk-upstream-of-b"
SEARCH, ADS = "sk-client-of-search", "sk-client-of-ads"
SSE = [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]


def table_of(one: str, two: str) -> str:
    """Return a configuration of two vendors. Each upstream model name belongs to one test, so no test receives
    another's requests."""
    return f"""\
version: 1
vendors:
  one: {{profile: openai_compatible, base_url: "{one}/v1", api_key: {UPSTREAM_KEY}}}
  two: {{profile: openai_compatible, base_url: "{two}/v1"}}
  choosy: {{profile: ollama, base_url: "{one}/v1"}} # refuses logit_bias
defaults: {{allow_private: true, completions: true}}
models:
  one/plain: {{}}
  one/*: {{}}
  one/deep/name: {{upstream_model: longest}}
  one/pair:
    deployments:
      a: {{upstream_model: pair-a}}
      b: {{upstream_model: pair-b, base_url: "{two}/v1", api_key: {OWN_KEY}}}
  one/drawn:
    policy: weighted
    deployments:
      heavy: {{upstream_model: heavy, weight: 3}}
      light: {{upstream_model: light}}
      never: {{upstream_model: never, weight: 0}}
  one/slow-start: {{timeouts: {{first_event: 50ms}}}}
  one/slow-middle: {{timeouts: {{idle: 50ms}}}}
  one/slow-total: {{timeouts: {{total: 50ms}}}}
  two/other: {{}}
  choosy/small: {{}}
routes:
  fast: {{targets: [one/plain, two/other]}}
  small: {{targets: [choosy/small, two/other]}}
  only-small: choosy/small
teams:
  search:
    keys: ["{digest_of(SEARCH)}"]
    models: ["one/*", "choosy/small", fast, small, only-small]
  ads:
    keys: ["{digest_of(ADS)}"]
    models: [one/pair/b]
    routes: {{fast: two/other}}
"""


def said(received: Received) -> Script:
    """Return a response that contains the requested model's name, streamed if the request wants that."""
    body = received.json()
    assert isinstance(body, dict)
    model = str(body["model"])
    if body.get("stream"):
        return sse_answer(openai_wire.completion_frames([model]))
    return json_answer(200, openai_wire.completion(model))


@dataclass(frozen=True, slots=True)
class World:
    """The gateway between a client and two vendors."""

    one: FakeVendor
    two: FakeVendor
    gateway: RunningGateway

    @property
    def port(self) -> int:
        return urlsplit(self.gateway.url).port or 0

    async def ask(self, model: str, key: str = SEARCH, **fields: JsonValue) -> Answer:
        return await exchange(self.port, asking(model, key, **fields))


def asking(model: str, key: str = SEARCH, **fields: JsonValue) -> bytes:
    """Return the bytes of a request for a completion."""
    body: JsonObject = {"model": model, "prompt": "hi", **fields}
    return request("POST", "/v1/completions", body, {"Authorization": f"Bearer {key}"})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(FakeVendor(said))
        two = await stack.enter_async_context(FakeVendor(said))
        table = table_of(one.base_url, two.base_url)
        folder: Path = tmp_path_factory.mktemp("gateway")
        yield World(one, two, await stack.enter_async_context(running_gateway(table, folder)))


def requests_for(vendor: FakeVendor, model: str) -> list[Received]:
    return [received for received in vendor.requests if received.model == model]


def served(answer: Answer) -> tuple[JsonValue, JsonValue, str]:
    """Return the model in a response, its text, which is the name that the vendor received, and the deployment."""
    assert answer.status == 200, answer.body
    body = answer.json()
    choices = body["choices"]
    assert isinstance(choices, list)
    assert isinstance(choices[0], dict)
    return body["model"], choices[0]["text"], answer.headers["x-dragoman-deployment"]


# Names ---------------------------------------------------------------------------------------------------------------


@looped(
    ("asked", "named", "sent", "deployment"),
    [
        ("one/plain", "one/plain", "plain", "one/plain/default"),
        ("one/plain/default", "one/plain/default", "plain", "one/plain/default"),
        ("one/pair", "one/pair", "pair-a", "one/pair/a"),
        ("one/pair/b", "one/pair/b", "pair-b", "one/pair/b"),
        ("one/any/name/at all", "one/any/name/at all", "any/name/at all", "one/any/name/at all/default"),
        ("one/deep/name", "one/deep/name", "longest", "one/deep/name/default"),
        ("one/deep/other", "one/deep/other", "deep/other", "one/deep/other/default"),
        ("fast", "one/plain", "plain", "one/plain/default"),
    ],
)
async def test_a_name_reaches_its_deployment_and_the_answer_says_which(
    asked: str, named: str, sent: str, deployment: str, world: World
) -> None:
    answer = await world.ask(asked)
    assert served(answer) == (named, sent, deployment)
    assert answer.headers["x-dragoman-attempts"] == "1"
    streamed = await world.ask(asked, stream=True)
    assert streamed.headers["x-dragoman-deployment"] == deployment
    *chunks, done = streamed.events()
    assert done == b"[DONE]"
    assert {orjson.loads(event)["model"] for event in chunks} == {named}


async def test_a_team_has_its_own_meaning_of_a_name_and_only_its_own_models(world: World) -> None:
    assert served(await world.ask("fast", ADS)) == ("two/other", "other", "two/other/default")
    assert served(await world.ask("one/pair/b", ADS))[2] == "one/pair/b"
    for asked in ("one/pair", "two/other"):
        refused = await world.ask(asked, ADS)
        assert (refused.status, refused.code) == (403, "model_not_allowed"), asked
    for asked in ("one/pair/a", "one/plain", "small"):
        refused = await world.ask(asked, ADS)
        assert (refused.status, refused.code) == (404, "model_not_found"), asked


async def test_weights_share_the_requests_out(world: World) -> None:
    answers = [await world.ask("one/drawn") for _ in range(200)]
    counts = Counter(served(answer)[1] for answer in answers)
    assert counts.keys() == {"heavy", "light"}
    # Five standard deviations around three in four.
    assert 120 < counts["heavy"] < 180
    assert served(await world.ask("one/drawn/never"))[1] == "never"


async def test_a_target_that_cannot_honour_a_field_is_passed_over_and_the_first_reason_is_told(world: World) -> None:
    assert served(await world.ask("small"))[2] == "choosy/small/default"
    before = len(requests_for(world.one, "small"))
    answer = await world.ask("small", logit_bias={"1": 2})
    assert served(answer) == ("two/other", "other", "two/other/default")
    refused = await world.ask("only-small", logit_bias={"1": 2})
    assert (refused.status, refused.code, refused.error()["param"]) == (400, "unsupported_parameter", "logit_bias")
    assert "choosy/small/default" in refused.message
    assert len(requests_for(world.one, "small")) == before


# Calls to the vendor -------------------------------------------------------------------------------------------------


async def test_the_operators_key_is_sent_and_nothing_of_the_clients(world: World) -> None:
    headers = {
        "x-api-key": SEARCH,
        "Cookie": f"session={SEARCH}",
        "User-Agent": "client/1",
        "X-Forwarded-For": "203.0.113.9",
        "OpenAI-Organization": "org-of-the-client",
        "x-request-id": "req-7",
        "x-stainless-retry-count": "1",
    }
    body: JsonObject = {"model": "one/keys", "prompt": "hi"}
    answer = await exchange(world.port, request("POST", "/v1/completions", body, headers))
    assert answer.status == 200
    (received,) = requests_for(world.one, "keys")
    assert received.header("authorization") == f"Bearer {UPSTREAM_KEY}"
    assert received.header("x-request-id") == "req-7" == answer.headers["x-request-id"]
    assert {name.lower() for name, _ in received.headers} == {
        "host",
        "authorization",
        "content-type",
        "content-length",
        "accept",
        "accept-encoding",
        "user-agent",
        "x-dragoman-hops",
        "x-request-id",
    }
    assert str(received.header("user-agent")).startswith("dragoman/")
    assert SEARCH.encode() not in received.body
    assert UPSTREAM_KEY not in str(answer)


async def test_each_deployment_gets_its_own_key_and_the_one_without_a_key_none(world: World) -> None:
    await world.ask("one/pair/b")
    assert requests_for(world.two, "pair-b")[-1].header("authorization") == f"Bearer {OWN_KEY}"
    await world.ask("fast", ADS)
    assert requests_for(world.two, "other")[-1].header("authorization") is None


async def test_a_redirect_is_a_failure_and_is_not_followed_with_the_key(world: World) -> None:
    elsewhere = [("location", f"{world.two.base_url}/v1/moved"), ("content-length", "0")]
    world.one.answer_model("moved", (Send(head(307, elsewhere)),))
    answer = await world.ask("one/moved")
    assert answer.status == 502
    assert all(received.path != "/v1/moved" for received in world.two.requests)


@pytest.mark.parametrize("status", [400, 401, 422, 429, 500])
async def test_a_key_in_a_vendors_words_does_not_reach_the_client_or_the_log(status: int, world: World) -> None:
    words: JsonObject = {"message": f"Bad key {UPSTREAM_KEY}", "type": "x", "code": None, "param": None}
    world.one.answer_model(f"tells-{status}", json_answer(status, {"error": words}))
    answer = await world.ask(f"one/tells-{status}")
    assert answer.status >= 400
    assert UPSTREAM_KEY not in str(answer)
    assert (await line_of(world.gateway, answer.headers["x-request-id"]))["attempts"]
    assert UPSTREAM_KEY not in world.gateway.stdout.read_text(encoding="utf-8")


# Abandoned requests --------------------------------------------------------------------------------------------------


def stuck(*frames: bytes) -> Script:
    """Return a stream that stops after these frames and holds the connection open."""
    return (Send(head(200, SSE)), *(Send(chunk(frame)) for frame in frames), Hang())


FIRST = openai_wire.completion_frames(["a"])[0]
SILENT: Mapping[str, Behaviour] = {
    "no head": (Hang(),),
    "a head": stuck(),
    "comments": stuck(b": ping\n\n", b": ping\n\n"),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_the_clients_own_deadline_is_a_504_and_frees_the_vendor(stream: bool, world: World) -> None:
    model = f"late-{stream}"
    world.one.answer_model(model, (Hang(),))
    answer = await world.ask(f"one/{model}", stream=stream, inference_timeout=0.5)
    assert (answer.status, answer.code) == (504, "upstream_timeout")
    assert answer.headers["x-should-retry"] == "false"
    (received,) = requests_for(world.one, model)
    await received.gone.wait()


async def test_the_clients_deadline_cannot_lengthen_the_operators(world: World) -> None:
    world.one.answer_model("slow-total", (Hang(),))
    answer = await world.ask("one/slow-total", inference_timeout=3600)
    assert (answer.status, answer.code) == (504, "upstream_timeout")


@looped("case", SILENT)
async def test_a_stream_without_content_in_time_is_a_504_and_never_a_200(case: str, world: World) -> None:
    world.one.answer_model("slow-start", SILENT[case])
    answer = await world.ask("one/slow-start", stream=True)
    assert (answer.status, answer.code) == (504, "upstream_timeout")
    await requests_for(world.one, "slow-start")[-1].gone.wait()


async def test_a_stream_that_falls_silent_ends_with_an_error_and_does_not_look_whole(world: World) -> None:
    world.one.answer_model("slow-middle", stuck(FIRST))
    answer = await world.ask("one/slow-middle", stream=True)
    assert (answer.status, answer.whole) == (200, False)
    first, error = answer.events()
    assert orjson.loads(first)["choices"][0]["text"] == "a"
    assert orjson.loads(error)["error"]["code"] == "upstream_timeout"
    await requests_for(world.one, "slow-middle")[-1].gone.wait()


async def test_a_client_that_leaves_a_stream_ends_it_at_the_vendor(world: World) -> None:
    world.one.answer_model("left-stream", stuck(FIRST))
    async with connected(world.port) as client:
        await client.send(asking("one/left-stream", stream=True))
        assert (await client.head())[0] == 200
        await client.chunk()
    (received,) = requests_for(world.one, "left-stream")
    await received.gone.wait()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_client_that_leaves_before_its_answer_ends_the_vendor_s_request(stream: bool, world: World) -> None:
    model = f"left-early-{stream}"
    arrived = asyncio.Event()

    def hang(received: Received) -> Script:
        arrived.set()
        return (Hang(),)

    world.one.answer_model(model, hang)
    async with connected(world.port) as client:
        await client.send(asking(f"one/{model}", stream=stream))
        await arrived.wait()
    (received,) = requests_for(world.one, model)
    await received.gone.wait()
    line = await line_of(world.gateway, str(received.header("x-request-id")))
    assert (line["outcome"], line["status"]) == ("client_gone", 499)
