"""Counts of the lines of files and of their definitions."""

from tests.bench.ablation.source_lines import lines_of


def test_lines_are_those_of_a_file_or_a_definition() -> None:
    assert 0 < lines_of("proxy/loop_clock.py:loop_clock") < lines_of("proxy/loop_clock.py")
    assert 0 < lines_of("proxy/timers.py:Timers.set") < lines_of("proxy/timers.py:Timers")
    assert lines_of("proxy/loop_clock.py:nobody") == lines_of("proxy/nobody.py") == 0
