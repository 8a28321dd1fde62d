"""Names, durations and weights in the forms of a config file."""

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from config.sections.value_types import DeploymentName, RouteName
from proxy.cli.imports import table_values as values
from tests.proxy.cli.imports.kit import section
from tests.support.looped import looped


@given(st.text(max_size=300))
def test_every_name_becomes_one_that_a_table_takes(text: str) -> None:
    TypeAdapter(DeploymentName).validate_python(values.word(text, "default"))
    TypeAdapter(DeploymentName).validate_python(values.team_name(text))
    TypeAdapter(RouteName).validate_python(values.route_name(text))


def test_a_name_that_is_fit_stays_and_one_that_is_taken_does_not() -> None:
    assert values.route_name("meta/llama-3.1:8b@x") == "meta/llama-3.1:8b@x"
    assert values.route_name("my model") == "my-model"
    assert values.route_name("none") == "none-route"
    assert values.team_name("unknown") == "unknown-team"


def test_names_that_are_alike_are_told_apart() -> None:
    used: set[str] = set()
    for _ in range(500):
        used.add(values.unused("a" * 64, used))
    assert len(used) == 500
    assert max(map(len, used)) == 64


@looped(
    ("number", "written"),
    [
        (30, "30s"),
        (0.5, "500ms"),
        (1.5, "1.5s"),
        (0.0001, "1ms"),
        (86400, "86400s"),
        (86401, None),
        (0, None),
        (-1, None),
    ],
)
def test_durations_are_within_a_day(number: float, written: str | None) -> None:
    assert values.seconds(number) == written


def test_retries_become_attempts() -> None:
    read = section("a: 3\nb: 99\nc: -1\nd: x\n")
    assert [values.attempts(read, key) for key in "abcde"] == [4, 10, 1, None, None]
    assert [problem.path for problem in read.remarks.problems] == ["b", "d"]


def test_what_is_no_duration_or_number_of_tokens_is_told() -> None:
    read = section("a: 30000\nb: 0\nc: 128000\nd: 0.5\n")
    assert (values.duration(read, "a", 0.001), values.duration(read, "b")) == ("30s", None)
    assert (values.tokens(read, "c"), values.tokens(read, "d"), values.tokens(read, "e")) == (128000, None, None)
    assert [problem.path for problem in read.remarks.problems] == ["b", "d"]


@looped(
    ("given_weights", "whole"),
    [([1, 1], [1, 1]), ([0.75, 0.25], [3, 1]), ([0.5, 0], [1, 0]), ([0, 0], [1, 1]), ([6, 1440], [6, 1440]), ([], [])],
)
def test_weights_are_whole_and_in_proportion(given_weights: list[float], whole: list[int]) -> None:
    assert values.weights(given_weights) == whole


@given(st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=8))
def test_any_weights_are_within_a_tables_limits(given_weights: list[float]) -> None:
    whole = values.weights(given_weights)
    assert all(0 <= weight <= values.MAX_WEIGHT for weight in whole)
    assert sum(whole) > 0


@looped(
    ("name", "value"),
    [
        ("X-Team", "search"),
        ("x-a", "HEADERSECRET"),
        ("User-Agent", "sk-0123456789abcdef01234"),
        ("X-Title", "Basic dXNlcjpwdw=="),
        ("HTTP-Referer", "https://user:pw@example.com"),
        ("HTTP-Referer", "https://example.com/?k=pw"),
    ],
)
def test_a_header_may_hold_a_credential_unless_name_and_value_are_known_not_to(name: str, value: str) -> None:
    assert not values.is_harmless_header(name, value)
    assert values.is_harmless_header("Anthropic-Beta", "context-1m-2025-08-07")
    assert values.is_harmless_header("HTTP-Referer", "https://example.com")


def test_variables_have_names_that_a_table_can_write() -> None:
    assert values.variable("azure-eu", "api_key") == "AZURE_EU_API_KEY"
    assert all(values.is_variable(values.variable(odd)) for odd in ("", "1", "é", "x" * 500))
    assert not values.is_variable("A B")


def test_long_lists_are_cut() -> None:
    assert values.joined(["a", "b"]) == "a, b"
    assert values.joined(map(str, range(120))).endswith("99 and 20 more")
