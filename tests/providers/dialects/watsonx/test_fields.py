"""Unified fields in watsonx.ai's two APIs: written, omitted if neutral, or refused by an error that names them."""

import orjson

from providers.capabilities import PREFIXED, Support
from providers.dialects.watsonx.fields import MOST_STOPS, capabilities
from providers.json_types import JsonObject
from providers.request_fields import STOP_STRING
from providers.unified_request import Guided, LogprobsWanted, Operation
from tests.providers.dialects.kit import (
    as_given,
    body_for,
    chat_request,
    check_refused_by_name,
    refusal_for,
    refused,
    sent_for,
    target_of,
    text_request,
    tool,
)
from tests.providers.neutral import EACH_NEUTRAL
from tests.support.looped import looped

TARGET = target_of("watsonx", base_url="https://host/projects/p")
SCHEMA: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
NAMED: JsonObject = {"type": "function", "function": {"name": "look"}}
OFFERED: JsonObject = {"tools": [tool()]}


def parameters(**params: object) -> object:
    return body_for(text_request(**params), TARGET).get("parameters", {})


def members(**params: object) -> JsonObject:
    smallest = body_for(chat_request(), TARGET)
    return {name: value for name, value in body_for(chat_request(**params), TARGET).items() if name not in smallest}


@looped(
    ("params", "written"),
    [
        ({"temperature": 0}, {"decoding_method": "greedy"}),
        ({"temperature": 0, "top_p": 0.5, "top_k": 5, "seed": 3}, {"decoding_method": "greedy"}),
        ({"temperature": 0.5}, {"decoding_method": "sample", "temperature": 0.5}),
        ({"top_p": 0.9}, {"decoding_method": "sample", "top_p": 0.9}),
        ({"top_k": 40}, {"decoding_method": "sample", "top_k": 40}),
        ({"seed": 7}, {"decoding_method": "sample", "random_seed": 7}),
        ({"repetition_penalty": 1.1}, {"repetition_penalty": 1.1}),
        ({"stop": ("a", "\n")}, {"stop_sequences": ["a", "\n"], "include_stop_sequence": False}),
        ({"stop": ("a",), STOP_STRING: True}, {"stop_sequences": ["a"], "include_stop_sequence": True}),
        ({STOP_STRING: True}, {}),
        (
            {"logprobs": LogprobsWanted(0, "legacy")},
            {"return_options": {"generated_tokens": True, "token_logprobs": True}},
        ),
        (
            {"logprobs": LogprobsWanted(5, "legacy")},
            {"return_options": {"generated_tokens": True, "token_logprobs": True, "top_n_tokens": 5}},
        ),
        ({"context_length_exceeded_behavior": "truncate", "max_tokens": 5}, {"max_new_tokens": 5}),
    ],
)
def test_a_field_of_a_prompt_is_written_in_the_servers_words(params: dict[str, object], written: JsonObject) -> None:
    assert parameters(**params) == written


@looped(
    ("params", "written"),
    [
        *as_given(max_tokens=5, temperature=0, top_p=0.9, n=2, seed=7, presence_penalty=0.5, frequency_penalty=1),
        ({"stop": ("a",)}, {"stop": ["a"]}),
        ({"logprobs": LogprobsWanted(0, "content")}, {"logprobs": True}),
        ({"logprobs": LogprobsWanted(3, "content")}, {"logprobs": True, "top_logprobs": 3}),
        ({"guided": Guided("json", SCHEMA)}, {"guided_json": SCHEMA}),
        ({"guided": Guided("regex", "[0-9]{3}")}, {"guided_regex": "[0-9]{3}"}),
        ({"guided": Guided("choice", ("a", "b"))}, {"guided_choice": ["a", "b"]}),
        ({"guided": Guided("grammar", 'root ::= "a"')}, {"guided_grammar": 'root ::= "a"'}),
        (
            {"response_format": {"type": "json_object", "schema": SCHEMA}},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "guided_json", "schema": SCHEMA, "strict": True},
                }
            },
        ),
        ({"tools": [tool()], "tool_choice": "auto"}, {**OFFERED, "tool_choice_option": "auto"}),
        ({"tools": [tool()], "tool_choice": "none"}, {**OFFERED, "tool_choice_option": "none"}),
        ({"tools": [tool()], "tool_choice": NAMED}, {**OFFERED, "tool_choice": NAMED}),
        ({"reasoning_effort": "minimal"}, {"reasoning_effort": "low"}),
        ({"reasoning_effort": "max"}, {"reasoning_effort": "high"}),
        ({"parallel_tool_calls": False}, {}),
        *as_given(logit_bias={"5": 1.0}, response_format={"type": "json_object"}, reasoning_effort="low"),
    ],
)
def test_a_field_of_a_chat_is_written_in_the_servers_words(params: dict[str, object], written: JsonObject) -> None:
    assert members(**params) == written


def test_values_that_ask_for_nothing_ask_for_nothing() -> None:
    for asked in EACH_NEUTRAL:
        assert parameters(**asked) == {}, asked
        assert all(written in asked.values() for written in members(**asked).values()), asked


@looped(
    ("params", "param"),
    [
        *refused(n=2, best_of=2, temperature=2.5, top_p=0, top_k=101, seed=0, repetition_penalty=0.5),
        *refused(presence_penalty=0.5, logit_bias={"5": 1.0}, logprobs=LogprobsWanted(6, "legacy")),
        *refused(guided=Guided("json", SCHEMA), response_format={"type": "json_object"}, suffix="end"),
    ],
)
def test_a_field_of_a_prompt_that_cannot_be_honoured_is_refused(params: dict[str, object], param: str) -> None:
    check_refused_by_name(text_request(**params), TARGET, param)


@looped(
    ("params", "param"),
    [
        *refused(max_tokens=0, top_k=5, logprobs=LogprobsWanted(21, "content"), reasoning_effort=3),
        ({"tools": [tool()], "parallel_tool_calls": False}, "parallel_tool_calls"),
        *refused(response_format={"type": "structural_tag"}),
    ],
)
def test_a_field_of_a_chat_that_cannot_be_honoured_is_refused(params: dict[str, object], param: str) -> None:
    assert refusal_for(chat_request(**params), TARGET).param == param


def test_the_table_says_what_the_encoder_does() -> None:
    text, chat = Operation.COMPLETIONS, Operation.CHAT
    raw, wrapped, own = (capabilities(*pair, True) for pair in [(text, text), (text, chat), (chat, chat)])
    assert [table.most_stops for table in (raw, wrapped, own)] == [MOST_STOPS[text], MOST_STOPS[chat], MOST_STOPS[chat]]
    assert (raw["echo"], wrapped["echo"], own["echo"].support) == (PREFIXED, PREFIXED, Support.REFUSED)
    assert raw["guided_json"].refused
    assert own["guided_json"].native
    assert not capabilities(text, text, False).verifies


def test_custom_tools_go_as_functions_like_their_calls() -> None:
    custom: JsonObject = {"type": "custom", "custom": {"name": "sql", "description": "Runs it."}}
    sent = sent_for(chat_request(tools=[custom]), TARGET)
    assert (sent.custom_tools, sent.emulated) == (frozenset({"sql"}), ("tools",))
    (written,) = orjson.loads(sent.body)["tools"]
    assert (written["type"], written["function"]["name"]) == ("function", "sql")
    assert refusal_for(chat_request(tools=[{"type": "file_search"}]), TARGET).param == "tools"
