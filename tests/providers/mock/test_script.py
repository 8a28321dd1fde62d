"""Scripts in a conversation: their position, the next turn, and the scripts that are refused."""

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from providers.mock.errors import MockError
from providers.mock.script import (
    MAX_CALLS,
    MAX_DEPTH,
    MAX_MESSAGES,
    MAX_SCRIPT,
    MAX_TURNS,
    ScriptedCall,
    ScriptedTurn,
    next_turn,
)
from tests.support.looped import looped

SCRIPT: list[JsonValue] = [
    {"thinking": "hm", "text": "I look.", "calls": [{"name": "read", "arguments": {"path": "a"}}]},
    {"calls": [{"name": "edit", "arguments": '{"path": '}, {"name": "list"}]},
    "Done.",
]
TOOLS = ("read", "edit", "list")
TURNS = (
    ScriptedTurn("hm", "I look.", (ScriptedCall("read", '{"path":"a"}'),)),
    ScriptedTurn("", "", (ScriptedCall("edit", '{"path": '), ScriptedCall("list", "{}"))),
    ScriptedTurn("", "Done.", ()),
)


def fenced(script: JsonValue) -> str:
    return f"```script\n{orjson.dumps(script, option=orjson.OPT_INDENT_2).decode()}\n```"


def user(content: JsonValue) -> JsonObject:
    return {"role": "user", "content": content}


def assistant(content: JsonValue = "x") -> JsonObject:
    return {"role": "assistant", "content": content}


def tool() -> JsonObject:
    return {"role": "tool", "tool_call_id": "c", "content": fenced(["a tool's"])}


def refused(messages: JsonValue, functions: tuple[str, ...] = TOOLS) -> str:
    with pytest.raises(MockError) as caught:
        next_turn(messages, functions)
    assert (caught.value.status, caught.value.param) == (400, "messages")
    return caught.value.message


def test_each_answer_of_the_assistant_brings_the_next_turn() -> None:
    messages: list[JsonValue] = [
        {"role": "system", "content": "s"},
        user("Edit it.\n\n" + fenced(SCRIPT) + "\nThanks."),
    ]
    for turn in TURNS:
        assert next_turn(messages, TOOLS) == turn
        messages += [assistant(), tool()]
    assert "has only 3 turns, and all of them are done" in refused(messages)


def test_messages_of_the_assistant_in_a_row_are_one_turn() -> None:
    messages: list[JsonValue] = [
        user(fenced(SCRIPT)),
        assistant("text"),
        assistant(None),
        tool(),
        tool(),
        {"role": "system"},
    ]
    assert next_turn(messages, TOOLS) == TURNS[1]


def test_the_last_script_counts_and_starts_at_its_first_turn() -> None:
    messages: list[JsonValue] = [user(fenced(SCRIPT)), assistant(), tool(), assistant(), user(fenced(["Another."]))]
    assert next_turn(messages, ()) == ScriptedTurn("", "Another.", ())
    messages.append(user("And now?"))
    assert next_turn(messages, ()) == ScriptedTurn("", "Another.", ())


def test_a_script_stands_in_any_text_of_the_user_at_the_start_of_a_line() -> None:
    texts: list[JsonValue] = [{"type": "text", "text": "a"}, {"type": "text", "text": fenced(["b"])}]
    parts: list[JsonValue] = [{"type": "image_url"}, *texts, 1]
    assert next_turn([user(parts)], ()) == ScriptedTurn("", "b", ())
    others: list[JsonValue] = [
        "no script",
        "say ```script\n[]\n```",
        "```scripts\n[]\n```",
        "```script of\n[]\n```",
        None,
        1,
    ]
    for nothing in others:
        assert next_turn([user(nothing)], ()) is None
    elsewhere: list[JsonValue] = [
        None,
        [],
        "x",
        [1],
        [{"content": fenced(["a"])}],
        [assistant(fenced(["a"]))],
        [tool()],
    ]
    for messages in elsewhere:
        assert next_turn(messages, ()) is None


@looped(
    ("script", "reason"),
    [
        ("```script\n[", "has no closing fence"),
        ("```script", None),
        ("```script\n[\n```", "is not JSON"),
        ("```script\n" + "[" * 5000 + "\n```", "is not JSON"),
        ('```script\n{"text": "a"}\n```', "must be a list"),
        (fenced([]), f"1 to {MAX_TURNS} turns"),
        (fenced(["a"] * (MAX_TURNS + 1)), f"1 to {MAX_TURNS} turns"),
        ("```script\n" + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1) + "\n```", f"deeper than {MAX_DEPTH}"),
        (fenced(["a" * MAX_SCRIPT]), f"longer than {MAX_SCRIPT}"),
        (fenced([1]), "as turn 1"),
        (fenced([{}]), "as turn 1"),
        (fenced([{"say": "a"}]), "as turn 1"),
        (fenced([{"text": None}]), "thinking and text of turn 1"),
        (fenced([{"thinking": 1}]), "thinking and text of turn 1"),
        (fenced([{"calls": {}}]), f"at most {MAX_CALLS} calls"),
        (fenced([{"calls": [{"name": "read"}] * (MAX_CALLS + 1)}]), f"at most {MAX_CALLS} calls"),
        (fenced([{"calls": ["read"]}]), "a name and arguments"),
        (fenced([{"calls": [{"arguments": {}}]}]), "a name and arguments"),
        (fenced([{"calls": [{"name": "read", "arguments": []}]}]), "a name and arguments"),
        (fenced([{"calls": [{"name": "write"}]}]), "calls 'write', which is not among the tools: edit, list, read"),
    ],
)
def test_a_script_that_cannot_be_played_is_refused_with_the_reason(script: str, reason: str | None) -> None:
    if reason is None:
        assert next_turn([user(script)], TOOLS) is None
    else:
        assert reason in refused([user(script)])


def test_a_call_without_tools_says_that_there_are_none() -> None:
    assert "there are none" in refused([user(fenced([{"calls": [{"name": "read"}]}]))], ())


def test_the_messages_of_a_scripted_conversation_are_limited() -> None:
    assert str(MAX_MESSAGES) in refused([user("a")] * (MAX_MESSAGES + 1))
