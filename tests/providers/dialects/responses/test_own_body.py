"""A client's own body for a model that accepts less, and the cases that only the gateway can handle."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.dialect import encode_native
from providers.dialects.responses.own_body import OwnSchemas
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Params, TranslationLosses
from tests.providers.dialects.kit import target_of
from tests.providers.dialects.responses.kit import TARGET, own_body, own_call, own_request
from tests.providers.kit import refusal_of
from tests.support.looped import looped

O3 = target_of("openai", "o3", base_url="https://api.openai.com/v1")
OPEN: JsonObject = {"type": "object", "properties": {"a": {"type": "object", "additionalProperties": True}}}
PLAIN: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED: JsonObject = {**PLAIN, "required": ["a"], "additionalProperties": False}


def function(name: str = "f", parameters: JsonValue = None, strict: bool = True) -> JsonObject:
    return {
        "type": "function",
        "name": name,
        "parameters": PLAIN if parameters is None else parameters,
        "strict": strict,
    }


def test_strict_schemas_are_closed_and_require_all_in_place() -> None:
    form: JsonObject = {"type": "json_schema", "name": "a b", "schema": PLAIN, "strict": True}
    body = own_body(more={"tools": [function()], "text": {"format": form, "verbosity": "low"}})
    assert body["tools"] == [function(parameters=CLOSED)]
    assert body["text"] == {"format": {**form, "name": "a_b", "schema": CLOSED}, "verbosity": "low"}


@looped(
    ("members", "unenforced"),
    [
        ({"tools": [function(parameters=OPEN)]}, "tools.strict"),
        ({"tools": [function("a.b")]}, "tools"),
        ({"tools": [{"type": "namespace", "name": "n", "tools": [function(parameters=OPEN)]}]}, "tools.strict"),
        ({"text": {"format": {"type": "json_schema", "name": "n", "schema": OPEN, "strict": True}}}, "response_format"),
        ({"text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "array"}}}}, "response_format"),
    ],
)
def test_what_only_the_gateway_can_see_to_is_translated_or_named_if_no_other_api_can_say_the_rest(
    members: JsonObject, unenforced: str
) -> None:
    request = own_request(more=members)
    assert encode_native(request, TARGET) is None
    bound = replace(request, losses=TranslationLosses({"prompt": "a prompt"}))
    assert own_call(bound)[0].dropped == (unenforced,)


def test_one_call_a_turn_is_left_to_the_gateway_where_the_model_is_not_told() -> None:
    asked: JsonObject = {"tools": [function(strict=False)], "parallel_tool_calls": False}
    assert encode_native(own_request(more=asked), O3) is None
    assert "parallel_tool_calls" not in own_body(O3, {**asked, "parallel_tool_calls": True})


def test_a_length_that_the_model_does_not_have_is_refused_or_left_out_once_the_client_gives_it_up() -> None:
    text: JsonObject = {"text": {"verbosity": "low"}}
    wanted: Params = {"verbosity": "low"}
    assert refusal_of(encode_native, own_request(params=wanted, more=text), O3).param == "verbosity"
    sent, body = own_call(own_request(more=text), O3)
    assert ("text" in body, sent.dropped) == (False, ("verbosity",))
    assert own_call(own_request(more={"text": {"verbosity": "medium"}}), O3)[0].dropped == ()


@looped("choice", ["auto", "none"])
def test_a_choice_without_tools_is_not_sent(choice: str) -> None:
    body = own_body(more={"tools": [], "tool_choice": choice})
    assert body.keys().isdisjoint({"tools", "tool_choice"})
    assert own_body(more={"prompt": {"id": "p"}, "tool_choice": choice})["tool_choice"] == choice


# The fast path ----- --------------------------------------------------------------------------------------------------

KINDS: st.SearchStrategy[JsonValue] = st.sampled_from(["function", "custom", None])
NAMES: st.SearchStrategy[JsonValue] = st.sampled_from(["f", "f f", "", None])
STRICT: st.SearchStrategy[JsonValue] = st.sampled_from([True, False, None])
SCHEMAS: st.SearchStrategy[JsonValue] = st.sampled_from(
    [None, {}, {"type": "object"}, {"properties": {}}, PLAIN, {**PLAIN, "oneOf": [{"type": "object"}]}]
)
HELD: st.SearchStrategy[JsonValue] = st.sampled_from([[], [function(parameters={"type": "object"})]])
TOOL: st.SearchStrategy[JsonValue] = st.one_of(
    st.fixed_dictionaries(
        {"type": KINDS}, optional={"name": NAMES, "strict": STRICT, "parameters": SCHEMAS, "tools": HELD}
    ),
    st.just("a"),
)


@given(st.lists(TOOL, max_size=3))
def test_tools_that_fit_at_one_look_are_those_that_nothing_changes(tools: list[JsonValue]) -> None:
    found = _fitted_tools(tools)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OwnSchemas, "_are_fitting", lambda self, tools: False)
        assert _fitted_tools(tools) == found


def _fitted_tools(tools: list[JsonValue]) -> object:
    """Return the body with tools in the vendor's form and the unenforced constraints, or the refusal."""
    schemas = OwnSchemas(TARGET.profile)
    body: JsonObject = {"tools": [*tools]}
    try:
        schemas.fit(body)
    except Refusal as refusal:
        return refusal.message
    return body, schemas.unenforced
