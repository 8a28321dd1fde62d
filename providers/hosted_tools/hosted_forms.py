"""The forms of tools that vendors run themselves, as profiles name them under `hosted`, and the settings of each.

Sources: the sources of `hosted_tool`, and, November 2026: "Web search" of Perplexity's API reference; Z.ai's "Chat
completion" and LlmTornado `VendorZaiWebSearchObject`; "Model Studio: web search", which keeps a search to 25 sites;
"Browser search" and "Compound" of Groq; "Agent tools" of xAI (vercel/ai pull request 15713: its chats answer 410 to a
search).
"""

from collections.abc import Mapping
from typing import Final, Literal

from providers.frozen_record import record
from providers.hosted_tools.hosted_tool import ALLOWED, BLOCKED, CONTENT, CONTEXT, LOCATION, USES
from providers.json_types import JsonObject
from providers.profile import HostedKind, HostedStyle
from providers.request_fields import SEARCH

Where = Literal["typed", "nested", "bare"]
"""How the user's location is written: as Anthropic has it, with OpenAI's object within it, or without a type."""

Choosing = Literal["named", "never", "always"]
"""Whether a vendor can be made to use a tool: by a choice that names it, not at all, or it always uses it."""


@record
class HostedForm:
    """A vendor's form of a tool: the entry of `tools`, `None` if fields of the body request it. `places` are the paths
    of the settings that it has, in the entry or else in the body; of the two kinds of domains it takes one at a time.
    `choice` is the `tool_choice` that names it. `off` are fields of the body that switch it off, `where` is the form of
    the user's location. `most_domains` is how many domains a search is kept to at most, `None` if the vendor names no
    number; a vendor of one takes it without a list. `contexts` are the vendor's words for how much of the results the
    model reads, by OpenAI's, and `None` if it has the same."""

    tool: JsonObject | None
    places: Mapping[str, str]
    choosing: Choosing = "never"
    choice: JsonObject | None = None
    body: JsonObject | None = None
    off: JsonObject | None = None
    where: Where = "typed"
    most_domains: int | None = None
    contexts: Mapping[str, str] | None = None


def _function_choice(name: str) -> JsonObject:
    return {"type": "function", "function": {"name": name}}


def _same(*names: str) -> Mapping[str, str]:
    return {name: name for name in names}


def _typed(kind: str, places: Mapping[str, str], **members: JsonObject) -> HostedForm:
    return HostedForm({"type": kind, **members}, places, "named", {"type": kind})


def _claudes(kind: str, name: str, *settings: str) -> HostedForm:
    return HostedForm({"type": kind, "name": name}, _same(*settings), "named", _function_choice(name))


FORMS: Final[Mapping[HostedKind, Mapping[HostedStyle, HostedForm]]] = {
    "web_search": {
        # The versions after this one need models and a sandbox that not every platform has.
        "anthropic": _claudes("web_search_20250305", "web_search", ALLOWED, BLOCKED, LOCATION, USES),
        "gemini": HostedForm({"googleSearch": {}}, {}),
        "vertex": HostedForm({"googleSearch": {}}, {BLOCKED: "googleSearch.excludeDomains"}),
        "responses": _typed("web_search", {ALLOWED: f"filters.{ALLOWED}", LOCATION: LOCATION, CONTEXT: CONTEXT}),
        "options": HostedForm(
            None,
            {LOCATION: f"{SEARCH}.{LOCATION}", CONTEXT: f"{SEARCH}.{CONTEXT}"},
            "always",
            body={SEARCH: {}},
            where="nested",
        ),
        "openrouter": _typed(
            "openrouter:web_search",
            {
                BLOCKED: "parameters.excluded_domains",
                **{name: f"parameters.{name}" for name in (ALLOWED, LOCATION, CONTEXT, USES)},
            },
        ),
        "perplexity": HostedForm(
            None,
            {
                **dict.fromkeys((ALLOWED, BLOCKED), "search_domain_filter"),
                **{name: f"{SEARCH}.{name}" for name in (LOCATION, CONTEXT)},
            },
            "always",
            off={"disable_search": True},
            where="bare",
        ),
        "perplexity_agent": HostedForm(
            {"type": "web_search"},
            {
                **dict.fromkeys((ALLOWED, BLOCKED), "filters.search_domain_filter"),
                LOCATION: LOCATION,
                CONTEXT: CONTEXT,
            },
            "named",
            {"type": "web_search"},
            where="bare",
            most_domains=20,
        ),
        "groq": HostedForm({"type": "browser_search"}, {}),
        "groq_compound": HostedForm(
            None, {ALLOWED: "search_settings.include_domains", BLOCKED: "search_settings.exclude_domains"}
        ),
        "zai": HostedForm(
            {
                "type": "web_search",
                # Results before the text, so that a stream can cite them.
                "web_search": {
                    "enable": True,
                    "search_engine": "search-prime",
                    "search_result": True,
                    "result_sequence": "before",
                },
            },
            {ALLOWED: "web_search.search_domain_filter", CONTEXT: "web_search.content_size"},
            most_domains=1,
            contexts={"high": "high"},
        ),
        "dashscope": HostedForm(
            None,
            {ALLOWED: "search_options.assigned_site_list"},
            "named",
            body={"enable_search": True},
            choice={"search_options": {"forced_search": True}},
            most_domains=25,
        ),
        "xai": _typed("web_search", {ALLOWED: f"filters.{ALLOWED}", BLOCKED: "filters.excluded_domains"}),
        "nova": HostedForm({"systemTool": {"name": "nova_grounding"}}, {}),
    },
    "web_fetch": {
        "anthropic": _claudes("web_fetch_20250910", "web_fetch", ALLOWED, BLOCKED, USES, CONTENT),
        "gemini": HostedForm({"urlContext": {}}, {}),
        "perplexity_agent": HostedForm({"type": "fetch_url"}, {}),
        "openrouter": _typed(
            "openrouter:web_fetch", {name: f"parameters.{name}" for name in (ALLOWED, BLOCKED, USES, CONTENT)}
        ),
    },
    "code_execution": {
        "anthropic": _claudes("code_execution_20250825", "code_execution"),
        "gemini": HostedForm({"codeExecution": {}}, {}),
        "responses": _typed("code_interpreter", {}, container={"type": "auto"}),
        "groq": HostedForm({"type": "code_interpreter"}, {}),
        "xai": _typed("code_interpreter", {}),
    },
}
"""The forms of each kind of tool by style."""
