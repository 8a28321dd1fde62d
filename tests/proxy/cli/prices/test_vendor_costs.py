"""Every kind of usage that a vendor reports, as its dialect decodes it, costs the vendor's list price to the
microcent.
"""

from collections.abc import Callable
from datetime import date

import pytest

from providers.completion import Usage
from providers.dialects.anthropic import answer as anthropic
from providers.dialects.bedrock import converse_answer as converse
from providers.dialects.gemini import usage as gemini
from providers.dialects.openai import read as openai
from providers.dialects.responses import answer as responses
from providers.json_types import JsonObject
from providers.list_prices.list_prices import ListPrices
from providers.pricing import cost, unpriced
from tests.support.looped import looped

LISTED = ListPrices(date(2026, 11, 29))
Reader = Callable[[], Usage | None]
MILLIONTH = 1e-6


def chat(prompt: int, completion: int, tier: str = "default", **usage: object) -> Reader:
    counts: JsonObject = {"prompt_tokens": prompt, "completion_tokens": completion, **usage}  # type: ignore[dict-item]
    return lambda: openai.usage_of({"usage": counts, "service_tier": tier})


def response(read: int, written: int, tier: str, searches: int) -> Reader:
    search: JsonObject = {"type": "web_search_call", "action": {"type": "search"}}
    usage: JsonObject = {"input_tokens": read, "output_tokens": written, "output_tokens_details": {}}
    return lambda: responses.usage_of({"usage": usage, "service_tier": tier, "output": [search] * searches})


def claude(**usage: object) -> Reader:
    return lambda: anthropic.usage_of({"input_tokens": 1000, "output_tokens": 100, **usage})  # type: ignore[dict-item]


def google(prompt: int, searches: int = 0, **usage: object) -> Reader:
    counts: JsonObject = {"promptTokenCount": prompt, "candidatesTokenCount": 100, **usage}  # type: ignore[dict-item]
    return lambda: gemini.usage_of(counts, searches)


def bedrock(tier: str | None = None, **usage: object) -> Reader:
    counts: JsonObject = {"inputTokens": 1000, "outputTokens": 100, **usage}  # type: ignore[dict-item]
    return lambda: converse.usage_of(counts, tier)


AUDIO = [{"modality": "AUDIO", "tokenCount": 600}, {"modality": "TEXT", "tokenCount": 400}]
HOUR = [{"ttl": "1h", "inputTokens": 300}, {"ttl": "5m", "inputTokens": 200}]
SPLIT = {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 300}
WRITTEN = {"cache_creation_input_tokens": 500, "cache_creation": SPLIT}
HAIKU = "us.anthropic.claude-haiku-4-5-20251001-v1:0"


@looped(
    ("vendor", "model", "read", "millionths", "unknown"),
    [
        ("openai", "gpt-4o", chat(1000, 100), 3500, ()),
        ("openai", "gpt-4o", chat(1000, 100, prompt_tokens_details={"cached_tokens": 400}), 3000, ()),
        ("openai", "gpt-4o", chat(1000, 100, "priority"), 5950, ()),
        ("openai", "gpt-4o", chat(1000, 100, "scale"), 3500, ("service_tier",)),
        ("openai", "gpt-5.6-sol", chat(1000, 100, "flex"), 3000, ()),
        ("openai", "gpt-5.6-sol", chat(272_000, 0), 1_088_000, ()),
        ("openai", "gpt-5.6-sol", chat(272_001, 0), 2_176_008, ()),
        ("openai", "gpt-5.6-sol", chat(272_001, 0, "flex"), 1_088_004, ()),
        ("openai", "gpt-5.6-sol", chat(1000, 0, prompt_tokens_details={"cache_write_tokens": 500}), 4500, ()),
        ("openai", "gpt-5.6-sol", response(1000, 100, "priority", 2), 32_000, ()),
        ("openai", "gpt-realtime", chat(1000, 0, prompt_tokens_details={"audio_tokens": 600}), 20_800, ()),
        ("openai", "gpt-realtime", chat(0, 100, completion_tokens_details={"audio_tokens": 90}), 5920, ()),
        ("openai", "gpt-realtime", chat(1000, 0, prompt_tokens_details={"image_tokens": 600}), 4600, ()),
        (
            *("openai", "gpt-4o-audio-preview"),
            *(chat(1000, 0, prompt_tokens_details={"audio_tokens": 600}), 2500, ("audio",)),
        ),
        ("x-ai", "grok-4.7", chat(300_000, 1000), 1_212_000, ()),
        ("anthropic", "claude-opus-5", claude(), 7500, ()),
        ("anthropic", "claude-opus-5", claude(cache_read_input_tokens=1000), 8000, ()),
        ("anthropic", "claude-opus-5", claude(**WRITTEN), 7500 + 200 * 6.25 + 300 * 10, ()),
        ("anthropic", "claude-opus-5", claude(server_tool_use={"web_search_requests": 3}), 37_500, ()),
        ("anthropic", "claude-opus-5", claude(speed="fast"), 15_000, ()),
        ("anthropic", "claude-opus-5", claude(service_tier="batch"), 3750, ()),
        ("anthropic", "claude-opus-5", claude(service_tier="standard", speed="standard"), 7500, ()),
        ("google", "gemini-2.5-pro", google(200_000), 251_000, ()),
        ("google", "gemini-2.5-pro", google(200_001), 501_502.5, ()),
        ("google", "gemini-2.5-pro", google(1000, cachedContentTokenCount=400), 1800, ()),
        ("google", "gemini-2.5-pro", google(1000, 2), 72_250, ()),
        ("google", "gemini-2.5-flash", google(1000, promptTokensDetails=AUDIO), 970, ()),
        ("google", "gemini-2.5-flash", google(1000, trafficType="ON_DEMAND"), 550, ()),
        ("google", "gemini-2.5-flash", google(1000, trafficType="PROVISIONED_THROUGHPUT"), 550, ("service_tier",)),
        ("aws", HAIKU, bedrock(), 1650, ()),
        ("aws", HAIKU, bedrock(cacheReadInputTokens=1000), 1760, ()),
        ("aws", HAIKU, bedrock(cacheWriteInputTokens=500, cacheDetails=HOUR), 1650 + 200 * 1.375 + 300 * 2.2, ()),
        ("aws", HAIKU, bedrock("priority"), 1650, ("service_tier",)),
        ("perplexity", "sonar-pro", chat(1000, 100), 3000 + 1500 + 14_000, ()),
        ("perplexity", "sonar-deep-research", chat(1000, 100), None, ("tokens",)),
        ("mistral", "codestral-latest", chat(1000, 100), 390, ()),
    ],
)
def test_what_is_reported_costs_what_is_listed(
    vendor: str, model: str, read: Reader, millionths: float | None, unknown: tuple[str, ...]
) -> None:
    listed, usage = LISTED.model(vendor, (model,)), read()
    price = None if listed is None else listed.price
    expected = None if millionths is None else pytest.approx(millionths * MILLIONTH, abs=1e-8)
    assert cost(price, usage) == expected
    assert unpriced(price, usage) == unknown
