"""Tools with types of their own become functions for APIs other than OpenAI's, their calls come back by type, and a
conversation with them continues with any vendor."""

import orjson

from providers.completion import Choice, Chunk, Completion, ToolCall, ToolCallDelta
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.tool_items.typed_tools import (
    CALLS,
    HOSTED_CALL_TEXTS,
    RESULT_TEXTS,
    TYPED,
    loads_at_openai,
    needs_openai,
    tools_of,
)
from tests.proxy.surfaces.responses.kit import (
    USAGE,
    ask,
    final,
    losses,
    native_body,
    output,
    read,
    streamed,
    typed,
    whole,
)
from tests.support.looped import looped

HI: JsonObject = {"role": "user", "content": "hi"}
OFFERED: dict[str, JsonObject] = {
    "local_shell": typed("local_shell"),
    "shell": typed("shell", environment={"type": "local"}),
    "apply_patch": typed("apply_patch"),
    "tool_search": typed("tool_search", execution="client"),
}
CALLED: dict[str, tuple[JsonObject, JsonObject]] = {
    "local_shell": ({"command": ["ls"]}, {"action": {"type": "exec", "command": ["ls"], "env": {}}}),
    "shell": ({"commands": ["ls"], "timeout_ms": 9}, {"action": {"commands": ["ls"], "timeout_ms": 9}}),
    "apply_patch": (
        {"type": "delete_file", "path": "a"},
        {"operation": {"type": "delete_file", "path": "a"}},
    ),
    "tool_search": ({"query": "q"}, {"execution": "client", "arguments": {"query": "q"}}),
}
"""Arguments of a call of each tool, and the fields of its item."""


def functions(*tools: JsonValue, **fields: JsonValue) -> list[str]:
    """Return the names of the functions that tools become."""
    offered = ask(tools=[*tools], **fields).params.get("tools", [])
    held = [tool["function"] for tool in offered]
    return [str(each["name"]) for each in held if isinstance(each, dict)]


@looped("kind", [*TYPED])
def test_a_tool_is_a_function_with_the_members_of_its_call(kind: str) -> None:
    request = ask(tools=[OFFERED[kind]])
    (tool,) = request.params["tools"]
    function = tool["function"]
    assert isinstance(function, dict)
    assert (function["name"], request.terms.typed) == (kind, {kind: kind})
    parameters = function["parameters"]
    assert isinstance(parameters, dict)
    properties = parameters["properties"]
    assert isinstance(properties, dict)
    assert CALLED[kind][0].keys() <= properties.keys()
    assert not losses(request).binding
    assert native_body(request)["tools"] == [OFFERED[kind]]


@looped("kind", [*TYPED])
def test_a_call_of_it_comes_back_as_an_item_of_its_type_whole_and_streamed(kind: str) -> None:
    arguments, members = CALLED[kind]
    text = orjson.dumps(arguments).decode()
    call = Choice(0, "", "tool_calls", tool_calls=(ToolCall("c1", kind, text),))
    made = output(whole(Completion((call,), USAGE), tools=[OFFERED[kind]]))
    pieces = [ToolCallDelta(0, "c1", kind, text[:5]), ToolCallDelta(0, arguments=text[5:])]
    chunks = [*(Chunk(tool_calls=(piece,)) for piece in pieces), Chunk(finish_reason="tool_calls")]
    events = streamed(*chunks, tools=[OFFERED[kind]])
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert made == done == output(final(events))
    (item,) = made
    shown = {name: value for name, value in item.items() if name != "id"}
    assert shown == {"type": f"{kind}_call", "call_id": "c1", "status": "completed", **members}
    assert not [event for event in events if "arguments" in str(event["type"])]


def test_arguments_that_are_no_object_stay_readable() -> None:
    members = TYPED["shell"].item_body("[1")
    assert members == {"action": {"commands": [], "arguments": "[1"}}


def test_another_tool_of_the_name_keeps_it() -> None:
    request = ask(tools=[typed("function", name="shell"), OFFERED["shell"]], tool_choice={"type": "shell"})
    assert request.terms.typed == {"shell_tool": "shell"}
    assert request.params["tool_choice"] == {"type": "function", "function": {"name": "shell_tool"}}


def test_what_runs_at_openai_is_for_openai_or_needs_nothing_elsewhere() -> None:
    inside = typed("shell", environment={"type": "container_auto"})
    assert needs_openai(inside)
    assert not needs_openai(OFFERED["shell"])
    assert losses(ask(tools=[inside])).binding == {"tools": "a tool of type 'shell' in a container of OpenAI's"}
    searching = typed("tool_search")
    assert loads_at_openai("tool_search", searching)
    request = ask(tools=[searching, typed("function", name="f", defer_loading=True)])
    assert losses(request).left_out == ("tools.tool_search",)
    assert len(request.params["tools"]) == 1


def test_a_choice_of_some_tools_knows_them_by_their_types() -> None:
    choice: JsonObject = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "apply_patch"}]}
    assert functions(OFFERED["shell"], OFFERED["apply_patch"], tool_choice=choice) == ["apply_patch"]


def test_tools_that_items_bring_are_offered_once() -> None:
    plain, space = typed("function", name="f"), typed("namespace", name="n", tools=[typed("function", name="g")])
    items: list[JsonValue] = [
        typed("additional_tools", role="developer", tools=[plain, OFFERED["apply_patch"]]),
        HI,
        typed("tool_search_call", call_id="c1", execution="client", arguments={"query": "q"}),
        typed("tool_search_output", call_id="c1", execution="client", status="completed", tools=[space, plain]),
        typed("function_call", call_id="c2", name="g", namespace="n", arguments="{}"),
        typed("function_call_output", call_id="c2", output="done"),
    ]
    assert functions(plain, input=items) == ["f", "apply_patch", "n__g"]
    said = read(*items)
    assert [message["role"] for message in said] == ["user", "assistant", "tool", "assistant", "tool"]
    assert said[2]["content"] == "Loaded tools: n, f"
    assert tools_of({"tools": "x"}) == []


CONVERSATION: list[JsonValue] = [
    HI,
    typed("local_shell_call", id="l", call_id="c1", action={"type": "exec", "command": ["ls"], "env": {}}),
    typed("local_shell_call_output", id="c1", output="a.txt"),
    typed("shell_call", call_id="c2", action={"commands": ["ls"]}),
    typed(
        "shell_call_output",
        call_id="c2",
        output=[{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
                {"stdout": "", "stderr": "e", "outcome": {"type": "timeout"}}],
    ),
    typed("apply_patch_call", call_id="c3", operation={"type": "delete_file", "path": "a"}, status="completed"),
    typed("apply_patch_call_output", call_id="c3", status="failed", output="no such file"),
]  # fmt: skip


def test_calls_and_results_are_those_of_functions() -> None:
    said = read(*CONVERSATION)
    calls = [message["tool_calls"] for message in said if "tool_calls" in message]
    shown = [call[0]["function"] for call in calls if isinstance(call, list) and isinstance(call[0], dict)]
    assert shown == [
        {"name": "local_shell", "arguments": '{"command":["ls"],"env":{}}'},
        {"name": "shell", "arguments": '{"commands":["ls"]}'},
        {"name": "apply_patch", "arguments": '{"type":"delete_file","path":"a"}'},
    ]
    results = [message for message in said if message["role"] == "tool"]
    assert [(each["tool_call_id"], each["content"]) for each in results] == [
        ("c1", "a.txt"),
        ("c2", "a\nexit code: 0\n\ne\ntimeout"),
        ("c3", "no such file"),
    ]
    assert results[2]["is_error"] is True
    assert not losses(ask(input=[*CONVERSATION], tools=[*OFFERED.values()])).binding


def test_what_openai_ran_is_told_in_the_model_s_turn() -> None:
    ran = typed("code_interpreter_call", id="ci", code="1+1", outputs=[{"type": "logs", "logs": "2"}])
    asked = typed("mcp_call", id="m", name="find", server_label="docs", arguments='{"q":1}', output="found")
    said = read(HI, ran, asked, typed("mcp_list_tools", id="x"), HI)
    content = said[1]["content"]
    assert isinstance(content, list)
    assert [part["text"] for part in content if isinstance(part, dict)] == [
        "Code that was run:\n```python\n1+1\n```\nIts output:\n2",
        'Called find of docs with {"q":1}\nIts result:\nfound',
    ]


def test_what_openai_alone_can_read_is_left_out_and_named() -> None:
    items: list[JsonValue] = [
        HI,
        typed("compaction", encrypted_content="x"),
        typed("tool_search_call", call_id=None, execution="server", arguments={}),
        typed("tool_search_output", call_id=None, execution="server", tools=[typed("function", name="f")]),
    ]
    request = ask(input=items)
    found = losses(request)
    assert (found.binding, found.left_out) == (
        {},
        ("input.compaction", "input.tool_search_call", "input.tool_search_output"),
    )
    assert functions(input=items) == ["f"]


def test_each_table_names_types_of_items() -> None:
    assert {*CALLS} == {f"{kind}_call" for kind in TYPED}
    assert not {*RESULT_TEXTS, *HOSTED_CALL_TEXTS} & {*CALLS}
