"""Searches of other vendors as blocks of the Messages API, and the positions of the blocks."""

from typing import cast

import orjson

from providers.completion import Choice, Chunk, Completion, Extras, ToolCallDelta, Usage
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.anthropic.renderer import MessagesRenderer
from proxy.surfaces.anthropic.search_blocks import SearchBlocks, blocks_of_search
from proxy.surfaces.tool_items.searches import WebSearch
from tests.proxy.surfaces.anthropic.kit import FACTS, accumulate, objects, parse
from tests.support.looped import looped

TOOLS: JsonValue = [{"type": "web_search_20250305", "name": "web_search"}]
CALLS = Extras(
    message={
        "web_search_calls": [
            {
                "type": "web_search_call",
                "id": "ws-1",
                "action": {"type": "search", "queries": ["q"], "sources": [{"url": "https://x.example"}]},
            }
        ]
    }
)
CITED: JsonObject = {"type": "url_citation", "url_citation": {"url": "https://x.example", "start_index": 0}}
GROUNDED = Extras(annotations=(CITED,), choice={"grounding_metadata": {"webSearchQueries": ["q", "r"]}})
USE, RESULT = "server_tool_use", "web_search_tool_result"
COUNTED = Usage(3, 4, completion_details={"web_search_requests": 2})


def kinds(*chunks: Chunk, tools: JsonValue = TOOLS) -> list[str]:
    """Return the types of the blocks of a stream."""
    made = MessagesRenderer(parse(tools=tools), FACTS)
    stream = b"".join(map(made.chunk, chunks)) + made.usage(COUNTED) + made.end()
    return [block.type for block in accumulate(stream).content]


def test_each_query_is_a_call_with_its_result() -> None:
    first, found, second, nothing = blocks_of_search(WebSearch("ws-1", ("q", "r"), (("https://x.example", ""),)))
    result = {"type": "web_search_result", "url": "https://x.example", "title": "https://x.example"}
    assert first == {"type": USE, "id": "srvtoolu_dragoman_ws_1", "name": "web_search", "input": {"query": "q"}}
    assert found["content"] == [{**result, "encrypted_content": "", "page_age": None}]
    assert (second["id"], second["input"]) == ("srvtoolu_dragoman_ws_1_2", {"query": "r"})
    assert nothing == {"type": RESULT, "tool_use_id": "srvtoolu_dragoman_ws_1_2", "content": []}


def test_a_search_without_a_name_gets_one_of_what_it_holds() -> None:
    names = [blocks_of_search(WebSearch("", queries))[0]["id"] for queries in (("q",), ("q",), ("r",), ())]
    assert len(set(names)) == 3
    assert all([str(name).startswith("srvtoolu_dragoman_") for name in names])


@looped(
    ("chunks", "blocks"),
    [
        ([Chunk(extras=CALLS), Chunk(text="a")], [USE, RESULT, "text"]),
        ([Chunk(text="a", extras=CALLS)], [USE, RESULT, "text"]),
        ([Chunk(reasoning="a"), Chunk(extras=CALLS), Chunk(text="b")], ["thinking", USE, RESULT, "text"]),
        ([Chunk(text="a"), Chunk(extras=CALLS), Chunk(text="b")], ["text", USE, RESULT, "text"]),
        ([Chunk(text="a"), Chunk(extras=CALLS)], ["text"]),
        ([Chunk(text="a"), Chunk(extras=GROUNDED)], ["text"]),
        ([Chunk(extras=GROUNDED), Chunk(text="a")], [USE, RESULT, USE, RESULT, "text"]),
        ([Chunk(extras=CALLS)], [USE, RESULT]),
        (
            [Chunk(text="a"), Chunk(extras=CALLS), Chunk(tool_calls=(ToolCallDelta(0, "c", "f", "{}"),))],
            ["text", USE, RESULT, "tool_use"],
        ),
    ],
)
def test_blocks_stand_before_what_follows_the_search_and_never_after_the_last_text(
    chunks: list[Chunk], blocks: list[str]
) -> None:
    called = any([chunk.tool_calls for chunk in chunks])
    ended = Chunk(finish_reason="tool_calls" if called else "stop")
    assert kinds(*chunks, ended) == blocks
    assert not {USE, RESULT} & {*kinds(*chunks, ended, tools=[{"name": "f", "input_schema": {"type": "object"}}])}


def test_what_is_reported_after_the_text_is_cited_counted_and_beside_the_blocks() -> None:
    made = MessagesRenderer(parse(tools=TOOLS), FACTS)
    chunks = [Chunk(text="a"), Chunk(finish_reason="stop", extras=GROUNDED)]
    stream = b"".join(map(made.chunk, chunks)) + made.usage(COUNTED) + made.end()
    message = accumulate(stream)
    (block,) = message.content
    assert block.type == "text"
    assert [each.type for each in block.citations or ()] == ["web_search_result_location"]
    delta = next(event for event in objects(stream) if event["type"] == "message_delta")
    assert cast(JsonObject, delta["usage"])["server_tool_use"] == {"web_search_requests": 2, "web_fetch_requests": 0}
    assert delta["grounding_metadata"] == {"webSearchQueries": ["q", "r"]}


def test_a_non_streaming_response_has_them_before_its_text() -> None:
    choice = Choice(0, "a", "stop", reasoning="hm", extras=CALLS)
    listed: JsonObject = {"search_results": [{"url": "https://y.example"}]}
    made = MessagesRenderer(parse(tools=TOOLS), FACTS).completion(Completion((choice,), COUNTED, extra=listed))
    blocks = [block["type"] for block in orjson.loads(made)["content"]]
    assert blocks == ["thinking", USE, RESULT, USE, RESULT, "text"]


def test_blocks_are_taken_once() -> None:
    waiting = SearchBlocks(parse(tools=TOOLS))
    assert waiting.add(CALLS)
    assert waiting.add(CALLS)
    events, index = waiting.events(3)
    assert (events.count(b"content_block_start"), index) == (4, 5)
    assert waiting.take_blocks() == []
    assert not SearchBlocks(parse()).add(CALLS)
