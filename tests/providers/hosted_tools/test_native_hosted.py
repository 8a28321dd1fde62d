"""In a client's own body, a hosted tool in another API's spelling is translated; everything else is unchanged."""

from typing import Final

import orjson
import pytest

from providers.failure import Refusal
from providers.hosted_tools.native_hosted import encode_own_body, translate_native
from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import NativeApi, NativeRequest, UnifiedRequest
from tests.providers.dialects.kit import chat_request, target_of
from tests.support.looped import looped

CLAUDES: JsonObject = {"type": "web_search_20250305", "name": "web_search"}
CLAUDE: Final = target_of("anthropic", "claude-sonnet-4-5")
GPT: Final = target_of("openai", "gpt-5.1")
CLIENTS: JsonObject = {"name": "look", "input_schema": {"type": "object"}}


def own(api: NativeApi, *tools: JsonObject) -> UnifiedRequest:
    said: JsonObject = {"input": "hi"} if api is NativeApi.RESPONSES else {"messages": [], "max_tokens": 9}
    request = chat_request()
    object.__setattr__(request, "native", NativeRequest(api, {"model": "m", **said, "tools": [*tools]}))
    return request


@looped(
    ("to", "api", "given", "becomes"),
    [
        (CLAUDE, NativeApi.MESSAGES, {"type": "google_search"}, CLAUDES),
        (CLAUDE, NativeApi.MESSAGES, {"googleSearch": {}}, CLAUDES),
        (CLAUDE, NativeApi.MESSAGES, {"type": "web_search"}, CLAUDES),
        (GPT, NativeApi.RESPONSES, CLAUDES, {"type": "web_search"}),
        (GPT, NativeApi.RESPONSES, {"google_search": {}}, {"type": "web_search"}),
        (GPT, NativeApi.RESPONSES, {"codeExecution": {}}, {"type": "code_interpreter", "container": {"type": "auto"}}),
    ],
)
def test_a_foreign_spelling_becomes_the_api_s_own(
    to: Target, api: NativeApi, given: JsonObject, becomes: JsonObject
) -> None:
    call = encode_own_body(own(api, CLIENTS, given), to)
    assert call is not None
    assert orjson.loads(call.body)["tools"][-1] == becomes


@looped(
    ("to", "api", "tool"),
    [
        (CLAUDE, NativeApi.MESSAGES, {"type": "web_search_20260318", "name": "web_search", "max_uses": 3}),
        (CLAUDE, NativeApi.MESSAGES, CLIENTS),
        (CLAUDE, NativeApi.MESSAGES, {"type": "bash_20250124", "name": "bash"}),
        (GPT, NativeApi.RESPONSES, {"type": "web_search", "external_web_access": False, "of_tomorrow": 1}),
        (GPT, NativeApi.RESPONSES, {"type": "mcp", "server_label": "s"}),
    ],
)
def test_the_api_s_own_tools_stay(to: Target, api: NativeApi, tool: JsonObject) -> None:
    request = own(api, tool)
    assert translate_native(request, to) is request


def test_a_tool_that_the_api_has_not_is_refused() -> None:
    with pytest.raises(Refusal, match="has no fetching of pages of its own"):
        translate_native(own(NativeApi.RESPONSES, {"urlContext": {}}), GPT)


def test_a_target_of_another_api_has_no_call_of_it() -> None:
    assert encode_own_body(own(NativeApi.RESPONSES, {"type": "web_search"}), CLAUDE) is None
