"""The list of figures: each number exists, each selection exists, and each sabotage still matches its file."""

import ast
from collections import Counter
from dataclasses import replace

from tests.faults.registry import NUMBERS
from tests.support.gateway import ROOT
from tests.support.looped import looped
from tests.trust.board import ALL
from tests.trust.figure_types import Case, Figure, NotHeld, Sabotage, Tests
from tests.trust.figures import LOOPS, failed_over, faults_shown, none_leaked
from tests.trust.mutations import name_of, occurrences

FOUND = [figure for figure in ALL if not isinstance(figure.how, NotHeld)]
HELD = {name_of(figure): figure.how for figure in FOUND if isinstance(figure.how, Tests)}


def test_every_number_is_on_the_board_and_no_line_twice() -> None:
    assert {figure.number for figure in ALL} == {f"R{number:02}" for number in range(1, 50)}
    assert Counter(map(name_of, ALL)).most_common(1)[0][1] == 1


@looped("figure", FOUND, ids=name_of)
def test_every_figure_has_a_sabotage_that_fits(figure: Figure) -> None:
    sabotage = figure.sabotage
    assert sabotage is not None
    assert occurrences(sabotage, ROOT) == 1
    assert sabotage.old not in ("", sabotage.new)
    if sabotage.file.endswith(".py"):
        text = (ROOT / sabotage.file).read_text(encoding="utf-8")
        ast.parse(text.replace(sabotage.old, sabotage.new))


def test_no_two_numbers_share_a_sabotage() -> None:
    lines: dict[Sabotage, set[str]] = {}
    for figure in FOUND:
        if figure.sabotage is not None:
            lines.setdefault(figure.sabotage, set()).add(figure.number)
    assert [numbers for numbers in lines.values() if len(numbers) > 1] == []


def there(node: str) -> bool:
    """Return whether the file contains the test. For a node without a test, return whether the file exists."""
    path, _, function = node.partition("::")
    return f"def {function}(" in (ROOT / path).read_text(encoding="utf-8") or not function


@looped("name", HELD)
def test_every_test_that_a_figure_names_is_there(name: str) -> None:
    assert HELD[name].selection
    assert [node for node in HELD[name].selection if not there(node)] == []


def case(number: int, loop: str, state: str = "passed") -> Case:
    assert state in ("passed", "failed")
    module, name = "tests.faults.test_faults", f"test_a_fault[F{number:02}-it-{loop}]"
    return Case(module, name, "passed" if state == "passed" else "failed", 0.1)


SHOWN = [case(number, loop) for number in NUMBERS for loop in sorted(LOOPS)]


def test_all_faults_on_both_loops_are_good() -> None:
    result = faults_shown(SHOWN)
    assert (result.value, result.good) == ("69 of 69", True)


@looped(
    "cases",
    [
        SHOWN[1:],
        [each for each in SHOWN if "F20" not in each.name],
        [*SHOWN[:-1], case(70, "uvloop", "failed")],
        [*SHOWN, Case("tests.faults.test_faults", "test_every_number", "failed", 0.1)],
    ],
    ids=["one loop", "none", "failed", "the list"],
)
def test_a_fault_that_is_not_shown_on_both_loops_is_bad(cases: list[Case]) -> None:
    assert not faults_shown(cases).good


def test_a_case_that_this_machine_cannot_run_shows_nothing_and_breaks_nothing() -> None:
    skipped = [replace(case(66, loop), state="skipped") for loop in sorted(LOOPS)]
    assert faults_shown([*SHOWN, *skipped]).good
    assert none_leaked([*SHOWN, *skipped]).value == f"0 leaked in {len(SHOWN)} cases"
    assert not faults_shown([*(each for each in SHOWN if "F66" not in each.name), *skipped]).good


def test_of_a_case_that_failed_nothing_else_is_known() -> None:
    assert none_leaked(SHOWN).good
    result = none_leaked([*SHOWN, case(1, "uvloop", "failed")])
    assert (result.value, result.good) == (f"0 leaked in {len(SHOWN)} cases; nothing is known of 1 that failed", False)


SCENARIOS = [
    Case("tests.faults.test_failover", f"test_seven[S{number:02}-{kind}]", "passed", 1.0)
    for number, kind in enumerate(["pass"] * 12 + ["safe"] * 4, 1)
]


def test_twelve_passes_and_four_safe_ends_are_good() -> None:
    assert failed_over(SCENARIOS).good
    assert failed_over(SCENARIOS).value == "12 pass, 4 safe"


@looped(
    "cases",
    [
        SCENARIOS[1:],
        [replace(SCENARIOS[0], state="failed"), *SCENARIOS[1:]],
        [replace(SCENARIOS[0], name="test_seven[S01-safe]"), *SCENARIOS[1:]],
        [*SCENARIOS, replace(SCENARIOS[0], name="test_a_rule", state="failed")],
    ],
    ids=["one is absent", "one failed", "one less passes", "a rule"],
)
def test_a_scenario_that_ends_otherwise_is_bad(cases: list[Case]) -> None:
    assert not failed_over(cases).good
