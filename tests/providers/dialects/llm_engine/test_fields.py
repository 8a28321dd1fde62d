"""Each unified field in LLM Engine's API: written, omitted if it is neutral, or refused by an error that names it."""

from providers.capabilities import RANKED
from providers.dialects.llm_engine.fields import capabilities
from providers.json_types import JsonObject
from providers.request_fields import STOP_STRING
from providers.unified_request import Guided, LogprobsWanted
from tests.providers.dialects.kit import as_given, body_for, check_refused_by_name, refused, target_of, text_request
from tests.providers.neutral import EACH_NEUTRAL
from tests.support.looped import looped

TARGET = target_of("llm_engine", max_output_tokens=16)
SCHEMA: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
SMALLEST = body_for(text_request(), TARGET)


def added(**params: object) -> JsonObject:
    body = body_for(text_request(**params), TARGET)
    return {name: value for name, value in body.items() if SMALLEST.get(name) != value}


@looped(
    ("params", "members"),
    [
        ({"max_tokens": 5}, {"max_new_tokens": 5}),
        *as_given(temperature=0),
        ({"stop": ("a", "\n")}, {"stop_sequences": ["a", "\n"]}),
        ({STOP_STRING: True}, {STOP_STRING: True}),
        ({"logprobs": LogprobsWanted(0, "legacy")}, {"return_token_log_probs": True}),
        ({"logprobs": LogprobsWanted(1, "legacy")}, {"return_token_log_probs": True}),
        ({"guided": Guided("json", SCHEMA)}, {"guided_json": SCHEMA}),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}, {"guided_json": SCHEMA}),
        ({"response_format": {"type": "json_object"}}, {"guided_json": {"type": "object"}}),
        ({"guided": Guided("regex", "[0-9]{3}")}, {"guided_regex": "[0-9]{3}"}),
        ({"guided": Guided("choice", ("a", "b"))}, {"guided_choice": ["a", "b"]}),
        ({"guided": Guided("grammar", 'root ::= "a"')}, {"guided_grammar": 'root ::= "a"'}),
        ({"context_length_exceeded_behavior": "truncate", "max_tokens": 5}, {"max_new_tokens": 5}),
        *as_given(temperature=0.5, top_p=0.9, top_k=40, presence_penalty=0.5, frequency_penalty=2),
    ],
)
def test_a_field_is_written_in_the_servers_words(params: dict[str, object], members: JsonObject) -> None:
    assert added(**params) == members


def test_values_that_ask_for_nothing_change_nothing() -> None:
    for asked in EACH_NEUTRAL:
        assert all(member in asked.values() for member in added(**asked).values()), asked


@looped(
    ("params", "param"),
    [
        *refused(n=2, best_of=2, max_tokens=0, temperature=1.5, top_p=0, presence_penalty=-0.5, frequency_penalty=-0.5),
        *refused(repetition_penalty=1.1, seed=7, echo=True, logit_bias={"5": 1.0}),
        *refused(logprobs=LogprobsWanted(2, "legacy"), response_format={"type": "structural_tag"}),
    ],
)
def test_a_field_that_cannot_be_honoured_is_refused_by_name(params: dict[str, object], param: str) -> None:
    check_refused_by_name(text_request(**params), TARGET, param)


def test_the_table_says_what_the_encoder_does() -> None:
    table = capabilities(True)
    assert (table.most_stops, table.verifies, table["best_of"]) == (None, True, RANKED)
    assert not capabilities(False).verifies
