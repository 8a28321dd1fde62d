"""Function names fitted to a vendor: unique, reversible, and changed only if necessary."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.adaptation.forced_calls import chosen_name
from providers.dialects.shared.tool_names import DistinctNames, FittedNames, offered_names
from providers.failure import Refusal
from providers.json_types import JsonValue
from tests.support.looped import looped


class LetterFirst(FittedNames):
    """Names that must begin with a letter."""

    __slots__ = ()

    fits = re.compile(r"[a-z][a-z0-9]{0,7}")
    foreign = re.compile(r"[^a-z0-9_]")
    most = 8
    lead = "f"


class LettersOnly(FittedNames):
    """Names of letters and underscores."""

    __slots__ = ()

    fits = re.compile(r"[a-z_]{1,5}")
    foreign = re.compile(r"[^a-z_]")
    most = 5


def test_a_name_that_fits_keeps_itself_even_when_another_would_become_it() -> None:
    names = LettersOnly(["a b", "a_b"])
    assert (names["a b"], names["a_b"]) == ("a_b_2", "a_b")
    assert names.changed() == {"a_b_2": "a b"}


def test_a_name_that_begins_as_none_may_gets_a_lead() -> None:
    assert LetterFirst(["1234567890"])["1234567890"] == "f1234567"


@given(st.lists(st.text(max_size=8), unique=True, max_size=8))
def test_wire_names_are_unique_and_lead_back(offered: list[str]) -> None:
    names = LettersOnly(offered)
    wire = [names[name] for name in offered]
    assert len(set(wire)) == len(wire)
    assert all(len(name) <= 5 for name in wire)
    assert [names.changed().get(name, name) for name in wire] == offered


def test_only_names_that_no_tool_has_are_of_the_history() -> None:
    names = LettersOnly(["a"])
    assert [names.used(name) for name in ("a", "b c", "b c")] == ["a", "b_c", "b_c"]
    assert names.history == ["b_c"]
    assert "b c" in names


@pytest.mark.parametrize(
    ("tools", "code"),
    [
        ([{"type": "custom", "custom": {"name": "a"}}], "unsupported_parameter"),
        ([{"type": "function", "function": {"name": "a"}}] * 2, "invalid_value"),
    ],
)
def test_other_tools_and_the_same_name_twice_are_refused(tools: list[dict[str, object]], code: str) -> None:
    with pytest.raises(Refusal) as caught:
        offered_names({"tools": tools})  # type: ignore[typeddict-item]  # literals of JSON
    assert (caught.value.param, caught.value.code) == ("tools", code)


def test_functions_are_listed_in_their_order() -> None:
    assert offered_names({"tools": [{"type": "function", "function": {"name": name}} for name in "ba"]}) == ["b", "a"]
    assert offered_names({}) == []


def test_the_function_a_choice_names_is_read_where_it_is_offered() -> None:
    assert chosen_name({"type": "function", "function": {"name": "weather"}}, {"weather", "time"}) == "weather"


@looped(
    "choice",
    [
        {"type": "custom", "function": {"name": "weather"}},
        {"type": "function"},
        {"type": "function", "function": "weather"},
        {"type": "function", "function": {"name": 7}},
    ],
)
def test_a_choice_of_another_kind_is_refused(choice: dict[str, JsonValue]) -> None:
    with pytest.raises(Refusal, match="of type 'function'") as refused:
        chosen_name(choice, {"weather"})
    assert refused.value.param == "tool_choice"


def test_a_choice_of_a_function_that_is_not_offered_is_refused_by_its_name() -> None:
    with pytest.raises(Refusal, match="'tide', which is not among 'tools'") as refused:
        chosen_name({"type": "function", "function": {"name": "tide"}}, {"weather"})
    assert (refused.value.param, refused.value.code) == ("tool_choice", "invalid_value")


def test_a_taken_name_gets_the_least_free_number_and_stays_within_the_length() -> None:
    names = DistinctNames({"a_2"})
    assert [names.add("a") for _ in range(12)] == ["a", *(f"a_{number}" for number in range(3, 14))]
    short = DistinctNames(most=4)
    assert [short.add("abcd") for _ in range(11)] == [
        "abcd",
        *(f"ab_{number}" for number in range(2, 10)),
        "a_10",
        "a_11",
    ]
    assert [short.add(name) for name in ("abxy", "abxy", "axyz", "axyz")] == ["abxy", "a_12", "axyz", "ax_2"]


def test_a_name_of_any_length_has_its_number_behind_its_own_mark() -> None:
    names = DistinctNames(mark=" ")
    assert [names.add("x" * 300) for _ in range(2)] == ["x" * 300, "x" * 300 + " 2"]


def test_a_tool_of_another_kind_is_refused_by_its_type() -> None:
    with pytest.raises(Refusal, match="no tools of the type 'web_search'"):
        offered_names({"tools": [{"type": "web_search"}]})
