"""Searches that another vendor made are items before the text, for a client that offered a search."""

from providers.completion import Choice, Chunk, Completion, Extras
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.tool_items.searches import queries_in, shows_searches
from tests.proxy.surfaces.responses.kit import USAGE, ask, final, output, streamed, typed, whole

USE: JsonObject = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND: JsonObject = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
EXTRAS = Extras(message={"content_blocks": [USE, FOUND]})
TOOLS: list[JsonValue] = [typed("web_search")]


def test_a_search_is_an_item_before_the_text_whole_and_streamed() -> None:
    choice = Choice(0, "It is sunny.", "stop", extras=EXTRAS)
    made = output(whole(Completion((choice,), USAGE), tools=TOOLS))
    pieces = [Extras(message={"content_blocks": [block]}) for block in (USE, FOUND)]
    chunks = [*(Chunk(extras=piece) for piece in pieces), Chunk(text="It is sunny."), Chunk(finish_reason="stop")]
    assert output(final(streamed(*chunks, tools=TOOLS))) == made
    assert [item["type"] for item in made] == ["web_search_call", "message"]
    assert made[0]["action"] == {"type": "search", "query": "q", "queries": ["q"]}


def test_a_client_that_offered_none_is_shown_none() -> None:
    choice = Choice(0, "It is sunny.", "stop", extras=EXTRAS)
    assert [item["type"] for item in output(whole(Completion((choice,), USAGE)))] == ["message"]
    assert not shows_searches(ask())
    assert shows_searches(ask(tools=TOOLS))


def test_what_is_no_search_says_nothing() -> None:
    blocks: list[JsonValue] = [FOUND, {**USE, "name": "web_fetch"}, {**USE, "input": {}}, 3]
    assert queries_in(Extras(message={"content_blocks": blocks})) == []
    assert queries_in(Extras(message={"content_blocks": "x"})) == []
