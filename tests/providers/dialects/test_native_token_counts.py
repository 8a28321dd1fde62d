"""The request for the token count of a client's own Messages body, and the reading of its response."""

from base64 import b64decode
from typing import cast

import orjson
import pytest

from providers.dialect import UpstreamRequest
from providers.dialects.native_token_counts import count_request, read_count
from providers.failure import FailureKind
from providers.json_types import JsonObject
from tests.providers.dialects.kit import target_of
from tests.providers.kit import failure_of
from tests.support.looped import looped

BODY: JsonObject = {
    "model": "anthropic/claude-haiku-4-5",
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [{"role": "user", "content": "foo"}],
    "tools": [{"name": "look", "input_schema": {"type": "object"}, "unheard_of": 1}],
    "speed": "fast",
    "unheard_of": {"a": [1]},
}
ADAPTIVE: JsonObject = {"type": "adaptive"}
BETAS = {"anthropic-version": "2026-10-21", "anthropic-beta": "claude-code-20250219,context-management-2025-06-27"}


def counting_call(
    profile: str, model: str, body: JsonObject = BODY, **members: object
) -> tuple[UpstreamRequest, JsonObject]:
    sent = count_request(target_of(profile, model, **members), body, BETAS)
    assert sent is not None
    assert (sent.method, sent.stream) == ("POST", False)
    return sent, cast(JsonObject, orjson.loads(sent.body))


def test_anthropic_counts_the_client_s_body_as_it_came_but_for_the_model() -> None:
    sent, body = counting_call("anthropic", "claude-haiku-4-5")
    assert sent.url == "https://api.anthropic.com/v1/messages/count_tokens"
    assert body == {**BODY, "model": "claude-haiku-4-5"}
    assert sent.headers == BETAS


def test_the_table_s_version_is_the_one_that_is_sent() -> None:
    sent, _ = counting_call("anthropic", "claude-haiku-4-5", api_version="2023-06-01")
    assert sent.headers["anthropic-version"] == "2023-06-01"


def test_what_claude_would_refuse_is_mended_before_it_is_counted() -> None:
    blocks: list[JsonObject] = [
        {"type": "thinking", "thinking": "Hm.", "signature": ""},
        {"type": "text", "text": "bar"},
    ]
    turns: list[JsonObject] = [*cast(list[JsonObject], BODY["messages"]), {"role": "assistant", "content": [*blocks]}]
    _, body = counting_call("anthropic", "claude-haiku-4-5", {**BODY, "messages": [*turns]})
    assert body["messages"] == [turns[0], {"role": "assistant", "content": [blocks[1]]}]


@looped(
    ("model", "kept"),
    [
        ("claude-haiku-4-5", {"output_config": {"format": {"type": "x"}}}),
        ("claude-opus-4-8", {"output_config": {"format": {"type": "x"}, "effort": "max"}, "thinking": ADAPTIVE}),
        ("operators-own", {"output_config": {"format": {"type": "x"}, "effort": "max"}, "thinking": ADAPTIVE}),
    ],
)
def test_settings_that_the_model_has_not_do_not_keep_it_from_counting(model: str, kept: JsonObject) -> None:
    settings: JsonObject = {"output_config": {"effort": "max", "format": {"type": "x"}}, "thinking": ADAPTIVE}
    _, body = counting_call("anthropic", model, {**BODY, **settings})
    assert {name: body[name] for name in settings if name in body} == kept


def test_vertex_counts_at_an_endpoint_of_all_models_with_the_model_in_the_body() -> None:
    base = "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1"
    sent, body = counting_call("vertex_anthropic", "claude-haiku-4-5@20251001", base_url=base)
    assert sent.url == f"{base}/publishers/anthropic/models/count-tokens:rawPredict"
    assert body == {**BODY, "model": "claude-haiku-4-5@20251001", "anthropic_version": "vertex-2023-10-16"}
    assert sent.headers == {"anthropic-beta": "context-management-2025-06-27"}


def test_bedrock_counts_a_whole_body_of_the_model_behind_the_profile() -> None:
    base = "https://bedrock-runtime.eu-west-1.amazonaws.com"
    sent, body = counting_call("bedrock_anthropic", "eu.anthropic.claude-haiku-4-5-20251001-v1:0", base_url=base)
    assert sent.url == f"{base}/model/anthropic.claude-haiku-4-5-20251001-v1%3A0/count-tokens"
    held = cast(dict[str, dict[str, dict[str, str]]], body)["input"]["invokeModel"]["body"]
    assert orjson.loads(b64decode(held)) == {
        **{name: value for name, value in BODY.items() if name != "model"},
        "anthropic_version": "bedrock-2023-05-31",
        "anthropic_beta": ["context-management-2025-06-27"],
        "max_tokens": 64_000,
    }


@looped("profile", ["openai", "gemini", "bedrock", "vllm"])
def test_a_vendor_of_another_api_is_not_asked(profile: str) -> None:
    assert count_request(target_of(profile), BODY, {}) is None


@pytest.mark.parametrize(("body", "count"), [(b'{"input_tokens":21,"more":1}', 21), (b'{"inputTokens":0}', 0)])
def test_the_number_is_read_under_either_name(body: bytes, count: int) -> None:
    assert read_count(body) == count


@looped("body", [b"{}", b"<html>", b'{"input_tokens":"21"}', b'{"input_tokens":true}', b"[]"])
def test_an_answer_without_a_number_is_a_failure(body: bytes) -> None:
    assert failure_of(read_count, body).kind is FailureKind.MALFORMED
