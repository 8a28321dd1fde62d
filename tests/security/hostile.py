"""Requests that try to change an upstream call: names, fields and headers that have misled parsers, proxies and
gateways. The same seed gives the same requests."""

from collections.abc import Sequence
from random import Random

from providers.json_types import JsonObject, JsonValue

EVIL = "evil.example"

PIECES: Sequence[str] = (
    *("../", "..", "./", "/", "//", "\\", "..\\", "%2e%2e", "%2E%2E/", "%2f", "%252e%252e%252f", "%5c", ";"),
    *("..;/", "#", "?", "@", ":", "&", "=", "?key=x", "#frag", f"@{EVIL}", f"x:y@{EVIL}", f"//{EVIL}"),
    *(f"http://{EVIL}/", ":80", "\r\n", "\n", "\r\nHost: evil.example\r\n", "\t", "\0", " ", "\x7f", "\x85"),
    *("%0d%0a", "%00", "\u2024\u2024/", "\uff0e\uff0e\uff0f", "\u2025", "\u3002", "\u2215", "\u2044"),
    *("\u29f8", "\uff03", "\uff1f", "\uff20", "\u200b", "\u202e", "\u0130", "\u2028", "{model}", "${KEY}"),
    *("{{7*7}}", "*", "~", "'", '"', "<", "|", "\U0001f600", "default", "models", "gpt-4o", "owner"),
    *("deployments", "a", "b", "version", ":generateContent", "invoke", "latest"),
)
"""Parts of model names."""

NAMES: Sequence[str] = (
    *("base_url", "api_base", "api_key", "url", "headers", "extra_headers", "extra_body", "extra_query"),
    *("organization", "project", "azure_endpoint", "vertex_endpoint", "endpoint", "host", "Host", "model"),
    *("Model", "models", "fallbacks", "stream", "n", "messages", "prompt", "path", "method", "redirect"),
    *("proxy", "proxies", "base", "baseURL", "api_version", "deployment", "deployment_id", "modelId"),
    *("model_id", "version", "region", "aws_region_name", "credentials", "key", "access_token", "token"),
    *("authorization", "Authorization", "x-api-key", "user_config", "litellm_params", "metadata", "target"),
    *("contents", "input", "parameters", "config", "options", "webhook", "callback_url", "anthropic_version"),
    *("__proto__", "__class__", "constructor", "top_a", "min_tokens", "provider", "transforms", "safe_prompt"),
    *("inputs"),
)
"""Fields of bodies that some gateway or server has acted on."""

HEADERS: Sequence[str] = (
    *("Host", "host", "Authorization", "authorization", "x-api-key", "api-key", "X-Goog-Api-Key"),
    *("x-amz-security-token", "x-amz-date", "x-forwarded-host", "X-Forwarded-For", "Forwarded"),
    *("X-Original-URL", "X-Rewrite-URL", "Cookie", "Content-Length", "Transfer-Encoding", "Connection"),
    *("Upgrade", "TE", "Expect", "Proxy-Authorization", "Content-Type", "X-HTTP-Method-Override"),
    *("OpenAI-Organization", "OpenAI-Project", "anthropic-beta", "traceparent", "x-trace", "x_api_key"),
    *("x-api-key ", "host\t", ":authority", ":path", "a\r\nHost", "", "x-request-id", "x-dragoman-team"),
    *("ocp-apim-subscription-key", "cf-aig-authorization", "x-portkey-api-key", "prefer", "x-smg-routing-key"),
)
"""Names of headers."""

VALUES: Sequence[JsonValue] = (
    *(f"http://{EVIL}", f"https://{EVIL}/v1", EVIL, f"//{EVIL}", "sk-of-the-attacker", f"Bearer {EVIL}", "../../admin"),
    *("", "x", "a\r\nHost: evil", "\u2028", 0, 1, -1, True, 1.5, None),
)
"""Values of the fields, unless they contain further fields."""


STEPS: Sequence[str] = (
    "..",
    ".",
    "../default",
    "a/..",
    "a/../b",
    "../../v1/files",
    "./a",
    "a/",
    "/a",
    "a//b",
    "%2e%2e/a",
)
"""Complete names that would be steps of a path."""

HARMLESS: Sequence[str] = ("anthropic-beta", "traceparent", "x-trace-id", "baggage", "x-smg-routing-key")
"""Names of headers that may be forwarded."""


def name_of_model(draw: Random) -> str:
    """Return a text that may follow the vendor in a model's name."""
    if draw.random() < 0.2:
        return draw.choice(STEPS)
    return "".join(draw.choice(PIECES) for _ in range(draw.randint(1, 5)))


def value(draw: Random, depth: int) -> JsonValue:
    """Return a value with hostile fields down to a depth."""
    kind = draw.random() if depth else 1.0
    if kind < 0.35:
        return {draw.choice(NAMES): value(draw, depth - 1) for _ in range(draw.randint(1, 3))}
    if kind < 0.45:
        return [value(draw, depth - 1) for _ in range(draw.randint(1, 3))]
    return draw.choice(VALUES)


def members(draw: Random, names: Sequence[str]) -> JsonObject:
    """Return one to three hostile fields."""
    return {draw.choice(names): value(draw, draw.randint(0, 4)) for _ in range(draw.randint(1, 3))}


def headers(draw: Random) -> JsonObject:
    """Return one to three headers. Half the time none has a hostile name: their values may then be forwarded."""
    names = HARMLESS if draw.random() < 0.5 else HEADERS
    return {draw.choice(names): str(draw.choice(VALUES)) for _ in range(draw.randint(1, 3))}


def body(draw: Random, models: Sequence[str], generic: JsonObject) -> JsonObject:
    """Return a request with a mixture of hostile parts, most of which a surface refuses. `models` are names in the
    configuration. `generic` contains the fields that make it a valid request. A model name that ends with a star is
    completed."""
    model = draw.choice(models)
    if model.endswith("*"):
        model = model[:-1] + name_of_model(draw)
    made: JsonObject = {**generic, "model": model}
    if draw.random() < 0.4:
        made["inference_extra_params"] = members(draw, NAMES)
    if draw.random() < 0.3:
        made["inference_extra_headers"] = headers(draw)
    if draw.random() < 0.3:
        made = {**members(draw, NAMES), **made}
    if draw.random() < 0.2:
        made["stream"] = True
    if draw.random() < 0.2:
        made["metadata"] = {draw.choice(NAMES): str(draw.choice(VALUES))}
    return made
