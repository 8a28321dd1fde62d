"""The remarks on imported files, and the line that sums them up."""

from config.problem import Position, Problem
from proxy.cli.imports.remarks import Remarks

ONE = Problem.at(Position("f", 1, 1), ("a",), "is lost")


def test_what_is_taken_is_counted() -> None:
    remarks = Remarks()
    remarks.count("key", 195, 200)
    remarks.count("model", 1, 1)
    remarks.count("model", 35, 38)
    remarks.settings.add(ONE)
    assert remarks.summary() == "36 of 39 models, 195 of 200 keys, 1 setting without counterpart"
    assert not remarks.is_complete


def test_a_remark_loses_nothing_by_itself() -> None:
    remarks = Remarks([ONE])
    remarks.count("team", 1, 1)
    assert (remarks.is_complete, remarks.summary()) == (True, "1 of 1 team, nothing left out")
    remarks.lost_sections.add(ONE)
    assert (remarks.is_complete, remarks.summary()) == (False, "1 of 1 team")
