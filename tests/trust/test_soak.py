"""The soak finds a slope, counts broken requests, and stops. The tests are short."""

from pathlib import Path

import pytest
import uvloop

from tests.support.looped import looped
from tests.trust import soak
from tests.trust.soak import BROKEN, Course, slope


@looped(
    ("points", "found"),
    [
        ([], 0.0),
        ([(1.0, 5.0)], 0.0),
        ([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)], 2.0),
        ([(0.0, 1.0), (1.0, 3.0), (2.0, 900.0), (3.0, 7.0), (4.0, 9.0)], 2.0),
        ([(float(second), 4.0) for second in range(9)], 0.0),
    ],
)
def test_the_slope_is_that_of_most_pairs(points: list[tuple[float, float]], found: float) -> None:
    assert slope(points) == found


def test_a_short_soak_breaks_no_promise_and_stops(tmp_path: Path) -> None:
    soaked = uvloop.run(soak.soak(tmp_path, Course(1.5, 0.2, 40.0, 0.3)))
    assert soaked.ends.total() + soaked.left == 60
    assert sum(soaked.ends[end] for end in BROKEN) == 0
    assert len(soaked.looks) >= 2
    assert all(look.memory > 0 and look.descriptors > 3 for look in soaked.looks)


def test_the_command_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert soak.main(["--minutes", "0.02", "--rate", "20", "--most", "1e9"]) in (0, 1)
    assert capsys.readouterr().out.startswith("stopped after 0.02 min: ")


@pytest.mark.nightly
def test_cycles_of_equal_loads_are_weighed(tmp_path: Path) -> None:
    assert " from cycle 2 to cycle 3 of 40 requests each (" in soak.cycling(tmp_path, 3, 40, 100.0).value
