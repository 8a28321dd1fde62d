"""Limits and budgets of teams, keys and deployments through the gateway, over real sockets."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import repeat

import pytest

from providers.completion import LARGEST_COUNT
from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.gateway_rig import AUTH, CLIENT_KEY, Rig, ask, rig
from tests.proxy.kit.limited_vendors import AT
from tests.proxy.kit.raw_client import connected, request
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import json_answer, sse_answer, sse_unterminated
from tests.support.openai_wire import USAGE, chat, chat_frames, completion, completion_frames
from tests.support.vendor_script import Fin, Hang

SECOND_KEY = "dk-of-the-second"
NOON = 1_795_003_200.0
"""12:00 UTC."""

TABLE = """
defaults: {{retries: {{attempts: 3}}}}
vendors:
  v: {{profile: openai_compatible, {at}, models: {{}}{vendor}}}
models:
  v/m: {{price: {{input: 1, output: 2}}{model}}}
  v/cheap: {{price: {{input: 0.1, output: 0.2}}}}
  v/unpriced: {{}}
  v/*: {{}}
routes:
  fast: {{targets: [v/m]}}
  small: {{targets: [v/cheap]}}
teams:
  t:
    keys: [{key}, {{hash: "{second}", name: second}}]
    models: [v/m, v/unpriced, fast, "v/*"]
    {team}
"""


def table(team: str = "", vendor: str = "", model: str = "", key: str = "") -> str:
    """Return a configuration whose team, vendor, first model and first key have these additional settings."""
    first = f'{{hash: "{digest_of(CLIENT_KEY)}"{key}}}'
    text = TABLE.format(
        at=AT, vendor=vendor, model=model, key=first, second=digest_of(SECOND_KEY), team=team.replace("\n", "\n    ")
    )
    return text.replace(", models: {}", "")


@asynccontextmanager
async def limited(
    team: str = "", *, vendor: str = "", model: str = "", key: str = "", wall: float = NOON
) -> AsyncIterator[Rig]:
    """Yield a gateway with such a configuration, whose vendor responds to everything."""
    async with rig(table(team, vendor, model, key), wall=lambda: wall) as made:
        made.vendor.default = json_answer(200, completion("hello", "m"))
        yield made


def limits(made: Mapping[str, str]) -> dict[str, str]:
    """Return the headers about limits."""
    return {name: value for name, value in made.items() if name.startswith(("x-ratelimit", "retry-after"))}


async def statuses(served: Rig, count: int, body: JsonValue = None) -> list[int]:
    """Return the statuses of `count` concurrent requests."""
    asked = [served.post("/v1/completions", body or ask(max_tokens=1)) for _ in range(count)]
    return [answer.status for answer in await asyncio.gather(*asked)]


def chatting(model: str = "v/m", **fields: JsonValue) -> JsonObject:
    return {"model": model, "messages": [{"role": "user", "content": "hi"}], **fields}


def costing(prompt: int) -> JsonObject:
    """Return a response that used `prompt` tokens."""
    return {**completion("hello", "m"), "usage": {"prompt_tokens": prompt, "completion_tokens": 0}}


def views(served: Rig) -> dict[str, int]:
    """Return the used amount of each limit."""
    found = served.limits.registry.views(*served.limits.times())
    return {f"{each.scope}: {each.unit} {each.period or each.kind}": each.used for each in found}


async def test_thirty_of_thirty_at_sixty_a_minute_pass_and_the_sixty_first_is_refused() -> None:
    async with limited("limits: {requests_per_minute: 60}") as served:
        served.limits.now = repeat(served.limits.now()).__next__  # time stands still, however slow the machine is
        assert await statuses(served, 30) + await statuses(served, 30) == [200] * 60
        refused = await served.post("/v1/completions", ask())
    assert (refused.status, refused.code, refused.error()["type"]) == (429, "rate_limit_exceeded", "requests")
    assert refused.message.startswith("Rate limit reached for team t on requests per minute: Limit 60, Used 60, ")
    assert len(served.vendor.requests) == 60
    assert getattr(served.records[-1].limit, "words", "") == "rate of team t: 60 requests per minute"


async def test_a_refusal_takes_nothing_of_other_limits() -> None:
    async with limited("limits: {requests_per_minute: 60, tokens_per_minute: 20}") as served:
        assert await statuses(served, 1, ask(max_tokens=5)) == [200]
        assert await statuses(served, 5, ask(max_tokens=19)) == [429] * 5
        await served.finished(6)
        assert views(served)["team t: requests minute"] == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_a_conversation_that_is_shortened_twice_is_one_request_of_its_team(stream: bool) -> None:
    """If each try were admitted separately, the second would find the only slot taken."""
    too_long: JsonObject = {"error": {"message": "The prompt is too long.", "code": "context_length_exceeded"}}
    turns: list[JsonValue] = [{"role": role, "content": "x" * 200} for _ in range(10) for role in ("user", "assistant")]
    body: JsonObject = {"model": "v/m", "input": [*turns, {"role": "user", "content": "now"}], "truncation": "auto"}
    good = sse_answer(chat_frames(["Hi."])) if stream else json_answer(200, chat("Hi."))
    key = ", name: ci, limits: {requests_per_minute: 1}"
    async with limited("limits: {requests_per_minute: 60, tokens_per_day: 100k, concurrent: 1}", key=key) as served:
        served.vendor.answer(json_answer(400, too_long), json_answer(400, too_long), good)
        answer = await served.post("/v1/responses", {**body, "stream": stream})
        assert (answer.status, answer.headers["x-dragoman-attempts"]) == (200, "3")
        await served.finished(1)
        one = {"key t/ci: requests minute": 1, "team t: requests minute": 1, "team t: requests concurrent": 0}
        assert views(served) == {**one, "team t: tokens day": USAGE["total_tokens"]}


async def test_good_answers_streams_and_refusals_say_what_is_left() -> None:
    async with limited("limits: {requests_per_minute: 3, tokens_per_minute: 100k}") as served:
        whole = await served.post("/v1/completions", ask(max_tokens=10))
        served.vendor.answer(sse_answer(completion_frames(["a"])))
        streamed = await served.post("/v1/completions", ask(stream=True, max_tokens=10))
        served.vendor.answer(json_answer(400, {"error": {"message": "no"}}))
        failed = await served.post("/v1/completions", ask(max_tokens=10))
        refused = await served.post("/v1/completions", ask(max_tokens=10))
    shown = [limits(answer.headers) for answer in (whole, streamed, failed, refused)]
    assert [each["x-ratelimit-limit-requests"] for each in shown] == ["3"] * 4
    assert [each["x-ratelimit-remaining-requests"] for each in shown] == ["2", "1", "0", "0"]
    assert [each["x-ratelimit-limit-tokens"] for each in shown] == ["100000"] * 4
    assert all(each["x-ratelimit-reset-requests"].endswith("s") for each in shown)
    assert (failed.status, refused.status) == (400, 429)
    assert 0 < int(refused.headers["retry-after-ms"]) <= 20_000
    assert 1 <= int(refused.headers["retry-after"]) <= 20


SURFACES: list[tuple[str, JsonObject]] = [
    ("/v1/completions", ask()),
    ("/v1/chat/completions", chatting()),
    ("/v1/responses", {"model": "v/m", "input": "hi"}),
    ("/v1/messages", {"model": "v/m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}),
    ("/v5/completions", ask()),
    ("/inference/v1/completions", ask()),
    ("/v1/embeddings", {"model": "v/m", "input": "hi"}),
    ("/v1/rerank", {"model": "v/m", "query": "a", "documents": ["b"]}),
    ("/v1/moderations", {"model": "v/m", "input": "hi"}),
    ("/v1/audio/speech", {"model": "v/m", "input": "hi", "voice": "a"}),
]


@pytest.mark.parametrize(("path", "body"), SURFACES)
async def test_every_surface_refuses_in_its_own_form_with_the_same_headers(path: str, body: JsonObject) -> None:
    async with limited("limits: {requests_per_day: 1}") as served:
        assert await statuses(served, 1) == [200]
        refused = await served.post(path, body)
    assert refused.status == 429
    assert "Limit reached for team t on requests per day" in refused.body.decode()
    assert refused.headers["x-ratelimit-remaining-requests"] == "0"
    assert refused.headers["x-ratelimit-reset-requests"] == "12h0m0s"
    assert (refused.headers["x-should-retry"], refused.headers["retry-after"]) == ("false", "43200")
    assert len(served.vendor.requests) == 1


async def test_models_lists_and_counts_of_tokens_are_not_limited() -> None:
    async with limited("limits: {requests_per_day: 1}") as served:
        assert await statuses(served, 2) in ([200, 429], [429, 200])
        listed = await served.get("/v1/models")
        counted = await served.post(
            "/v1/messages/count_tokens", {"model": "v/m", "messages": [{"role": "user", "content": "hi"}]}
        )
    assert (listed.status, counted.status) == (200, 200)


async def test_a_place_is_free_when_a_stream_ends_breaks_or_is_left() -> None:
    frames = completion_frames(["a", "b"])
    async with limited("limits: {concurrent: 1, tokens_per_day: 1M}") as served:
        body = ask(stream=True, max_tokens=10)
        served.vendor.answer(sse_answer(frames))
        assert (await served.post("/v1/completions", body)).whole
        served.vendor.answer(sse_unterminated(frames[:2], Fin()))
        assert not (await served.post("/v1/completions", body)).whole
        served.vendor.answer(sse_unterminated(frames[:1], Hang()))
        async with connected(served.port) as client:
            await client.send(request("POST", "/v1/completions", body, AUTH))
            await client.head()
            refused = await served.post("/v1/completions", ask())
            assert (refused.status, refused.code) == (429, "rate_limit_exceeded")
            assert refused.message.startswith("Too many requests of team t at once: Limit 1, Used 1.")
        await served.finished(4)
        used = views(served)
        assert used["team t: requests concurrent"] == 0
        tokens = [each.usage.prompt_tokens + each.usage.completion_tokens for each in served.records if each.usage]
        assert len(tokens) == 3
        assert used["team t: tokens day"] == sum(tokens)
        assert await statuses(served, 1) == [200]


async def test_a_key_has_limits_of_its_own() -> None:
    second = {"Authorization": f"Bearer {SECOND_KEY}"}
    async with limited(key=", limits: {requests_per_hour: 1}") as served:
        assert await statuses(served, 1) == [200]
        refused = await served.post("/v1/completions", ask())
        other = await served.post("/v1/completions", ask(), second)
    label = digest_of(CLIENT_KEY)[7:15]
    assert refused.message.startswith(f"Limit reached for key t/{label} on requests per hour")
    assert (refused.status, other.status) == (429, 200)
    assert "x-ratelimit-limit-requests" not in other.headers
    assert [(each.key, each.key_label) for each in served.records] == [("", label), ("", label), ("second", "second")]


async def test_a_limit_on_a_name_counts_only_that_name() -> None:
    async with limited("limits: {models: {fast: {requests_per_day: 1}}}") as served:
        assert await statuses(served, 1, ask("fast")) == [200]
        assert await statuses(served, 1, ask("fast")) == [429]
        assert await statuses(served, 2, ask("v/m")) == [200, 200]


async def test_what_no_vendor_was_asked_costs_nothing() -> None:
    async with limited("limits: {requests_per_day: 2}") as served:
        bad = await served.post("/v1/completions", ask(inference_extra_params=3))
        assert bad.status == 400
        assert await statuses(served, 2) == [200, 200]


async def test_a_retry_counts_once_for_the_team_and_moves_between_deployments() -> None:
    vendor = ", limits: {requests_per_day: 100, concurrent: 1}"
    async with limited("limits: {requests_per_day: 9, tokens_per_day: 1M}", vendor=vendor) as served:
        down = json_answer(503, {"error": {"message": "down"}})
        served.vendor.answer(down, json_answer(200, completion("hello", "m")))
        answer = await served.post("/v1/completions", ask(max_tokens=50))
        assert (answer.status, answer.headers["x-dragoman-attempts"]) == (200, "2")
        (record,) = await served.finished(1)
        assert record.usage is not None
        used = views(served)
    assert used["team t: requests day"] == 1
    assert used["team t: tokens day"] == record.usage.prompt_tokens + record.usage.completion_tokens
    assert (used["vendor v: requests day"], used["vendor v: requests concurrent"]) == (2, 0)


TWO = ", deployments: {eu: {limits: {requests_per_hour: 1}}, us: {limits: {requests_per_day: 1}}}"


async def test_a_deployment_at_its_limit_is_passed_over_before_it_is_asked() -> None:
    async with limited(model=TWO + ", policy: priority") as served:
        answers = [await served.post("/v1/completions", ask(max_tokens=3)) for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert [answer.headers.get("x-dragoman-deployment") for answer in answers] == ["v/m/eu", "v/m/us", None]
    assert len(served.vendor.requests) == 2
    refused = answers[2]
    assert refused.message.startswith("Limit reached for deployment v/m/eu on requests per hour: Limit 1, Used 1, Req")
    assert 3600 <= int(refused.headers["retry-after"]) <= 3616
    assert refused.headers["x-should-retry"] == "false"


async def test_a_request_that_no_deployment_takes_gives_the_team_its_units_back() -> None:
    async with limited("limits: {requests_per_day: 9}", vendor=", limits: {requests_per_hour: 1}") as served:
        assert sorted(await statuses(served, 4)) == [200, 429, 429, 429]
        await served.finished(4)
        assert views(served)["team t: requests day"] == 1


async def test_requests_wait_in_line_for_a_place_and_are_served_in_order() -> None:
    async with limited("limits: {concurrent: 1}\non_limit: {queue: 20s}") as served:
        assert await statuses(served, 12) == [200] * 12
        assert not served.limits.registry._lines.lines
    assert all(record.limit_waited > 0 for record in served.records[1:])
    assert all(record.client_waited < record.limit_waited for record in served.records[2:])


async def test_a_client_that_leaves_the_line_frees_its_place_in_it() -> None:
    async with limited("limits: {concurrent: 1}\non_limit: {queue: 30s}") as served:
        served.vendor.answer((Hang(),))
        async with connected(served.port) as first:
            await first.send(request("POST", "/v1/completions", ask(), AUTH))
            await served.vendor.received(1)
            async with connected(served.port) as second:
                await second.send(request("POST", "/v1/completions", ask(), AUTH))
                while not served.limits.registry._lines.lines:  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0.005)
            (gone,) = await served.finished(1)
            assert (gone.outcome, gone.held) == ("client_gone", None)
            assert not served.limits.registry._lines.lines
        assert await statuses(served, 1) == [200]


async def test_a_request_waits_in_line_no_longer_than_it_may_take() -> None:
    async with limited("limits: {requests_per_minute: 1}\non_limit: {queue: 60s}") as served:
        assert await statuses(served, 1) == [200]
        hurried = await served.post("/v1/completions", ask(inference_timeout=0.2))
    assert (hurried.status, hurried.code) == (429, "rate_limit_exceeded")


async def test_a_gateway_that_ends_lets_nobody_wait_in_line() -> None:
    async with limited("limits: {requests_per_minute: 2}\non_limit: {queue: 60s}") as served:
        assert await statuses(served, 2) == [200] * 2
        asked = asyncio.create_task(served.post("/v1/completions", ask()))
        while not served.limits.registry._lines.lines:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.005)
        served.gateway.end_calls()
        assert (await asked).status == 503


DAY = "budget: [{{usd: 0.01, per: day, {}}}]"


async def test_a_spent_budget_is_told_with_its_end_and_not_to_be_tried_again() -> None:
    async with limited(DAY.format("then: reject")) as served:
        served.vendor.default = json_answer(200, costing(20_000))
        assert await statuses(served, 1) == [200]
        refused = await served.post("/v1/completions", ask())
    assert (refused.status, refused.code, refused.error()["type"]) == (429, "insufficient_quota", "insufficient_quota")
    assert refused.headers["x-should-retry"] == "false"
    assert refused.headers["retry-after"] == "43200"
    assert "retry-after-ms" not in refused.headers
    assert "It begins anew at 2026-11-19 00:00 UTC." in refused.message


async def test_a_budget_chooses_another_name_which_the_answer_tells() -> None:
    async with limited(DAY.format("at: 50%, then: {route: small}")) as served:
        served.vendor.default = json_answer(200, costing(20_000))
        first = await served.post("/v1/completions", ask())
        second = await served.post("/v1/completions", ask())
        task = await served.post("/v1/moderations", {"model": "v/m", "input": "hi"})
    assert (first.json()["model"], first.headers.get("x-dragoman-budget-route")) == ("v/m", None)
    assert (second.json()["model"], second.headers["x-dragoman-budget-route"]) == ("v/cheap", "small")
    assert [each.model for each in served.records] == ["v/m", "small", "v/m"]
    assert "x-dragoman-budget-route" not in task.headers


async def test_a_warning_lets_everything_pass() -> None:
    async with limited(DAY.format("then: warn")) as served:
        served.vendor.default = json_answer(200, costing(20_000))
        assert await statuses(served, 3) == [200] * 3


async def test_a_model_without_a_price_is_refused_by_name_where_the_budget_says_so() -> None:
    async with limited(DAY.format("unpriced: reject")) as served:
        refused = await served.post("/v1/completions", ask("v/unpriced"))
        assert (refused.status, refused.code, refused.headers["x-should-retry"]) == (429, "insufficient_quota", "false")
        assert "'v/unpriced'" in refused.message
        assert [(it.outcome, it.limit and it.limit.kind) for it in served.records] == [("limited", "unpriced")]
        assert await statuses(served, 1, ask(max_tokens=10)) == [200]
        assert (await served.post("/v1/moderations", {"model": "v/m", "input": "hi"})).status == 429
    assert served.vendor.requests[0].path == "/v1/completions"
    assert len(served.vendor.requests) == 1


async def test_a_new_table_keeps_what_is_used_and_its_limits_hold_at_once() -> None:
    async with limited("limits: {requests_per_day: 2}") as served:
        assert await statuses(served, 2) == [200] * 2
        served.table(table("limits: {requests_per_day: 3}"))
        assert sorted(await statuses(served, 2)) == [200, 429]
        served.table(table())
        assert await statuses(served, 2) == [200] * 2


async def test_a_request_of_a_team_that_is_removed_ends_well() -> None:
    async with limited("limits: {concurrent: 1, tokens_per_day: 1M}") as served:
        served.vendor.answer((Hang(),))
        async with connected(served.port) as client:
            await client.send(request("POST", "/v1/completions", ask(), AUTH))
            await served.vendor.received(1)
            served.table(table().replace("  t:\n", "  heirs:\n"))
        (record,) = await served.finished(1)
        assert (record.team, record.outcome) == ("t", "client_gone")


async def test_a_vendor_that_reports_any_number_closes_a_limit_for_its_period_at_most() -> None:
    async with limited("limits: {tokens_per_minute: 1k, tokens_per_day: 10M}") as served:
        served.vendor.default = json_answer(200, costing(LARGEST_COUNT))
        assert await statuses(served, 1, ask(max_tokens=1)) == [200]
        refused = await served.post("/v1/completions", ask(max_tokens=1))
    assert (refused.status, refused.code) == (429, "rate_limit_exceeded")


async def test_names_that_clients_make_up_make_nothing_grow() -> None:
    async with limited("limits: {tokens_per_day: 100M}") as served:
        for number in range(50):
            assert await statuses(served, 1, ask(f"v/made-up-{number}")) == [200]
        assert len(served.limits._scopes) == 1
        assert len(served.limits.estimates._ratios) == 1


async def test_a_large_answer_holds_its_place_until_the_client_has_it() -> None:
    async with limited("limits: {concurrent: 1}") as served:
        served.vendor.default = json_answer(200, completion("x" * 8_000_000, "m"))
        async with connected(served.port) as client:
            await client.send(request("POST", "/v1/completions", ask(), AUTH))
            await client.head()
            assert (await served.post("/v1/completions", ask())).status == 429
            while not served.records[1:]:
                await client.reader.read(1 << 20)
        await served.finished(2)
        assert views(served)["team t: requests concurrent"] == 0
