"""Each unified field in Anthropic's API: written, omitted if it is neutral, or refused by an error that names it."""

import hashlib
from dataclasses import replace

import orjson
import pytest

from providers.capabilities import NO_PROMISE
from providers.constraints.constraint_styles import BY_PROMPT
from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import Guided, LogprobsWanted
from tests.providers.dialects.anthropic.kit import DIALECT, NEW_VERSION, TARGET, body_of, encode
from tests.providers.dialects.kit import as_given, chat_request, refusal_for, refused, text_request
from tests.providers.neutral import EACH_NEUTRAL
from tests.support.looped import looped

CLOSED: JsonObject = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
OPEN: JsonObject = {"type": "object", "properties": {"a": {"type": "object"}}, "additionalProperties": False}
FORMAT = {"format": {"type": "json_schema", "schema": CLOSED}}


@looped(
    ("params", "members"),
    [
        *as_given(temperature=0.5),
        ({"stop": ("a", "b")}, {"stop_sequences": ["a", "b"]}),
        ({"user": "u-17"}, {"metadata": {"user_id": "u-17"}}),
        ({"metadata": {"user_id": "u-17", "x": "y"}}, {"metadata": {"user_id": "u-17"}}),
        ({"metadata": {"a": "b"}}, {}),
        ({"prompt_cache_key": "k", "store": False, "safety_identifier": "s"}, {}),
        ({"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}),
        ({"reasoning_effort": False}, {"thinking": {"type": "disabled"}}),
        *as_given(temperature=1, top_p=0.9, top_k=40, thinking={"type": "enabled", "budget_tokens": 2000}),
        ({"service_tier": "default"}, {"service_tier": "standard_only"}),
        ({"guided": Guided("json", CLOSED)}, {"output_config": FORMAT}),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "strict": True, "schema": CLOSED},
                }
            },
            {"output_config": FORMAT},
        ),
        ({"response_format": {"type": "json_object", "schema": CLOSED}}, {"output_config": FORMAT}),
        ({"context_length_exceeded_behavior": "truncate"}, {}),
        ({"include_stop_str_in_output": True}, {}),
        *as_given(service_tier="auto"),
    ],
)
def test_a_field_is_written_in_the_vendors_words(params: dict[str, object], members: JsonObject) -> None:
    plain = body_of(chat_request())
    assert body_of(chat_request(**params)) == {**plain, **members}


@pytest.mark.parametrize("target", [TARGET, NEW_VERSION])
def test_values_that_ask_for_nothing_change_nothing(target: Target) -> None:
    plain = body_of(chat_request(), target)
    for asked in EACH_NEUTRAL:
        assert body_of(chat_request(**asked), target) == plain, asked


@looped(
    ("params", "param"),
    [
        *refused(n=2, best_of=2, echo=True, echo_last=2, suffix="end", seed=0, logit_bias={"5": 1.0}),
        *refused(logprobs=LogprobsWanted(0, "legacy"), presence_penalty=0.1, min_p=0.1, temperature=1.2),
        *refused(stop=("a", "\n\n"), guided=Guided("regex", "a+")),
        *refused(guided=Guided("grammar", "root ::= 'a'")),
        *refused(response_format={"type": "json_schema", "json_schema": {"name": "x"}}),
        *refused(response_format={"type": "grammar", "grammar": "x"}, reasoning_effort=True, service_tier="flex"),
        *refused(context_length_exceeded_behavior="error", images=(("data:image/png;base64,AA==",),)),
        *refused(modalities=["text", "audio"]),
    ],
)
def test_a_field_that_cannot_be_honoured_is_refused_by_name(params: dict[str, object], param: str) -> None:
    refusal = refusal_for(chat_request(**params), TARGET)
    assert refusal.param == param
    assert f"'{param}'" in refusal.message
    assert TARGET.name in refusal.message


def test_a_map_has_no_form_so_that_the_prompt_has_to_tell_it() -> None:
    sent = encode(chat_request(guided=Guided("json", OPEN), max_tokens=9))
    assert (sent.unenforced, sent.in_prompt) == (("guided_json",), True)
    assert b"output_config" not in sent.body


NAMED: JsonObject = {"type": "json_schema", "json_schema": {"name": "x", "schema": CLOSED}}


@looped(
    "params", [{"guided": Guided("json", CLOSED)}, {"guided": Guided("choice", ("a", "b"))}, {"response_format": NAMED}]
)
@looped("model", ["claude-3-5-haiku-latest", "claude-sonnet-4-20250514", "claude-opus-4-1", "claude-3-7-sonnet-latest"])
def test_a_model_before_4_5_is_told_a_constraint_in_the_prompt(model: str, params: dict[str, object]) -> None:
    older = replace(TARGET, model=model, upstream_model=model)
    sent = DIALECT.encode(chat_request(**params, max_tokens=9), older)
    assert sent.in_prompt
    assert len(sent.unenforced) == 1
    assert b"output_config" not in sent.body
    table = DIALECT.capabilities(chat_request(), older)
    assert table.strict_tools == NO_PROMISE
    assert table["guided_json"] == table["guided_choice"] == table["response_format.json_schema"] == BY_PROMPT


def test_a_model_before_4_5_is_refused_what_is_no_schema() -> None:
    older = replace(TARGET, upstream_model="claude-opus-4-1-20250805")
    assert refusal_for(chat_request(guided=Guided("regex", "a+")), older).param == "guided_regex"


@looped("field", ["temperature", "top_p", "top_k"])
def test_the_new_version_has_no_sampling_settings(field: str) -> None:
    value = {"temperature": 0.5, "top_p": 0.5, "top_k": 5}[field]
    assert refusal_for(chat_request(**{field: value}), NEW_VERSION).param == field


def test_the_vendors_own_temperature_needs_no_word_on_the_new_version() -> None:
    assert "temperature" not in body_of(chat_request(temperature=1), NEW_VERSION)


def test_a_default_that_a_surface_filled_in_is_left_out_where_it_cannot_be_honoured() -> None:
    defaults = {"temperature": 0, "context_length_exceeded_behavior": "error", "seed": 1}
    request = replace(chat_request(**defaults), injected=frozenset(defaults))
    assert body_of(request, NEW_VERSION) == body_of(chat_request(), NEW_VERSION)
    assert body_of(request) == {**body_of(chat_request()), "temperature": 0}


@pytest.mark.parametrize("other", [{"top_p": 0.5}, {"thinking": {"type": "adaptive"}}])
def test_a_filled_in_temperature_gives_way_to_what_does_not_go_with_it(other: JsonObject) -> None:
    request = chat_request(temperature=0, **other)
    assert "temperature" not in body_of(replace(request, injected=frozenset({"temperature"})))


@looped(
    ("params", "fine"),
    [
        ({"temperature": 0.5}, False),
        ({"temperature": 1}, True),
        ({"top_p": 0.9}, False),
        ({"top_p": 0.95}, True),
        ({"top_k": 5}, False),
    ],
)
def test_thinking_leaves_one_way_of_sampling(params: dict[str, object], fine: bool) -> None:
    thoughtful = {"reasoning_effort": "low", **params}
    if fine:
        assert body_of(chat_request(**thoughtful))
    else:
        (name,) = params
        assert refusal_for(chat_request(**thoughtful), TARGET).param == name


@looped("field", ["temperature", "top_p", "top_k"])
def test_newer_models_have_no_sampling_settings_in_any_version(field: str) -> None:
    target = replace(TARGET, upstream_model="claude-opus-4-7")
    assert refusal_for(chat_request(**{field: 0.5}), target).param == field
    assert DIALECT.capabilities(chat_request(), target)[field].refused
    assert not DIALECT.capabilities(chat_request(), TARGET)[field].refused
    assert "temperature" not in body_of(chat_request(temperature=1, top_p=1, top_k=0), target)


def test_what_promises_nothing_is_left_out_and_named() -> None:
    params = {"prompt_cache_key": "k", "store": False, "metadata": {"a": "b"}, "prompt_cache_retention": "24h"}
    assert set(encode(chat_request(**params)).dropped) == params.keys()
    assert encode(chat_request(metadata={"user_id": "u"})).dropped == ()
    assert body_of(chat_request(metadata={"user_id": "u"}, user="v"))["metadata"] == {"user_id": "v"}


@looped("user", ["ada@example.com", "+47 22 33 44 55", "(555) 010-9999", "x" * 257])
def test_a_user_who_looks_like_an_address_or_a_number_or_is_long_becomes_a_digest(user: str) -> None:
    digest = hashlib.sha256(user.encode()).hexdigest()
    assert body_of(chat_request(user=user))["metadata"] == {"user_id": digest}


def test_a_choice_is_wrapped_into_an_object_and_unwrapped_again() -> None:
    sent = encode(text_request(guided=Guided("choice", ("yes", "no"))))
    schema = orjson.loads(sent.body)["output_config"]["format"]["schema"]
    assert schema["properties"] == {"choice": {"type": "string", "enum": ["yes", "no"]}}
    assert sent.unwrap_choice
    assert sent.emulated == ("prompt", "guided_choice")
