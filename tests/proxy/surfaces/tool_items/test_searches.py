"""Searches that a vendor made are items around the text, for a client that offered a search tool."""

from dataclasses import replace

from providers.completion import Choice, Chunk, Completion, Extras
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.tool_items.searches import (
    MAX_SOURCES,
    WebSearch,
    foreign_searches,
    results_in,
    searches_in,
    searches_of_blocks,
    shows_searches,
    sources_of,
)
from tests.proxy.surfaces.responses.kit import USAGE, ask, final, output, streamed, typed, whole
from tests.support.looped import looped

USE: JsonObject = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
PAGE: JsonObject = {"url": "https://x.example", "title": "X"}
FOUND: JsonObject = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [PAGE]}
EXTRAS = Extras(message={"content_blocks": [USE, FOUND]})
TOOLS: list[JsonValue] = [typed("web_search")]
SOURCE = ("https://x.example", "X")
GROUNDING: JsonObject = {
    "webSearchQueries": ["q", "r"],
    "groundingChunks": [{"web": {"uri": "https://x.example", "title": "X"}}, {"web": {"uri": "x"}}],
}
SERVER_CALL: JsonObject = {"type": "reasoning.server_tool_call"}
KEYWORDS: JsonValue = [{"web_search": {"search_keywords": ["q"]}}, {"thought": "x"}]


@looped(
    ("extras", "found"),
    [
        (EXTRAS, WebSearch("srvtoolu_1", ("q",), (SOURCE,))),
        (Extras(choice={"grounding_metadata": GROUNDING}), WebSearch("", ("q", "r"), (SOURCE,))),
        (
            Extras(message={"web_search_calls": [{"id": "ws", "action": {"type": "search", "query": "q"}}]}),
            WebSearch("ws", ("q",)),
        ),
        (
            Extras(
                message={
                    "executed_tools": [
                        {"type": "search", "arguments": '{"query": "q"}', "search_results": {"results": [PAGE]}}
                    ]
                }
            ),
            WebSearch("", ("q",), (SOURCE,)),
        ),
        (
            Extras(
                message={"content_blocks": [{"toolUse": {"name": "nova_grounding", "toolUseId": "t", "input": {}}}]}
            ),
            WebSearch("t", ()),
        ),
        (
            Extras(
                (
                    {
                        "type": "reasoning.server_tool_call",
                        "tool_name": "openrouter:web_search",
                        "arguments": '{"query":"q"}',
                    },
                )
            ),
            WebSearch("", ("q",)),
        ),
        (
            Extras(message={"reasoning_steps": KEYWORDS}, answer={"search_results": [PAGE]}),
            WebSearch("", ("q",), (SOURCE,)),
        ),
        (Extras(answer={"web_search": [{"link": "https://x.example", "title": "X"}]}), WebSearch("", (), (SOURCE,))),
        (Extras(answer={"search_info": {"search_results": [PAGE]}}), WebSearch("", (), (SOURCE,))),
    ],
)
def test_searches_are_found_in_each_vendor_s_form(extras: Extras, found: WebSearch) -> None:
    assert searches_in(extras) == [found]
    assert foreign_searches(extras) == ([] if extras is EXTRAS else [found])


@looped(
    "extras",
    [
        Extras(message={"content_blocks": [FOUND, {**USE, "name": "web_fetch"}, {**USE, "input": {}}, 3]}),
        Extras(message={"content_blocks": "x", "web_search_calls": "x", "executed_tools": [{"type": "python"}, 3]}),
        Extras(message={"web_search_calls": [{"action": {"type": "open_page", "url": "https://x.example"}}, {}]}),
        Extras(({**SERVER_CALL, "tool_name": "shell"},)),
        Extras(choice={"grounding_metadata": {"groundingChunks": [{"maps": {"uri": "https://x.example"}}]}}),
        Extras(choice={"grounding_metadata": []}, answer={"search_results": [], "search_info": [], "web_search": 1}),
    ],
)
def test_what_is_no_search_says_nothing(extras: Extras) -> None:
    assert searches_in(extras) == []


def test_sources_have_an_address_and_stand_once() -> None:
    listed: list[JsonObject] = [PAGE, PAGE, {"url": "ftp://x"}, {"title": "X"}, {"url": 1}]
    assert sources_of(listed) == (SOURCE,)
    assert len(sources_of([{"url": f"https://x.example/{number}"} for number in range(300)])) == MAX_SOURCES


def test_a_result_names_its_search() -> None:
    assert results_in(EXTRAS) == {"srvtoolu_1": (SOURCE,)}
    assert [*searches_of_blocks(Extras(message={"content_blocks": [USE]}))] == [WebSearch("srvtoolu_1", ("q",))]


def test_a_search_is_an_item_before_the_text_whole_and_streamed() -> None:
    choice = Choice(0, "It is sunny.", "stop", extras=EXTRAS)
    pieces = [Extras(message={"content_blocks": [block]}) for block in (USE, FOUND)]
    chunks = [*(Chunk(extras=piece) for piece in pieces), Chunk(text="It is sunny."), Chunk(finish_reason="stop")]
    listed: JsonValue = [{"type": "url", "url": "https://x.example", "title": "X"}]
    for include, sources in (([], {}), (["web_search_call.action.sources"], {"sources": listed})):
        fields: dict[str, JsonValue] = {"tools": TOOLS, "include": [*include]}
        made = output(whole(Completion((choice,), USAGE), **fields))
        assert output(final(streamed(*chunks, **fields))) == made
        assert [item["type"] for item in made] == ["web_search_call", "message"]
        assert made[0]["action"] == {"type": "search", "query": "q", "queries": ["q"], **sources}


def test_a_search_that_is_reported_after_the_text_is_an_item_after_it() -> None:
    extras = Extras(choice={"grounding_metadata": GROUNDING})
    late = Chunk(finish_reason="stop", signature="s", extras=extras)
    made = output(final(streamed(Chunk(text="It is sunny."), late, tools=TOOLS)))
    assert [item["type"] for item in made] == ["message", "web_search_call"]
    assert made[0]["extra_content"] == {"google": {"thought_signature": "s"}}
    assert made[1]["status"] == "completed"
    choice = Choice(0, "It is sunny.", "stop", extras=extras)
    items = output(whole(Completion((choice,), USAGE), tools=TOOLS))
    assert [item["type"] for item in items] == ["web_search_call", "message"]


def test_a_search_that_is_reported_again_is_one_item() -> None:
    listed = Extras(answer={"search_results": [PAGE]})
    chunks = [Chunk(text="It ", extras=listed), Chunk(text="is.", extras=listed), Chunk(finish_reason="stop")]
    made = output(final(streamed(*chunks, tools=TOOLS)))
    assert [item["type"] for item in made] == ["web_search_call", "message"]
    cut = output(final(streamed(Chunk(extras=listed), replace(chunks[2], finish_reason="length"), tools=TOOLS)))
    assert [item["status"] for item in cut] == ["completed"]


def test_a_client_that_offered_none_is_shown_none() -> None:
    choice = Choice(0, "It is sunny.", "stop", extras=EXTRAS)
    assert [item["type"] for item in output(whole(Completion((choice,), USAGE)))] == ["message"]
    assert not shows_searches(ask())
    assert shows_searches(ask(tools=TOOLS))
