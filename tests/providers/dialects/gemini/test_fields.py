"""The unified fields in Gemini's API."""

from dataclasses import replace
from typing import cast

import orjson

from providers.capabilities import FEATURES, Support
from providers.dialects.gemini.fields import capabilities, fields_of, profile_for
from providers.dialects.gemini.models import reasoning_rule
from providers.dialects.gemini.thinking import REFUSING_WRITERS
from providers.json_types import JsonObject
from providers.profiles.load_profiles import load_profiles
from providers.target import Target
from providers.unified_request import Guided, LogprobsWanted, Operation, Params
from tests.providers.dialects.gemini.kit import DIALECT, NEWEST, OLD, TARGET, VERTEX, body_of, config_of, tool
from tests.providers.dialects.kit import chat_request, refusal_for, refused, text_request
from tests.providers.neutral import EACH_NEUTRAL
from tests.support.looped import looped

SCHEMA: JsonObject = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@looped(
    ("params", "config"),
    [
        ({}, None),
        ({"max_tokens": 5}, {"maxOutputTokens": 5}),
        ({"temperature": 0}, {"temperature": 0}),
        ({"top_p": 0.5, "top_k": 40}, {"topP": 0.5, "topK": 40}),
        ({"presence_penalty": 0.5, "frequency_penalty": -1}, {"presencePenalty": 0.5, "frequencyPenalty": -1}),
        ({"seed": 7}, {"seed": 7}),
        ({"seed": -7}, {"seed": -7}),
        ({"seed": 2**31 + 5}, {"seed": 5}),
        ({"stop": ("\n", "END")}, {"stopSequences": ["\n", "END"]}),
        ({"logprobs": LogprobsWanted(0, "content")}, {"responseLogprobs": True}),
        ({"logprobs": LogprobsWanted(3, "content")}, {"responseLogprobs": True, "logprobs": 3}),
        ({"response_format": {"type": "json_object"}}, {"responseMimeType": "application/json"}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}},
            {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA},
        ),
        (
            {"response_format": {"type": "json_object", "schema": SCHEMA}},
            {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA},
        ),
        ({"guided": Guided("json", SCHEMA)}, {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}),
        (
            {"guided": Guided("choice", ("yes", "no"))},
            {"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": ["yes", "no"]}},
        ),
    ],
)
def test_a_field_is_written_under_the_vendors_name(params: dict[str, object], config: JsonObject | None) -> None:
    assert config_of(chat_request(**params), OLD) == config


def test_what_the_vendor_ignores_in_a_schema_is_told_in_its_description_and_checked() -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x"}}}
    for params in ({"guided": Guided("json", schema)}, {"response_format": {"type": "json_object", "schema": schema}}):
        sent = DIALECT.encode(chat_request(**params), TARGET)
        assert sent.unenforced == ("guided_json" if "guided" in params else "response_format",)
        assert orjson.loads(sent.body)["generationConfig"]["responseJsonSchema"] == {
            "type": "object",
            "properties": {"a": {"type": "string", "description": '(pattern: "^x")'}},
        }


def test_older_models_have_no_form_beside_functions() -> None:
    params: dict[str, object] = {"tools": [tool()], "response_format": {"type": "json_object"}}
    told = DIALECT.encode(chat_request(**params), OLD)
    assert (told.in_prompt, told.unenforced, b"responseMimeType" in told.body) == (True, ("response_format",), False)
    assert config_of(chat_request(**params)) == {"responseMimeType": "application/json"}
    assert config_of(chat_request(tools=[tool()], response_format={"type": "text"}), OLD) is None


@looped(("tier", "native"), [("default", "standard"), ("flex", "flex"), ("priority", "priority"), ("auto", None)])
def test_a_tier_is_said_in_the_body(tier: str, native: str | None) -> None:
    assert body_of(chat_request(service_tier=tier)).get("serviceTier") == native


def test_a_tier_is_refused_where_there_is_none() -> None:
    assert refusal_for(chat_request(service_tier="scale"), TARGET).param == "service_tier"
    assert refusal_for(chat_request(service_tier="flex"), VERTEX).param == "service_tier"
    for tier in ("auto", "default"):
        assert DIALECT.encode(chat_request(service_tier=tier), VERTEX).dropped == ("service_tier",)


@looped("name", ["presence_penalty", "frequency_penalty", "logprobs", "top_p", "top_k"])
def test_what_the_newest_models_lack_is_refused_there(name: str) -> None:
    value: object = LogprobsWanted(1, "content") if name == "logprobs" else 0.5
    assert refusal_for(chat_request(**{name: value}), NEWEST).param == name


def test_the_newest_models_have_one_temperature() -> None:
    assert config_of(chat_request(temperature=1), NEWEST) == {"temperature": 1}
    refusal = refusal_for(chat_request(temperature=0.5), NEWEST)
    assert (refusal.param, refusal.code) == ("temperature", "unsupported_parameter")


def test_a_default_of_the_surface_is_left_out_where_it_would_be_refused() -> None:
    request = replace(chat_request(temperature=0.2, max_tokens=5), injected=frozenset({"temperature"}))
    assert config_of(request, NEWEST) == {"maxOutputTokens": 5}


def test_metadata_are_labels_on_vertex_and_left_out_elsewhere() -> None:
    given = chat_request(metadata={"team": "search", "Run": "7", "note": "Two words"})
    assert body_of(given, VERTEX)["labels"] == {"team": "search"}
    assert DIALECT.encode(given, VERTEX).dropped == ("metadata",)
    assert DIALECT.encode(chat_request(metadata={"team": "search"}), VERTEX).dropped == ()
    assert "labels" not in body_of(given)
    assert DIALECT.encode(given, TARGET).dropped == ("metadata",)
    many = {f"k{number}": "v" for number in range(65)}
    assert len(cast(JsonObject, body_of(chat_request(metadata=many), VERTEX)["labels"])) == 64


@looped("params", [{"user": "ann"}, {"store": False}, {"safety_identifier": "x"}, {"prompt_cache_key": "x"}])
def test_what_promises_nothing_is_left_out_and_named(params: dict[str, object]) -> None:
    sent = DIALECT.encode(chat_request(**params), TARGET)
    assert sent.dropped == tuple(params)
    assert body_of(chat_request(**params)) == body_of(chat_request())


@looped(
    ("params", "param"),
    [
        *refused(guided=Guided("regex", "a")),
        *refused(guided=Guided("grammar", 'root ::= "a"'), response_format={"type": "grammar", "grammar": "x"}),
        *refused(response_format={"type": "json_schema", "json_schema": {"name": "a"}}, logit_bias={"1": 2}, min_p=0.1),
        *refused(images=(("data:",),), logprobs=LogprobsWanted(21, "content"), max_tokens=0),
        *refused(reasoning_history="preserved"),
    ],
)
def test_what_the_vendor_lacks_is_refused_by_name(params: dict[str, object], param: str) -> None:
    assert refusal_for(chat_request(**params), OLD).param == param


@looped("asked", EACH_NEUTRAL)
@looped("target", [TARGET, OLD, NEWEST], ids=["3.1", "2.5", "newest"])
def test_a_value_that_asks_for_nothing_changes_nothing(asked: dict[str, object], target: Target) -> None:
    assert body_of(text_request(**asked), target) == body_of(text_request(), target)


@looped("row", ["gemini", "vertex"])
@looped("model", ["gemini-2.0-flash", "gemini-2.5-flash", "gemini-3-pro-preview", "gemini-3.8-flash"])
@looped("asked", Operation)
def test_a_table_says_something_of_every_feature(row: str, model: str, asked: Operation) -> None:
    profile = profile_for(load_profiles()[row], model)
    reasons = reasoning_rule(model).reasons
    table = capabilities(profile, asked, reasons)
    assert set(table) >= set(FEATURES)
    for name in cast(set[str], Params.__annotations__.keys()) & fields_of(profile, reasons).keys() & FEATURES.keys():
        silent = name in REFUSING_WRITERS and not reasons
        assert (table[name].support is Support.REFUSED) is silent, name


def test_candidates_are_ranked_only_where_there_are_log_probabilities() -> None:
    old = DIALECT.capabilities(text_request(), OLD)
    new = DIALECT.capabilities(text_request(), NEWEST)
    assert (old["best_of"].emulated, new["best_of"].refused) == (True, True)
    assert old.most_stops == 5
    assert DIALECT.capabilities(chat_request(), OLD)["echo"].refused


def test_the_sampling_settings_that_went_are_told_by_the_models_names() -> None:
    row = load_profiles()["gemini"]
    ignoring = ["gemini-3.5-flash-lite", "gemini-3.6-flash", "gemini-3.12-pro", "gemini-4-flash", "gemini-flash-latest"]
    heeding = [
        "gemini-2.5-flash",
        "gemini-3-pro-preview",
        "gemini-3.1-pro-preview",
        "gemini-3.5-flash",
        "gemini-pro-latest",
    ]
    assert all("top_k" not in fields_of(profile_for(row, name)) for name in ignoring)
    assert all("top_k" in fields_of(profile_for(row, name)) for name in heeding)
