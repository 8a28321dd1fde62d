"""Token counts: the vendor's own, the engine's, or an estimate. There is always a response."""

import asyncio

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from proxy.gateway import count_tokens
from tests.proxy.kit.gateway_rig import AUTH, CLIENT_KEY, Rig, gateway_fixture, rig
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import body_answer, json_answer
from tests.support.vendor_script import Hang

pytestmark = pytest.mark.smoke


PATH = "/v1/messages/count_tokens"
TABLE = f"""
defaults: {{retries: {{attempts: 1}}}}
vendors:
  anthropic: {{api_key: k, base_url: "http://127.0.0.1:PORT", allow_private: true}}
  vllm: {{base_url: "http://127.0.0.1:PORT/v1", allow_private: true}}
  plain: {{profile: openai_compatible, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}}
models:
  anthropic/*: {{}}
  vllm/m: {{}}
  plain/m: {{}}
routes:
  first: {{targets: [plain/m, anthropic/claude-x]}}
teams:
  search:
    keys: ["{digest_of(CLIENT_KEY)}"]
    models: ["anthropic/claude-x", vllm/m, plain/m, first]
"""
LIMITED = f"{TABLE}    limits: {{requests_per_day: 3}}\n"


counted = gateway_fixture(TABLE)


def ask(model: str, **fields: JsonValue) -> JsonObject:
    """Return a body whose tokens are to be counted."""
    return {"model": model, "messages": [{"role": "user", "content": "how many words are these"}], **fields}


async def test_the_vendor_s_own_count_is_the_answer(counted: Rig) -> None:
    counted.vendor.answer_path(PATH, json_answer(200, {"input_tokens": 41}))
    asked = ask("claude-x", system="S", context_management={"edits": []})
    answer = await counted.post(f"{PATH}?beta=true", asked, {"anthropic-beta": "a,b"})
    assert (answer.status, answer.json()) == (200, {"input_tokens": 41})
    assert "x-dragoman-emulated" not in answer.headers
    assert answer.headers["request-id"] == answer.headers["x-request-id"]
    (sent,) = counted.vendor.requests
    assert sent.path == PATH
    assert orjson.loads(sent.body) == {**asked, "model": "claude-x"}
    assert sent.header("anthropic-beta") == "a,b"
    (record,) = await counted.finished(1)
    assert (record.surface, record.model, record.status) == ("anthropic", "anthropic/*", 200)
    assert any("surface=anthropic" in name for name in counted.series("requests_total"))


async def test_the_engine_s_tokenizer_counts_where_the_vendor_has_another_api(counted: Rig) -> None:
    counted.vendor.answer_path("/tokenize", json_answer(200, {"count": 17, "max_model_len": 4096}))
    answer = await counted.post(PATH, ask("vllm/m"))
    assert (answer.status, answer.json()) == (200, {"input_tokens": 17})
    assert "x-dragoman-emulated" not in answer.headers


async def test_an_estimate_is_named(counted: Rig) -> None:
    answer = await counted.post(PATH, ask("plain/m"))
    assert answer.status == 200
    assert answer.headers["x-dragoman-emulated"] == "input_tokens"
    assert answer.json()["input_tokens"] == 14
    assert counted.vendor.requests == []


@pytest.mark.parametrize(
    "script",
    [
        json_answer(404, {"type": "error", "error": {"type": "not_found_error", "message": "x"}}),
        json_answer(400, {"type": "error", "error": {"type": "invalid_request_error", "message": "x"}}),
        json_answer(529, {}),
        json_answer(200, {"input_tokens": "many"}),
        body_answer(200, b"no json"),
    ],
)
async def test_a_vendor_that_does_not_count_is_no_error(counted: Rig, script: tuple[object, ...]) -> None:
    counted.vendor.default = script  # type: ignore[assignment]  # the steps of a script
    answer = await counted.post(PATH, ask("claude-x"))
    assert (answer.status, answer.headers["x-dragoman-emulated"]) == (200, "input_tokens")


async def test_a_vendor_that_is_slow_is_not_waited_for(counted: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count_tokens, "COUNT_WAIT", 0.05)
    counted.vendor.default = (Hang(),)
    answer = await counted.post(PATH, ask("claude-x"))
    assert (answer.status, answer.headers["x-dragoman-emulated"]) == (200, "input_tokens")


async def test_what_only_anthropic_can_honour_is_estimated_elsewhere(counted: Rig) -> None:
    answer = await counted.post(PATH, ask("vllm/m", tools=[{"type": "web_search_20250305", "name": "w"}]))
    assert (answer.status, answer.headers["x-dragoman-emulated"]) == (200, "input_tokens")


async def test_the_first_target_of_a_route_counts(counted: Rig) -> None:
    answer = await counted.post(PATH, ask("first"))
    assert answer.headers["x-dragoman-emulated"] == "input_tokens"
    assert counted.vendor.requests == []


async def test_many_counts_at_once_are_answered(counted: Rig) -> None:
    counted.vendor.answer_path(PATH, json_answer(200, {"input_tokens": 1}))
    answers = await asyncio.gather(*(counted.post(PATH, ask("claude-x")) for _ in range(14)))
    assert {answer.status for answer in answers} == {200}


async def test_keys_names_and_bodies_are_checked_as_everywhere(counted: Rig) -> None:
    assert (await counted.post(PATH, ask("claude-x"), {"Authorization": "Bearer wrong"})).status == 401
    assert (await counted.post(PATH, ask("anthropic/claude-y"))).status in (403, 404)
    unknown = await counted.post(PATH, ask("nobody"))
    assert (unknown.status, unknown.error()["type"]) == (404, "not_found_error")
    invalid = await counted.post(PATH, {"model": "plain/m", "messages": []})
    assert (invalid.status, invalid.error()["type"]) == (400, "invalid_request_error")
    assert (await counted.get(PATH, AUTH)).status == 405


async def test_a_large_body_is_counted_beside_the_loop(counted: Rig) -> None:
    large: list[JsonValue] = [{"role": "user", "content": [{"type": "text", "text": "x"}] * 1200}]
    answer = await counted.post(PATH, {"model": "plain/m", "messages": large})
    assert answer.status == 200
    assert int(str(answer.json()["input_tokens"])) >= 1200


async def test_a_vendor_counts_as_often_as_the_teams_limit_allows_and_then_the_count_is_estimated() -> None:
    async with rig(LIMITED) as limited:
        limited.vendor.answer_path(PATH, json_answer(200, {"input_tokens": 41}))
        for _ in range(2):  # no vendor is called
            assert (await limited.post(PATH, ask("plain/m"))).headers["x-dragoman-emulated"] == "input_tokens"
        answers = [await limited.post(PATH, ask("claude-x")) for _ in range(5)]
        assert [answer.status for answer in answers] == [200] * 5
        assert ["x-dragoman-emulated" in answer.headers for answer in answers] == [False] * 3 + [True] * 2
        assert len(limited.vendor.requests) == 3
        chat = await limited.post("/v1/chat/completions", ask("plain/m"))
        assert (chat.status, chat.code) == (429, "rate_limit_exceeded")
        records = await limited.finished(8)
        assert [record.outcome for record in records[:7]] == ["ok"] * 7
