"""The rules of the fields: the values that each accepts, their canonical form, and the values that it refuses."""

from dataclasses import dataclass

import pytest

from providers.json_types import JsonObject, JsonValue
from providers.request_fields import REQUEST_FIELDS
from providers.unified_request import Operation, StreamOptions, TextPrompt
from proxy.surfaces.request import field_rules as fields
from proxy.surfaces.request.field_rules import FIELDS, fields_with
from proxy.surfaces.request.rule_kinds import Invalid, integer
from tests.support.looped import looped

INT64 = 2**63 - 1
URI = "data:image/png;base64,aGk="
TOOL: JsonValue = {"type": "function", "function": {"name": "f"}}
NOT_BOOLEAN: tuple[JsonValue, ...] = (0, 1, "true", [], {})
NOT_STRING: tuple[JsonValue, ...] = (0, True, [], {})
NOT_OBJECT: tuple[JsonValue, ...] = (0, True, "x", [])
BAD_BIASES: tuple[JsonValue, ...] = (
    {"a": 1},
    {"-1": 1},
    {"": 1},
    {"1.0": 1},
    {"٣": 1},
    {"1": 101},
    {"1": -101},
    {"1": "1"},
    {"1": True},
    {"1": None},
)
NOT_NUMBER: tuple[JsonValue, ...] = ("1", True, [], {})


@dataclass(frozen=True)
class Row:
    """A field with values that stay unchanged, values that become another, and invalid values."""

    name: str
    same: tuple[JsonValue, ...]
    bad: tuple[JsonValue, ...]
    becomes: tuple[tuple[JsonValue, object], ...] = ()


NAMED: JsonObject = {"type": "function", "function": {"name": "f"}}

ROWS = (
    Row("model", ("m", "a/b/c#d", "Ünï", "x" * 256, "a b"), ("", " m", "m ", "m\n", "a\tb", "x" * 257, 1, ["m"], {})),
    Row("prompt", (), ([], {}, 1, True), (("a", TextPrompt(("a",))),)),
    Row("max_completion_tokens", (1, INT64), (0, -1, 1.5, 2**64, *NOT_NUMBER), ((16.0, 16),)),
    Row("max_tokens", (0, 1, INT64), (-1, 1.5, float(2**63), *NOT_NUMBER), ((16.0, 16),)),
    Row("max_new_tokens", (1,), (0, -1, 0.5, *NOT_NUMBER), ((2.0, 2),)),
    Row("temperature", (0, 2, 0.7), (-0.1, 2.1, *NOT_NUMBER)),
    Row("top_p", (0, 1, 0.5), (-0.1, 1.1, *NOT_NUMBER)),
    Row("top_k", (-1, 0, 1, 1000), (-2, 1.5, *NOT_NUMBER), ((40.0, 40),)),
    Row("min_p", (0, 1, 0.5), (-0.1, 1.1, *NOT_NUMBER)),
    Row("typical_p", (0, 1, 0.5), (-0.1, 1.1, *NOT_NUMBER)),
    Row("repetition_penalty", (0, 2, 1.1), (-0.1, 2.1, *NOT_NUMBER)),
    Row("presence_penalty", (-2, 2, 0), (-2.1, 2.1, *NOT_NUMBER)),
    Row("frequency_penalty", (-2, 2, 0), (-2.1, 2.1, *NOT_NUMBER)),
    Row("mirostat_lr", (0.1, 5), NOT_NUMBER),
    Row("mirostat_target", (0.1, 5), NOT_NUMBER),
    Row("ignore_eos", (True, False), NOT_BOOLEAN),
    Row("n", (1, 128), (0, 129, 1.5, *NOT_NUMBER), ((2.0, 2),)),
    Row("best_of", (0, 20), (-1, 21, *NOT_NUMBER), ((2.0, 2),)),
    Row("stop", (), ("", [""], ["a", ""], [1], [None], 1, {}), (("a", ("a",)), (["a", "b"], ("a", "b")), ([], ()))),
    Row("stop_sequences", (), ("a", [""], [1], 1, {}), ((["a"], ("a",)), ([], ()))),
    Row("include_stop_str_in_output", (True, False), NOT_BOOLEAN),
    Row("logprobs", (True, False, 0, 5), (-1, 6, 1.5, "1", [], {}), ((2.0, 2),)),
    Row("top_logprobs", (0, 20), (-1, 21, *NOT_NUMBER), ((2.0, 2),)),
    Row("return_token_log_probs", (True, False), NOT_BOOLEAN),
    Row("echo", (True, False), NOT_BOOLEAN),
    Row("echo_last", (0, 7), (-1, *NOT_NUMBER), ((2.0, 2),)),
    Row("suffix", ("", "end"), NOT_STRING),
    Row("stream", (True, False), NOT_BOOLEAN),
    Row(
        "stream_options",
        (),
        ({"include_usage": 1}, {"other": True}, *NOT_OBJECT),
        (
            ({}, StreamOptions()),
            ({"include_usage": True, "include_obfuscation": None}, StreamOptions(include_usage=True)),
            ({"continuous_usage_stats": True}, StreamOptions(continuous_usage_stats=True)),
            ({"include_obfuscation": True}, StreamOptions(include_obfuscation=True)),
        ),
    ),
    Row("logit_bias", ({}, {"50256": -100, "1": 100, "2": 0.5}), (*BAD_BIASES, *NOT_OBJECT)),
    Row("seed", (0, -(2**63), INT64), (2**63, 2.0**64, -(2.0**64), 1.5, *NOT_NUMBER), ((7.0, 7),)),
    Row("user", ("", "ann"), NOT_STRING),
    Row("images", (), ("x", [1], ["x"], {}), (([URI], ((URI,),)), ([[URI], []], ((URI,), ())))),
    Row("context_length_exceeded_behavior", ("truncate", "error"), ("", "Truncate", 1, True, [])),
    Row("response_format", ({"type": "text"}, {"type": "json_object"}), ({}, *NOT_OBJECT)),
    Row("guided_json", ({}, {"type": "object"}), ("x", [], True, 1), (('{"a":1}', {"a": 1}),)),
    Row("guided_regex", ("a+",), ("", *NOT_STRING)),
    Row("guided_choice", (), ([], [""], ["a", "a"], [1], "a", {}), ((["a", "ab"], ("a", "ab")),)),
    Row("guided_grammar", ('root ::= "a"',), ("", *NOT_STRING)),
    Row("structured_outputs", ({},), ([], {"regex": "("}, {"other": 1}), (({"regex": "a"}, {"guided_regex": "a"}),)),
    Row("json_schema", ({"type": "object"},), ([], {"type": 1})),
    Row("regex", ("a+",), ("(", *NOT_STRING), (("", None),)),
    Row("choice", (), ([], "a"), ((["a"], ("a",)),)),
    Row("ebnf", ("root",), NOT_STRING, (("", None),)),
    Row("grammar", ("root",), NOT_STRING, (("", None),)),
    Row("tools", ([], [TOOL]), ([1], [{}], *NOT_OBJECT[:3], {})),
    Row("tool_choice", ("none", "auto", "required"), ("", "any", 1, True, [], {})),
    Row("functions", ([],), ({}, "x", [1], [{}]), (([{"name": "f"}], [NAMED]),)),
    Row("function_call", ("none", "auto"), ("required", 1, {}), (({"name": "f"}, NAMED),)),
    Row("web_search_options", ({}, {"search_context_size": "low"}), ("x", [], 1)),
    Row("parallel_tool_calls", (True, False), NOT_BOOLEAN),
    Row("audio", ({"format": "wav"},), NOT_OBJECT),
    Row("modalities", (["text"], ["text", "audio"], ["image"]), ([], "text", {}, [1], [""])),
    Row("prediction", ({"type": "content", "content": "x"},), NOT_OBJECT),
    Row("prompt_cache_key", ("", "k"), NOT_STRING),
    Row("prompt_cache_isolation_key", ("", "k"), NOT_STRING),
    Row("metadata", ({}, {"a": "b"}), NOT_OBJECT),
    Row("prompt_cache_retention", ("24h", "in_memory"), NOT_STRING),
    Row("safety_identifier", ("", "someone"), NOT_STRING),
    Row("store", (True, False), NOT_BOOLEAN),
    Row("service_tier", ("auto",), NOT_STRING),
    Row("reasoning_effort", ("low", 1024, True, False), ("", 1.5, [], {})),
    Row("reasoning", ({"effort": "low"}, {}), (*NOT_OBJECT, {"effort": 1}, {"max_tokens": 0}, {"enabled": 1})),
    Row("verbosity", ("low", "high"), NOT_STRING),
    Row("reasoning_history", ("preserved",), NOT_STRING),
    Row("thinking", ({"type": "enabled"},), NOT_OBJECT),
    Row("raw_output", (True, False), NOT_BOOLEAN),
    Row("return_token_ids", (True, False), NOT_BOOLEAN),
    Row("perf_metrics_in_response", (True, False), NOT_BOOLEAN),
    Row("speculation", ({"a": 1}, "x", [1], 1, True), ()),
    Row("inference_timeout", (30.0, 0.5), (0, -1, "2m", True, [], {}), ((30, 30.0), ("30", 30.0))),
    Row("inference_extra_params", ({}, {"a": [1]}), ({"stream": True}, *NOT_OBJECT)),
    Row("inference_extra_headers", ({}, {"x-a": "b"}), ({"Host": "x"}, {"x-a": 1}, *NOT_OBJECT)),
)  # fmt: skip

COMPLETIONS = FIELDS[Operation.COMPLETIONS]


def test_every_field_has_its_row() -> None:
    assert sorted(row.name for row in ROWS) == sorted(COMPLETIONS.keys() - {"messages"})


@looped(("name", "value"), [(row.name, value) for row in ROWS for value in row.same])
def test_a_good_value_stays_as_it_is(name: str, value: JsonValue) -> None:
    assert COMPLETIONS[name](value) == value


@looped(("name", "value", "canonical"), [(row.name, value, canon) for row in ROWS for value, canon in row.becomes])
def test_another_spelling_becomes_the_canonical_one(name: str, value: JsonValue, canonical: object) -> None:
    result = COMPLETIONS[name](value)
    assert result == canonical
    assert type(result) is type(canonical)


@looped(("name", "value"), [(row.name, value) for row in ROWS for value in row.bad])
def test_a_bad_value_is_refused(name: str, value: JsonValue) -> None:
    with pytest.raises(Invalid) as caught:
        COMPLETIONS[name](value)
    assert caught.value.message
    assert caught.value.code == "invalid_value"


def test_each_operation_refuses_the_others_prompt_and_shares_every_other_field() -> None:
    with pytest.raises(Invalid, match="send 'prompt'"):
        FIELDS[Operation.COMPLETIONS]["messages"]([])
    with pytest.raises(Invalid, match="send 'messages'"):
        FIELDS[Operation.CHAT]["prompt"]("x")
    assert FIELDS[Operation.CHAT].keys() == COMPLETIONS.keys()


def test_a_surfaces_own_rule_replaces_the_common_one_and_leaves_the_rest() -> None:
    own = integer(1)
    changed = fields_with({"top_k": own})
    for operation in Operation:
        assert changed[operation]["top_k"] is own
        assert changed[operation]["n"] is FIELDS[operation]["n"]
    assert FIELDS[Operation.CHAT]["top_k"] is not own


def test_a_list_that_must_not_be_empty_is_refused_when_it_is() -> None:
    assert fields.some_stop("x") == ("x",)
    with pytest.raises(Invalid, match="at least one"):
        fields.some_stop([])


@pytest.mark.parametrize("operation", Operation)
def test_every_spelling_of_every_field_is_checked(operation: Operation) -> None:
    spellings = {name for field in REQUEST_FIELDS for name in (field.name, *field.aliases)}
    assert set(FIELDS[operation]) == spellings
