"""Each unified field in llama.cpp's API: written, omitted if it is neutral, or refused by an error that names it."""

from providers.capabilities import APPENDED, COUNTED, Support
from providers.constraints.constraint_styles import regex_grammar
from providers.dialects.llamacpp.fields import capabilities
from providers.json_types import JsonObject
from providers.profiles.load_profiles import load_profiles
from providers.request_fields import STOP_STRING
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

TARGET = target_of("llamacpp_native")
SCHEMA: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
ANY: JsonObject = {"type": "object"}


@looped(
    ("params", "members"),
    [
        ({"max_tokens": 5}, {"n_predict": 5}),
        ({"top_k": -1}, {"top_k": 0}),
        *as_given(temperature=0, top_p=1, top_k=40, min_p=0, typical_p=0.9, seed=7, frequency_penalty=-1),
        ({"repetition_penalty": 1.1}, {"repeat_penalty": 1.1}),
        ({"mirostat_target": 4.5}, {"mirostat": 2, "mirostat_tau": 4.5}),
        ({"mirostat_lr": 0.2}, {"mirostat": 2, "mirostat_eta": 0.2}),
        ({"stop": ("a", "\n")}, {"stop": ["a", "\n"]}),
        ({"logprobs": LogprobsWanted(0, "legacy")}, {"n_probs": 1}),
        ({"logprobs": LogprobsWanted(3, "legacy")}, {"n_probs": 3}),
        ({"guided": Guided("json", SCHEMA)}, {"json_schema": SCHEMA}),
        ({"guided": Guided("choice", ("a", "b"))}, {"grammar": 'root ::= "a" | "b"'}),
        ({"guided": Guided("regex", "[0-9]{3}")}, {"grammar": regex_grammar("[0-9]{3}")}),
        ({"guided": Guided("grammar", 'root ::= "a"')}, {"grammar": 'root ::= "a"'}),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}, {"json_schema": SCHEMA}),
        ({"response_format": {"type": "json_object"}}, {"json_schema": ANY}),
        ({"response_format": {"type": "grammar", "grammar": "g"}}, {"grammar": "g"}),
        ({"context_length_exceeded_behavior": "truncate"}, {}),
        ({"context_length_exceeded_behavior": "error", "max_tokens": 5}, {"n_predict": 5}),
        *as_given(presence_penalty=2, ignore_eos=True, logit_bias={"5": -100}),
    ],
)
def test_a_field_is_written_in_the_engines_words(params: dict[str, object], members: JsonObject) -> None:
    assert body_for(text_request(**params), TARGET) == {**body_for(text_request(), TARGET), **members}


@looped(
    ("params", "param"),
    [
        *refused(n=2, best_of=2, echo=True, max_tokens=0, seed=-1, guided=Guided("regex", "(?=a)b")),
        *refused(response_format={"type": "structural_tag"}, images=(("data:image/png;base64,AA==",),)),
        *refused(reasoning_effort="low"),
    ],
)
def test_a_field_that_cannot_be_honoured_is_refused_by_name(params: dict[str, object], param: str) -> None:
    check_refused_by_name(text_request(**params), TARGET, param)


def test_what_the_gateway_has_a_part_in_is_named() -> None:
    assert sent_for(text_request(guided=Guided("choice", ("a",))), TARGET).emulated == ("guided_choice",)
    assert sent_for(text_request(guided=Guided("regex", "a")), TARGET).emulated == ("guided_regex",)
    assert sent_for(text_request(guided=Guided("json", SCHEMA)), TARGET).emulated == ()
    kept = {STOP_STRING: True}
    assert sent_for(text_request(stop=("a",), **kept), TARGET).emulated == (STOP_STRING,)
    assert sent_for(text_request(**kept), TARGET).emulated == ()


def test_the_table_says_what_the_encoder_does() -> None:
    row = load_profiles()["llamacpp_native"]
    whole, middle = capabilities(row, False), capabilities(row, True)
    assert whole.most_stops is None
    assert whole.verifies
    assert (whole[STOP_STRING], whole["context_length_exceeded_behavior.error"]) == (APPENDED, COUNTED)
    assert whole.counts == {"error"}
    assert (whole["prompt.batch"].support, middle["prompt.batch"].support) == (Support.NATIVE, Support.EMULATED)
    assert (whole["prompt.tokens"].support, middle["prompt.tokens"].support) == (Support.NATIVE, Support.REFUSED)
