"""Each unified field in Ollama's API: written, omitted if it is neutral, or refused by an error that names it."""

from dataclasses import replace

from providers.capabilities import COUNTED, Support
from providers.dialects.ollama.fields import capabilities
from providers.json_types import JsonObject
from providers.unified_request import Guided, LogprobsWanted, Operation
from tests.providers.dialects.kit import (
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
from tests.support.looped import looped

TARGET = target_of("ollama_native")
SCHEMA: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
CHOICE: JsonObject = {
    "type": "object",
    "properties": {"choice": {"type": "string", "enum": ["a", "b"]}},
    "required": ["choice"],
    "additionalProperties": False,
}


@looped(
    ("params", "members"),
    [
        ({"max_tokens": 5}, {"options": {"num_predict": 5}}),
        ({"temperature": 0, "top_p": 1}, {"options": {"temperature": 0, "top_p": 1}}),
        ({"top_k": 40}, {"options": {"top_k": 40}}),
        ({"top_k": -1}, {"options": {"top_k": 0}}),
        ({"min_p": 0.1, "typical_p": 0.9}, {"options": {"min_p": 0.1, "typical_p": 0.9}}),
        ({"seed": 7}, {"options": {"seed": 7}}),
        ({"frequency_penalty": -1}, {"options": {"frequency_penalty": -1}}),
        ({"presence_penalty": 2}, {"options": {"presence_penalty": 2}}),
        ({"repetition_penalty": 1.1}, {"options": {"repeat_penalty": 1.1}}),
        ({"stop": ("a", "\n")}, {"options": {"stop": ["a", "\n"]}}),
        ({"logprobs": LogprobsWanted(0, "content")}, {"logprobs": True}),
        ({"logprobs": LogprobsWanted(3, "content")}, {"logprobs": True, "top_logprobs": 3}),
        ({"guided": Guided("json", SCHEMA)}, {"format": SCHEMA}),
        ({"guided": Guided("choice", ("a", "b"))}, {"format": CHOICE}),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}, {"format": SCHEMA}),
        ({"response_format": {"type": "json_object"}}, {"format": "json"}),
        ({"reasoning_effort": "high"}, {"think": "high"}),
        ({"reasoning_effort": "none"}, {"think": False}),
        ({"reasoning_effort": "minimal"}, {"think": "low"}),
        ({"reasoning_effort": "xhigh"}, {"think": "high"}),
        ({"reasoning_effort": "max"}, {"think": "max"}),
        ({"reasoning_effort": True}, {"think": True}),
        ({"context_length_exceeded_behavior": "truncate", "max_tokens": 5}, {"options": {"num_predict": 5}}),
        ({"context_length_exceeded_behavior": "error"}, {}),
    ],
)
def test_a_field_is_written_in_the_engines_words(params: dict[str, object], members: JsonObject) -> None:
    assert body_for(chat_request(**params), TARGET) == {**body_for(chat_request(), TARGET), **members}


@looped(
    ("params", "param"),
    [
        *refused(n=2, echo=True, suffix="end", max_tokens=0, logit_bias={"5": 1.0}),
        ({"logprobs": LogprobsWanted(0, "content"), "guided": Guided("choice", ("a",))}, "logprobs"),
        *refused(logprobs=LogprobsWanted(21, "content"), ignore_eos=True, guided=Guided("regex", "a+")),
        *refused(guided=Guided("grammar", "root ::= 'a'"), response_format={"type": "grammar", "grammar": "x"}),
        *refused(reasoning_effort="huge"),
        ({"context_length_exceeded_behavior": "error", "max_tokens": 5}, "context_length_exceeded_behavior"),
        ({"tools": [tool()], "tool_choice": "required"}, "tool_choice"),
        *refused(reasoning_effort=100, thinking={"type": "enabled"}, images=(("data:image/png;base64,AA==",),)),
    ],
)
def test_a_field_that_cannot_be_honoured_is_refused_by_name(params: dict[str, object], param: str) -> None:
    check_refused_by_name(chat_request(**params), TARGET, param)


def test_what_the_engine_s_schemas_lack_is_checked_in_the_answer() -> None:
    sent = sent_for(chat_request(guided=Guided("json", {"type": "object", "not": {}})), TARGET)
    assert sent.unenforced == ("guided_json",)
    assert b'"not":' not in sent.body


def test_advisory_fields_are_left_out_and_named() -> None:
    params: dict[str, object] = {"user": "u-1", "metadata": {"a": "b"}, "service_tier": "auto", "store": False}
    sent = sent_for(chat_request(**params), TARGET)
    assert sent.dropped == tuple(params)
    assert sent.body == sent_for(chat_request(), TARGET).body


@looped(
    ("params", "param"),
    [*refused(reasoning_effort="low", thinking={"type": "disabled"}, images=(("data:image/png;base64,AA==",),))],
)
def test_what_only_a_chat_has_is_refused_beside_a_raw_prompt(params: dict[str, object], param: str) -> None:
    assert refusal_for(text_request(**params), TARGET).param == param


def test_the_window_can_be_guarded_where_the_table_knows_it() -> None:
    asked = chat_request(context_length_exceeded_behavior="error", max_tokens=5)
    assert body_for(asked, replace(TARGET, context_window=4096))["truncate"] is False


def test_a_choice_is_unwrapped_on_the_way_back() -> None:
    sent = sent_for(text_request(guided=Guided("choice", ("a", "b"))), TARGET)
    assert sent.unwrap_choice
    assert sent.emulated == ("guided_choice",)


def test_the_table_says_what_the_encoder_does() -> None:
    raw = capabilities(Operation.COMPLETIONS, Operation.COMPLETIONS, False, True)
    wrapped = capabilities(Operation.COMPLETIONS, Operation.CHAT, True, False)
    chat = capabilities(Operation.CHAT, Operation.CHAT, False, False)
    window = "context_length_exceeded_behavior.error"
    assert raw.most_stops is None
    assert (raw.verifies, wrapped.verifies) == (True, False)
    assert (raw["prompt"].support, wrapped["prompt"].support) == (Support.NATIVE, Support.EMULATED)
    assert (raw["echo"].support, chat["echo"].support) == (Support.EMULATED, Support.REFUSED)
    assert (raw[window].support, wrapped[window]) == (Support.REFUSED, COUNTED)
    assert not raw.counts
    assert wrapped.counts == {"error"}
    assert (raw["suffix"].support, chat["suffix"].support) == (Support.NATIVE, Support.REFUSED)
