"""Schemas, files, tools and labels in requests to OpenAI's models, at each host and through each API."""

from typing import Any, Final

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.openai_hosts import CHATS, MESSAGES, RESPONSES, Outcome, asking, named
from tests.support.looped import looped

# Schemas --------------------------------------------------------------------------------------------------------------

CLOSED: Final[JsonObject] = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
OPTIONAL: Final[JsonObject] = {"type": "object", "properties": {"a": {"type": "string"}}}
MAP: Final[JsonObject] = {"type": "object", "properties": {"a": {"type": "object", "additionalProperties": True}}}
UNIQUE: Final[JsonObject] = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}},
}
LIST: Final[JsonObject] = {"type": "array", "items": {"type": "string"}}
EITHER: Final[JsonObject] = {"anyOf": [CLOSED, {**CLOSED, "properties": {"b": {"type": "string"}}, "required": ["b"]}]}


def in_object(schema: JsonValue) -> JsonObject:
    return {"type": "object", "properties": {"value": schema}, "required": ["value"], "additionalProperties": False}


def format_of(body: JsonObject) -> JsonObject:
    """Return the format in a vendor's body, in the form of the Responses API."""
    text, form = body.get("text"), body.get("response_format")
    if isinstance(text, dict):
        held = text["format"]
    else:
        named_form = form["json_schema"] if isinstance(form, dict) else None
        held = named_form
    assert isinstance(held, dict)
    return held


@looped("path", [CHATS[0], RESPONSES])
@looped("model", ["openai/gpt-4o", "openai/gpt-5.1-codex", "azv1/gpt-4o", "azure/gpt-4o"])
@looped(
    ("schema", "sent", "strict", "checked"),
    [
        (CLOSED, CLOSED, True, False),
        (OPTIONAL, CLOSED, True, False),
        (MAP, MAP, False, True),
        (LIST, in_object(LIST), True, True),
        (EITHER, in_object(EITHER), True, True),
        ({"type": "string", "enum": ["x", "y"]}, in_object({"type": "string", "enum": ["x", "y"]}), True, True),
        ({"properties": {"a": {"type": "string"}}}, CLOSED, True, False),
    ],
)
def test_a_strict_format_is_in_the_strict_subset_or_not_strict_and_named(
    schema: JsonObject, sent: JsonObject, strict: bool, checked: bool, model: str, path: str
) -> None:
    form: JsonObject = {"name": "my schema", "schema": schema, "strict": True}
    own: JsonObject = {"text": {"format": {"type": "json_schema", **form}}}
    chat: JsonObject = {"response_format": {"type": "json_schema", "json_schema": form}}
    found = Outcome(path, model, asking(path, **(own if path == RESPONSES else chat)))
    held = format_of(found.body)
    assert (held["schema"], held["strict"]) == (sent, strict), found.refusal
    assert str(held["name"]) in ("my_schema", "guided_json")
    assert ("response_format" in found.emulated) == checked


@looped("path", [CHATS[0], RESPONSES])
@looped("model", ["openai/gpt-4o", "openai/gpt-5.1-codex", "azv1/gpt-4o"])
@looped(
    ("schema", "sent", "strict", "checked"),
    [
        (OPTIONAL, CLOSED, True, False),
        (MAP, MAP, False, True),
        (UNIQUE, None, True, True),
    ],
)
def test_a_strict_function_is_in_the_strict_subset_or_not_strict_and_named(
    schema: JsonObject, sent: JsonObject | None, strict: bool, checked: bool, model: str, path: str
) -> None:
    function: JsonObject = {"name": "f", "parameters": schema, "strict": True}
    tool: JsonObject = (
        {"type": "function", **function} if path == RESPONSES else {"type": "function", "function": function}
    )
    found = Outcome(path, model, asking(path, tools=[tool]))
    tools: Any = found.body["tools"]
    held = tools[0].get("function", tools[0])
    assert held.get("strict", False) is strict
    assert ("tools.strict" in found.emulated) == checked
    if sent is not None:
        assert held["parameters"] == sent
    else:
        assert "uniqueItems" not in orjson.dumps(held["parameters"]).decode().replace("(uniqueItems: true)", "")


# Files ----------------------------------------------------------------------------------------------------------------

PDF: Final = "data:application/pdf;base64,JVBERi0="
TEXT: Final = "data:text/plain;base64,aGk="


def with_file(path: str, **file: JsonValue) -> JsonObject:
    if path == RESPONSES:
        return {"input": [{"role": "user", "content": [{"type": "input_file", **file}]}]}
    return {"messages": [{"role": "user", "content": [{"type": "file", "file": file}]}]}


def file_in(body: JsonObject) -> JsonObject:
    held: Any = body.get("messages") or body["input"]
    part = held[0]["content"][0]
    file: JsonObject = part["file"] if part["type"] == "file" else {n: v for n, v in part.items() if n != "type"}
    return file


@looped("path", [CHATS[0], CHATS[3], RESPONSES])
@looped(
    ("host", "file", "api", "sent"),
    [
        ("openai", {"file_data": PDF, "filename": "a.pdf"}, "completions", {"file_data": PDF, "filename": "a.pdf"}),
        ("openai", {"file_data": PDF}, "completions", {"file_data": PDF, "filename": "document.pdf"}),
        (
            "openai",
            {"file_data": "JVBERi0=", "filename": "a.pdf"},
            "completions",
            {"file_data": PDF, "filename": "a.pdf"},
        ),
        ("openai", {"file_data": TEXT}, "responses", {"file_data": TEXT, "filename": "document.txt"}),
        ("openai", {"file_url": "https://a.b/c"}, "responses", {"file_url": "https://a.b/c"}),
        ("openai", {"file_data": "https://a.b/c"}, "responses", {"file_url": "https://a.b/c"}),
        ("azv1", {"file_data": PDF}, "responses", {"file_data": PDF, "filename": "document.pdf"}),
        ("azure", {"file_data": PDF}, "responses", {"file_data": PDF, "filename": "document.pdf"}),
        ("openrouter", {"file_data": PDF}, "completions", {"file_data": PDF, "filename": "document.pdf"}),
        (
            "openrouter",
            {"file_url": "https://a.b/c"},
            "completions",
            {"file_data": "https://a.b/c", "filename": "document"},
        ),
    ],
)
def test_a_file_goes_in_the_form_and_by_the_api_that_takes_it(
    host: str, file: JsonObject, api: str, sent: JsonObject, path: str
) -> None:
    found = Outcome(path, named(host, "gpt-4o"), with_file(path, **file))
    assert found.refusal == ""
    assert found.api == ("responses" if path == RESPONSES and host != "openrouter" else api)
    assert file_in(found.body) == sent


@looped("host", ["openai", "azv1"])
@looped(
    ("source", "sent"),
    [
        (
            {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
            {"file_data": PDF, "filename": "document.pdf"},
        ),
        ({"type": "url", "url": "https://a.b/c"}, {"file_url": "https://a.b/c"}),
    ],
)
def test_a_document_of_messages_goes_as_such_a_file(source: JsonObject, sent: JsonObject, host: str) -> None:
    content: list[JsonValue] = [{"type": "document", "source": source}]
    body = asking(MESSAGES, messages=[{"role": "user", "content": content}])
    assert file_in(Outcome(MESSAGES, f"{host}/gpt-4o", body).body) == sent


# Other settings -------------------------------------------------------------------------------------------------------

TOOL: Final[JsonObject] = {"type": "function", "function": {"name": "f", "parameters": CLOSED}}
OWN_TOOL: Final[JsonObject] = {"type": "function", "name": "f", "parameters": CLOSED, "strict": False}


@looped("path", CHATS)
@looped("host", ["openai", "azure", "azv1"])
@looped(
    ("model", "fields", "refused"),
    [
        ("gpt-4.1", {"verbosity": "low"}, "verbosity"),
        ("o3", {"verbosity": "high"}, "verbosity"),
        ("gpt-5-chat-latest", {"verbosity": "low"}, "verbosity"),
        ("gpt-5.1-codex", {"verbosity": "low"}, "verbosity"),
        ("gpt-5.2", {"verbosity": "low"}, None),
        ("gpt-5.1-chat-latest", {"verbosity": "high"}, None),
        ("gpt-4.1", {"verbosity": "medium"}, None),
        ("gpt-5", {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "mp3"}}, "modalities"),
        ("gpt-4o", {"modalities": ["text", "audio"]}, "modalities"),
        ("gpt-4o", {"modalities": ["text"]}, None),
        ("gpt-4o", {"tool_choice": "required"}, "tool_choice"),
        ("gpt-4o", {"tool_choice": "auto"}, None),
        ("gpt-4o", {"tools": [], "tool_choice": "none", "parallel_tool_calls": False}, None),
        ("gpt-4o", {"tools": [TOOL] * 129}, "tools"),
        ("o1-mini", {"tools": [TOOL]}, "tools"),
    ],
)
def test_a_setting_that_the_model_does_not_have_is_refused_by_name(
    model: str, fields: JsonObject, refused: str | None, host: str, path: str
) -> None:
    found = Outcome(path, f"{host}/{model}", asking(path, **fields))
    assert (f"'{refused}'" in found.refusal) if refused else (found.refusal == ""), found.refusal
    assert found.body.keys().isdisjoint({"tool_choice", "parallel_tool_calls", "modalities"})


@looped("host", ["openai", "azure", "azv1"])
@looped("model", ["o3", "o4-mini", "o1"])
def test_models_that_make_one_call_a_turn_are_not_told_so(model: str, host: str) -> None:
    for path, tool in ((CHATS[0], TOOL), (RESPONSES, OWN_TOOL)):
        for parallel in (True, False):
            found = Outcome(path, f"{host}/{model}", asking(path, tools=[tool], parallel_tool_calls=parallel))
            assert "parallel_tool_calls" not in found.body
            assert ("parallel_tool_calls" in found.emulated) is not parallel


@looped("host", ["openai", "azure", "azv1"])
@looped("path", [*CHATS, RESPONSES])
def test_labels_that_are_too_long_are_cut_and_named(path: str, host: str) -> None:
    pairs: JsonObject = {**{str(number): "v" for number in range(20)}, "long": "v" * 600}
    labels: JsonObject = {"user": "u" * 70, "safety_identifier": "s" * 130, "prompt_cache_key": "k" * 70}
    found = Outcome(path, f"{host}/gpt-4o", asking(path, metadata=pairs, store=True, **labels))
    assert [len(str(found.body[name])) for name in labels] == [64, 64, 64]
    kept = found.body["metadata"]
    assert isinstance(kept, dict)
    assert (len(kept), "long" in kept, found.dropped) == (16, False, ("metadata",))


@looped("path", [CHATS[0], RESPONSES])
def test_the_tier_of_other_apis_has_the_vendors_word(path: str) -> None:
    assert Outcome(path, "openai/gpt-4o", asking(path, service_tier="standard_only")).body["service_tier"] == "default"


def test_a_name_of_a_function_that_the_vendor_refuses_is_another_one_there() -> None:
    tool: JsonObject = {**OWN_TOOL, "name": "a.b"}
    found = Outcome(RESPONSES, "openai/gpt-5.1", asking(RESPONSES, tools=[tool]))
    assert (found.api, found.body["tools"][0]["name"]) == ("responses", "a_b")  # type: ignore[index, call-overload]


def test_o1_mini_is_instructed_by_the_user() -> None:
    talk: list[JsonValue] = [{"role": "system", "content": "S"}, {"role": "user", "content": "u"}]
    sent = Outcome(CHATS[0], "openai/o1-mini", {"messages": talk}).body["messages"]
    assert sent == [{"role": "user", "content": "S"}, {"role": "user", "content": "u"}]
