"""Positions, problems and nearest names."""

from config.problems import ConfigError, Position, Problem, did_you_mean, dotted, one_line, shown


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


def test_the_nearest_names_are_told_and_far_ones_are_not() -> None:
    assert did_you_mean("opnai", ["openai", "azure"]) == "; did you mean openai?"
    assert did_you_mean("zzz", ["openai", "azure"]) == ""
