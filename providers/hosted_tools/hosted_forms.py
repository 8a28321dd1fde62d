"""The vendors' forms of hosted tools, by the style names that profiles have under `hosted`, and the settings of each.

Sources: the sources of `hosted_tool`, and, November 2026: "Web search" of Perplexity's API reference; Z.ai's "Chat
completion" and LlmTornado `VendorZaiWebSearchObject`; "Model Studio: web search", which limits a search to at most 25
sites; "Browser search" and "Compound" of Groq; "Agent tools" of xAI (vercel/ai pull request 15713: its chats respond to
a search with status 410).
"""

from collections.abc import Mapping
from typing import Final, Literal

from providers.frozen_record import frozen
from providers.hosted_tools.hosted_tool import ALLOWED, BLOCKED, CONTENT, CONTEXT, LOCATION, USES
from providers.json_types import JsonObject
from providers.profile import HostedKind, HostedStyle
from providers.request_fields import SEARCH

LocationForm = Literal["typed", "nested", "bare"]
"""How the user's location is written: in Anthropic's form (`typed`), nested in OpenAI's object (`nested`), or without a
type (`bare`)."""

ForcedUse = Literal["named", "never", "always"]
"""Whether a vendor can be forced to use a tool: by a choice that names the tool (`named`) or not at all (`never`). A
vendor with `always` uses the tool in any case."""


@frozen
class HostedForm:
    """A vendor's form of a hosted tool.

    `tool` is the entry of `tools`, `None` if fields of the body request the tool. `setting_paths` are the paths of the
    supported settings, in the entry if there is one, otherwise in the body. A request may have allowed or blocked
    domains, not both. `forced_use` says whether the tool can be forced, `choice` is the `tool_choice` that names it.
    `body` are fields that request the tool, `off` are fields that disable it. `location_form` is the form of the user's
    location. `most_domains` is the maximal number of domains of a search, `None` if the vendor names no maximum; a
    vendor with a maximum of one takes the domain without a list. `contexts` maps OpenAI's words for how much of the
    results the model reads to the vendor's words, `None` if they are the same.
    """

    tool: JsonObject | None
    setting_paths: Mapping[str, str]
    forced_use: ForcedUse = "never"
    choice: JsonObject | None = None
    body: JsonObject | None = None
    off: JsonObject | None = None
    location_form: LocationForm = "typed"
    most_domains: int | None = None
    contexts: Mapping[str, str] | None = None


def _function_choice(name: str) -> JsonObject:
    return {"type": "function", "function": {"name": name}}


def _same_names(*names: str) -> Mapping[str, str]:
    return {name: name for name in names}


def _form_with_type(kind: str, setting_paths: Mapping[str, str], **other_fields: JsonObject) -> HostedForm:
    return HostedForm({"type": kind, **other_fields}, setting_paths, "named", {"type": kind})


def _anthropic_form(kind: str, name: str, *settings: str) -> HostedForm:
    return HostedForm({"type": kind, "name": name}, _same_names(*settings), "named", _function_choice(name))


FORMS: Final[Mapping[HostedKind, Mapping[HostedStyle, HostedForm]]] = {
    "web_search": {
        # Later versions need models and a sandbox that not every platform has.
        "anthropic": _anthropic_form("web_search_20250305", "web_search", ALLOWED, BLOCKED, LOCATION, USES),
        "gemini": HostedForm({"googleSearch": {}}, {}),
        "vertex": HostedForm({"googleSearch": {}}, {BLOCKED: "googleSearch.excludeDomains"}),
        "responses": _form_with_type(
            "web_search", {ALLOWED: f"filters.{ALLOWED}", LOCATION: LOCATION, CONTEXT: CONTEXT}
        ),
        "options": HostedForm(
            None,
            {LOCATION: f"{SEARCH}.{LOCATION}", CONTEXT: f"{SEARCH}.{CONTEXT}"},
            "always",
            body={SEARCH: {}},
            location_form="nested",
        ),
        "openrouter": _form_with_type(
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
            location_form="bare",
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
            location_form="bare",
            most_domains=20,
        ),
        "groq": HostedForm({"type": "browser_search"}, {}),
        "groq_compound": HostedForm(
            None, {ALLOWED: "search_settings.include_domains", BLOCKED: "search_settings.exclude_domains"}
        ),
        "zai": HostedForm(
            {
                "type": "web_search",
                # The results come before the text, so that a stream can cite them.
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
        "xai": _form_with_type("web_search", {ALLOWED: f"filters.{ALLOWED}", BLOCKED: "filters.excluded_domains"}),
        "nova": HostedForm({"systemTool": {"name": "nova_grounding"}}, {}),
    },
    "web_fetch": {
        "anthropic": _anthropic_form("web_fetch_20250910", "web_fetch", ALLOWED, BLOCKED, USES, CONTENT),
        "gemini": HostedForm({"urlContext": {}}, {}),
        "perplexity_agent": HostedForm({"type": "fetch_url"}, {}),
        "openrouter": _form_with_type(
            "openrouter:web_fetch", {name: f"parameters.{name}" for name in (ALLOWED, BLOCKED, USES, CONTENT)}
        ),
    },
    "code_execution": {
        "anthropic": _anthropic_form("code_execution_20250825", "code_execution"),
        "gemini": HostedForm({"codeExecution": {}}, {}),
        "responses": _form_with_type("code_interpreter", {}, container={"type": "auto"}),
        "groq": HostedForm({"type": "code_interpreter"}, {}),
        "xai": _form_with_type("code_interpreter", {}),
    },
}
"""By kind of tool and style: the form of the tool."""
