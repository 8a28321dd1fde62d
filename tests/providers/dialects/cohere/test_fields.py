"""Each unified field in Cohere's API: written, omitted if it is neutral, or refused by an error that names it."""

import orjson
import pytest

from providers.capabilities import Support
from providers.dialects.cohere.fields import MAX_STOPS, capabilities
from providers.json_types import JsonObject
from providers.unified_request import Guided, LogprobsWanted, Operation
from tests.providers.dialects.kit import (
    as_given,
    body_for,
    chat_request,
    check_refused_by_name,
    refused,
    sent_for,
    target_of,
    text_request,
    tool,
)
from tests.support.looped import looped

TARGET = target_of("cohere")


def of_n(node: JsonObject) -> JsonObject:
    return {"type": "object", "properties": {"n": node}, "required": ["n"]}


SCHEMA = of_n({"type": "integer"})
FORMAT = {"response_format": {"type": "json_object", "json_schema": SCHEMA}}


@looped(
    ("params", "members"),
    [
        ({"top_p": 0.9}, {"p": 0.9}),
        ({"top_p": 1}, {"p": 0.99}),
        ({"top_p": 0}, {"p": 0.01}),
        ({"top_k": 40}, {"k": 40}),
        ({"top_k": -1}, {}),
        ({"stop": ("a", "b")}, {"stop_sequences": ["a", "b"]}),
        ({"logprobs": LogprobsWanted(0, "content")}, {"logprobs": True}),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 100}},
            {"thinking": {"type": "enabled", "token_budget": 100}},
        ),
        *as_given(max_tokens=5, temperature=1.5, seed=0, frequency_penalty=0.5, presence_penalty=1),
        ({"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}),
        ({"reasoning_effort": False}, {"thinking": {"type": "disabled"}}),
        ({"reasoning_effort": True}, {"thinking": {"type": "enabled"}}),
        ({"reasoning_effort": "minimal"}, {"thinking": {"type": "enabled", "token_budget": 512}}),
        ({"reasoning_effort": "high"}, {"thinking": {"type": "enabled", "token_budget": 16384}}),
        ({"reasoning_effort": "max"}, {"thinking": {"type": "enabled", "token_budget": 31000}}),
        ({"reasoning_effort": 700}, {"thinking": {"type": "enabled", "token_budget": 700}}),
        (
            {"reasoning_effort": "high", "max_tokens": 4000},
            {"thinking": {"type": "enabled", "token_budget": 3000}, "max_tokens": 4000},
        ),
        ({"reasoning_effort": "low", "thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
        ({"guided": Guided("json", SCHEMA)}, FORMAT),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}}, FORMAT),
        ({"response_format": {"type": "json_object", "schema": SCHEMA}}, FORMAT),
        ({"context_length_exceeded_behavior": "truncate"}, {}),
        ({"context_length_exceeded_behavior": "error"}, {}),
        *as_given(thinking={"type": "disabled"}, response_format={"type": "json_object"}),
    ],
)
def test_a_field_is_written_in_the_vendors_words(params: dict[str, object], members: JsonObject) -> None:
    assert body_for(chat_request(**params), TARGET) == {**body_for(chat_request(), TARGET), **members}


@looped(
    ("params", "param"),
    [
        *refused(n=2, best_of=2, echo=True, suffix="end", max_tokens=0, top_k=501, seed=-1, frequency_penalty=-0.1),
        *refused(presence_penalty=1.1, repetition_penalty=1.1, min_p=0.1, logit_bias={"5": 1.0}),
        ({"logprobs": LogprobsWanted(0, "legacy"), "guided": Guided("choice", ("a",))}, "logprobs"),
        *refused(logprobs=LogprobsWanted(1, "legacy"), guided=Guided("regex", "a+")),
        *refused(guided=Guided("grammar", "root ::= 'a'")),
        *refused(response_format={"type": "json_schema", "json_schema": {"name": "x"}}),
        ({"guided": Guided("regex", "a"), "tools": [tool()]}, "guided_regex"),
        *refused(response_format={"type": "grammar", "grammar": "x"}, reasoning_effort="huge"),
        *refused(thinking={"type": "adaptive"}),
        *refused(thinking={}),
        *refused(thinking={"type": "enabled", "depth": 3}, images=(("data:image/png;base64,AA==",),)),
        *refused(service_tier="priority"),
    ],
)
def test_a_field_that_cannot_be_honoured_is_refused_by_name(params: dict[str, object], param: str) -> None:
    check_refused_by_name(chat_request(**params), TARGET, param)


def test_advisory_fields_are_left_out_and_named() -> None:
    params: dict[str, object] = {"user": "u-1", "metadata": {"a": "b"}, "service_tier": "default", "store": False}
    sent = sent_for(chat_request(**params), TARGET)
    assert sent.dropped == tuple(params)
    assert sent.body == sent_for(chat_request(), TARGET).body


def test_a_limit_without_room_for_a_budget_goes_without_thinking() -> None:
    sent = sent_for(chat_request(reasoning_effort="low", max_tokens=1000), TARGET)
    assert b'"thinking":{"type":"disabled"}' in sent.body
    assert sent.dropped == ("reasoning_effort",)


@pytest.mark.parametrize(
    ("node", "sent_as"),
    [
        ({"type": "integer", "minimum": 1}, {"type": "integer", "description": "(minimum: 1)"}),
        ({"type": "string", "pattern": "^a"}, {"type": "string", "description": '(pattern: "^a")'}),
    ],
)
def test_what_the_vendor_s_schemas_lack_is_told_and_checked(node: JsonObject, sent_as: JsonObject) -> None:
    sent = sent_for(chat_request(guided=Guided("json", of_n(node))), TARGET)
    assert orjson.loads(sent.body)["response_format"] == {"type": "json_object", "json_schema": of_n(sent_as)}
    assert sent.unenforced == ("guided_json",)


@looped("params", [{"response_format": {"type": "json_object"}}, {"guided": Guided("json", SCHEMA)}])
def test_a_format_beside_tools_is_told_in_the_prompt(params: dict[str, object]) -> None:
    sent = sent_for(chat_request(tools=[tool()], **params), TARGET)
    assert (sent.in_prompt, b"response_format" in sent.body) == (True, False)


def test_a_schema_that_is_not_of_an_object_is_told_in_the_prompt() -> None:
    sent = sent_for(chat_request(guided=Guided("json", {"type": "array"})), TARGET)
    assert (sent.unenforced, sent.in_prompt) == (("guided_json",), True)


@looped("node", [{"type": "string", "pattern": "[0-9]{3}"}, {"anyOf": [{"type": "string"}]}, {"$ref": "#/$defs/x"}])
def test_what_the_vendor_documents_is_taken(node: JsonObject) -> None:
    schema: JsonObject = {**of_n(node), "$defs": {"x": {"type": "string", "format": "date"}}}
    assert body_for(chat_request(guided=Guided("json", schema)), TARGET)["response_format"]


def test_a_choice_is_wrapped_into_an_object() -> None:
    sent = sent_for(text_request(guided=Guided("choice", ("yes", "no"))), TARGET)
    assert sent.unwrap_choice
    assert sent.emulated == ("prompt", "guided_choice")


def test_the_table_says_what_the_encoder_does() -> None:
    table = capabilities(Operation.CHAT, verifies=True)
    assert table.most_stops == MAX_STOPS
    assert table.verifies
    assert {"guided", "response_format", "stop", "n"} <= table.watched
    assert table["echo"].support is Support.REFUSED
    assert capabilities(Operation.COMPLETIONS, verifies=False)["echo"].support is Support.EMULATED


@looped(
    ("model", "effort", "tokens"),
    [
        ("command-a-03-2025", "max", 7_000),
        ("command-a-plus-05-2026", "max", 31_000),
        ("command-a-reasoning-08-2025", "xhigh", 31_000),
        ("command-r7b-12-2024", "high", 3_096),
        ("command-a-03-2025", "low", 2_048),
        ("tiny", "max", 31_000),
    ],
)
def test_a_budget_stays_below_the_longest_answer_of_the_model(model: str, effort: str, tokens: int) -> None:
    body = body_for(chat_request(reasoning_effort=effort), target_of("cohere", model))
    assert body["thinking"] == {"type": "enabled", "token_budget": tokens}
