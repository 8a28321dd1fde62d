"""Reasoning of earlier turns, in each form in which clients send it back."""

from providers.conversation import (
    CLAUDE_FORMAT,
    GEMINI_FORMAT,
    UNKNOWN_FORMAT,
    Part,
    Reasoning,
    RedactedReasoning,
    Text,
    ToolUse,
)
from providers.dialects.shared.read_thinking import (
    LONGEST_FORMAT,
    google_signature,
    order_parts,
    reasoning_of_message,
    thinking_block,
)
from providers.json_types import JsonObject, JsonValue
from tests.support.looped import looped

CLAUDE = {"format": CLAUDE_FORMAT}


def text(said: str, **members: JsonValue) -> JsonObject:
    return {"type": "reasoning.text", "text": said, **members}


@looped(
    ("details", "read"),
    [
        ([text("hm", signature="c2ln", **CLAUDE)], [Reasoning("hm", "c2ln", CLAUDE_FORMAT)]),
        ([text("hm", signature="c2ln")], [Reasoning("hm", "c2ln", CLAUDE_FORMAT)]),
        ([text("hm", format=UNKNOWN_FORMAT)], [Reasoning("hm")]),
        ([text("hm")], [Reasoning("hm")]),
        ([text("", signature="c2ln", **CLAUDE)], [Reasoning("", "c2ln", CLAUDE_FORMAT)]),
        (
            [
                text("h", index=0, **CLAUDE),
                text("m", index=0),
                {"type": "reasoning.text", "index": 0, "signature": "s"},
            ],
            [Reasoning("hm", "s", CLAUDE_FORMAT)],
        ),
        (
            [text("a", index=0, signature="1"), text("b", index=0, signature="2")],
            [Reasoning("a", "1", CLAUDE_FORMAT), Reasoning("b", "2", CLAUDE_FORMAT)],
        ),
        ([text("a", index=0), text("b", index=1)], [Reasoning("a"), Reasoning("b")]),
        ([text("a"), text("b")], [Reasoning("a"), Reasoning("b")]),
        ([{"type": "reasoning.summary", "summary": "s", "format": "openai-responses-v1"}], [Reasoning("s")]),
        ([{"type": "reasoning.encrypted", "data": "QQ=="}], [RedactedReasoning("QQ==", CLAUDE_FORMAT)]),
        (
            [
                text("a", index=0, format=GEMINI_FORMAT),
                {"type": "reasoning.encrypted", "data": "Q", "index": 0, "id": "c1"},
            ],
            [Reasoning("a", None, GEMINI_FORMAT), RedactedReasoning("Q", CLAUDE_FORMAT, "c1")],
        ),
        (["odd", {"type": "reasoning.server_tool_call", "tool_name": "x"}, {}], []),
    ],
)
def test_reasoning_details_are_blocks(details: list[JsonValue], read: list[Part]) -> None:
    assert reasoning_of_message({"role": "assistant", "reasoning_details": details}) == read


@looped(
    ("message", "read"),
    [
        (
            {"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
            [Reasoning("hm", "s", CLAUDE_FORMAT)],
        ),
        ({"thinking_blocks": [{"type": "redacted_thinking", "data": "Q"}, 7]}, [RedactedReasoning("Q", CLAUDE_FORMAT)]),
        ({"reasoning_content": "hm"}, [Reasoning("hm")]),
        ({"reasoning": "hm"}, [Reasoning("hm")]),
        ({"reasoning_content": "", "reasoning": "hm"}, [Reasoning("hm")]),
        ({"reasoning_content": "hm", "reasoning_signature": "s"}, [Reasoning("hm", "s", CLAUDE_FORMAT)]),
        ({"reasoning_content": ["hm"]}, []),
        ({"reasoning_details": [], "thinking_blocks": [], "reasoning_content": "hm"}, [Reasoning("hm")]),
        ({}, []),
    ],
)
def test_other_members_are_read_where_there_are_no_details(message: JsonObject, read: list[Part]) -> None:
    assert reasoning_of_message(message) == read


def test_the_most_exact_member_is_read_alone() -> None:
    message: JsonObject = {
        "reasoning_details": [text("a", signature="s")],
        "thinking_blocks": [{"type": "thinking", "thinking": "a", "signature": "s"}],
        "reasoning_content": "a",
    }
    assert reasoning_of_message(message) == [Reasoning("a", "s", CLAUDE_FORMAT)]


@looped("pieces", [1, 2, 3, 50])
def test_what_openai_s_client_joined_of_equal_parts_is_read_as_one(pieces: int) -> None:
    joined = text("hm", index=0, signature="s", format=CLAUDE_FORMAT * pieces, after=[*[2, 1] * pieces])
    assert reasoning_of_message({"reasoning_details": [joined]}) == [Reasoning("hm", "s", CLAUDE_FORMAT, (2, 1))]
    unequal = text("hm", index=0, signature="s", format=CLAUDE_FORMAT, after=[2, 1, 3, 1])
    assert reasoning_of_message({"reasoning_details": [unequal]}) == [Reasoning("hm", "s", CLAUDE_FORMAT)]


def test_a_long_format_is_taken_as_it_is() -> None:
    odd = "ab" * LONGEST_FORMAT
    assert reasoning_of_message({"reasoning_details": [text("hm", format=odd)]}) == [Reasoning("hm", None, odd)]


def test_mistral_s_thinking_is_a_list_of_texts() -> None:
    listed: JsonValue = [{"type": "text", "text": "h"}, {"type": "text", "text": "m"}, 7]
    assert thinking_block({"type": "thinking", "thinking": listed}) == Reasoning("hm")
    assert thinking_block({"type": "thinking", "thinking": 7}) == Reasoning("")


def test_google_s_signature_is_where_google_s_endpoint_has_it() -> None:
    assert google_signature({"extra_content": {"google": {"thought_signature": "s"}}}) == "s"
    others: list[JsonObject] = [
        {},
        {"extra_content": 7},
        {"extra_content": {"google": [1]}},
        {"extra_content": {"google": {}}},
    ]
    assert [google_signature(other) for other in others] == [None] * 4


def thought(name: str, *after: int) -> Reasoning:
    return Reasoning(name, name, CLAUDE_FORMAT, (after[0], after[1]) if after else (0, 0))


A, B = ToolUse("a", "f", {}), ToolUse("b", "f", {})


@looped(
    ("thoughts", "said", "parts"),
    [
        ([thought("1")], [Text("xy")], [thought("1"), Text("xy"), A, B]),
        (
            [thought("1"), thought("2", 1, 1)],
            [Text("xy")],
            [thought("1"), Text("x"), A, thought("2", 1, 1), Text("y"), B],
        ),
        ([thought("2", 1, 1)], [Text("x"), Text("y")], [Text("x"), A, thought("2", 1, 1), Text("y"), B]),
        ([thought("2", 9, 9)], [Text("x")], [Text("x"), A, B, thought("2", 9, 9)]),
        (
            [thought("2", 1, 0), thought("1")],
            [Text("xy")],
            [Text("x"), thought("2", 1, 0), thought("1"), Text("y"), A, B],
        ),
        ([thought("2", -3, -3)], [Text("x")], [thought("2", -3, -3), Text("x"), A, B]),
    ],
)
def test_a_thought_stands_where_it_came(thoughts: list[Part], said: list[Part], parts: list[Part]) -> None:
    assert order_parts(thoughts, said, [A, B]) == parts


def test_many_thoughts_cut_a_long_text_in_linear_time() -> None:
    thoughts: list[Part] = [thought("t", place, 0) for place in range(20_000)]
    parts = order_parts(thoughts, [Text("x" * 8_000_000)], [])
    assert sum([len(part.text) for part in parts if isinstance(part, Text)]) == 8_000_000


def test_only_claudes_thinking_has_a_place() -> None:
    placed = [text("a", after=[1, 1], signature="s", **CLAUDE), text("b", after=[1, 1])]
    places: list[JsonValue] = ["x", [1], [None, 1]]
    bad: list[JsonValue] = [text("c", after=given, signature="s", **CLAUDE) for given in places]
    assert reasoning_of_message({"reasoning_details": [*placed, *bad]}) == [
        Reasoning("a", "s", CLAUDE_FORMAT, (1, 1)),
        Reasoning("b"),
        *[Reasoning("c", "s", CLAUDE_FORMAT)] * 3,
    ]
