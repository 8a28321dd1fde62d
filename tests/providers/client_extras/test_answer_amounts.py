"""The limits and counts in request bodies that determine how much a vendor generates, under the names of every
dialect."""

from collections.abc import Iterator

import orjson

from providers.client_extras.answer_amounts import (
    ADDED,
    AMOUNTS,
    COUNTS,
    LIMITS,
    UNLIMITED,
    AskedAmounts,
    amount_of,
    asked_amounts,
    held_to,
)
from providers.dialects.registry import DIALECTS
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import UnifiedRequest
from tests.providers.dialects.kit import chat_request, target_of, text_request
from tests.support.looped import looped

MODELS = (
    "tiny",
    "gpt-6",
    "claude-opus-5",
    "amazon.titan-text-x",
    "meta.llama4-x",
    "mistral.x",
    "ai21.jamba-x",
    "qwen3",
)


def bodies(profile: str, **params: object) -> Iterator[JsonObject]:
    """Yield the bodies that a profile's dialect encodes for these fields, for models of several kinds."""
    for model in MODELS:
        for request in (text_request("hi", **params), chat_request(**params)):
            target = target_of(profile, model)
            try:
                sent = target.dialect.encode(request, target)
            except Refusal:
                continue
            yield orjson.loads(sent.body)


def test_every_dialect_has_a_row() -> None:
    assert set(AMOUNTS) == set(DIALECTS)


@looped("profile", sorted(load_profiles()))
def test_a_limit_and_a_count_are_read_under_the_encoder_s_own_names(profile: str) -> None:
    dialect = load_profiles()[profile].dialect
    written = [body for body in bodies(profile, max_tokens=1234) if b"1234" in orjson.dumps(body)]
    assert all((asked_amounts([dialect], [body]).limit or 0) >= 1234 for body in written)
    assert written or not load_profiles()[profile].wires or dialect == "replicate"
    for body in bodies(profile, max_tokens=7, n=3):
        assert asked_amounts([dialect], [body]).answers == 3 or b"3" not in orjson.dumps(body)


def nested(path: str, members: JsonObject) -> JsonObject:
    """Return these fields at a path of a body."""
    made: JsonValue = members
    for step in reversed(path.split(".") if path else []):
        made = {step: made}
    assert isinstance(made, dict)
    return made


def spelled_limits(dialect: str) -> Iterator[tuple[str, str]]:
    """Yield each object of a dialect's body with each name of a limit, in several spellings."""
    for holder in AMOUNTS[dialect].holders:
        for name in LIMITS:
            camel = name.split("_")[0] + "".join(each.title() for each in name.split("_")[1:])
            yield from ((holder, spelled) for spelled in (name, name.upper(), camel))


@looped("dialect", sorted(AMOUNTS))
def test_each_name_counts_in_each_object_in_any_spelling(dialect: str) -> None:
    for holder, spelled in spelled_limits(dialect):
        assert asked_amounts([dialect], [nested(holder, {spelled: 4000})]) == AskedAmounts(4000), spelled
    for holder in AMOUNTS[dialect].holders:
        for name in COUNTS:
            assert asked_amounts([dialect], [nested(holder, {name: 16})]) == AskedAmounts(None, 0, 16)
        for name in ADDED:
            assert asked_amounts([dialect], [nested(holder, {name: 9})]) == AskedAmounts(None, 9)


def test_the_largest_counts_of_several_bodies_and_of_a_list() -> None:
    listed: JsonObject = {"sampling_params": [{"max_new_tokens": 3}, {"max_new_tokens": 9, "n": 2}, 5]}
    assert asked_amounts(["sglang"], [listed, {"n": 4, "max_tokens": 8, "x" * 99: 1}]) == AskedAmounts(9, 0, 4)
    assert asked_amounts(["openai", "gemini"], [{"generationConfig": {"maxOutputTokens": 5}}]).limit == 5
    assert asked_amounts(["openai"], [{"metadata": {"max_tokens": 5}}]) == AskedAmounts()


@looped(
    ("value", "amount"),
    [
        (5, 5),
        (5.5, 5.5),
        ("4000", 4000),
        (0, 0),
        (None, UNLIMITED),
        (-1, UNLIMITED),
        (True, UNLIMITED),
        ("x", UNLIMITED),
        ("9" * 40, UNLIMITED),
        ("nan", UNLIMITED),
        ([5], UNLIMITED),
        ({}, UNLIMITED),
    ],
)
def test_what_is_no_number_is_no_limit(value: JsonValue, amount: float) -> None:
    assert amount_of(value) == amount


def test_a_count_that_is_none_is_one_answer() -> None:
    assert asked_amounts(["openai"], [{"n": None, "thinking_budget": None}]) == AskedAmounts()


def extended(request: UnifiedRequest, extra: JsonObject) -> UnifiedRequest:
    """Return the request with extra fields."""
    object.__setattr__(request, "extra_params", extra)
    return request


@looped("profile", sorted(load_profiles()))
def test_what_a_client_adds_is_read_as_it_stands_in_the_body_that_is_sent(profile: str) -> None:
    target = target_of(profile)
    dialect = target.profile.dialect
    for holder in AMOUNTS[dialect].holders:
        for name in (*LIMITS, *COUNTS):
            extra = nested(holder, {name: 4000})
            try:
                sent = target.dialect.encode(extended(chat_request(max_tokens=1), extra), target)
            except Refusal:
                continue  # a protected field
            asked, whole = asked_amounts([dialect], [extra]), asked_amounts([dialect], [orjson.loads(sent.body)])
            assert (max(asked.limit or 0, 1), asked.answers) >= (min(whole.limit or 1, 4000), whole.answers)


@looped("dialect", sorted(AMOUNTS))
def test_each_limit_is_lowered_in_each_object_in_any_spelling(dialect: str) -> None:
    for holder, spelled in spelled_limits(dialect):
        for value in (4000, "4000", 4000.5):
            given = nested(holder, {spelled: value, "seed": 4000})
            held = held_to(1500, dialect, given)
            assert asked_amounts([dialect], [held]).limit in (1500, 1024), spelled
            assert given == nested(holder, {spelled: value, "seed": 4000})
        kept = nested(holder, {spelled: 1500, "metadata": {"max_tokens": 4000}})
        assert held_to(1500, dialect, kept) is kept


@looped(
    ("members", "held"),
    [
        ({"max_tokens": -1, "n_predict": -1}, {"max_tokens": 1500, "n_predict": 1500}),
        ({"max_tokens": None, "num_predict": "x", "max_new_tokens": True, "max_length": {}}, None),
        ({"thinking_budget": 9000, "thinking": {"budget_tokens": 1501}}, {"thinking_budget": 1024, "thinking": 1024}),
        ({"thinking": {"budget_tokens": -1, "max_tokens": None}, "thinking_budget": -1}, None),
        ({"extra_body": [{"max_tokens": 1501}, 5, {"n": 9}]}, {"extra_body": [{"max_tokens": 1500}, 5, {"n": 9}]}),
    ],
)
def test_how_far_members_are_lowered(members: JsonObject, held: JsonObject | None) -> None:
    if held is not None and held.get("thinking") == 1024:
        held = {**held, "thinking": {"budget_tokens": 1024}}
    assert held_to(1500, "openai", members) == (held or members)
