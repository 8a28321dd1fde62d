"""Lets the vendor count the tokens of a client's own Messages body: writes the request and reads the number in the
response.

The body is the client's. Content that Claude would refuse is repaired as in the call itself, so that the counted body
is the body that would be sent.

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


def count_request(target: Target, body: JsonObject, headers: _Headers) -> UpstreamRequest | None:
    """Return the call that counts a client's own body of `POST /v1/messages/count_tokens`; `None` if the target does
    not speak the Messages API. `headers` are the client's headers that belong to the request, with lower-case names."""
    write_request = _REQUESTS.get(target.profile.dialect)
    return None if write_request is None else write_request(target, body, headers)


def read_count(body: bytes) -> int:
    """Return the number in the response to a `count_request`. Raises UpstreamError if the number is missing."""
    answer = json_object(body)
    count = count_of(answer.get("input_tokens", answer.get("inputTokens")))
    if count is None:
        raise malformed("has no number of tokens")
    return count


def _repaired_body(platform: ClaudePlatform, target: Target, body: JsonObject) -> MendedBody:
    """Return the body as the call would send it. Settings that the model does not support are left out: they are not
    part of the prompt, and the vendor would refuse to count with them."""
    repaired, model = mended_for(platform, body), model_of(target)
    thinking, config = repaired.body.get("thinking"), repaired.body.get("output_config")
    if isinstance(thinking, dict) and thinking.get("type") not in [*model.thinking]:
        del repaired.body["thinking"]
    if isinstance(config, dict) and not model.efforts:
        repaired.body["output_config"] = {name: value for name, value in config.items() if name != "effort"}
    return repaired


def _direct(target: Target, body: JsonObject, headers: _Headers) -> UpstreamRequest:
    repaired = _repaired_body(CLAUDE_API, target, body)
    own = native_headers(target, betas_of(CLAUDE_API, repaired, headers), headers)
    body_to_count = {**repaired.body, "model": target.upstream_model}
    return _call(target, target.base_url.removesuffix("/v1") + PATH + "/count_tokens", body_to_count, own)


def _on_vertex(target: Target, body: JsonObject, headers: _Headers) -> UpstreamRequest:
    """Return the counting call for Vertex AI. A location has one endpoint for all models, so the model is in the body.
    Not every location supports counting."""
    repaired = _repaired_body(CLAUDE_ON_VERTEX, target, body)
    own = claude_on_vertex.native_headers(betas_of(CLAUDE_ON_VERTEX, repaired, headers))
    url = resolve_host(target.base_url) + "/publishers/anthropic/models/count-tokens:rawPredict"
    version = claude_on_vertex.native_version(target)
    return _call(target, url, {**repaired.body, "anthropic_version": version, "model": target.upstream_model}, own)


def _on_bedrock(target: Target, body: JsonObject, headers: _Headers) -> UpstreamRequest:
    """Return the counting call for Bedrock, with a complete body of InvokeModel as bytes. Bedrock counts tokens for
    models, but mostly not for inference profiles."""
    repaired = _repaired_body(CLAUDE_ON_BEDROCK, target, body)
    rest = {name: value for name, value in repaired.body.items() if name not in ("model", "stream")}
    body_to_count = {**rest, **native_opening(target, betas_of(CLAUDE_ON_BEDROCK, repaired, headers))}
    body_to_count.setdefault("max_tokens", model_of(target).usual_output)
    encoded = base64.b64encode(orjson.dumps(body_to_count)).decode()
    model = quote(without_geography(target.upstream_model), safe="")
    url = f"{target.base_url}/model/{model}/count-tokens"
    return _call(target, url, {"input": {"invokeModel": {"body": encoded}}}, {})


def _call(target: Target, url: str, body: JsonObject, headers: _Headers) -> UpstreamRequest:
    return UpstreamRequest(target, Operation.CHAT, url, orjson.dumps(body), stream=False, headers=headers)


_REQUESTS: Mapping[str, Callable[[Target, JsonObject, _Headers], UpstreamRequest]] = {
    "anthropic": _direct,
    "anthropic_vertex": _on_vertex,
    "bedrock_anthropic": _on_bedrock,
}
"""The functions that write the counting call, by the dialect of the target's profile."""
