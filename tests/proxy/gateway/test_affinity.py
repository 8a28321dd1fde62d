"""Conversations of real agents through the gateway: each stays at its deployment, and the client sees if it moved."""

from collections.abc import AsyncIterator, Mapping

import pytest
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from proxy.routing.session_affinity import rank, seed
from tests.proxy.kit.gateway_rig import CLIENT_KEY, OPERATOR_KEY, Rig, rig
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import json_answer
from tests.support.openai_wire import chat

pytestmark = pytest.mark.smoke

NAMES = ("eu", "us", "asia", "home")
TABLE = f"""
defaults: {{retries: {{attempts: 3}}}}
vendors:
  v:
    profile: openai_compatible
    api_key: {OPERATOR_KEY}
    base_url: "http://127.0.0.1:PORT/v1"
    allow_private: true
  o: {{profile: openai, api_key: {OPERATOR_KEY}, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}}
models:
  v/m: {{policy: weighted, deployments: {{{", ".join(f"{name}: {{upstream_model: {name}}}" for name in NAMES)}}}}}
  o/one: {{affinity: {{send: true}}}}
  v/embed: {{policy: round_robin, deployments: {{eu: {{upstream_model: eu}}, us: {{upstream_model: us}}}}}}
teams:
  search: {{keys: ["{digest_of(CLIENT_KEY)}"], models: ["*"]}}
  ads: {{keys: ["{digest_of("ads")}"], models: ["*"]}}
"""
LONG = "You are an agent that edits code. " * 150
SESSION = "0199c1f2-6f3c-7d3e-9f0f-3b5a1c2d4e"
VECTOR: JsonObject = {"object": "list", "model": "m", "data": [{"index": 0, "embedding": [1.0]}]}


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Rig]:
    async with rig(TABLE) as made:
        made.vendor.default = json_answer(200, chat("Hi."))
        yield made


def turns(number: int) -> list[JsonValue]:
    """Return the messages of a conversation's turn."""
    more: list[JsonValue] = []
    for turn in range(number):
        more += [{"role": "assistant", "content": f"Step {turn}."}, {"role": "user", "content": "Go on."}]
    return [{"role": "user", "content": "Fix the bug."}, *more]


def of_claude_code(session: str, number: int) -> tuple[str, JsonObject, Mapping[str, str]]:
    body: JsonObject = {"model": "v/m", "max_tokens": 32_000, "system": LONG, "messages": turns(number)}
    sent = {"user-agent": "claude-cli/2.1.197 (external, cli)", "x-app": "cli", "anthropic-version": "2023-06-01"}
    return "/v1/messages?beta=true", body, {**sent, "X-Claude-Code-Session-Id": session}


def of_codex(session: str, number: int) -> tuple[str, JsonObject, Mapping[str, str]]:
    body: JsonObject = {"model": "v/m", "instructions": LONG, "input": turns(number), "store": False}
    sent = {"user-agent": "codex_exec/0.149.0 (Linux; x86_64)", "originator": "codex_exec"}
    return "/v1/responses", {**body, "prompt_cache_key": session}, {**sent, "session-id": session, "thread-id": session}


def of_older_codex(session: str, number: int) -> tuple[str, JsonObject, Mapping[str, str]]:
    path, body, _ = of_codex(session, number)
    return path, body, {"user-agent": "codex_cli_rs/0.98.0", "session_id": session, "conversation_id": session}


def of_opencode(session: str, number: int) -> tuple[str, JsonObject, Mapping[str, str]]:
    body: JsonObject = {"model": "v/m", "messages": [{"role": "system", "content": LONG}, *turns(number)]}
    return "/v1/chat/completions", body, {"x-session-affinity": session}


AGENTS = (of_claude_code, of_codex, of_older_codex, of_opencode)


def asked_deployments(made: Rig) -> list[object]:
    return [body["model"] for each in made.vendor.requests if isinstance(body := each.json(), dict)]


async def test_the_turns_of_each_agent_s_session_are_called_at_one_deployment(served: Rig) -> None:
    homes = set()
    for agent in AGENTS:
        for session in range(4):
            before = len(served.vendor.requests)
            for number in range(4):
                path, body, headers = agent(f"{SESSION}{session:02}", number)
                answer = await served.post(path, body, headers)
                assert answer.status == 200, answer.body
            (home,) = set(asked_deployments(served)[before:])
            homes.add(home)
    assert len(homes) > 1
    assert {record.affinity for record in await served.finished(64)} == {"kept"}
    assert served.series("affinity_total")["affinity_total outcome=kept"] == 64


async def test_the_agents_of_one_session_id_share_its_deployment_and_another_team_s_do_not(served: Rig) -> None:
    placed: dict[str, list[object]] = {CLIENT_KEY: [], "ads": []}
    for session in range(12):
        path, body, headers = of_opencode(f"{SESSION}{session:02}", 0)
        for key, found in placed.items():
            sent = request("POST", path, body, {**headers, "Authorization": f"Bearer {key}"})
            assert (await exchange(served.port, sent)).status == 200
            found.append(asked_deployments(served)[-1])
    assert placed[CLIENT_KEY] != placed["ads"]


async def test_a_conversation_without_a_header_stays_by_how_it_begins(served: Rig) -> None:
    for session in range(6):
        before = len(served.vendor.requests)
        for number in range(5):
            path, body, _ = of_opencode("", number)
            body["messages"] = [{"role": "system", "content": f"{LONG}{session}"}, *turns(number)]
            await served.post(path, body, {"x-client-request-id": f"{session}-{number}"})
        assert len(set(asked_deployments(served)[before:])) == 1
    assert len(set(asked_deployments(served))) > 1


async def test_a_response_that_is_continued_by_id_goes_where_its_conversation_is(served: Rig) -> None:
    for session in range(8):
        before = len(served.vendor.requests)
        first: JsonObject = {"model": "v/m", "instructions": LONG, "input": "Fix the bug."}
        answer = await served.post("/v1/responses", first, {"session-id": f"{SESSION}{session:02}"})
        for _ in range(3):
            previous = answer.json()["id"]
            more: JsonObject = {"model": "v/m", "input": LONG, "previous_response_id": previous}
            answer = await served.post("/v1/responses", more)
            assert answer.status == 200, answer.body
        assert len(set(asked_deployments(served)[before:])) == 1


async def test_a_home_that_fails_is_left_and_told_of_and_found_again(served: Rig) -> None:
    path, body, headers = of_opencode(SESSION, 0)
    await served.post(path, body, headers)
    home = asked_deployments(served)[-1]
    served.vendor.answer_model(str(home), json_answer(503, {"error": {"message": "down"}}))
    for _ in range(2):
        assert (await served.post(path, body, headers)).status == 200
    second = {asked_deployments(served)[-1]}
    assert home not in second
    records = await served.finished(3)
    assert [record.affinity for record in records] == ["kept", "spilled_health", "spilled_health"]
    series = served.series("affinity_total")
    assert (series["affinity_total outcome=kept"], series["affinity_total outcome=spilled_health"]) == (1, 2)


async def test_short_prompts_and_other_tasks_are_placed_as_before(served: Rig) -> None:
    for number in range(24):
        body: JsonObject = {"model": "v/m", "messages": [{"role": "user", "content": "Hi"}]}
        await served.post("/v1/chat/completions", body, {"x-session-id": SESSION, "x-n": str(number)})
    assert len(set(asked_deployments(served))) > 1
    assert {record.affinity for record in await served.finished(24)} == {"short"}
    served.vendor.default = json_answer(200, VECTOR)
    for _ in range(4):
        await served.post("/v1/embeddings", {"model": "v/embed", "input": LONG}, {"x-session-id": SESSION})
    assert asked_deployments(served)[-4:] == ["eu", "us", "eu", "us"]
    assert [record.affinity for record in (await served.finished(28))[-4:]] == [None] * 4


async def test_text_completions_have_no_turns_and_are_placed_as_before(served: Rig) -> None:
    for _ in range(24):
        await served.post("/v1/completions", {"model": "v/m", "prompt": LONG})
    assert {record.affinity for record in await served.finished(24)} == {"none"}


async def test_a_vendor_is_told_the_conversation_by_a_digest_of_the_gateway_s(served: Rig) -> None:
    told: dict[str, set[JsonValue]] = {}
    for key, session in ((CLIENT_KEY, "a"), (CLIENT_KEY, "b"), ("ads", "a")):
        for number in range(2):
            path, body, headers = of_opencode(f"{SESSION}{session}", number)
            sent = {**headers, "Authorization": f"Bearer {key}"}
            answer = await exchange(served.port, request("POST", path, {**body, "model": "o/one"}, sent))
            assert answer.status == 200
            told.setdefault(f"{key} {session}", set()).add(served.sent()["prompt_cache_key"])
            assert SESSION.encode() not in served.vendor.requests[-1].body
    assert [len(each) for each in told.values()] == [1, 1, 1]
    assert len(set.union(*told.values())) == 3


@pytest.mark.parametrize("size", [100, 7_000])
async def test_a_header_of_any_length_that_is_read_names_a_conversation(served: Rig, size: int) -> None:
    path, body, _ = of_opencode("", 0)
    for _ in range(3):
        assert (await served.post(path, body, {"x-session-id": "\xff" * size})).status == 200
    assert len(set(asked_deployments(served))) == 1


async def test_a_header_of_a_megabyte_is_refused_before_it_is_looked_at(served: Rig) -> None:
    path, body, _ = of_opencode("", 0)
    answer = await served.post(path, body, {"x-session-id": "x" * 1_000_000})
    assert 400 <= answer.status < 500
    assert served.vendor.requests == []


def test_what_is_remembered_of_sessions_is_bounded() -> None:
    assert (rank.cache_info().maxsize or 10**9) <= 8192
    assert (seed.cache_info().maxsize or 10**9) <= 8192
