"""The response cache over sockets: which requests it answers, with which response, and how it counts them."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from proxy.response_cache.coalescing import CoalescedRequest, CoalescedRequests
from proxy.response_cache.store import FoundResponse
from tests.proxy.kit.gateway_rig import AUTH, CLIENT_KEY, Rig, rig
from tests.proxy.kit.raw_client import Answer, connected, request
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import head, json_answer, sse_answer
from tests.support.openai_wire import chat, chat_frames, completion
from tests.support.vendor_script import Received, Rst, Script, Send, Until
from tests.support.waiting import until

TABLE = f"""
defaults: {{retries: {{attempts: 1}}, cache: {{ttl: 10m, stale: 1h}}}}
vendors:
  v: {{profile: openai_compatible, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}}
models:
  v/m: {{price: {{input: 1, output: 2}}}}
  v/small: {{cache: {{max_bytes: 1024}}}}
  v/all: {{cache: {{scope: table}}}}
  v/off: {{cache: {{where: off}}}}
routes:
  fast: {{targets: [v/m]}}
teams:
  search:
    keys: ["{digest_of(CLIENT_KEY)}"]
    models: ["v/*", fast]
    limits: {{tokens_per_minute: 1000000}}
  ads: {{keys: ["{digest_of("ads")}"], models: ["v/*", fast]}}
"""
PATH = "/v1/chat/completions"
CHANGING = re.compile(rb'"(id|created)":("[^"]*"|\d+)')


@dataclass
class Wall:
    """A clock of Unix seconds, as the test sets them."""

    seconds: float = 1_795_000_000.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Served:
    rig: Rig
    wall: Wall

    async def ask(self, path: str = PATH, headers: dict[str, str] | None = None, **fields: JsonValue) -> Answer:
        return await self.rig.post(path, body(path, **fields), headers)

    @property
    def calls(self) -> int:
        return len(self.rig.vendor.requests)


def body(path: str = PATH, **fields: JsonValue) -> JsonObject:
    if path.endswith("/completions") and "chat" not in path:
        return {"model": "v/m", "prompt": "hi", "temperature": 0, **fields}
    asked: JsonObject = {"model": "v/m", "temperature": 0, "messages": [{"role": "user", "content": "hi"}], **fields}
    return {"max_tokens": 5, **asked} if "messages" in path else asked


def usual(received: Received) -> Script:
    """Answer every request with another text."""
    asked = json.loads(received.body)
    text = f"answer {id(received)}"
    if asked.get("stream"):
        return sse_answer(chat_frames(["one ", text]))
    return json_answer(200, chat(text) if "messages" in asked else completion(text))


def cache_headers(answer: Answer) -> tuple[str | None, str | None, str | None]:
    return tuple(answer.headers.get(name) for name in ("x-dragoman-cache", "age", "x-dragoman-attempts"))  # type: ignore[return-value]


def stable_body(answer: Answer) -> bytes:
    """Return the body, without the parts that differ in each response."""
    return CHANGING.sub(b"", answer.body)


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Served]:
    wall = Wall()
    async with rig(TABLE, wall=wall) as made:
        made.vendor.default = usual
        yield Served(made, wall)


SURFACES = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/messages",
    "/v5/chat/completions",
    "/inference/v1/completions",
]


@pytest.mark.smoke
@pytest.mark.parametrize("path", SURFACES)
async def test_an_equal_request_gets_the_same_bytes_but_for_id_and_time(served: Served, path: str) -> None:
    first = await served.ask(path)
    served.wall.seconds += 7
    again = await served.ask(path)
    assert (first.status, cache_headers(first)) == (200, ("miss", None, "1"))
    assert (again.status, cache_headers(again)) == (200, ("hit", "7", "0"))
    assert again.headers["x-dragoman-deployment"] == "v/m/default"
    assert stable_body(again) == stable_body(first)
    assert again.body != first.body
    assert served.calls == 1


@pytest.mark.smoke
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v5/chat/completions"])
async def test_a_stream_is_replayed_event_by_event(served: Served, path: str) -> None:
    first = await served.ask(path, stream=True)
    again = await served.ask(path, stream=True)
    assert (cache_headers(first)[0], cache_headers(again)) == ("miss", ("hit", "0", "0"))
    assert [CHANGING.sub(b"", each) for each in again.events()] == [CHANGING.sub(b"", each) for each in first.events()]
    assert len(again.events()) >= 3
    assert served.calls == 1


async def test_each_client_of_a_stream_gets_the_usage_that_it_asks_for(served: Served) -> None:
    plain = await served.ask(stream=True)
    with_usage = await served.ask(stream=True, stream_options={"include_usage": True})
    assert cache_headers(with_usage)[0] == "hit"
    assert b'"usage":{' not in plain.body
    assert b'"usage":{"prompt_tokens"' in with_usage.body


async def test_whole_answers_and_streams_and_surfaces_are_kept_apart(served: Served) -> None:
    for path, stream in ((PATH, False), (PATH, True), ("/v1/messages", False), ("/v5/chat/completions", False)):
        assert cache_headers(await served.ask(path, stream=stream))[0] == "miss"
    assert served.calls == 4


@pytest.mark.parametrize(
    ("headers", "fields", "says"),
    [
        ({}, {"temperature": 1}, None),
        ({}, {"temperature": None}, None),
        ({"x-dragoman-cache": "use"}, {"temperature": 1}, "miss"),
        ({"x-dragoman-cache": "no-store"}, {}, None),
        ({"cache-control": "no-store"}, {}, None),
        ({}, {"model": "v/off"}, None),
        ({}, {"model": "v/small"}, "miss"),
        ({}, {"model": "fast"}, "miss"),
        ({}, {"tools": [{"type": "function", "function": {"name": "f"}}]}, "miss"),
    ],
)
async def test_the_cache_is_for_requests_that_ask_for_it(
    served: Served, headers: dict[str, str], fields: JsonObject, says: str | None
) -> None:
    for expected in (says, says and "hit"):
        answer = await served.rig.post(PATH, body(PATH, **fields), headers)
        assert (answer.status, cache_headers(answer)[0]) == (200, expected)
    assert served.calls == (1 if says else 2)


async def test_a_stored_response_is_never_an_answer_of_the_cache(served: Served) -> None:
    asked: JsonObject = {"model": "v/m", "input": "hi", "temperature": 0}
    for _ in range(2):
        answer = await served.rig.post("/v1/responses", asked)
        assert (answer.status, cache_headers(answer)[0]) == (200, None)


@pytest.mark.parametrize("header", [("x-dragoman-cache", "refresh"), ("cache-control", "no-cache")])
async def test_a_client_renews_an_answer(served: Served, header: tuple[str, str]) -> None:
    old = await served.ask()
    new = await served.ask(headers=dict([header]))
    assert cache_headers(new)[0] == "miss"
    assert stable_body(new) != stable_body(old)
    assert stable_body(await served.ask()) == stable_body(new)


async def test_a_word_without_a_meaning_is_refused(served: Served) -> None:
    answer = await served.ask(headers={"x-dragoman-cache": "always"})
    assert (answer.status, served.calls) == (400, 0)


async def test_a_hit_costs_nothing_uses_no_tokens_and_counts_as_a_request(served: Served) -> None:
    first, again = await served.ask(), await served.ask()
    left = [int(each.headers["x-ratelimit-remaining-tokens"]) for each in (first, again)]
    third = await served.ask(headers={"x-dragoman-cache": "no-store"})
    records = await served.rig.finished(3)
    assert [each.cost for each in records[:2]] == [pytest.approx(records[2].cost), 0.0]
    assert left[1] == left[0] or left[1] > 990_000
    assert third.status == 200
    assert records[1].usage == records[0].usage
    assert records[1].attempts == []
    assert records[1].from_cache
    series = served.rig.series("cache_")
    assert series["cache_hits_total model=v/m"] == series["cache_misses_total model=v/m"] == 1
    assert series["cache_stored_total model=v/m"] == 1
    tokens = served.rig.series("tokens_total")
    assert tokens["tokens_total direction=output model=v/m team=search"] == 2 * records[0].usage.completion_tokens  # type: ignore[union-attr]


async def test_a_team_at_its_limit_of_requests_is_refused_whatever_the_cache_has() -> None:
    text = TABLE.replace("tokens_per_minute: 1000000", "requests_per_minute: 2")
    async with rig(text) as made:
        made.vendor.default = usual
        assert [(await made.post(PATH, body())).status for _ in range(3)] == [200, 200, 429]


async def test_teams_share_answers_only_where_the_table_says_so(served: Served) -> None:
    ads = {"Authorization": "Bearer ads"}
    for model, says in (("v/m", "miss"), ("v/all", "hit")):
        assert cache_headers(await served.ask(model=model))[0] == "miss"
        assert cache_headers(await served.ask(model=model, headers=ads))[0] == says


async def test_an_answer_ends_and_a_clock_that_is_set_back_ends_it_too(served: Served) -> None:
    await served.ask()
    served.wall.seconds += 601
    assert cache_headers(await served.ask())[0] == "miss"
    served.wall.seconds -= 300
    assert cache_headers(await served.ask())[0] == "miss"
    assert cache_headers(await served.ask())[0] == "hit"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_stale_answer_is_given_while_no_deployment_answers_and_no_longer(served: Served, stream: bool) -> None:
    first = await served.ask(stream=stream)
    served.wall.seconds += 700
    served.rig.vendor.default = json_answer(500, {"error": {"message": "down"}})
    again = await served.ask(stream=stream)
    assert (again.status, cache_headers(again)) == (200, ("stale", "700", "1"))
    assert stable_body(again) == stable_body(first)
    served.wall.seconds += 3600
    assert (await served.ask(stream=stream)).status >= 500
    records = await served.rig.finished(3)
    assert [each.cost for each in records[1:2]] == [0.0]


async def test_a_fault_of_the_request_is_told_and_no_stale_answer_given(served: Served) -> None:
    await served.ask()
    served.wall.seconds += 700
    served.rig.vendor.default = json_answer(400, {"error": {"message": "too bad", "type": "invalid_request_error"}})
    assert (await served.ask()).status == 400


@pytest.mark.parametrize(
    "script",
    [
        json_answer(200, chat("no", finish_reason="content_filter")),
        json_answer(500, {"error": {"message": "down"}}),
        json_answer(200, chat("x" * 2000)),
    ],
)
async def test_no_bad_and_no_large_answer_is_kept(served: Served, script: Script) -> None:
    served.rig.vendor.default = script
    for _ in range(2):
        assert cache_headers(await served.ask(model="v/small"))[0] in ("miss", None)
    assert served.calls == 2


async def test_a_stream_that_broke_is_not_kept(served: Served) -> None:
    frames = chat_frames(["one", "two"])
    start = head(200, [("content-type", "text/event-stream"), ("connection", "close")])
    served.rig.vendor.answer((Send(start + frames[0] + frames[1]), Rst()))
    await served.ask(stream=True)
    again = await served.ask(stream=True)
    assert cache_headers(again)[0] == "miss"
    assert again.body.endswith(b"[DONE]\n\n")


@pytest.mark.parametrize("stream", [False, True])
async def test_equal_requests_at_once_are_one_call(served: Served, stream: bool) -> None:
    gate = asyncio.Event()
    served.rig.vendor.default = lambda received: (Until(gate), *usual(received))
    asked = [asyncio.create_task(served.ask(stream=stream)) for _ in range(20)]
    await until(lambda: served.rig.gateway.in_flight == 20)
    gate.set()
    answers = await asyncio.gather(*asked)
    assert {each.status for each in answers} == {200}
    assert sorted(str(cache_headers(each)[0]) for each in answers) == ["hit"] * 19 + ["miss"]
    assert len({stable_body(each) for each in answers}) == 1
    assert served.calls == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_where_the_leader_s_client_leaves_a_follower_asks(served: Served, stream: bool) -> None:
    gate = asyncio.Event()
    served.rig.vendor.default = lambda received: (Until(gate), *usual(received))
    async with connected(served.rig.port) as leader:
        await leader.send(request("POST", PATH, body(stream=stream), AUTH))
        await served.rig.vendor.received(1)
        asked = [asyncio.create_task(served.ask(stream=stream)) for _ in range(5)]
        await until(lambda: served.rig.gateway.in_flight == 6)
        await leader.leave()
        await served.rig.vendor.received(2)
    gate.set()
    answers = await asyncio.gather(*asked)
    assert sorted(str(cache_headers(each)[0]) for each in answers) == ["hit"] * 4 + ["miss"]
    assert {each.status for each in answers} == {200}
    assert served.calls == 2


async def test_where_the_leader_s_stream_breaks_its_followers_get_a_whole_one(served: Served) -> None:
    gate = asyncio.Event()
    frames = chat_frames(["one", "two"])
    start = head(200, [("content-type", "text/event-stream"), ("connection", "close")])
    served.rig.vendor.answer((Send(start + frames[0] + frames[1]), Until(gate), Rst()))
    asked = [asyncio.create_task(served.ask(stream=True)) for _ in range(4)]
    await until(lambda: served.rig.gateway.in_flight == 4)
    gate.set()
    answers = await asyncio.gather(*asked)
    assert sum(each.body.endswith(b"[DONE]\n\n") for each in answers) == 3
    assert served.calls == 2


async def test_a_failure_is_not_everybody_s(served: Served) -> None:
    gate = asyncio.Event()
    served.rig.vendor.answer((Until(gate), *json_answer(400, {"error": {"message": "no"}})))
    asked = [asyncio.create_task(served.ask()) for _ in range(4)]
    await until(lambda: served.rig.gateway.in_flight == 4)
    gate.set()
    assert sorted(each.status for each in await asyncio.gather(*asked)) == [200, 200, 200, 400]
    assert served.calls == 2


async def test_where_deployments_fail_nobody_waits_for_another(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    leads: list[str] = []
    lead = CoalescedRequests.lead

    def counted(flights: CoalescedRequests[FoundResponse], key: str) -> CoalescedRequest[FoundResponse]:
        leads.append(key)
        return lead(flights, key)

    monkeypatch.setattr(CoalescedRequests, "lead", counted)
    gate = asyncio.Event()
    served.rig.vendor.default = lambda received: (Until(gate), *json_answer(500, {"error": {"message": "no"}}))
    asked = [asyncio.create_task(served.ask()) for _ in range(4)]
    await until(lambda: served.rig.gateway.in_flight == 4)
    gate.set()
    assert {each.status for each in await asyncio.gather(*asked)} <= {502, 503}
    assert len(leads) == 1


async def test_followers_of_an_answer_that_is_not_kept_ask_by_themselves(served: Served) -> None:
    gate = asyncio.Event()
    served.rig.vendor.default = lambda received: (Until(gate), *json_answer(200, chat("x" * 2000)))
    asked = [asyncio.create_task(served.ask(model="v/small")) for _ in range(3)]
    await until(lambda: served.rig.gateway.in_flight == 3)
    gate.set()
    assert [each.status for each in await asyncio.gather(*asked)] == [200] * 3
    assert served.calls == 3


async def test_a_team_that_fills_the_cache_displaces_its_own_answers(served: Served) -> None:
    ads = {"Authorization": "Bearer ads"}
    await served.ask(headers=ads)
    served.rig.features.cache.kept.most = 20_000
    for number in range(40):
        await served.ask(user=str(number))
    assert cache_headers(await served.ask(headers=ads))[0] == "hit"
    assert served.rig.features.cache.kept.size <= 20_000
    assert served.rig.features.cache.kept.evicted > 0


async def test_a_table_that_says_something_else_of_the_name_asks_anew(served: Served) -> None:
    await served.ask()
    served.rig.table(TABLE.replace("v/m: {price", "v/m: {upstream_model: other, price"))
    assert cache_headers(await served.ask())[0] == "miss"
    served.rig.table(TABLE + f'  more: {{keys: ["{digest_of("more")}"], models: [v/m]}}\n')
    assert cache_headers(await served.ask())[0] == "hit"


async def test_dropped_fields_are_named_with_the_answer_out_of_the_cache() -> None:
    text = TABLE.replace("defaults: {", "defaults: {on_unsupported: drop, ")
    async with rig(text) as made:
        made.vendor.default = usual
        answers = [await made.post(PATH, body(prompt_cache_retention="24h", reasoning_effort="low")) for _ in range(2)]
    names = [each.headers.get("x-dragoman-dropped") for each in answers]
    assert cache_headers(answers[1])[0] == "hit"
    assert names[0] == names[1]
