"""Tools that vendors run, with all of their settings, match the vendors' own types."""

from typing import Final
from urllib.parse import urlsplit

import orjson
import pytest

from providers.emulation.plan_calls import plan_calls
from providers.json_types import JsonObject
from tests.contracts.sdk_judges import Judges
from tests.contracts.sent_bodies import Body
from tests.contracts.test_sent_bodies import faults
from tests.contracts.vendor_judges import judged_by
from tests.providers.dialects.kit import chat_request, target_of, tool

PLACE: JsonObject = {"type": "approximate", "city": "Zug", "country": "CH", "timezone": "Europe/Zurich"}
ALLOWED: JsonObject = {"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["a.example"]}
SEARCH: JsonObject = {"type": "web_search_20250305", "name": "web_search", "user_location": PLACE, "max_uses": 2}
BLOCKED: JsonObject = {**SEARCH, "blocked_domains": ["b.example"]}
SIZED: JsonObject = {"type": "web_search", "search_context_size": "low", "user_location": PLACE}
FETCH: JsonObject = {"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": 2, "max_content_tokens": 99}
CODE: JsonObject = {"type": "code_interpreter", "container": {"type": "auto"}}

TAKEN: Final[tuple[tuple[str, str, tuple[JsonObject, ...]], ...]] = (
    ("anthropic", "claude-sonnet-4-5", ({**SIZED, "filters": {"allowed_domains": ["a.example"]}}, {"urlContext": {}})),
    ("anthropic", "claude-sonnet-4-5", (CODE, tool(), {"type": "openrouter:web_search", "parameters": BLOCKED})),
    ("vertex_anthropic", "claude-sonnet-4-5", (SIZED,)),
    ("gemini", "gemini-3-flash-preview", (SEARCH, FETCH, CODE, tool())),
    ("vertex", "gemini-3-flash-preview", (BLOCKED,)),
    ("openai", "gpt-5.1", ({**ALLOWED, "user_location": PLACE}, CODE, tool())),
    ("openai", "gpt-4o-search-preview", (SIZED,)),
    ("azure_v1", "gpt-4o", (SIZED,)),
    ("openrouter", "any/model", (SEARCH, FETCH)),
    ("openrouter", "any/model", (ALLOWED, tool())),
    ("groq", "openai/gpt-oss-120b", (SEARCH, CODE)),
    ("groq", "groq/compound", (ALLOWED,)),
    ("bedrock", "amazon.nova-premier-v1:0", (SEARCH, tool())),
)
"""A client's tools, by vendor and model."""


def sent_body(vendor: str, model: str, *tools: JsonObject) -> Body:
    """Return the body of a call with these tools."""
    to = target_of(vendor, model, base_url="https://host/v1", max_output_tokens=99)
    (call,) = plan_calls(chat_request(tools=[*tools]), to).calls
    return Body(urlsplit(call.sent.url).path, orjson.loads(call.sent.body), ("tools",))


@pytest.mark.clients
@pytest.mark.timeout(300)
def test_hosted_tools_are_what_their_vendors_take(judges: Judges) -> None:
    found = [
        fault
        for vendor, model, tools in TAKEN
        for judged in judged_by(vendor)
        if (fault := faults(judges, judged, sent_body(vendor, model, *tools)))
    ]
    assert found == [], "\n".join(found)
