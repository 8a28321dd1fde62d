"""Bodies parsed to unified requests."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.json_types import JsonValue
from providers.unified_request import (
    NO_STREAM_OPTIONS,
    ChatPrompt,
    Operation,
    StreamOptions,
    TextPrompt,
    UnifiedRequest,
)
from proxy.errors import GatewayError
from proxy.surfaces.completion_surface import CompletionSurface
from proxy.surfaces.request.field_rules import FIELDS
from proxy.surfaces.request.parse_request import parse
from tests.proxy.surfaces.kit import ROWS, complete, converse, every_row, params_at_fault, refuse, refuse_bytes
from tests.support.examples import examples
from tests.support.looped import looped

OPENAI = ROWS["openai"]


def test_a_request_carries_every_part_of_its_body() -> None:
    request = complete(
        model="a/b",
        prompt=["x", "y"],
        n=2,
        stream=True,
        stream_options={"include_usage": True},
        temperature=0.5,
        seed=7,
        inference_timeout="30",
        inference_extra_params={"top_a": 1},
        inference_extra_headers={"x-a": "b"},
        safe_prompt=True,
        min_tokens=None,
    )
    assert request == UnifiedRequest(
        Operation.COMPLETIONS,
        "a/b",
        TextPrompt(("x", "y")),
        {"n": 2, "temperature": 0.5, "seed": 7, "max_tokens": 16, "context_length_exceeded_behavior": "error"},
        True,
        StreamOptions(include_usage=True),
        frozenset({"max_tokens", "context_length_exceeded_behavior"}),
        {"safe_prompt": True},
        30.0,
        {"top_a": 1},
        {"x-a": "b"},
    )
    assert request.choices == 4


def test_a_bare_request_has_nothing_it_was_not_given() -> None:
    request = converse()
    assert request.prompt == ChatPrompt(({"role": "user", "content": "hi"},))
    assert request.params == {"context_length_exceeded_behavior": "error"}
    assert request.injected == {"context_length_exceeded_behavior"}
    assert (request.stream, request.stream_options) == (False, NO_STREAM_OPTIONS)
    assert (request.unknown, request.timeout, request.extra_params, request.extra_headers) == (None, None, None, None)


@pytest.mark.parametrize("operation", Operation)
def test_null_is_absent_in_every_field(operation: Operation) -> None:
    base: dict[str, JsonValue] = {"model": "m", "stream": None, "unheard_of": None}
    base |= {"prompt": "p"} if operation is Operation.COMPLETIONS else {"messages": [{"role": "user", "content": ""}]}
    nulls: dict[str, JsonValue] = dict.fromkeys(FIELDS[operation].keys() - base.keys())
    for row in ROWS.values():
        bare = row.parse(operation, orjson.dumps(base), None)
        assert row.parse(operation, orjson.dumps(base | nulls), None) == bare
        assert bare.unknown is None


@every_row
def test_every_surface_takes_the_whole_union(row: CompletionSurface) -> None:
    request = complete(
        row,
        max_new_tokens=5,
        stop_sequences=["a"],
        return_token_log_probs=True,
        guided_choice=["a"],
        min_p=0.1,
        top_k=5,
        best_of=2,
        echo=True,
        suffix="s",
        thinking={},
        inference_timeout=3,
    )
    assert request.params["max_tokens"] == 5
    assert request.unknown is None


@every_row
def test_a_field_outside_the_union_is_kept_for_the_dialect(row: CompletionSurface) -> None:
    fields: dict[str, JsonValue] = {"safe_prompt": False, "made_up": [], "min_tokens": 3}
    assert complete(row, **fields).unknown == fields
    assert converse(row, **fields).unknown == fields


@every_row
def test_a_field_outside_the_union_hides_no_other_address(row: CompletionSurface) -> None:
    body = {"model": "v/m", "prompt": "p", "litellm_params": {"a": [{"api_base": "http://evil"}]}}
    with pytest.raises(GatewayError) as caught:
        row.parse(Operation.COMPLETIONS, orjson.dumps(body), None)
    assert caught.value.facts.param == "litellm_params.a.0.api_base"


def test_a_missing_model_is_the_surfaces_default_or_an_error_and_a_bad_one_is_not_replaced() -> None:
    body = orjson.dumps({"prompt": "p"})
    assert OPENAI.parse(Operation.COMPLETIONS, body, "openai/gpt-x").model == "openai/gpt-x"
    facts = refuse_bytes(body)
    assert (facts.param, facts.message) == ("model", "'model' is required.")
    with pytest.raises(GatewayError) as caught:
        OPENAI.parse(Operation.COMPLETIONS, b'{"model":"","prompt":"p"}', "openai/gpt-x")
    assert caught.value.facts.param == "model"


@looped(
    ("operation", "body", "param"),
    [
        (Operation.COMPLETIONS, {}, "prompt"),
        (Operation.COMPLETIONS, {"prompt": None}, "prompt"),
        (Operation.COMPLETIONS, {"messages": [{"role": "user", "content": "x"}]}, "messages"),
        (Operation.CHAT, {}, "messages"),
        (Operation.CHAT, {"messages": None}, "messages"),
        (Operation.CHAT, {"prompt": "x"}, "prompt"),
    ],
)
def test_what_to_answer_must_be_there_and_fit(operation: Operation, body: dict[str, JsonValue], param: str) -> None:
    assert params_at_fault(refuse_bytes(orjson.dumps({"model": "m", **body}), OPENAI, operation)) == [param]


def test_all_problems_are_found_and_the_first_leads() -> None:
    facts = refuse(temperature=3, n=0, stop=[""], logprobs=True, top_logprobs=50)
    assert params_at_fault(facts) == ["temperature", "n", "stop.0", "top_logprobs"]
    assert (facts.param, facts.code, facts.message) == (
        "temperature",
        "invalid_value",
        "'temperature' must be a number from 0 to 2.",
    )
    assert facts.validation


def test_a_field_given_twice_is_refused_for_every_known_field() -> None:
    for name in FIELDS[Operation.COMPLETIONS]:
        body = b'{"%b":null,"model":"m","prompt":"p","%b":null}' % (name.encode(), name.encode())
        assert refuse_bytes(body).message == f"'{name}' is given more than once."


def test_defaults_are_not_shared_between_requests() -> None:
    first, second = complete(), complete()
    assert first.params is not second.params


texts = st.text(st.characters(codec="utf-8"), max_size=6)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars | texts,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "role", "content", "text", "function", "name"]) | texts, inner, max_size=4
        )
    ),
    max_leaves=10,
)
names = st.sampled_from(sorted(FIELDS[Operation.CHAT])) | texts


@examples(300)
@given(st.sampled_from(sorted(ROWS)), st.sampled_from(Operation), values | st.dictionaries(names, values, max_size=6))
def test_no_json_value_raises_anything_but_a_gateway_error(name: str, operation: Operation, body: JsonValue) -> None:
    row = ROWS[name]
    try:
        request = parse(row.rules, operation, orjson.dumps(body), None)
    except GatewayError as error:
        status, rendered = row.error(error.facts)
        assert status == row.validation_status
        assert orjson.loads(rendered)["error"]["message"]
    else:
        assert request.choices >= 1


@examples(200)
@given(st.dictionaries(names, values, max_size=3))
def test_a_sound_request_with_any_further_fields_parses_or_is_refused(extra: dict[str, JsonValue]) -> None:
    body = {"model": "m", "prompt": "p", **extra}
    outcome: UnifiedRequest | GatewayError
    try:
        outcome = OPENAI.parse(Operation.COMPLETIONS, orjson.dumps(body), None)
    except GatewayError as error:
        outcome = error
    assert isinstance(outcome, UnifiedRequest) or outcome.facts.problems
