"""Every client's spelling of a hosted tool becomes the vendor's own, or is refused by its name."""

from typing import Final

import orjson

from providers.capabilities import NATIVE
from providers.emulation.plan_calls import plan_calls
from providers.hosted_tools.translate_hosted import asks_hosted, search_cell
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import UnifiedRequest
from tests.providers.dialects.kit import chat_request, target_of, tool
from tests.providers.kit import refusal_of
from tests.support.looped import looped

PLACE: JsonObject = {"type": "approximate", "city": "Zug", "country": "CH"}
NESTED: JsonObject = {"type": "approximate", "approximate": {"city": "Zug", "country": "CH"}}

SPELLINGS: Final[tuple[JsonObject, ...]] = (
    {"type": "web_search_20250305", "name": "web_search"},
    {"type": "web_search_20260318", "name": "web_search", "allowed_callers": ["direct"]},
    {"type": "web_search"},
    {"type": "web_search_preview_2025_03_11", "search_context_size": "medium"},
    {"googleSearch": {}},
    {"google_search": {}},
    {"type": "google_search"},
    {"type": "openrouter:web_search"},
)
"""One search tool in the spellings of all APIs."""

ZAIS: JsonObject = {
    "enable": True,
    "search_engine": "search-prime",
    "search_result": True,
    "result_sequence": "before",
}

CLAUDES: JsonObject = {"type": "web_search_20250305", "name": "web_search"}
GOOGLES: JsonObject = {"googleSearch": {}}

SEARCHES: Final[tuple[tuple[str, str, JsonObject], ...]] = (
    ("anthropic", "claude-sonnet-4-5", {"tools": [CLAUDES]}),
    ("vertex_anthropic", "claude-sonnet-4-5", {"tools": [CLAUDES]}),
    ("gemini", "gemini-3-flash-preview", {"tools": [GOOGLES]}),
    ("vertex", "gemini-3-flash-preview", {"tools": [GOOGLES]}),
    ("openai", "gpt-5.1", {"tools": [{"type": "web_search"}]}),
    ("azure_v1", "gpt-4o", {"tools": [{"type": "web_search"}]}),
    ("openai", "gpt-4o-search-preview", {"web_search_options": {}}),
    ("openai", "gpt-5-search-api", {"web_search_options": {}}),
    ("openrouter", "any/model", {"tools": [{"type": "openrouter:web_search"}]}),
    ("xai", "grok-4", {"tools": [{"type": "web_search"}]}),
    ("perplexity", "sonar", {}),
    ("groq", "openai/gpt-oss-120b", {"tools": [{"type": "browser_search"}]}),
    ("groq", "groq/compound", {}),
    ("dashscope", "qwen-plus", {"enable_search": True}),
    ("zai", "glm-4.7", {"tools": [{"type": "web_search", "web_search": ZAIS}]}),
    ("bedrock", "amazon.nova-premier-v1:0", {"toolConfig": {"tools": [{"systemTool": {"name": "nova_grounding"}}]}}),
)
"""The fields of a search tool in the bodies of vendors."""

WITHOUT: Final = (
    ("vllm", "m"),
    ("sglang", "m"),
    ("deepseek", "deepseek-chat"),
    ("cohere", "command-a-03-2025"),
    ("ollama_native", "llama3"),
    ("groq", "llama-3.3-70b-versatile"),
    ("bedrock", "anthropic.claude-haiku-4-5-20251001-v1:0"),
    ("bedrock_anthropic", "anthropic.claude-haiku-4-5-20251001-v1:0"),
    ("bedrock", "amazon.nova-pro-v1:0"),
    ("mistral", "mistral-large-2512"),
    ("moonshot", "kimi-k2.5"),
)

MEMBERS: Final = (
    *("tools", "toolConfig", "tool_choice", "web_search_options", "search_domain_filter", "enable_search"),
    *("search_options", "search_settings", "disable_search"),
)


def sent(request: UnifiedRequest, vendor: str, model: str) -> tuple[JsonObject, tuple[str, ...], tuple[str, ...]]:
    """Return the tools and searches of the body, and the names of the emulated and the dropped fields."""
    plan = plan_calls(request, target_of(vendor, model, base_url="https://host"))
    (call,) = plan.calls
    body = orjson.loads(call.sent.body)
    return {name: body[name] for name in MEMBERS if name in body}, plan.emulated, plan.dropped


@looped(("vendor", "model", "becomes"), SEARCHES)
def test_a_search_in_any_spelling_becomes_the_target_s_own(vendor: str, model: str, becomes: JsonObject) -> None:
    own = {"openrouter": ("web_search",)}.get(vendor, ())
    for spelled in SPELLINGS:
        expected: JsonObject = becomes
        if str(spelled.get("type")).startswith(own or ("none",)) and vendor == "openrouter" and "name" not in spelled:
            expected = {"tools": [{**spelled}]} if not spelled.keys() <= {"type", "search_context_size"} else becomes
        if vendor in ("anthropic", "vertex_anthropic") and spelled.get("name"):
            expected = {"tools": [spelled]}
        if (
            vendor in ("openai", "azure_v1")
            and "tools" in becomes
            and str(spelled.get("type")).startswith("web_search")
        ):
            expected = {"tools": [spelled]} if "name" not in spelled else becomes
        assert sent(chat_request(tools=[spelled]), vendor, model)[0] == expected, spelled
    members, emulated, dropped = sent(chat_request(web_search_options={}), vendor, model)
    assert (members, dropped) == (becomes, ())
    native = search_cell(load_profiles()[vendor], model) is NATIVE
    assert emulated == (() if native else ("web_search_options",)), emulated


@looped(("vendor", "model"), WITHOUT)
def test_a_search_is_refused_by_name_where_there_is_none(vendor: str, model: str) -> None:
    to = target_of(vendor, model, base_url="https://host")
    for spelled in SPELLINGS:
        refusal = refusal_of(plan_calls, chat_request(tools=[tool(), spelled]), to, "drop")
        assert (refusal.param, refusal.code) == ("tools", "unsupported_parameter")
        assert str(spelled.get("type", next(iter(spelled)))) in refusal.message
    assert refusal_of(plan_calls, chat_request(web_search_options={}), to, "drop").param == "web_search_options"
    assert search_cell(to.profile, model).refused


SETTINGS: JsonObject = {"allowed_domains": ["a.example"], "user_location": PLACE, "max_uses": 3}
FILTERED: JsonObject = {
    "filters": {"allowed_domains": ["a.example"]},
    "user_location": PLACE,
    "search_context_size": "low",
}
BLOCKED: JsonObject = {**CLAUDES, "blocked_domains": ["b.example"], "max_uses": 2}

EXCLUDED: JsonObject = {"excluded_domains": ["b.example"], "max_uses": 2}


@looped(
    ("vendor", "model", "given", "becomes", "left_out"),
    [
        ("anthropic", "claude-sonnet-4-5", {"type": "web_search", **FILTERED},
         {"tools": [{**CLAUDES, "allowed_domains": ["a.example"], "user_location": PLACE}]},
         ("tools.search_context_size",)),
        ("openai", "gpt-5.1", {**CLAUDES, **SETTINGS},
         {"tools": [{"type": "web_search", "filters": {"allowed_domains": ["a.example"]}, "user_location": PLACE}]},
         ("tools.max_uses",)),
        ("openrouter", "m", {**CLAUDES, **SETTINGS},
         {"tools": [{"type": "openrouter:web_search", "parameters": SETTINGS}]}, ()),
        ("openrouter", "m", BLOCKED,
         {"tools": [{"type": "openrouter:web_search", "parameters": EXCLUDED}]},
         ()),
        ("openrouter", "m", {"type": "web_search", "engine": "exa"},
         {"tools": [{"type": "web_search", "engine": "exa"}]}, ()),
        ("perplexity", "sonar", {"type": "web_search", **FILTERED},
         {"search_domain_filter": ["a.example"],
          "web_search_options": {"search_context_size": "low", "user_location": {"city": "Zug", "country": "CH"}}}, ()),
        ("perplexity", "sonar", BLOCKED, {"search_domain_filter": ["-b.example"]}, ("tools.max_uses",)),
        ("vertex", "gemini-3-flash-preview", BLOCKED,
         {"tools": [{"googleSearch": {"excludeDomains": ["b.example"]}}]}, ("tools.max_uses",)),
        ("gemini", "gemini-3-flash-preview",
         {"type": "web_search", "external_web_access": False, "user_location": PLACE},
         {"tools": [GOOGLES]}, ("tools.external_web_access", "tools.user_location")),
        ("openai", "gpt-4o-search-preview", {**CLAUDES, "user_location": PLACE},
         {"web_search_options": {"user_location": NESTED}}, ()),
        ("xai", "grok-4", BLOCKED,
         {"tools": [{"type": "web_search", "filters": {"excluded_domains": ["b.example"]}}]}, ("tools.max_uses",)),
        ("groq", "compound", {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}},
         {"search_settings": {"include_domains": ["a.example"]}}, ()),
        ("dashscope", "qwen-plus", {"type": "web_search", **FILTERED},
         {"enable_search": True, "search_options": {"assigned_site_list": ["a.example"]}},
         ("tools.search_context_size", "tools.user_location")),
        ("zai", "glm-4.7", {**CLAUDES, **SETTINGS},
         {"tools": [{"type": "web_search", "web_search": {**ZAIS, "search_domain_filter": "a.example"}}]},
         ("tools.max_uses", "tools.user_location")),
        ("zai", "glm-4.7", {"type": "web_search", "search_context_size": "high"},
         {"tools": [{"type": "web_search", "web_search": {**ZAIS, "content_size": "high"}}]}, ()),
        ("zai", "glm-4.7", {"type": "web_search", "search_context_size": "low"},
         {"tools": [{"type": "web_search", "web_search": ZAIS}]}, ("tools.search_context_size",)),
        ("zai", "glm-4.7", {"type": "web_search", "web_search": {"enable": True, "count": 5}},
         {"tools": [{"type": "web_search", "web_search": {"enable": True, "count": 5}}]}, ()),
    ],
)  # fmt: skip
def test_settings_go_where_the_target_has_them(
    vendor: str, model: str, given: JsonObject, becomes: JsonObject, left_out: tuple[str, ...]
) -> None:
    members, _, dropped = sent(chat_request(tools=[given]), vendor, model)
    assert (members, tuple(sorted(dropped))) == (becomes, left_out)


@looped(
    ("vendor", "model", "given", "told"),
    [
        ("gemini", "gemini-3-flash-preview", {**CLAUDES, **SETTINGS}, "'allowed_domains' of a search"),
        ("vertex", "gemini-3-flash-preview", {**CLAUDES, **SETTINGS}, "'allowed_domains' of a search"),
        ("openai", "gpt-5.1", BLOCKED, "'blocked_domains' of a search"),
        ("groq", "openai/gpt-oss-20b", {**CLAUDES, **SETTINGS}, "'allowed_domains' of a search"),
        ("perplexity", "sonar", {**BLOCKED, **SETTINGS}, "either allowed_domains or blocked_domains"),
        ("dashscope", "qwen-plus", BLOCKED, "'blocked_domains' of a search"),
        ("dashscope", "qwen-plus", {**CLAUDES, "allowed_domains": [f"{each}.example" for each in range(26)]},
         "at most 25 of 'allowed_domains'"),
        ("zai", "glm-4.7", BLOCKED, "'blocked_domains' of a search"),
        ("zai", "glm-4.7", {**CLAUDES, "allowed_domains": ["a.example", "b.example"]}, "at most 1 of"),
        ("moonshot", "kimi-k3", CLAUDES, "the built-in function `$web_search`"),
        ("anthropic", "claude-sonnet-4-5", {"type": "code_interpreter", "container": "c_1"}, "a container of its own"),
        ("gemini", "gemini-3-pro", {"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["f"]}},
         "files of its own"),
        ("gemini", "gemini-3-pro", {"type": "web_search", "filters": {"allowed_domains": "a"}}, "a list of domains"),
        ("gemini", "gemini-3-pro", {**CLAUDES, "max_uses": 0}, "a number above 0"),
        ("gemini", "gemini-3-pro", {**CLAUDES, "user_location": "Zug"}, "an object"),
        ("anthropic", "m", {"type": "web_search", "search_context_size": 3}, "a string"),
    ],
)  # fmt: skip
def test_what_a_search_cannot_be_kept_to_is_refused(vendor: str, model: str, given: JsonObject, told: str) -> None:
    refusal = refusal_of(
        plan_calls, chat_request(tools=[given]), target_of(vendor, model, base_url="https://h"), "drop"
    )
    assert refusal.param == "tools"
    assert told in refusal.message


@looped(
    ("vendor", "model", "given", "becomes"),
    [
        ("anthropic", "m", {"urlContext": {}}, {"type": "web_fetch_20250910", "name": "web_fetch"}),
        ("gemini", "gemini-3-pro", {"type": "web_fetch_20250910", "name": "web_fetch"}, {"urlContext": {}}),
        ("openrouter", "m", {"type": "web_fetch_20260318", "name": "web_fetch", "max_uses": 2},
         {"type": "openrouter:web_fetch", "parameters": {"max_uses": 2}}),
        ("anthropic", "m", {"type": "code_interpreter", "container": {"type": "auto"}},
         {"type": "code_execution_20250825", "name": "code_execution"}),
        ("gemini", "gemini-3-pro", {"type": "code_interpreter", "container": {"type": "auto"}}, {"codeExecution": {}}),
        ("openai", "gpt-5.1", {"type": "code_execution_20250825", "name": "code_execution"},
         {"type": "code_interpreter", "container": {"type": "auto"}}),
        ("groq", "openai/gpt-oss-20b", {"codeExecution": {}}, {"type": "code_interpreter"}),
    ],
)  # fmt: skip
def test_pages_are_fetched_and_code_is_run_by_the_target_s_own_tools(
    vendor: str, model: str, given: JsonObject, becomes: JsonObject
) -> None:
    assert sent(chat_request(tools=[given]), vendor, model)[0]["tools"] == [becomes]


@looped(
    ("vendor", "model", "choice", "becomes"),
    [
        ("anthropic", "claude-sonnet-4-5", {"type": "web_search"}, {"type": "tool", "name": "web_search"}),
        ("anthropic", "claude-sonnet-4-5", "required", {"type": "any"}),
        ("openai", "gpt-5.1", {"type": "function", "function": {"name": "web_search"}}, {"type": "web_search"}),
        ("openrouter", "m", {"type": "web_search_preview"}, {"type": "openrouter:web_search"}),
        ("perplexity", "sonar", {"type": "web_search"}, None),
        ("perplexity", "sonar", "required", None),
        ("openai", "gpt-4o-search-preview", "required", None),
        ("gemini", "gemini-3-pro", {"type": "web_search"}, "cannot be made to use its web search"),
        ("gemini", "gemini-3-pro", {"type": "code_interpreter"}, "not among 'tools'"),
        ("gemini", "gemini-2.5-flash", "required", "only functions can be required"),
        ("groq", "compound", "required", "cannot be made to use a tool that it runs itself"),
        ("dashscope", "qwen-plus", {"type": "web_search"}, None),
        ("zai", "glm-4.7", {"type": "web_search"}, "cannot be made to use its web search"),
    ],
)  # fmt: skip
def test_a_choice_of_a_search_is_translated_met_or_refused(
    vendor: str, model: str, choice: JsonValue, becomes: JsonValue
) -> None:
    request = chat_request(tools=[CLAUDES], tool_choice=choice)
    if isinstance(becomes, str):
        refusal = refusal_of(plan_calls, request, target_of(vendor, model), "drop")
        assert refusal.param == "tool_choice"
        assert becomes in refusal.message
    else:
        assert sent(request, vendor, model)[0].get("tool_choice") == becomes


def test_no_search_is_made_where_the_choice_is_none() -> None:
    members, _, _ = sent(chat_request(tools=[CLAUDES], tool_choice="none"), "perplexity", "sonar")
    assert members == {"disable_search": True}
    forced, _, _ = sent(chat_request(tools=[CLAUDES], tool_choice="required"), "dashscope", "qwen-plus")
    assert forced == {"enable_search": True, "search_options": {"forced_search": True}}


def test_functions_beside_a_search_stay_and_equal_searches_become_one() -> None:
    members, _, _ = sent(chat_request(tools=[tool(), *SPELLINGS[2:4]]), "anthropic", "claude-sonnet-4-5")
    tools = members["tools"]
    assert isinstance(tools, list)
    assert tools[1:] == [CLAUDES]


def test_two_requests_for_a_search_conflict() -> None:
    request = chat_request(tools=[CLAUDES], web_search_options={})
    refusal = refusal_of(plan_calls, request, target_of("anthropic"))
    assert (refusal.param, refusal.code) == ("web_search_options", "conflicting_parameters")


def test_requests_for_functions_alone_are_not_looked_at() -> None:
    assert not asks_hosted(chat_request(tools=[tool()]).params)
    assert not asks_hosted(chat_request().params)
