"""Fields that another proxy's clients send to control that proxy: no API passes one to a vendor, each is reported as
dropped, and a credential in a body is refused.
"""

from collections.abc import Mapping
from typing import Final

import orjson

from providers.json_types import JsonObject, JsonValue
from proxy.gateway.dry_run import explained, sent_calls
from proxy.routing.snapshot import ANYONE
from tests.providers.client_extras.test_proxy_instructions import INSTRUCTIONS
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped

SECRET: Final = "sk-canary-of-a-client"
TABLE: Final = snapshot(
    """
vendors:
  openai: {api_key: k}
  anthropic: {api_key: k}
  gemini: {api_key: k}
  cohere: {api_key: k}
  local: {profile: vllm, base_url: "http://127.0.0.1:9/v1", allow_private: true}
  proxy:
    profile: openai_compatible
    base_url: "http://127.0.0.1:9/v1"
    allow_private: true
    allow_fields: [tags]
models: {openai/*: {}, anthropic/*: {}, gemini/*: {}, cohere/*: {}, local/*: {}, proxy/*: {}}
"""
)
MESSAGES: Final[JsonValue] = [{"role": "user", "content": "hi"}]
CHAT, OWN = "/v1/chat/completions", "/v1/messages"
REQUESTS: Final[Mapping[str, tuple[str, JsonObject]]] = {
    "chat to OpenAI": (CHAT, {"model": "openai/gpt-4o", "messages": MESSAGES}),
    "chat to a model by the Responses API": (CHAT, {"model": "openai/gpt-5-pro", "messages": MESSAGES}),
    "chat to Anthropic": (CHAT, {"model": "anthropic/claude-sonnet-4-5", "messages": MESSAGES}),
    "chat to Gemini": (CHAT, {"model": "gemini/gemini-2.5-pro", "messages": MESSAGES}),
    "chat to Cohere": (CHAT, {"model": "cohere/command-a-03-2025", "messages": MESSAGES}),
    "chat to an engine": (CHAT, {"model": "local/x", "messages": MESSAGES}),
    "prompt to an engine": ("/v1/completions", {"model": "local/x", "prompt": "hi"}),
    "Messages to Anthropic": (OWN, {"model": "anthropic/claude-sonnet-4-5", "max_tokens": 9, "messages": MESSAGES}),
    "Messages to OpenAI": (OWN, {"model": "openai/gpt-4o", "max_tokens": 9, "messages": MESSAGES}),
    "Responses to OpenAI": ("/v1/responses", {"model": "openai/gpt-4o", "input": "hi"}),
    "Responses to Anthropic": ("/v1/responses", {"model": "anthropic/claude-sonnet-4-5", "input": "hi"}),
    "embeddings": ("/v1/embeddings", {"model": "openai/text-embedding-3-small", "input": "hi"}),
    "rerank": ("/v1/rerank", {"model": "cohere/rerank-v3.5", "query": "q", "documents": ["d"]}),
    "moderations": ("/v1/moderations", {"model": "openai/omni-moderation-latest", "input": "hi"}),
    "images": ("/v1/images/generations", {"model": "openai/gpt-image-1", "prompt": "hi"}),
    "speech": ("/v1/audio/speech", {"model": "openai/tts-1", "input": "hi", "voice": "alloy"}),
}
ROWS: Final = REQUESTS


def sent_and_named(path: str, body: JsonObject) -> tuple[JsonObject, list[str]]:
    """Return the body of the first call, and the fields that are left out."""
    found = explained(TABLE, ANYONE, path, orjson.dumps(body))
    assert found.error is None, found.error
    calls = found.chosen
    assert calls is not None
    sent: JsonObject = orjson.loads(sent_calls(calls)[0].body)
    return sent, list(calls.dropped)


@looped("name", ROWS)
def test_no_instruction_goes_to_a_vendor_and_each_is_named(name: str) -> None:
    path, body = ROWS[name]
    plain, _ = sent_and_named(path, body)
    sent, named = sent_and_named(path, {**body, **INSTRUCTIONS})
    assert sent == plain
    assert INSTRUCTIONS.keys() <= {*named}
    assert "canary" not in str(sent)


@looped("name", ROWS)
def test_a_credential_and_an_address_are_refused_and_not_repeated(name: str) -> None:
    path, body = ROWS[name]
    for field, value in (("api_key", SECRET), ("aws_secret_access_key", SECRET), ("api_base", "http://10.0.0.1/v1")):
        found = explained(TABLE, ANYONE, path, orjson.dumps({**body, field: value}))
        assert found.error is not None
        assert (found.error[0], found.trials) == (400, ()) or not found.chosen
        assert field in str(found.error[1])
        assert "canary" not in str(found)


@looped("name", [name for name in ROWS if name not in ("moderations", "images", "speech")])
def test_checks_that_the_client_relies_on_are_refused(name: str) -> None:
    path, body = ROWS[name]
    found = explained(TABLE, ANYONE, path, orjson.dumps({**body, "guardrails": ["pii"]}))
    assert found.error is not None
    assert b"the operator decides which guards apply" in found.error[1]


def test_an_upstream_that_is_such_a_proxy_gets_what_the_operator_allows() -> None:
    body: JsonObject = {"model": "proxy/x", "messages": MESSAGES, "tags": ["a"], "fallbacks": ["b"], "num_retries": 2}
    sent, named = sent_and_named(CHAT, body)
    assert (sent.get("tags"), {*named}) == (["a"], {"fallbacks", "num_retries"})


@looped("name", [name for name in ROWS if name not in ("moderations", "images", "speech")])
def test_a_proxy_s_timeout_is_the_gateway_s_own(name: str) -> None:
    path, body = ROWS[name]
    plain, _ = sent_and_named(path, body)
    for field in ("timeout", "request_timeout"):
        sent, named = sent_and_named(path, {**body, field: 5})
        assert (sent, field in named) == (plain, False)
        sent, named = sent_and_named(path, {**body, field: "soon"})
        assert (sent, field in named) == (plain, True)
