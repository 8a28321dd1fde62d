"""Counting of a client's own Messages body by the vendor: the question to send, and the number in its answer.

The body is the client's. What Claude would refuse is mended as in the call itself, so that what is counted is what
would be sent.

Sources: `anthropic` 2.12.0 types `MessageCountTokensParams` and `MessageTokensCount`, and `lib/vertex`; botocore 1.44.5
service model `bedrock-runtime`, operation `CountTokens`; November 2026.
"""

import base64
from collections.abc import Callable, Mapping
from urllib.parse import quote

import orjson

from providers.completion import count_of
from providers.dialect import UpstreamRequest
from providers.dialects.anthropic import claude_on_vertex
from providers.dialects.anthropic.dialect import PATH, model_of, native_headers
from providers.dialects.anthropic.native_body import MendedBody
from providers.dialects.anthropic.native_call import (
    CLAUDE_API,
    CLAUDE_ON_BEDROCK,
    CLAUDE_ON_VERTEX,
    ClaudePlatform,
    betas_of,
    mended_for,
)
from providers.dialects.bedrock.claude_on_bedrock import native_opening
from providers.dialects.platforms.vertex_address import resolve_host
from providers.dialects.shared.read_json import json_object, malformed
from providers.dialects.vendor_token_counts import without_geography
from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import Operation

_Headers = Mapping[str, str]


def count_question(target: Target, body: JsonObject, headers: _Headers) -> UpstreamRequest | None:
    """Return the call that counts a client's own body of `POST /v1/messages/count_tokens`; None where the target does
    not speak the Messages API. `headers` are the client's that belong to the request, with lower-case names."""
    ask = _QUESTIONS.get(target.profile.dialect)
    return None if ask is None else ask(target, body, headers)


def read_count(body: bytes) -> int:
    """Return the number in the answer to a `count_question`. Raises UpstreamError where there is none."""
    answer = json_object(body)
    count = count_of(answer.get("input_tokens", answer.get("inputTokens")))
    if count is None:
        raise malformed("holds no number of tokens")
    return count


def _mended(platform: ClaudePlatform, target: Target, body: JsonObject) -> MendedBody:
    """Return the body as the call would have it. Settings that the model has not are left out: they are no part of the
    prompt, and the vendor would refuse to count."""
    mended, model = mended_for(platform, body), model_of(target)
    thinking, config = mended.body.get("thinking"), mended.body.get("output_config")
    if isinstance(thinking, dict) and thinking.get("type") not in [*model.thinking]:
        del mended.body["thinking"]
    if isinstance(config, dict) and not model.efforts:
        mended.body["output_config"] = {name: value for name, value in config.items() if name != "effort"}
    return mended


def _direct(target: Target, body: JsonObject, headers: _Headers) -> UpstreamRequest:
    mended = _mended(CLAUDE_API, target, body)
    own = native_headers(target, betas_of(CLAUDE_API, mended, headers), headers)
    counted = {**mended.body, "model": target.upstream_model}
    return _call(target, target.base_url.removesuffix("/v1") + PATH + "/count_tokens", counted, own)


def _on_vertex(target: Target, body: JsonObject, headers: _Headers) -> UpstreamRequest:
    """One endpoint for all models of a location, so that the model is in the body. Not every location counts."""
    mended = _mended(CLAUDE_ON_VERTEX, target, body)
    own = claude_on_vertex.native_headers(betas_of(CLAUDE_ON_VERTEX, mended, headers))
    url = resolve_host(target.base_url) + "/publishers/anthropic/models/count-tokens:rawPredict"
    version = claude_on_vertex.native_version(target)
    return _call(target, url, {**mended.body, "anthropic_version": version, "model": target.upstream_model}, own)


def _on_bedrock(target: Target, body: JsonObject, headers: _Headers) -> UpstreamRequest:
    """A whole body of InvokeModel, as bytes; Bedrock counts for models, and mostly not for the profiles before them."""
    mended = _mended(CLAUDE_ON_BEDROCK, target, body)
    rest = {name: value for name, value in mended.body.items() if name not in ("model", "stream")}
    counted = {**rest, **native_opening(target, betas_of(CLAUDE_ON_BEDROCK, mended, headers))}
    counted.setdefault("max_tokens", model_of(target).usual_output)
    encoded = base64.b64encode(orjson.dumps(counted)).decode()
    model = quote(without_geography(target.upstream_model), safe="")
    url = f"{target.base_url}/model/{model}/count-tokens"
    return _call(target, url, {"input": {"invokeModel": {"body": encoded}}}, {})


def _call(target: Target, url: str, body: JsonObject, headers: _Headers) -> UpstreamRequest:
    return UpstreamRequest(target, Operation.CHAT, url, orjson.dumps(body), stream=False, headers=headers)


_QUESTIONS: Mapping[str, Callable[[Target, JsonObject, _Headers], UpstreamRequest]] = {
    "anthropic": _direct,
    "anthropic_vertex": _on_vertex,
    "bedrock_anthropic": _on_bedrock,
}
"""The questions, by the dialect of the target's profile."""
