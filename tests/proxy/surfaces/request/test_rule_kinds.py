"""The kinds of rule, without the fields that use them."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.json_types import JsonValue
from proxy.surfaces.request import rule_kinds as checks
from proxy.surfaces.request.rule_kinds import Check, Invalid
from tests.support.looped import looped

COUNT = checks.integer(0, 5)


@looped(
    ("check", "good"),
    [
        (checks.boolean, True),
        (checks.boolean, False),
        (checks.string, ""),
        (checks.text, "a"),
        (checks.json_object, {}),
        (checks.anything, [1, "a"]),
        (COUNT, 0),
        (COUNT, 5),
        (checks.integer(1), checks.INT64_MAX),
        (checks.integer(-(2**63)), -(2**63)),
        (checks.number(-2, 2), -2),
        (checks.number(-2, 2), 1.5),
        (checks.any_number, -1e300),
        (checks.one_of("a", "b"), "b"),
    ],
)
def test_a_good_value_comes_back_as_it_is(check: Check, good: JsonValue) -> None:
    result = check(good)
    assert result == good
    assert type(result) is type(good)


@looped(
    ("check", "bad", "reason"),
    [
        (checks.boolean, 1, "must be true or false"),
        (checks.boolean, "true", "must be true or false"),
        (checks.string, 1, "must be a string"),
        (checks.text, "", "must be a non-empty string"),
        (checks.json_object, [], "must be an object"),
        (COUNT, True, "must be an integer from 0 to 5"),
        (COUNT, "1", "must be an integer from 0 to 5"),
        (COUNT, 6, "must be an integer from 0 to 5"),
        (COUNT, -1, "must be an integer from 0 to 5"),
        (COUNT, 1.5, "must be an integer from 0 to 5"),
        (checks.integer(1), 0, "must be an integer of at least 1"),
        (checks.integer(-(2**63)), 2**63, "must be a 64-bit integer"),
        (checks.integer(-(2**63)), 2.0**64, "must be a 64-bit integer"),
        (checks.number(0, 2), 2.1, "must be a number from 0 to 2"),
        (checks.number(0, 2), False, "must be a number from 0 to 2"),
        (checks.any_number, "1", "must be a number"),
        (checks.any_number, True, "must be a number"),
        (checks.one_of("a", "b"), "c", "must be one of 'a', 'b'"),
        (checks.one_of("a", "b"), ["a"], "must be one of 'a', 'b'"),
        (checks.refuse("belongs elsewhere"), {}, "belongs elsewhere"),
        (checks.texts, "a", "must be a list of strings"),
    ],
)
def test_a_bad_value_is_refused_with_its_rule(check: Check, bad: JsonValue, reason: str) -> None:
    with pytest.raises(Invalid) as caught:
        check(bad)
    assert caught.value.message == reason
    assert caught.value.code == "invalid_value"


@looped(("written", "meant"), [(3.0, 3), (0.0, 0), (-0.0, 0)])
def test_an_integral_float_is_an_integer(written: float, meant: int) -> None:
    result = COUNT(written)
    assert result == meant
    assert type(result) is int


def test_a_list_of_texts_becomes_a_tuple_and_names_its_bad_entry() -> None:
    assert checks.texts(["a", "b"]) == ("a", "b")
    with pytest.raises(Invalid) as caught:
        checks.texts(["a", ""])
    assert caught.value.loc == (1,)


def test_a_members_complaint_names_the_whole_path() -> None:
    def check(value: JsonValue) -> object:
        return checks.check_at(checks.boolean, value, "inner", 2)

    with pytest.raises(Invalid) as caught:
        checks.check_at(check, "no", "outer")
    assert caught.value.loc == ("outer", "inner", 2)
    assert checks.check_at(check, True, "outer") is True


@given(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.lists(st.integers()))
)
def test_no_check_raises_anything_but_invalid(value: JsonValue) -> None:
    every: list[Callable[[JsonValue], object]] = [
        checks.boolean,
        checks.string,
        checks.text,
        checks.json_object,
        checks.any_number,
        checks.texts,
        checks.one_of("a"),
        checks.number(0, 1),
        COUNT,
    ]
    for check in every:
        try:
            result = check(value)
        except Invalid:
            continue
        assert result == (tuple(value) if isinstance(value, list) else value)
