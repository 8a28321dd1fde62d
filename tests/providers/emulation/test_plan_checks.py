"""The checks of a response, and the instruction in the prompt for a constraint that the vendor has no form for."""

from typing import cast

import pytest

from providers.capabilities import NATIVE, REFUSED, Capabilities
from providers.constraints.constraint_styles import Unenforceable
from providers.emulation.check_answer import AnswerCheck, CheckKind
from providers.emulation.plan_calls import plan_calls
from providers.emulation.plan_checks import BESIDE_TOOLS, OBJECT, describe_in_prompt, plan_checks
from providers.json_types import JsonObject
from providers.unified_request import (
    ChatPrompt,
    Guided,
    Operation,
    Params,
    Prompt,
    TextPrompt,
    TokenPrompt,
    UnifiedRequest,
)
from tests.providers.dialects.kit import target_of
from tests.support.looped import looped

TABLE = Capabilities({"response_format.json_object": REFUSED})
ANY: Params = {"response_format": {"type": "json_object"}}
CHAT = ChatPrompt(({"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}))


def request(params: Params, prompt: Prompt = CHAT) -> UnifiedRequest:
    return UnifiedRequest(Operation.CHAT, "v/m", prompt, params)


def test_without_a_reason_nothing_is_checked() -> None:
    planned = plan_checks(request(ANY), TABLE)
    assert (planned.text, planned.calls, planned.emulated, planned.request.params) == (None, {}, (), ANY)


def test_a_constraint_that_the_vendor_is_not_held_to_is_checked_and_named() -> None:
    planned = plan_checks(request(ANY), TABLE, ("response_format",))
    assert planned.text == AnswerCheck("response_format", CheckKind.OBJECT)
    assert planned.emulated == ("response_format",)
    assert planned.request.params == ANY


def test_one_in_the_prompt_leaves_the_request_and_may_be_fenced() -> None:
    planned = plan_checks(request(ANY), TABLE, ("response_format",), in_prompt=True)
    assert planned.text == AnswerCheck("response_format", CheckKind.OBJECT, fenced=True)
    assert planned.request.params == {}
    assert planned.request.prompt == ChatPrompt(
        (CHAT.messages[0], {"role": "system", "content": OBJECT}, CHAT.messages[1])
    )


@looped("profile", ["anthropic", "gemini", "cohere", "ollama_native", "deepseek", "bedrock", "openai", "groq", "vllm"])
def test_the_description_of_a_format_is_sent_or_told(profile: str) -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    form: JsonObject = {"name": "n", "description": "A number of sheep.", "schema": schema}
    model = {"anthropic": "claude-opus-4-5", "gemini": "gemini-2.5-flash", "bedrock": "amazon.nova-pro-v1:0"}
    asked = request({"response_format": {"type": "json_schema", "json_schema": form}})
    plan = plan_calls(asked, target_of(profile, model.get(profile, "m")))
    assert b"A number of sheep." in plan.calls[0].sent.body


def test_strict_tools_are_checked_by_their_names() -> None:
    tools = [{"type": "function", "function": {"name": "f", "strict": True, "parameters": {}}}]
    planned = plan_checks(request(cast(Params, {"tools": tools})), TABLE)
    assert set(planned.calls) == {"f"}
    assert planned.emulated == ("tools.strict",)


def test_a_text_prompt_tells_it_at_its_end() -> None:
    told = describe_in_prompt(request({"guided": Guided("json", {"type": "array"})}, TextPrompt(("List.",))))
    assert isinstance(told.prompt, TextPrompt)
    assert told.prompt.texts[0].startswith("List.\n\nAnswer with one JSON value")
    assert told.prompt.texts[0].endswith('{"type":"array"}')


def test_a_choice_in_the_prompt_stands_in_no_fence() -> None:
    wanted = request({"guided": Guided("choice", ("yes", "no"))}, TextPrompt(("Well?",)))
    planned = plan_checks(wanted, TABLE, ("guided_choice",), in_prompt=True)
    assert planned.text == AnswerCheck("guided_choice", CheckKind.CHOICE, choices=frozenset({"yes", "no"}))
    assert isinstance(planned.request.prompt, TextPrompt)
    assert planned.request.prompt.texts[0].startswith("Well?\n\nAnswer with exactly one of the texts")
    assert planned.request.prompt.texts[0].endswith('["yes","no"]')
    assert planned.request.params == {}


def test_a_prompt_in_token_ids_cannot_tell_it() -> None:
    with pytest.raises(Unenforceable, match="no text"):
        describe_in_prompt(request(ANY, TokenPrompt(((1,),))))


CHAIN = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"type": "object"}}}


@looped(
    ("schema", "left"),
    [
        ({"type": "object"}, ANY),
        (CHAIN, ANY),
        ({"type": "array"}, {}),
        ({"type": ["object", "null"]}, {}),
        ({"$ref": "#"}, {}),
        ({"$ref": "#/$defs/gone"}, {}),
    ],
)
def test_a_schema_of_objects_is_told_beside_the_vendors_own_json_mode(schema: JsonObject, left: Params) -> None:
    table = Capabilities({"response_format.json_object": NATIVE})
    wanted = request({"guided": Guided("json", schema)})
    assert plan_checks(wanted, table, ("guided_json",), in_prompt=True).request.params == left


@looped(("choice", "free"), [("auto", True), ("none", False)])
def test_the_prompt_leaves_the_model_free_to_call_tools_first(choice: str, free: bool) -> None:
    params = cast(Params, {**ANY, "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": choice})
    told = describe_in_prompt(request(params)).prompt
    assert isinstance(told, ChatPrompt)
    assert told.messages[1]["content"] == (BESIDE_TOOLS if free else "") + OBJECT
