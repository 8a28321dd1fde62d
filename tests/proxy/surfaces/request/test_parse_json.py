"""The checks of a body's bytes before any field is read."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import ErrorFacts, GatewayError
from proxy.surfaces.request.parse_json import MAX_DEPTH, MAX_ELEMENTS, InvalidJson, decode, load
from tests.support.looped import looped

ACTED_ON = frozenset({"model", "stream", "prompt"})


def refusal(body: bytes) -> ErrorFacts:
    with pytest.raises(GatewayError) as caught:
        load(body, ACTED_ON)
    return caught.value.facts


def nested(depth: int) -> bytes:
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@looped(
    ("body", "reason"),
    [
        (b"", "zero-length"),
        (b"   ", "empty"),
        (b"{", "not valid JSON"),
        (b'{"a":1}x', "after document"),
        (b'{"a":1}{"a":1}', "after document"),
        (b'{"a":NaN}', "not valid JSON"),
        (b'{"a":Infinity}', "not valid JSON"),
        (b'{"a":1e999}', "infinity"),
        (b'{"a":"\\ud800"}', "surrogate"),
        (b'{"a":"\xed\xa0\x80"}', "UTF-8"),
        (b'{"a":"\xff"}', "UTF-8"),
        ('{"a":1}'.encode("utf-16"), "UTF-8"),
        (b"{'a':1}", "not valid JSON"),
        (b'{"a":"\x00"}', "control character"),
        (b"[]", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"7", "not a JSON object"),
    ],
)
def test_bytes_that_are_no_json_object_are_refused_with_the_reason(body: bytes, reason: str) -> None:
    facts = refusal(body)
    assert reason.lower() in facts.message.lower()
    assert (facts.status, facts.code, facts.param, facts.validation) == (400, "invalid_value", None, True)


def test_a_message_repeats_nothing_of_the_body() -> None:
    assert "sk-secret" not in refusal(b'{"key": sk-secret}').message


def test_a_byte_order_mark_is_tolerated() -> None:
    assert load(b'\xef\xbb\xbf{"model":"m"}', ACTED_ON) == {"model": "m"}


BIG = [str(2**64), str(-(2**63) - 1), "9" * 22, "1" + "0" * 5000]


@looped("number", BIG[:3])
@looped("form", ['{"x":%s}', '{ "x" : [{"a": -1, "b": %s}] }', '{"prompt":"1.5e\\"","x":[%s,1e30]}'])
def test_an_integer_that_would_be_rounded_is_refused_by_its_field(form: str, number: str) -> None:
    facts = refusal((form % number).encode())
    assert (facts.param, facts.message) == ("x", "'x' must not hold an integer beyond 64 bits.")
    assert (facts.status, facts.code) == (400, "invalid_value")


def test_an_integer_beyond_every_double_is_no_json() -> None:
    assert "infinity" in refusal(b'{"x":%s}' % BIG[3].encode()).message


@looped(
    ("body", "field"),
    [
        (b'{"x":1e30,"y":18446744073709551616}', "y"),
        (b'{"x": 0.5, "y": 18446744073709551616}', "y"),
        (b'{"x": {"a": 1, "a": 18446744073709551616}}', "x"),
        (b'{"x": -9223372036854775809, "y": [18446744073709551616]}', None),
    ],
)
def test_one_field_with_integers_beyond_64_bits_is_named_and_several_are_a_fault_of_the_body(
    body: bytes, field: str | None
) -> None:
    facts = refusal(body)
    what = "The request body" if field is None else f"'{field}'"
    assert (facts.param, facts.message) == (field, f"{what} must not hold an integer beyond 64 bits.")


@looped(
    "text",
    [
        b'{"x": 18446744073709551615, "y": -9223372036854775808, "z": 9007199254740993}',
        b'{"x": 1e30, "y": 1.8446744073709551616e19, "z": 18446744073709551616.0, "a": 0.12345678901234567890123}',
        b'{"x": 1E-00000000000000000000001, "y": 1e+00000000000000000000001, "z": -1e22}',
        b'{"x": 1e30, "prompt": "18446744073709551616", "18446744073709551616": "\\"18446744073709551616"}',
    ],
)
def test_other_long_numbers_and_digits_in_text_are_taken(text: bytes) -> None:
    assert load(text, ACTED_ON) == json.loads(text)


@looped("depth", [2, 33, 63, 64])
def test_nesting_up_to_the_limit_is_accepted(depth: int) -> None:
    assert load(nested(depth), ACTED_ON)


@looped("depth", [65, 66, 200, 1024, 5000, 90_000, 100_000])
def test_nesting_beyond_the_limit_is_refused(depth: int) -> None:
    message = refusal(nested(depth)).message
    assert f"more than {MAX_DEPTH} levels" in message or "depth limit" in message


def test_many_brackets_side_by_side_or_in_text_are_no_nesting() -> None:
    assert load(b'{"a":' + orjson.dumps([[{}]] * 500) + b"}", ACTED_ON)
    assert load(orjson.dumps({"prompt": "[" * 5000}), ACTED_ON)


def test_too_many_elements_are_refused_before_they_are_built_and_as_many_as_allowed_accepted() -> None:
    assert f"more than {MAX_ELEMENTS}" in refusal(b'{"a":[' + b"{}," * MAX_ELEMENTS + b"{}]}").message
    assert f"more than {MAX_ELEMENTS}" in refusal(b'{"a":[' + b'"",' * 2 * MAX_ELEMENTS + b'""]}').message
    tokens = [1] * (MAX_ELEMENTS - 1)
    assert load(json.dumps({"prompt": tokens}).encode(), ACTED_ON) == {"prompt": tokens}


def test_a_long_text_is_no_bomb_with_commas_or_without() -> None:
    text = 'a, {"b": [1]}, ' * (MAX_ELEMENTS // 2)
    assert load(orjson.dumps({"prompt": text}), ACTED_ON) == {"prompt": text}
    text = "x" * (2 * MAX_ELEMENTS)
    assert load(orjson.dumps({"prompt": text}), ACTED_ON) == {"prompt": text}


@looped(
    "body",
    [
        b'{"model":"a","model":"b"}',
        b'{"model":"a","model":"a"}',
        b'{"model":"a", "x": {"y": 1}, "model" : "b"}',
        b'{"model":"a","mod\\u0065l":"b"}',
        b'{"model":"a","prompt":"\\\\\\" \\": {","model":"b"}',
        b'\xef\xbb\xbf{"model":"a","model":"b"}',
        b'{"a":[{"model":1},":"],"model":"a","model":null}',
    ],
)
def test_a_field_we_act_on_given_twice_is_refused(body: bytes) -> None:
    facts = refusal(body)
    assert facts.param == "model"
    assert facts.message == "'model' is given more than once."


def test_every_repeated_field_is_named_once() -> None:
    facts = refusal(b'{"model":1,"stream":1,"model":2,"stream":2,"model":3}')
    assert [problem.param for problem in facts.problems] == ["model", "stream"]


@looped(
    "body",
    [
        b'{"other":1,"other":2}',
        b'{"a":{"model":1,"model":2}}',
        b'{"model":"a","b":{"model":"c"},"prompt":"\\"model\\":"}',
        b'{ "model" : "a" , "prompt" : "x: y: {" }',
    ],
)
def test_other_repetitions_keep_the_last_value_as_parsers_do(body: bytes) -> None:
    assert load(body, ACTED_ON) == orjson.loads(body)


def test_decoding_without_a_request_says_only_the_reason() -> None:
    with pytest.raises(InvalidJson, match=r"^is not a JSON object$"):
        decode(b"[1]")


texts = st.text(st.characters(codec="utf-8"), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(texts, values, max_size=5), st.sampled_from([None, 1]), st.booleans())
def test_what_python_writes_is_read_back_in_any_form(data: dict[str, object], indent: int | None, raw: bool) -> None:
    assert load(json.dumps(data, indent=indent, ensure_ascii=raw).encode(), ACTED_ON) == data


_DAMAGE = (b"", b" ", b",", b"e999", b"0", b".5", b'"', b"\\", b"\\ud800", b"{", b"]", b"\x00", b"\xff", b"NaN")
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**64 - 1)
numbered = st.dictionaries(texts, st.recursive(numbers | texts, lambda inner: st.lists(inner, max_size=4)), max_size=4)


@given(numbered, st.sampled_from([None, 1]), st.floats(0, 1), st.integers(0, 3), st.sampled_from(_DAMAGE))
def test_a_damaged_text_is_read_as_orjson_reads_it_or_refused(
    data: dict[str, object], indent: int | None, place: float, left_out: int, damage: bytes
) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=False).encode()
    at = round(place * len(text))
    text = text[:at] + damage + text[at + left_out :]
    try:
        read = load(text, frozenset())
    except GatewayError as error:
        refused = error.facts.message
    else:
        assert orjson.dumps(read) == orjson.dumps(orjson.loads(text))
        return
    if "64 bits" in refused:
        assert any(abs(value) >= 2**63 for value in _numbers(json.loads(text)))
    else:
        with pytest.raises(InvalidJson):
            decode(text)


def _numbers(value: object) -> list[float]:
    if isinstance(value, dict | list):
        inner = list(value.values()) if isinstance(value, dict) else value
        return [number for each in inner for number in _numbers(each)]
    return [value] if isinstance(value, int | float) else []


@given(st.lists(st.tuples(st.sampled_from(["model", "b", 'c"', "\\", "é"]), values), max_size=6))
def test_repeated_top_level_keys_are_found_among_any_values(pairs: list[tuple[str, object]]) -> None:
    members = ",".join(f"{json.dumps(name)} : {json.dumps(value)}" for name, value in pairs)
    repeated = sum(name == "model" for name, _ in pairs) > 1
    if repeated:
        assert refusal(f"{{{members}}}".encode()).param == "model"
    else:
        assert load(f"{{{members}}}".encode(), ACTED_ON) == dict(pairs)


@given(st.binary(max_size=64) | st.text(max_size=64).map(lambda text: b'{"model":' + text.encode(errors="replace")))
def test_no_bytes_raise_anything_but_a_gateway_error(body: bytes) -> None:
    try:
        data: object = load(body, ACTED_ON)
    except GatewayError:
        data = {}
    assert isinstance(data, dict)
