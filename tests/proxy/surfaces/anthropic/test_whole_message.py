"""A message, non-streaming and streamed, ends with its text or its calls, and the data that vendors need back is in
one place."""

from providers.completion import Chunk, Extras, ToolCallDelta
from providers.json_types import JsonObject
from proxy.surfaces.anthropic.whole_message import blocks_of, signatures_of_text
from proxy.surfaces.thinking_envelope import open_sealed
from tests.providers.dialects.kit import gathered
from tests.proxy.surfaces.anthropic.kit import accumulate, objects, play
from tests.support.looped import looped

FOREIGN: JsonObject = {"type": "reasoning.encrypted", "data": "x", "format": "google-gemini-v1", "index": 0}
SAYS, ENDS, CALLS = Chunk(text="Hi"), Chunk(finish_reason="stop"), Chunk(finish_reason="tool_calls")


def thought(detail: JsonObject) -> Chunk:
    return Chunk(extras=Extras(reasoning_details=(detail,)))


def call(index: int, arguments: str, name: str) -> Chunk:
    return Chunk(tool_calls=(ToolCallDelta(index, "call_1", name, arguments),))


HIDDEN: JsonObject = {**FOREIGN, "format": "openai-responses-v1", "id": "rs_1"}
SIGNED_TEXT = Chunk(finish_reason="stop", signature="x", extras=Extras(reasoning_details=(FOREIGN,)))


@looped(
    ("events", "kinds", "members"),
    [
        ([Chunk(reasoning="hm"), SAYS, thought(FOREIGN), ENDS], "thinking text", {"reasoning_details": [FOREIGN]}),
        ([SAYS, thought(HIDDEN), ENDS], "text", {"reasoning_details": [HIDDEN]}),
        ([thought(FOREIGN), SAYS, ENDS], "text", {"reasoning_details": [FOREIGN]}),
        ([thought(HIDDEN), SAYS, ENDS], "thinking text", {}),
        ([SAYS, SIGNED_TEXT], "text", {"extra_content": {"google": {"thought_signature": "x"}}}),
        ([SAYS, thought(HIDDEN), call(0, "{}", "f"), CALLS], "text thinking tool_use", {}),
        ([SAYS, call(0, "{}", "f"), thought(HIDDEN), CALLS], "text tool_use thinking", {}),
        ([thought(FOREIGN), call(0, "{}", "f"), CALLS], "thinking tool_use", {}),
    ],
    ids=[
        *("a signature behind the text", "hidden thinking behind it", "a signature before it", "hidden thinking first"),
        *("Gemini's last part", "before a call", "behind a call", "a signature before a call"),
    ],
)
def test_no_block_but_those_of_calls_follows_the_last_text(
    events: list[Chunk], kinds: str, members: JsonObject
) -> None:
    stream, whole = play(*events), gathered([*events])
    content = accumulate(stream).content
    assert [block.type for block in content] == kinds.split()
    (ended,) = [each for each in objects(stream) if each["type"] == "message_delta"]
    assert {name: ended.get(name) for name in members} == members
    sealed = [open_sealed(block.signature) for block in content if block.type == "thinking" and not block.thinking]
    assert all(sealed)
    (choice,) = whole.choices
    others = signatures_of_text(choice)
    # A non-streaming response does not show that hidden reasoning came after its text.
    assert set(kinds.split()) <= {str(block["type"]) for block in blocks_of(choice)}
    if choice.reasoning is None and members.keys() != {"reasoning_details"}:
        assert others == members
