"""OpenAI's own SDK reads our streams to the same response as our non-streaming responses."""

from collections.abc import Iterator

import orjson
import pytest

from providers.completion import Choice, Chunk, Completion, Extras, ToolCall, ToolCallDelta
from providers.json_types import JsonObject
from proxy.errors import ErrorFacts
from tests.proxy.surfaces.responses.kit import USAGE, play, rendering, typed
from tests.support.clients import environment
from tests.support.environments import LineProcess

DETAILS: tuple[JsonObject, ...] = ({"type": "reasoning.text", "text": "hm", "signature": "s", "index": 0},)
FIELDS: JsonObject = {
    "tools": [typed("namespace", name="ns", description="d", tools=[typed("function", name="a", parameters={})])]
}
CHUNKS = (
    Chunk(reasoning="h"),
    Chunk(reasoning="m", extras=Extras(reasoning_details=DETAILS)),
    Chunk(text="Par"),
    Chunk(text="is\u2028"),
    Chunk(tool_calls=(ToolCallDelta(0, "c1", "ns__a", '{"x"'),)),
    Chunk(tool_calls=(ToolCallDelta(1, "c2", "patch", "", "custom"),)),
    Chunk(tool_calls=(ToolCallDelta(1, arguments='a "b" \\u00e9\n', kind="custom"),)),
    Chunk(tool_calls=(ToolCallDelta(0, arguments=":1}"),)),
)
WHOLE = Choice(
    0,
    "Paris\u2028",
    "tool_calls",
    reasoning="hm",
    tool_calls=(ToolCall("c1", "ns__a", '{"x":1}'), ToolCall("c2", "patch", 'a "b" \\u00e9\n', "custom")),
    extras=Extras(reasoning_details=DETAILS),
)


@pytest.fixture(scope="module")
def sdk() -> Iterator[LineProcess]:
    """The SDK's process."""
    with LineProcess(environment("openai3"), "tests.e2e.clients.responses_reader") as process:
        yield process


def read(sdk: LineProcess, kind: str, answer: bytes) -> JsonObject:
    result: JsonObject = orjson.loads(sdk.exchange(orjson.dumps({kind: answer.decode()}).decode()))
    return result


@pytest.mark.parametrize("asked", [{}, {"reasoning": {"summary": "auto"}}], ids=["raw", "summary"])
def test_a_stream_is_put_together_to_the_whole_answer(sdk: LineProcess, asked: JsonObject) -> None:
    stream = play(rendering(stream=True, **FIELDS, **asked), *CHUNKS, Chunk(finish_reason="tool_calls"))
    whole = rendering(**FIELDS, **asked).completion(Completion((WHOLE,), USAGE))
    put_together, parsed = read(sdk, "stream", stream), read(sdk, "whole", whole)
    assert put_together["text"] == parsed["text"] == "Paris\u2028"
    ours, theirs = _without_parsed(put_together["response"]), _without_parsed(parsed["response"])
    assert ours == theirs
    assert isinstance(theirs, dict)
    assert theirs["output"] == orjson.loads(whole)["output"]


def test_a_stream_that_broke_is_raised(sdk: LineProcess) -> None:
    renderer = rendering(stream=True)
    stream = renderer.chunk(Chunk(text="Par")) + renderer.error(ErrorFacts(502, "server_error", "upstream_error", "x"))
    result = read(sdk, "stream", stream)
    assert result["error"] == "APIError"
    events = result["events"]
    assert isinstance(events, list)
    assert events[-1] == "response.output_text.delta"


def _without_parsed(value: object) -> object:
    """Return the SDK's result without the fields that it adds to the output of its accumulator."""
    if isinstance(value, list):
        return [_without_parsed(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_parsed(item) for key, item in value.items() if key not in ("parsed", "parsed_arguments")}
    return value
