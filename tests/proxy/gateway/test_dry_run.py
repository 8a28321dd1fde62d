"""An explanation equals the gateway's behaviour: the same targets, the same call byte for byte, the same error."""

import asyncio
from collections.abc import Coroutine, Mapping
from pathlib import Path

import aiohttp
import orjson
import pytest

from config.load_config import load_text
from providers.emulation.plan_calls import CallPlan
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.redaction import MASK
from providers.target import Target
from providers.unified_request import Operation, UnifiedRequest
from proxy.cli.explain_command import cached_clause
from proxy.deployment_health.breaker_registry import Breakers
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.dispatch.next_deployment import Candidates, prepared_for
from proxy.errors import GatewayError
from proxy.gateway.dry_run import (
    Explanation,
    NotGenerating,
    StoreNeeded,
    default_path,
    explained,
    is_counted,
    sent_calls,
    upstream_headers,
)
from proxy.routing.deployment_load import IDLE
from proxy.routing.resolve_model import plan_for
from proxy.routing.snapshot import ANYONE, Snapshot, build_snapshot
from proxy.surfaces.openai import OPENAI
from tests.proxy.cli.conftest import CANARY, TABLE
from tests.proxy.kit.gateway_rig import rig
from tests.proxy.kit.raw_client import exchange, request
from tests.support.gateway import running_gateway
from tests.support.http_scripts import json_answer
from tests.support.looped import looped
from tests.support.not_none import not_none
from tests.support.openai_wire import chat
from tests.support.vendor import FakeVendor

pytestmark = pytest.mark.smoke


CHAT = "/v1/chat/completions"
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return build_snapshot(load_text(TABLE, "t.yaml", {}))


def chatting(model: str, **fields: JsonValue) -> JsonObject:
    return {"model": model, "messages": [{"role": "user", "content": "Hi"}], **fields}


def ask(snapshot: Snapshot, body: JsonObject, path: str = CHAT, team: str | None = None) -> Explanation:
    return explained(snapshot, snapshot.teams[team] if team else ANYONE, path, orjson.dumps(body))


def chosen_by_the_gateway(snapshot: Snapshot, name: str, request: UnifiedRequest) -> CallPlan:
    """Return the calls that a request would cause."""
    planned = plan_for(snapshot, ANYONE, name, "openai", IDLE)

    def prepared(target: Target) -> CallPlan:
        return prepared_for(request, target, ANYONE)

    first = Candidates(Breakers(HealthRules(), lambda: 0.0), ANYONE.tenant, prepared).first(planned, 0.0)
    return asyncio.run(first) if isinstance(first, Coroutine) else first


def error_of(explanation: Explanation) -> tuple[int, Mapping[str, str]]:
    assert explanation.error is not None
    status, body = explanation.error
    return status, orjson.loads(body)["error"]


def test_the_targets_come_in_the_order_of_the_plan_with_their_calls(snapshot: Snapshot) -> None:
    found = ask(snapshot, chatting("fast"))
    assert [(step.rule, step.name) for step in not_none(found.plan).steps] == [
        ("route", "fast"),
        ("model", "openai/gpt-4o-mini"),
        ("model", "anthropic/claude-haiku-4-5"),
    ]
    calls = [trial.outcome for trial in found.trials]
    assert all(isinstance(call, CallPlan) for call in calls)
    assert [trial.target.vendor for trial in found.trials] == ["openai", "anthropic"]
    assert found.chosen is calls[0]
    assert found.error is None


def test_a_team_asks_with_its_own_meaning_of_a_name(snapshot: Snapshot) -> None:
    found = ask(snapshot, chatting("fast"), team="search")
    assert [trial.target.vendor for trial in found.trials] == ["azure-eu", "azure-eu"]
    assert found.team == "search"


def test_a_drawn_order_is_called_one_and_the_same_for_the_same_input(snapshot: Snapshot) -> None:
    assert ask(snapshot, chatting("azure-eu/gpt-4o")).drawn
    assert not ask(snapshot, chatting("azure-eu/gpt-4o/france")).drawn
    assert not ask(snapshot, chatting("fast")).drawn
    names = {tuple(trial.target.name for trial in ask(snapshot, chatting("any")).trials) for _ in range(20)}
    assert len(names) == 1


def test_a_target_that_cannot_is_passed_over_as_the_gateway_passes_it(snapshot: Snapshot) -> None:
    body = chatting("any", guided_regex="[ab]+")
    found = ask(snapshot, body)
    refusals = [trial.target.vendor for trial in found.trials if isinstance(trial.outcome, Refusal)]
    assert refusals == ["openai", "anthropic"]
    assert found.chosen is not None
    request = OPENAI.parse(Operation.CHAT, orjson.dumps(body), None)
    chosen = chosen_by_the_gateway(snapshot, "any", request)
    assert [*sent_calls(found.chosen)] == [call.sent for call in chosen.calls]


def test_when_no_target_can_the_error_is_the_gateways(snapshot: Snapshot) -> None:
    body = chatting("fast", guided_regex="[ab]+")
    found = ask(snapshot, body)
    assert found.chosen is None
    request = OPENAI.parse(Operation.CHAT, orjson.dumps(body), None)
    with pytest.raises(GatewayError) as caught:
        chosen_by_the_gateway(snapshot, "fast", request)
    assert found.error == OPENAI.error(caught.value.facts)
    assert error_of(found)[1]["param"] == "guided_regex"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [(chatting("fats"), 404, "model_not_found"), (chatting("fast", temperature=9), 400, "invalid_value")],
)
def test_what_the_gateway_would_refuse_is_shown(snapshot: Snapshot, body: JsonObject, status: int, code: str) -> None:
    found = ask(snapshot, body)
    assert (error_of(found)[0], error_of(found)[1]["code"]) == (status, code)
    assert found.trials == ()


MOCKS = """
vendors: {mock: {}}
models: {mock/*: {}, mock/error-400: {}}
routes: {first: {targets: [mock/hang-1, mock/hello]}, second: {targets: [mock/hello, mock/hang-1]}}
"""


@looped("model", ["mock/hang-1", "mock/long-9", "first"])
async def test_what_the_mock_refuses_of_a_row_for_any_model_is_shown_as_the_gateway_answers_it(model: str) -> None:
    async with rig(MOCKS) as made:
        answer = await exchange(made.port, request("POST", CHAT, chatting(model)))
    found = ask(build_snapshot(load_text(f"version: 1{MOCKS}", "t.yaml", {})), chatting(model))
    assert found.error == (answer.status, answer.body)
    assert error_of(found)[1]["code"] == "model_not_found"
    assert found.chosen is None


def test_a_target_that_the_mock_refuses_is_no_error_behind_one_that_answers() -> None:
    mocks = build_snapshot(load_text(f"version: 1{MOCKS}", "t.yaml", {}))
    found = ask(mocks, chatting("second"))
    assert found.error is None
    assert [isinstance(trial.outcome, Refusal) for trial in found.trials] == [False, True]
    assert ask(mocks, chatting("mock/error-400")).error is None


def test_a_name_for_others_is_the_404_that_the_team_gets_and_the_operator_learns_why(snapshot: Snapshot) -> None:
    found = ask(snapshot, chatting("gpu/llama"), team="data")
    assert (error_of(found)[0], found.logged) == (404, "model_not_allowed")
    missing = ask(snapshot, chatting("gpu/lama"), team="data")
    assert (error_of(missing)[0], missing.logged) == (404, None)


def test_the_error_wears_the_envelope_of_the_paths_surface(snapshot: Snapshot) -> None:
    found = ask(snapshot, chatting("fast", temperature=9), "/v5/chat/completions")
    assert found.surface == "scale"
    assert found.error is not None
    status, body = found.error
    assert status == 422
    assert orjson.loads(body)["detail"]


@pytest.mark.parametrize(("path", "status"), [("/v1/nothing", 404), ("/v1/models", 405)])
def test_a_path_that_takes_no_request_is_its_error(snapshot: Snapshot, path: str, status: int) -> None:
    assert error_of(ask(snapshot, chatting("fast"), path))[0] == status


def test_bytes_that_are_no_json_are_an_error_not_a_crash(snapshot: Snapshot) -> None:
    found = explained(snapshot, ANYONE, CHAT, b"{")
    assert error_of(found)[0] == 400
    assert found.plan is None


@looped(
    ("model", "members"),
    [
        ("gpu/llama", ("response_format", "json_schema", "schema")),
        ("fireworks/any", ("response_format", "json_schema", "schema")),
        ("openai/gpt-4o-mini", ("response_format", "json_schema", "schema")),
        ("anthropic/claude-haiku-4-5", ("output_config", "format", "schema")),
    ],
)
def test_one_constraint_takes_each_vendors_own_form(snapshot: Snapshot, model: str, members: tuple[str, ...]) -> None:
    chosen = ask(snapshot, chatting(model, guided_json=SCHEMA)).chosen
    assert chosen is not None
    body = found = orjson.loads(sent_calls(chosen)[0].body)
    for member in members:
        found = found[member]
    assert found == SCHEMA
    assert "guided_json" not in body


@pytest.mark.parametrize(
    "refers", [{"previous_response_id": "resp_1"}, {"input": [{"type": "item_reference", "id": "resp_1"}]}]
)
def test_what_only_a_running_gateway_has_stored_is_said_to_be_needed(snapshot: Snapshot, refers: JsonObject) -> None:
    with pytest.raises(StoreNeeded, match="resp_1"):
        ask(snapshot, {"model": "openai/gpt-4o-mini", "input": "hi", **refers}, "/v1/responses")


@looped(
    ("surface", "body", "path"),
    [
        ("openai", b'{"messages": []}', "/v1/chat/completions"),
        ("openai", b'{"prompt": "x"}', "/v1/completions"),
        ("openai", b"[", "/v1/completions"),
        ("openai", b'["messages"]', "/v1/completions"),
        ("scale", b'{"messages": []}', "/v4/beta/chat/completions"),
        ("fireworks", b"{}", "/inference/v1/completions"),
        ("pais", b"{}", "/api/v1/compatibility/openai/v1/completions"),
        ("responses", b'{"input": "x"}', "/v1/responses"),
    ],
)
def test_the_body_chooses_the_path_of_a_surface(surface: str, body: bytes, path: str) -> None:
    assert default_path(surface, body) == path


async def test_what_is_shown_is_what_arrives_at_the_vendor(tmp_path: Path) -> None:
    body = orjson.dumps(chatting("openai/gpt-4o-mini", inference_extra_headers={"x-trace-id": "1"}, seed=7))
    async with FakeVendor(json_answer(200, chat("hello"))) as vendor:
        table = f"""\
version: 1
vendors:
  openai: {{base_url: "{vendor.base_url}/v1", allow_private: true, api_key: {CANARY}, headers: {{X-Org: {CANARY}}}}}
models: {{openai/gpt-4o-mini: {{}}}}
"""
        chosen = explained(build_snapshot(load_text(table, "t.yaml", {})), ANYONE, CHAT, body).chosen
        async with (
            running_gateway(table, tmp_path) as gateway,
            aiohttp.ClientSession() as http,
            http.post(gateway.url + CHAT, data=body, headers={"content-type": "application/json"}) as answer,
        ):
            assert answer.status == 200
        (received,) = vendor.requests
        target = vendor.base_url + received.target
    assert chosen is not None
    (shown,) = sent_calls(chosen)
    assert (shown.method, shown.url, shown.body) == (received.method, target, received.body)
    expected = {name.lower(): value for name, value in upstream_headers(shown).items()}
    arrived = {name.lower(): value for name, value in received.headers}
    assert expected.keys() == arrived.keys() - {"host", "content-length"}
    other = {name for name, value in expected.items() if value != arrived[name]}
    assert other == {"authorization", "x-org", "x-request-id"}
    assert expected["authorization"] == expected["x-org"] == MASK


# Tasks --------------------------------------------------------------------------------------------------------------

EMBEDDINGS = """
version: 1
vendors: {t: {profile: dashscope, api_key: sk-canary}, c: {profile: cohere, api_key: sk-canary}}
models: {t/m: {}, c/m: {}}
routes: {both: {targets: [c/m, t/m], same_space: true}, odd: {targets: [c/m, t/m]}}
"""


def embedding(model: str, count: int = 1, **fields: JsonValue) -> Explanation:
    table = build_snapshot(load_text(EMBEDDINGS, "t.yaml", {}))
    return ask(table, {"model": model, "input": ["a"] * count, **fields}, "/v1/embeddings")


def test_every_call_of_a_batch_is_shown() -> None:
    (trial,) = embedding("t/m", 25).trials
    assert not isinstance(trial.outcome, Refusal)
    calls = sent_calls(trial.outcome)
    assert [len(orjson.loads(call.body)["input"]) for call in calls] == [10, 10, 5]
    assert calls[0].url.endswith("/compatible-mode/v1/embeddings")
    assert upstream_headers(calls[0])["Authorization"] == MASK
    assert not is_counted(trial.outcome)


def test_each_target_of_a_task_has_its_calls_or_its_reason() -> None:
    found = embedding("both")
    first, second = found.trials
    assert isinstance(first.outcome, Refusal)
    assert first.outcome.param == "input_type"
    assert found.chosen is second.outcome


def test_a_task_that_the_gateway_would_refuse_is_its_error() -> None:
    status, error = error_of(embedding("odd"))
    assert (status, error["param"]) == (400, "model")
    assert error_of(embedding("c/m"))[1]["param"] == "input_type"
    assert error_of(embedding("t/m", 1, encoding_format="hex"))[1]["param"] == "encoding_format"


PASSED = """
version: 1
vendors: {openai: {api_key: k}, anthropic: {api_key: k}}
models: {openai/m: {}, anthropic/c: {}}
routes: {any: {targets: [anthropic/c, openai/m]}}
server: {surfaces: {openai: {task_models: {moderations: openai/m}}}}
"""


@looped("path", ["/v1/moderations", "/v1/audio/speech", "/v1/images/generations"])
def test_what_is_passed_on_is_shown_as_it_would_go(path: str) -> None:
    table = build_snapshot(load_text(PASSED, "t.yaml", {}))
    found = ask(table, {"model": "any", "input": "hi"}, path)
    assert isinstance(found.trials[0].outcome, Refusal)
    assert found.chosen is not None
    (call,) = sent_calls(found.chosen)
    assert (call.url, call.body) == (f"https://api.openai.com{path}", b'{"model":"m","input":"hi"}')


def test_a_task_has_its_own_model_in_a_dry_run_too() -> None:
    table = build_snapshot(load_text(PASSED, "t.yaml", {}))
    found = ask(table, {"input": "hi"}, "/v1/moderations")
    assert not_none(found.plan).asked == "openai/m"


def test_a_form_cannot_be_shown() -> None:
    with pytest.raises(NotGenerating):
        ask(build_snapshot(load_text(PASSED, "t.yaml", {})), {}, "/v1/audio/transcriptions")


@looped(
    ("fields", "path", "says"),
    [
        ({"temperature": 0}, CHAT, "this request's is"),
        ({}, CHAT, "this request's is where it says x-dragoman-cache: use, since it sends no temperature of 0"),
        ({"temperature": 0, "store": True}, CHAT, "the answer is to be stored at the vendor"),
        ({"temperature": 0, "input": "hi"}, "/v1/responses", "its surface stores answers"),
    ],
)
def test_it_says_whether_the_answer_cache_is_for_the_request(fields: JsonObject, path: str, says: str) -> None:
    text = "version: 1\nvendors: {openai: {api_key: k}}\nmodels: {openai/m: {cache: {}}, openai/n: {}}\n"
    table = build_snapshot(load_text(text, "t.yaml", {}))
    asked: JsonObject = {"model": "openai/m", **fields}
    body: JsonObject = asked if "input" in asked else chatting(**{**asked, "model": "openai/m"})  # type: ignore[arg-type]
    assert says in cached_clause(ask(table, body, path))
    assert cached_clause(ask(table, {**body, "model": "openai/n"}, path)) == ""
