"""Each unified field in SGLang's API: written, omitted if it is neutral, or refused by an error that names it."""

from typing import cast

import orjson

from providers.capabilities import Support
from providers.dialects.sglang.fields import MOST_STOPS, capabilities
from providers.json_types import JsonObject
from providers.unified_request import Guided, LogprobsWanted
from tests.providers.dialects.kit import (
    as_given,
    body_for,
    check_refused_by_name,
    refused,
    sent_for,
    target_of,
    text_request,
)
from tests.support.looped import looped

TARGET = target_of("sglang_native")
SCHEMA: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TEXT = orjson.dumps(SCHEMA).decode()
WANTED = LogprobsWanted(0, "legacy")


def sampling(**params: object) -> JsonObject:
    found = cast(JsonObject, body_for(text_request(**params), TARGET)["sampling_params"])
    return {name: value for name, value in found.items() if value is not None}


@looped(
    ("params", "members"),
    [
        ({"max_tokens": 0}, {"max_new_tokens": 0}),
        ({"max_tokens": 5}, {"max_new_tokens": 5}),
        ({"top_k": 0}, {"top_k": -1}),
        ({"seed": 7}, {"sampling_seed": 7}),
        *as_given(n=3, temperature=0, top_p=1, top_k=40, min_p=0.1, frequency_penalty=-2, presence_penalty=2),
        ({"stop": ("a", "\n")}, {"stop": ["a", "\n"]}),
        ({"include_stop_str_in_output": True}, {"no_stop_trim": True}),
        ({"guided": Guided("json", SCHEMA)}, {"json_schema": TEXT}),
        ({"guided": Guided("regex", "[0-9]{3}")}, {"regex": "[0-9]{3}"}),
        ({"guided": Guided("choice", ("a", "ab"))}, {"regex": "(ab|a)"}),
        ({"guided": Guided("grammar", 'root ::= "a"')}, {"ebnf": 'root ::= "a"'}),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}, {"json_schema": TEXT}),
        ({"response_format": {"type": "json_object"}}, {"json_schema": '{"type":"object"}'}),
        ({"response_format": {"type": "grammar", "grammar": "g"}}, {"ebnf": "g"}),
        (
            {"response_format": {"type": "structural_tag", "format": {}}},
            {"structural_tag": '{"type":"structural_tag","format":{}}'},
        ),
        ({"context_length_exceeded_behavior": "error", "max_tokens": 5}, {"max_new_tokens": 5}),
        *as_given(repetition_penalty=1.1, ignore_eos=True, logit_bias={"5": -100}),
    ],
)
def test_a_field_is_written_in_the_engines_words(params: dict[str, object], members: JsonObject) -> None:
    assert sampling(**params) == members


@looped(
    ("params", "members"),
    [
        ({"logprobs": WANTED}, {"return_logprob": True, "return_text_in_logprobs": True}),
        (
            {"logprobs": LogprobsWanted(3, "legacy")},
            {"return_logprob": True, "return_text_in_logprobs": True, "top_logprobs_num": 3},
        ),
        (
            {"logprobs": WANTED, "echo": True},
            {"return_logprob": True, "return_text_in_logprobs": True, "logprob_start_len": 0},
        ),
    ],
)
def test_log_probabilities_stand_beside_the_sampling_settings(params: dict[str, object], members: JsonObject) -> None:
    assert body_for(text_request(**params), TARGET) == {**body_for(text_request(), TARGET), **members}


@looped(
    ("params", "param"),
    [
        *refused(best_of=2, echo=True, top_p=0, frequency_penalty=2.5, repetition_penalty=0),
        *refused(repetition_penalty=2.5, typical_p=0.5, suffix="end", images=(("data:image/png;base64,AA==",),)),
        *refused(response_format={"type": "regex"}),
    ],
)
def test_a_field_that_cannot_be_honoured_is_refused_by_name(params: dict[str, object], param: str) -> None:
    check_refused_by_name(text_request(**params), TARGET, param)


def test_a_choice_is_named_as_made_by_an_expression() -> None:
    assert sent_for(text_request(guided=Guided("choice", ("a",))), TARGET).emulated == ("guided_choice",)


def test_the_table_says_what_the_encoder_does() -> None:
    plain, scored = capabilities(False, True), capabilities(True, False)
    assert plain.most_stops == MOST_STOPS == 32
    assert (plain.verifies, scored.verifies) == (True, False)
    assert (plain["echo"].support, scored["echo"].support) == (Support.EMULATED, Support.NATIVE)
    assert plain["n"].support is plain["prompt.token_batch"].support is Support.NATIVE
