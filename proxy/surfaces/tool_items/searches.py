"""Web searches that a vendor made, for their items and blocks in the Responses and Messages APIs.

Only a client that offered a tool that the vendor runs gets these items, because for any other client the searches do
not belong to the conversation. Clients of the chat API get the vendor's own fields instead, and citations as
annotations.

Vendors report searches in these fields of the common shape: Anthropic in `content_blocks`, OpenAI and xAI in
`web_search_calls`, Groq in `executed_tools`, OpenRouter in `reasoning_details`, Gemini in `grounding_metadata` of the
choice, Nova in `content_blocks` of Bedrock's form. Perplexity (`search_results`), Z.ai (`web_search`) and DashScope
(`search_info`) list the sources beside the choices, and Perplexity the queries in `reasoning_steps`.

Sources: openai 3.54.0 type `ResponseFunctionWebSearch`; `anthropic` 2.12.0 type `ServerToolUseBlock`; `google-genai`
3.4.0 type `GroundingMetadata`; groq 1.7.0 `ExecutedTool`; perplexityai 0.46.1 `SearchResult`, `ReasoningStep`; zai-sdk
0.2.3 `web_search`; "Model Studio: web search"; openrouter 1.3.84 `ReasoningDetailServerToolCall`, November 2026.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import orjson

from providers.completion import Extras
from providers.dialects.shared.read_logprobs import objects_in
from providers.frozen_record import frozen
from providers.hosted_tools.hosted_tool import is_hosted
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import UnifiedRequest

MAX_SOURCES: Final = 256
"""The most sources of one search that a client gets; the vendor's own fields have all sources."""

MAX_SEARCHES: Final = 64
"""The most searches of one response that a client gets."""

_BLOCKS: Final = "content_blocks"
"""The field of the unified message with Anthropic's and Bedrock's blocks that have no common form."""

_NOVA: Final = "nova_grounding"
_TITLES: Final = ("title", "site_name")
_ADDRESSES: Final = ("url", "uri", "link")


@frozen
class WebSearch:
    """A search: its name at the vendor (empty if it has none), its queries, and the address and title of each
    source."""

    name: str
    queries: tuple[str, ...]
    sources: tuple[tuple[str, str], ...] = ()


def shows_searches(request: UnifiedRequest) -> bool:
    """Return whether the client offered a tool that the vendor runs."""
    return any([is_hosted(tool) for tool in request.params.get("tools", ())])


def searches_in(extras: Extras) -> list[WebSearch]:
    """Return the searches in a response or a chunk, in order."""
    return [*searches_of_blocks(extras), *foreign_searches(extras)][:MAX_SEARCHES]


def searches_of_blocks(extras: Extras) -> Iterator[WebSearch]:
    """Yield the searches in Anthropic's own blocks, with their sources if the blocks also have the results."""
    found = results_in(extras)
    for block in objects_in((extras.message or {}).get(_BLOCKS)):
        match block:
            case {"type": "server_tool_use", "name": "web_search", "input": {"query": str(query)}}:
                name = str(block.get("id") or "")
                yield WebSearch(name, (query,), found.get(name, ()))
            case _:
                pass


def results_in(extras: Extras) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the sources in the results among Anthropic's own blocks, by the ids of their searches."""
    return {
        str(block.get("tool_use_id")): sources_of(objects_in(block.get("content")))
        for block in objects_in((extras.message or {}).get(_BLOCKS))
        if block.get("type") == "web_search_tool_result"
    }


def foreign_searches(extras: Extras) -> list[WebSearch]:
    """Return the searches in the forms of vendors other than Anthropic."""
    found: list[WebSearch] = []
    message, answer = extras.message, extras.answer
    if message is not None:
        found += _openai_searches(message)
        found += _groq_searches(message)
        found += _nova_searches(message)
    if extras.reasoning_details:
        found += _openrouter_searches(extras.reasoning_details)
    if extras.choice is not None:
        found += _grounding(extras.choice.get("grounding_metadata"))
    if answer is not None and (listed := _listed_sources(answer)):
        found.append(WebSearch("", _keywords(message or {}), sources_of(listed)))
    return found[:MAX_SEARCHES]


def sources_of(listed: Iterable[JsonObject]) -> tuple[tuple[str, str], ...]:
    """Return the address and the title of each entry that has an address, each address once."""
    found: dict[str, str] = {}
    for entry in listed:
        url, title = _first(entry, _ADDRESSES), _first(entry, _TITLES)
        if url.startswith(("https://", "http://")) and not found.get(url):
            found[url] = title
    return tuple([*found.items()][:MAX_SOURCES])


def _first(entry: JsonObject, names: Iterable[str]) -> str:
    return next((value for name in names if isinstance(value := entry.get(name), str) and value), "")


def _texts(value: JsonValue) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value]
    return tuple([each for each in listed if isinstance(each, str) and each])


def _openai_searches(message: Mapping[str, JsonValue]) -> Iterator[WebSearch]:
    for item in objects_in(message.get("web_search_calls")):
        action = item.get("action")
        if isinstance(action, dict) and action.get("type") == "search":
            queries = _texts(action.get("queries")) or _texts(action.get("query"))
            yield WebSearch(str(item.get("id") or ""), queries, sources_of(objects_in(action.get("sources"))))


def _groq_searches(message: Mapping[str, JsonValue]) -> Iterator[WebSearch]:
    for tool in objects_in(message.get("executed_tools")):
        if "search" not in str(tool.get("type")):
            continue
        results = tool.get("search_results")
        listed = objects_in(results.get("results")) if isinstance(results, dict) else []
        listed += objects_in(tool.get("browser_results"))
        yield WebSearch("", _queries(tool.get("arguments")), sources_of(listed))


def _nova_searches(message: Mapping[str, JsonValue]) -> Iterator[WebSearch]:
    for block in objects_in(message.get(_BLOCKS)):
        use = block.get("toolUse")
        if isinstance(use, dict) and use.get("name") == _NOVA:
            yield WebSearch(str(use.get("toolUseId") or ""), _queries(use.get("input")))


def _openrouter_searches(details: Iterable[JsonObject]) -> Iterator[WebSearch]:
    for detail in details:
        if detail.get("type") == "reasoning.server_tool_call" and "web_search" in str(detail.get("tool_name")):
            yield WebSearch("", _queries(detail.get("arguments")))


def _queries(arguments: JsonValue) -> tuple[str, ...]:
    """Return the queries in the arguments of a search, which may be JSON text."""
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments)
        except (orjson.JSONDecodeError, UnicodeEncodeError):
            return ()
    if not isinstance(arguments, dict):
        return ()
    return _texts(arguments.get("queries")) or _texts(arguments.get("query"))


def _grounding(raw: JsonValue) -> Iterator[WebSearch]:
    if not isinstance(raw, dict):
        return
    results = [kind for chunk in objects_in(raw.get("groundingChunks")) for kind in chunk.values()]
    # Sources without queries belong to another tool, such as a map.
    if queries := _texts(raw.get("webSearchQueries")):
        yield WebSearch("", queries, sources_of([each for each in results if isinstance(each, dict)]))


def _listed_sources(answer: Mapping[str, JsonValue]) -> list[JsonObject]:
    """Return the sources that a vendor lists beside the choices."""
    info = answer.get("search_info")
    within = objects_in(info.get("search_results")) if isinstance(info, dict) else []
    return [*objects_in(answer.get("search_results")), *objects_in(answer.get("web_search")), *within]


def _keywords(message: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Return the queries in the steps of Perplexity's reasoning."""
    found: list[str] = []
    for step in objects_in(message.get("reasoning_steps")):
        search = step.get("web_search")
        found += _texts(search.get("search_keywords")) if isinstance(search, dict) else ()
    return tuple(found)
