"""Positions, problems, and the nearest known name."""

from config.problem import ConfigError, Position, Problem, did_you_mean, dotted, glued_key, one_line, shown
from tests.support.looped import looped


def test_a_problem_is_one_line_with_file_line_column_path_and_message() -> None:
    problem = Problem.at(Position("t.yaml", 3, 7), ("teams", "a", "keys", 0), "must not be empty")
    assert str(problem) == "t.yaml:3:7 teams.a.keys.0: must not be empty"


def test_a_problem_of_the_whole_file_has_no_path() -> None:
    assert str(Problem.at(Position("t.yaml", 1, 1), (), "is empty")) == "t.yaml:1:1 is empty"


def test_names_with_line_breaks_stay_on_one_line() -> None:
    problem = Problem.at(Position("a\nb.yaml", 1, 1), ("x\ny", "\u2028"), "about \x1b[31m\r\n")
    assert str(problem) == r"a\nb.yaml:1:1 x\ny.\u2028: about \x1b[31m\r\n"


def test_problems_come_in_file_order_and_once() -> None:
    late, early = Problem("a", 10, 1, "", "x"), Problem("a", 9, 40, "", "y")
    error = ConfigError([late, early, late])
    assert error.problems == (early, late)
    assert str(error) == "a:9:40 y\na:10:1 x"


def test_printable_text_is_left_alone() -> None:
    assert one_line("naïve – 中文") == "naïve – 中文"


def test_a_long_name_is_cut() -> None:
    assert len(shown("x" * 1000)) == 120
    assert dotted(("a", "b" * 1000, 3)).endswith("….3")


def test_the_nearest_names_are_reported_and_far_ones_are_not() -> None:
    assert did_you_mean("opnai", ["openai", "azure"]) == "; did you mean openai?"
    assert did_you_mean("zzz", ["openai", "azure"]) == ""


@looped(
    ("name", "expected"),
    [
        ("sk-live-SECRET", "sk-…"),
        ("openai/sk_live_1", "openai/sk_…"),
        ("0123456789abcdef0123456789abcdef", "012…"),
        ("AIzaSyA-b_c1", "AIz…"),
        ("eyJhbGciOi.eyJzdWIi", "eyJ….eyJ…"),
    ],
)
def test_of_a_name_that_looks_like_a_secret_only_the_beginning_is_reported(name: str, expected: str) -> None:
    assert shown(name) == expected
    assert str(Problem.at(Position("t", 1, 1), ("vendors", name), "x")) == f"t:1:1 vendors.{expected}: x"


@looped(
    "name",
    [
        "anthropic/claude-sonnet-4-5-20250929",
        "max_output_tokens_of_everything_there_is",
        "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8",
        "bedrock/us.anthropic.claude-3-7-sonnet-20250219-v1:0",
        "risk-model-1",
    ],
)
def test_long_names_of_models_and_settings_are_shown_whole(name: str) -> None:
    assert shown(name) == name


def test_of_a_key_that_holds_its_value_only_the_key_is_reported() -> None:
    path = ("vendors", "v", "api_key:canary")
    assert glued_key(path) == "api_key"
    assert dotted(path) == "vendors.v.api_key"
    assert dotted(("vendors", "v:canary", "api_key")) == "vendors.v.api_key"


@looped("path", [("models", "v/m:8b"), ("routes", "m:8b"), ("teams", "t", "routes", "m:8b")])
def test_models_and_routes_may_have_colons_in_their_names(path: tuple[str, ...]) -> None:
    assert glued_key(path) is None
    assert dotted((*path, "weight")) == f"{'.'.join(path)}.weight"


def test_names_that_differ_only_in_case_are_near() -> None:
    assert did_you_mean("OPENAI", ["openai", "azure"]) == "; did you mean openai?"
    assert did_you_mean("x", ["X", "Y"]) == "; did you mean X?"
