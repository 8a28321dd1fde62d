"""Each unified field in the Converse API: written, omitted if it is neutral, or refused by an error that names it."""

import hashlib
from dataclasses import replace

import orjson
import pytest

from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import Guided, LogprobsWanted
from tests.providers.dialects.bedrock.kit import target
from tests.providers.dialects.kit import body_for, chat_request, check_refused_by_name, refused, sent_for, text_request
from tests.providers.neutral import NEUTRAL
from tests.support.looped import looped

CLAUDE, OLD_CLAUDE, NEW_CLAUDE = (
    target(),
    target("anthropic.claude-3-haiku-20240307-v1:0"),
    target("eu.anthropic.claude-opus-4-7"),
)
NOVA, LLAMA = target("amazon.nova-pro-v1:0"), target("us.meta.llama3-3-70b-instruct-v1:0")
COHERE, GPT, PLAIN = (
    target("cohere.command-r-plus-v1:0"),
    target("openai.gpt-oss-120b-1:0"),
    target("arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3"),
)
EVERY = (CLAUDE, OLD_CLAUDE, NEW_CLAUDE, NOVA, LLAMA, COHERE, GPT, PLAIN)

CLOSED: JsonObject = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
OPEN: JsonObject = {"type": "object", "properties": {"a": {"type": "object"}}, "additionalProperties": False}
FORMAT: JsonObject = {
    "textFormat": {
        "type": "json_schema",
        "structure": {"jsonSchema": {"schema": orjson.dumps(CLOSED).decode(), "name": "guided_json"}},
    }
}
NAMED: JsonObject = {
    "textFormat": {
        "type": "json_schema",
        "structure": {
            "jsonSchema": {"schema": orjson.dumps(CLOSED).decode(), "name": "place", "description": "Where it is."}
        },
    }
}


@looped(
    ("to", "params", "members"),
    [
        (PLAIN, {"max_tokens": 5}, {"inferenceConfig": {"maxTokens": 5}}),
        (PLAIN, {"temperature": 0.5, "top_p": 1}, {"inferenceConfig": {"temperature": 0.5, "topP": 1}}),
        (PLAIN, {"metadata": {"run": "nightly"}}, {"requestMetadata": {"run": "nightly"}}),
        (PLAIN, {"user": "u-17"}, {"requestMetadata": {"user": "u-17"}}),
        (PLAIN, {"service_tier": "flex"}, {"serviceTier": {"type": "flex"}}),
        (PLAIN, {"service_tier": "auto"}, {}),
        (PLAIN, {"guided": Guided("json", CLOSED)}, {"outputConfig": FORMAT}),
        (PLAIN, {"response_format": {"type": "json_object", "schema": CLOSED}}, {"outputConfig": FORMAT}),
        (
            PLAIN,
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": None, "strict": True, "schema": CLOSED},
                }
            },
            {"outputConfig": FORMAT},
        ),
        (
            PLAIN,
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "place", "description": "Where it is.", "schema": CLOSED},
                }
            },
            {"outputConfig": NAMED},
        ),
        (PLAIN, {"response_format": {"type": "text"}}, {}),
        (PLAIN, {"max_tokens": 9, "context_length_exceeded_behavior": "error"}, {"inferenceConfig": {"maxTokens": 9}}),
        (NOVA, {"stop": ("a", "b")}, {"inferenceConfig": {"stopSequences": ["a", "b"]}}),
        (NOVA, {"top_k": 40}, {"additionalModelRequestFields": {"inferenceConfig": {"topK": 40}}}),
        (
            CLAUDE,
            {"stop": ("a",)},
            {
                "inferenceConfig": {"stopSequences": ["a"]},
                "additionalModelResponseFieldPaths": ["/stop_sequence", "/delta/stop_sequence"],
            },
        ),
        (CLAUDE, {"top_k": 40}, {"additionalModelRequestFields": {"top_k": 40}}),
        (CLAUDE, {"temperature": 0.5, "top_p": 1}, {"inferenceConfig": {"temperature": 0.5}}),
        (NEW_CLAUDE, {"temperature": 1, "top_p": 1}, {"inferenceConfig": {"temperature": 1}}),
        (
            COHERE,
            {"top_k": 7, "seed": 0, "frequency_penalty": 0.5, "presence_penalty": 0},
            {"additionalModelRequestFields": {"k": 7, "seed": 0, "frequency_penalty": 0.5}},
        ),
    ],
)
def test_a_field_is_written_in_the_service_s_words(to: Target, params: dict[str, object], members: JsonObject) -> None:
    assert body_for(chat_request(**params), to) == {**body_for(chat_request(), to), **members}


@looped("to", EVERY, ids=lambda each: each.model)
def test_values_that_ask_for_nothing_are_no_error_and_change_nothing(to: Target) -> None:
    plain = body_for(chat_request(), to)
    for name, values in NEUTRAL.items():
        for value in values:
            # Some models have a top_p of their own, so that 1 must be said.
            usual = plain.get("inferenceConfig") or {}
            assert isinstance(usual, dict)
            said = {"inferenceConfig": {**usual, "topP": value}} if name == "top_p" else {}
            body = body_for(chat_request(**{name: value}), to)
            assert body in (plain, *([{**plain, **said}] if not to.profile.drops_neutral else [])), name


@looped(
    ("to", "params", "param"),
    [
        *((each, {"n": 2}, "n") for each in EVERY),
        *((CLAUDE, *row) for row in refused(best_of=2, echo=True, suffix="end", seed=0, logit_bias={"5": 1.0})),
        *((CLAUDE, *row) for row in refused(logprobs=LogprobsWanted(0, "legacy"), presence_penalty=0.1, min_p=0.1)),
        *((CLAUDE, *row) for row in refused(temperature=1.2, max_tokens=0, guided=Guided("regex", "a+"))),
        *((CLAUDE, *row) for row in refused(guided=Guided("grammar", "root ::= 'a'"))),
        *((CLAUDE, *row) for row in refused(response_format={"type": "json_schema", "json_schema": {"name": "x"}})),
        *((CLAUDE, *row) for row in refused(response_format={"type": "grammar", "grammar": "x"}, service_tier="gold")),
        (CLAUDE, {"max_tokens": 9, "context_length_exceeded_behavior": "error"}, "context_length_exceeded_behavior"),
        *((CLAUDE, *row) for row in refused(images=(("data:image/png;base64,AA==",),))),
        *((OLD_CLAUDE, *row) for row in refused(guided=Guided("regex", "a+"), reasoning_effort="low")),
        *((NEW_CLAUDE, *row) for row in refused(temperature=0.5, top_p=0.5, top_k=5)),
        *((NOVA, *row) for row in refused(top_k=200)),
        *((PLAIN, *row) for row in refused(top_k=5, stop=("a",), thinking={"type": "adaptive"})),
        *((COHERE, *row) for row in refused(frequency_penalty=1.5)),
    ],
)
def test_a_field_that_cannot_be_honoured_is_refused_by_name(to: Target, params: dict[str, object], param: str) -> None:
    check_refused_by_name(chat_request(**params), to, param)


def test_a_schema_that_the_service_cannot_hold_is_told_in_the_prompt_and_checked() -> None:
    sent = sent_for(chat_request(guided=Guided("json", OPEN)), CLAUDE)
    assert (sent.unenforced, sent.in_prompt) == (("guided_json",), True)
    assert b"outputConfig" not in sent.body


def test_a_default_that_a_surface_filled_in_is_left_out_where_it_cannot_be_honoured() -> None:
    defaults = {"temperature": 0, "max_tokens": 0, "context_length_exceeded_behavior": "error", "seed": 1}
    request = replace(chat_request(**defaults), injected=frozenset(defaults))
    assert body_for(request, NEW_CLAUDE) == body_for(chat_request(), NEW_CLAUDE)


@pytest.mark.parametrize("other", [{"top_p": 0.5}, {"thinking": {"type": "adaptive"}}])
def test_a_filled_in_temperature_gives_way_to_what_does_not_go_with_it(other: JsonObject) -> None:
    request = chat_request(temperature=0, **other)
    assert b"temperature" not in sent_for(replace(request, injected=frozenset({"temperature"})), CLAUDE).body


def test_advisory_fields_are_never_refused_and_named_where_they_are_left_out() -> None:
    many = {str(number): "a" for number in range(17)}
    for params in ({"metadata": {"a": "é"}}, {"metadata": {"": "a"}}, {"metadata": many}, {"prompt_cache_key": "k"}):
        sent = sent_for(chat_request(**params), CLAUDE)
        assert sent.dropped == tuple(params)
        assert orjson.loads(sent.body) == body_for(chat_request(), CLAUDE)


def test_a_model_whose_own_default_cuts_answers_short_gets_a_limit() -> None:
    bare = replace(LLAMA, max_output_tokens=None)
    assert body_for(chat_request(), bare)["inferenceConfig"] == {"maxTokens": 2048}
    assert body_for(chat_request(), LLAMA)["inferenceConfig"] == {"maxTokens": 8192}
    assert body_for(chat_request(max_tokens=5), bare)["inferenceConfig"] == {"maxTokens": 5}
    assert "inferenceConfig" not in body_for(chat_request(), replace(NOVA, max_output_tokens=None))


@looped("user", ["ada@example.com", "+47 22 33 44 55", "Ådne", "x" * 300])
def test_a_user_who_looks_like_an_address_or_does_not_fit_becomes_a_digest(user: str) -> None:
    digest = hashlib.sha256(user.encode()).hexdigest()
    assert body_for(chat_request(user=user), CLAUDE)["requestMetadata"] == {"user": digest}


def test_user_and_metadata_go_together_unless_both_say_a_user() -> None:
    body = body_for(chat_request(user="u", metadata={"run": ""}), CLAUDE)
    assert body["requestMetadata"] == {"user": "u", "run": ""}
    for params in ({"user": "u", "metadata": {"user": "v"}}, {"metadata": {"user": "v"}, "user": "u"}):
        assert sent_for(chat_request(**params), CLAUDE).dropped == ([*params][1],)


def test_metadata_is_not_changed_by_a_user() -> None:
    metadata = {"run": "a"}
    sent_for(chat_request(metadata=metadata, user="u"), CLAUDE)
    assert metadata == {"run": "a"}


def test_a_choice_is_wrapped_into_an_object_and_unwrapped_again() -> None:
    sent = sent_for(text_request(guided=Guided("choice", ("yes", "no"))), PLAIN)
    schema = orjson.loads(orjson.loads(sent.body)["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"])
    assert schema["properties"] == {"choice": {"type": "string", "enum": ["yes", "no"]}}
    assert sent.unwrap_choice
    assert sent.emulated == ("prompt", "guided_choice")


def test_the_name_in_the_table_tells_the_model_that_an_id_hides() -> None:
    hidden = target(PLAIN.upstream_model, name="claude-haiku-4-5")
    assert body_for(chat_request(top_k=5), hidden)["additionalModelRequestFields"] == {"top_k": 5}
    assert "application-inference-profile" in sent_for(chat_request(), hidden).url


@looped(("to", "most"), [(CLAUDE, 32), (NOVA, 4), (LLAMA, 0), (PLAIN, 0)])
def test_stops_beyond_what_a_model_takes_are_left_to_the_gateway(to: Target, most: int) -> None:
    table = to.dialect.capabilities(chat_request(), to)
    assert (table.most_stops, table.blank_stops) == (most, False)
    assert table["stop"].native == (most > 0)
    assert table["stop.many"].native == (most == 32)
    assert table["stop.blank"].emulated


def test_a_window_in_the_table_makes_an_error_possible_where_the_service_ends_the_answer() -> None:
    name = "context_length_exceeded_behavior.error"
    assert CLAUDE.dialect.capabilities(chat_request(), CLAUDE)[name].refused
    known = replace(CLAUDE, context_window=200000)
    table = known.dialect.capabilities(chat_request(), known)
    assert table[name].emulated
    assert table.counts == {"error"}
    assert body_for(chat_request(max_tokens=9, context_length_exceeded_behavior="error"), known)


@looped(
    "params",
    [
        {"guided": Guided("json", CLOSED)},
        {"guided": Guided("choice", ("a",))},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": CLOSED}}},
    ],
)
@looped("to", [OLD_CLAUDE, NOVA], ids=lambda each: each.model)
def test_a_model_that_cannot_be_held_is_told_a_constraint_in_the_prompt(to: Target, params: dict[str, object]) -> None:
    sent = sent_for(chat_request(**params), to)
    assert sent.in_prompt
    assert len(sent.unenforced) == 1
    assert b"outputConfig" not in sent.body
    assert b"jsonSchema" not in sent.body


@looped(("limit", "sent_limit"), [(200_000, 64_000), (64_000, 64_000), (5, 5)])
def test_a_limit_above_the_model_s_becomes_the_model_s_and_is_named(limit: int, sent_limit: int) -> None:
    sent = sent_for(chat_request(max_tokens=limit), target())
    assert orjson.loads(sent.body)["inferenceConfig"] == {"maxTokens": sent_limit}
    assert sent.emulated == (("max_tokens",) if limit > sent_limit else ())
