"""Tools in Cohere's API."""

from providers.dialects.cohere.tools import CohereToolNames
from providers.json_types import JsonObject
from tests.providers.dialects.kit import body_for, chat_request, refusal_for, sent_for, target_of, tool
from tests.support.looped import looped

TARGET = target_of("cohere")
NAMED: JsonObject = {"type": "function", "function": {"name": "b"}}


def tools_body(**params: object) -> JsonObject:
    body = body_for(chat_request(**params), TARGET)
    return {name: value for name, value in body.items() if name in ("tools", "tool_choice", "strict_tools")}


def test_a_function_keeps_its_shape_and_always_has_parameters() -> None:
    bare: JsonObject = {"type": "function", "function": {"name": "now", "description": "The time."}}
    assert tools_body(tools=[tool("look"), bare]) == {
        "tools": [
            {"type": "function", "function": {"name": "look", "parameters": tool()["function"]["parameters"]}},  # type: ignore[index,call-overload]
            {
                "type": "function",
                "function": {
                    "name": "now",
                    "parameters": {"type": "object", "properties": {}},
                    "description": "The time.",
                },
            },
        ]
    }


@looped(
    ("choice", "word"), [("auto", None), ("none", "NONE"), ("required", "REQUIRED")], ids=["auto", "none", "required"]
)
def test_a_choice_is_a_word_or_none(choice: str, word: str | None) -> None:
    assert tools_body(tools=[tool()], tool_choice=choice).get("tool_choice") == word


def test_one_function_is_forced_by_offering_it_alone() -> None:
    sent = sent_for(chat_request(tools=[tool("a"), tool("b")], tool_choice=NAMED), TARGET)
    body = tools_body(tools=[tool("a"), tool("b")], tool_choice=NAMED)
    assert body["tool_choice"] == "REQUIRED"
    assert [entry["function"]["name"] for entry in body["tools"]] == ["b"]  # type: ignore[union-attr,index,call-overload]
    assert sent.emulated == ("tool_choice",)


def test_strict_holds_for_all_tools_of_a_call() -> None:
    assert tools_body(tools=[tool("a", strict=True), tool("b")])["strict_tools"] is True
    assert "strict_tools" not in tools_body(tools=[tool("a", strict=False)])


@looped(
    ("params", "param"),
    [
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [tool("a")], "tool_choice": NAMED}, "tool_choice"),
        ({"tools": [tool("a")], "tool_choice": {"type": "custom"}}, "tool_choice"),
        ({"tools": [tool("a"), tool("a")]}, "tools"),
        ({"tools": [{"type": "custom", "custom": {}}]}, "tools"),
        ({"tools": [tool("a", parameters={"type": "array"})]}, "tools"),
        ({"tools": [tool("a")], "parallel_tool_calls": False}, "parallel_tool_calls"),
    ],
)
def test_what_cannot_be_said_is_refused_by_name(params: dict[str, object], param: str) -> None:
    assert refusal_for(chat_request(**params), TARGET).param == param


def test_without_tools_words_about_them_ask_for_nothing() -> None:
    assert tools_body(tool_choice="none", parallel_tool_calls=False, tools=[]) == {}


def test_only_names_that_do_not_fit_change_and_none_is_taken_twice() -> None:
    names = ["get-weather", "get_weather", "get weather", "1st", "né", "x"]
    fitted = CohereToolNames(names)
    assert {name: fitted[name] for name in names} == {
        "get_weather": "get_weather",
        "x": "x",
        "get-weather": "get_weather_2",
        "get weather": "get_weather_3",
        "1st": "_1st",
        "né": "n_",
    }
