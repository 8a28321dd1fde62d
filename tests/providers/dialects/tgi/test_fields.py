"""Each unified field in TGI's API: written, omitted if it is neutral, or refused by an error that names it."""

from typing import cast

from providers.capabilities import Support
from providers.dialects.tgi.fields import MOST_STOPS, capabilities
from providers.json_types import JsonObject
from providers.request_fields import STOP_STRING
from providers.unified_request import Guided, LogprobsWanted
from tests.providers.dialects.kit import body_for, check_refused_by_name, refused, sent_for, target_of, text_request
from tests.providers.neutral import EACH_NEUTRAL
from tests.support.looped import looped

TARGET = target_of("tgi_native")
SCHEMA: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
BY_SCHEMA: JsonObject = {"grammar": {"type": "json", "value": SCHEMA}}


def parameters(**params: object) -> JsonObject:
    found = cast(JsonObject, body_for(text_request(**params), TARGET)["parameters"])
    return {name: value for name, value in found.items() if name not in ("details", "return_full_text")}


@looped(
    ("params", "members"),
    [
        ({"max_tokens": 5}, {"max_new_tokens": 5}),
        ({"temperature": 0.5}, {"temperature": 0.5, "do_sample": True}),
        ({"temperature": 1}, {"temperature": 1, "do_sample": True}),
        ({"temperature": 0}, {"do_sample": False}),
        ({"temperature": 0, "top_p": 0.5, "seed": 1, "top_k": 5, "typical_p": 0.5}, {"do_sample": False}),
        ({"top_p": 0.9}, {"top_p": 0.9, "do_sample": True}),
        ({"top_p": 1}, {}),
        ({"top_k": 40}, {"top_k": 40, "do_sample": True}),
        ({"top_k": 0}, {}),
        ({"typical_p": 0.9}, {"typical_p": 0.9, "do_sample": True}),
        ({"seed": 7}, {"seed": 7, "do_sample": True}),
        ({"frequency_penalty": 0.5}, {"frequency_penalty": 0.5}),
        ({"repetition_penalty": 1.1}, {"repetition_penalty": 1.1}),
        ({"stop": ("a", "\n")}, {"stop": ["a", "\n"]}),
        ({"logprobs": LogprobsWanted(0, "legacy")}, {"top_n_tokens": 1}),
        ({"logprobs": LogprobsWanted(5, "legacy")}, {"top_n_tokens": 5}),
        ({"guided": Guided("json", SCHEMA)}, BY_SCHEMA),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}, BY_SCHEMA),
        ({"response_format": {"type": "json_object", "schema": SCHEMA}}, BY_SCHEMA),
        ({"guided": Guided("regex", "[0-9]{3}")}, {"grammar": {"type": "regex", "value": "[0-9]{3}"}}),
        ({"guided": Guided("choice", ("a", "a.b"))}, {"grammar": {"type": "regex", "value": "(a\\.b|a)"}}),
        ({"context_length_exceeded_behavior": "truncate", "max_tokens": 5}, {"max_new_tokens": 5}),
    ],
)
def test_a_field_is_written_in_the_servers_words(params: dict[str, object], members: JsonObject) -> None:
    assert parameters(**params) == members


def test_values_that_ask_for_nothing_change_nothing() -> None:
    for asked in EACH_NEUTRAL:
        assert parameters(**asked) == {}, asked


@looped(
    ("params", "param"),
    [
        *refused(n=2, best_of=2, max_tokens=0, top_p=0, typical_p=0, seed=-1, repetition_penalty=0),
        *refused(presence_penalty=0.5, min_p=0.1, logit_bias={"5": 1.0}, suffix="end"),
        *refused(logprobs=LogprobsWanted(6, "legacy"), guided=Guided("grammar", "root ::= 'a'")),
        *refused(guided=Guided("json", {"type": "object"}), response_format={"type": "json_object"}),
        *refused(response_format={"type": "grammar", "grammar": "x"}),
    ],
)
def test_a_field_that_cannot_be_honoured_is_refused_by_name(params: dict[str, object], param: str) -> None:
    check_refused_by_name(text_request(**params), TARGET, param)


def test_what_the_gateway_has_a_part_in_is_named() -> None:
    kept = {STOP_STRING: True}
    assert sent_for(text_request(stop=("a",), **kept), TARGET).emulated == (STOP_STRING,)
    assert sent_for(text_request(**kept), TARGET).emulated == ()
    assert sent_for(text_request(guided=Guided("choice", ("a",))), TARGET).emulated == ("guided_choice",)


def test_the_table_says_what_the_encoder_does() -> None:
    plain, scored = capabilities(False, True), capabilities(True, False)
    assert plain.most_stops == MOST_STOPS
    assert (plain.verifies, scored.verifies) == (True, False)
    assert (plain["echo"].support, scored["echo"].support) == (Support.EMULATED, Support.NATIVE)
    assert plain["echo.logprobs"].support is scored["echo.logprobs"].support is Support.NATIVE
