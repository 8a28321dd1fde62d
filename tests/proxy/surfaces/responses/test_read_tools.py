"""Tools of the Responses API as tools of a chat."""

from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.request.tools import MAX_TOOLS
from proxy.surfaces.responses.request_draft import NamespacedName
from tests.proxy.surfaces.responses.kit import ask, losses, native_body, refused, typed
from tests.support.looped import looped

PLAIN: JsonObject = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}
SPACE: JsonObject = {
    "type": "namespace",
    "name": "ns",
    "description": "about",
    "tools": [{"type": "function", "name": "a"}, {"type": "custom", "name": "b", "description": "own"}],
}
LARK: JsonObject = {"type": "grammar", "syntax": "lark", "definition": "start: X"}


def tools(*given: JsonValue, **fields: JsonValue) -> list[JsonObject]:
    return ask(tools=[*given], **fields).params.get("tools", [])


def names(*given: JsonValue, **fields: JsonValue) -> list[JsonValue]:
    listed = tools(*given, **fields)
    return [tool[str(tool["type"])]["name"] for tool in listed]  # type: ignore[index,call-overload]


def test_a_function_is_nested() -> None:
    assert tools({**PLAIN, "strict": False}) == [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
    ]
    (strict,) = tools({**PLAIN, "strict": True})
    assert strict["function"] == {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}
    assert tools({"type": "function", "name": "f", "parameters": None, "strict": None}) == [
        {"type": "function", "function": {"name": "f"}}
    ]


def test_the_grammar_of_a_custom_tool_is_told_and_named() -> None:
    request = ask(tools=[typed("custom", name="patch", description="Edits.", format=LARK)])
    (tool,) = request.params["tools"]
    about = "Edits.\n\nThe input must match this Lark grammar:\nstart: X"
    assert tool == {"type": "custom", "custom": {"name": "patch", "description": about}}
    assert losses(request).left_out == ("tools.format",)
    assert native_body(request)["tools"] == [typed("custom", name="patch", description="Edits.", format=LARK)]


def test_a_custom_tool_of_free_text_loses_nothing() -> None:
    request = ask(tools=[typed("custom", name="sql", format={"type": "text"})])
    assert request.params["tools"] == [{"type": "custom", "custom": {"name": "sql"}}]
    assert not losses(request).left_out


def test_a_namespace_becomes_its_tools() -> None:
    request = ask(tools=[SPACE, PLAIN])
    assert request.params["tools"][:2] == [
        {"type": "function", "function": {"name": "ns__a", "description": "[ns: about]"}},
        {"type": "custom", "custom": {"name": "ns__b", "description": "own"}},
    ]
    assert request.terms.origins == {"ns__a": NamespacedName("ns", "a"), "ns__b": NamespacedName("ns", "b")}
    assert native_body(request)["tools"] == [SPACE, PLAIN]


def test_a_namespaced_tool_never_takes_the_name_of_a_plain_one() -> None:
    shown = names(SPACE, typed("function", name="ns__a"))
    assert shown[2] == "ns__a"
    assert len(set(map(str, shown))) == 3


@looped(
    "search",
    [
        typed("web_search", external_web_access=True),
        typed("web_search_preview_2025_03_11"),
        typed("code_interpreter", container={"type": "auto"}),
        {"googleSearch": {}},
    ],
)
def test_a_tool_that_other_vendors_have_too_stays_for_the_target_to_translate(search: JsonObject) -> None:
    choices: tuple[JsonValue, ...] = ("auto", "required", {"type": "web_search"})
    for choice in choices:
        request = ask(tools=[PLAIN, search], tool_choice=choice)
        assert (request.params["tools"][1], request.params["tool_choice"]) == (search, choice)
        found = losses(request)
        assert (found.left_out, found.binding) == ((), {})
        assert native_body(request)["tools"] == [PLAIN, search]


def test_tools_that_openai_runs_stay_as_they_are() -> None:
    for kind in ("mcp", "web_search\r\nx: y", "web_searching"):
        hosted = typed(kind, server_label="s")
        assert tools(hosted, PLAIN)[0] == hosted


@looped("kind", ["file_search", "mcp", "computer", "image_generation"])
def test_a_tool_of_this_api_is_for_this_api_alone(kind: str) -> None:
    assert losses(ask(tools=[typed(kind, vector_store_ids=["v"])])).binding == {"tools": f"a tool of type '{kind}'"}


def test_a_tool_that_another_vendor_has_is_left_for_that_vendor() -> None:
    assert not losses(ask(tools=[typed("google_search"), typed("browser_search")])).binding


@looped(
    ("choice", "becomes"),
    [
        ("auto", "auto"),
        ("required", "required"),
        ("none", "none"),
        (typed("function", name="f"), typed("function", function={"name": "f"})),
        (typed("function", name="a", namespace="ns"), typed("function", function={"name": "ns__a"})),
        (typed("custom", name="b", namespace="ns"), typed("custom", custom={"name": "ns__b"})),
    ],
)
def test_a_choice_names_the_tool_as_it_is_offered(choice: JsonValue, becomes: JsonValue) -> None:
    assert ask(tools=[SPACE, PLAIN], tool_choice=choice).params["tool_choice"] == becomes


def test_a_list_of_allowed_tools_is_what_is_offered() -> None:
    allowed: JsonObject = {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [typed("function", name="f"), typed("custom", name="b", namespace="ns")],
    }
    request = ask(tools=[SPACE, PLAIN], tool_choice=allowed)
    assert names(SPACE, PLAIN, tool_choice=allowed) == ["ns__b", "f"]
    assert request.params["tool_choice"] == "required"
    assert native_body(request)["tool_choice"] == allowed


@looped(
    ("fields", "param"),
    [
        ({"tools": {}}, "tools"),
        ({"tools": [3]}, "tools.0"),
        ({"tools": [{}]}, "tools.0.type"),
        ({"tools": [typed("function")]}, "tools.0.name"),
        ({"tools": [PLAIN, typed("function", name="g", parameters=[])]}, "tools.1.parameters"),
        ({"tools": [typed("function", name="g", description=3)]}, "tools.0.description"),
        ({"tools": [typed("function", name="g", strict="yes")]}, "tools.0.strict"),
        ({"tools": [typed("custom", name="g", format={"type": "grammar", "syntax": "ebnf"})]}, "tools.0.format.syntax"),
        ({"tools": [typed("namespace", name="n")]}, "tools.0.tools"),
        ({"tools": [typed("namespace", name="n", tools=[typed("mcp")])]}, "tools.0.tools.0.type"),
        ({"tools": [typed("namespace", name="n", tools=[typed("function")])]}, "tools.0.tools.0.name"),
        ({"tools": [PLAIN], "tool_choice": "any"}, "tool_choice"),
        ({"tools": [PLAIN], "tool_choice": 3}, "tool_choice"),
        ({"tools": [PLAIN], "tool_choice": {"type": "function"}}, "tool_choice.name"),
        ({"tool_choice": "required"}, "tool_choice"),
        (
            {"tools": [PLAIN], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}},
            "tool_choice.tools",
        ),
        (
            {"tools": [PLAIN], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [typed("mcp")]}},
            "tool_choice",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(fields: dict[str, JsonValue], param: str) -> None:
    facts = refused(**fields)
    assert [problem.param for problem in facts.problems] == [param]


def test_the_tools_of_namespaces_count() -> None:
    many: list[JsonValue] = [typed("function", name=f"t{number}") for number in range(MAX_TOOLS + 1)]
    assert refused(tools=[typed("namespace", name="n", tools=many)]).param == "tools"
    assert len(tools(typed("namespace", name="n", tools=many[:-1]))) == MAX_TOOLS
