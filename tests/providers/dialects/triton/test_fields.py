"""Each unified field as a Triton tensor: written, omitted if it is neutral, or refused by an error that names it."""

from providers.capabilities import COUNTED, Support
from providers.dialects.triton.fields import capabilities
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
from tests.providers.neutral import EACH_NEUTRAL
from tests.support.looped import looped

TARGET = target_of("triton", max_output_tokens=16)
SCHEMA: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
BY_SCHEMA: JsonObject = {
    "guided_decoding_guide_type": "json_schema",
    "guided_decoding_guide": '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}',
}
SMALLEST = body_for(text_request(), TARGET)


def added(**params: object) -> JsonObject:
    return {name: value for name, value in body_for(text_request(**params), TARGET).items() if name not in SMALLEST}


def test_the_limit_is_the_clients() -> None:
    assert body_for(text_request(max_tokens=5), TARGET)["max_tokens"] == 5


@looped(
    ("params", "members"),
    [
        ({"temperature": 0.5}, {"temperature": 0.5, "top_p": 1.0}),
        ({"temperature": 0.5, "top_p": 0.9}, {"temperature": 0.5, "top_p": 0.9}),
        ({"temperature": 0.5, "top_k": 0, "top_p": 1}, {"temperature": 0.5, "top_p": 1.0}),
        ({"temperature": 0}, {"top_k": 1}),
        ({"temperature": 0, "top_p": 0.5, "top_k": 5}, {"top_k": 1}),
        ({"temperature": 0.5, "top_k": 40}, {"temperature": 0.5, "top_k": 40}),
        *as_given(top_p=0.9),
        ({"stop": ("a", "\n")}, {"stop_words": ["a", "\n"]}),
        ({"guided": Guided("json", SCHEMA)}, BY_SCHEMA),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}, BY_SCHEMA),
        (
            {"response_format": {"type": "json_object"}},
            {"guided_decoding_guide_type": "json_schema", "guided_decoding_guide": '{"type":"object"}'},
        ),
        (
            {"guided": Guided("regex", "[0-9]{3}")},
            {"guided_decoding_guide_type": "regex", "guided_decoding_guide": "[0-9]{3}"},
        ),
        (
            {"guided": Guided("choice", ("a", "a.b"))},
            {"guided_decoding_guide_type": "regex", "guided_decoding_guide": "(a\\.b|a)"},
        ),
        (
            {"guided": Guided("grammar", 'root ::= "a"')},
            {"guided_decoding_guide_type": "ebnf_grammar", "guided_decoding_guide": 'root ::= "a"'},
        ),
        ({"context_length_exceeded_behavior": "truncate", "max_tokens": 5}, {}),
        *as_given(top_k=40, seed=7, frequency_penalty=0.5, presence_penalty=-0.5, repetition_penalty=1.1),
    ],
)
def test_a_field_is_written_as_a_tensor(params: dict[str, object], members: JsonObject) -> None:
    assert added(**params) == members


def test_values_that_ask_for_nothing_change_nothing() -> None:
    for asked in EACH_NEUTRAL:
        assert added(**asked) == {}, asked


@looped(
    ("params", "param"),
    [
        *refused(n=2, best_of=2, max_tokens=0, top_p=0),
        *refused(top_p=1.5, seed=-1, min_p=0.1, logit_bias={"5": 1.0}, logprobs=LogprobsWanted(0, "legacy")),
        ({"context_length_exceeded_behavior": "error", "max_tokens": 5}, "context_length_exceeded_behavior"),
        *refused(suffix="end", response_format={"type": "structural_tag"}),
    ],
)
def test_a_field_that_cannot_be_honoured_is_refused_by_name(params: dict[str, object], param: str) -> None:
    check_refused_by_name(text_request(**params), TARGET, param)


def test_what_the_gateway_has_a_part_in_is_named() -> None:
    kept = {STOP_STRING: True}
    assert sent_for(text_request(stop=("a",), **kept), TARGET).emulated == (STOP_STRING,)
    assert sent_for(text_request(**kept), TARGET).emulated == ()
    assert sent_for(text_request(guided=Guided("choice", ("a",))), TARGET).emulated == ("guided_choice",)


def test_a_window_that_is_known_is_kept_by_the_gateway() -> None:
    profile = load_profiles()["triton"]
    blind, seeing = capabilities(profile, False), capabilities(profile, True)
    name = "context_length_exceeded_behavior.error"
    assert (blind[name].support, seeing[name]) == (Support.REFUSED, COUNTED)
    assert not blind.counts
    assert seeing.counts == {"error"}
    assert blind.verifies
