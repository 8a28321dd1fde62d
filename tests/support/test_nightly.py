"""A run for a change checks some rows of a table and smaller sizes; the nightly run checks all."""

import pytest

from tests.support.looped import looped
from tests.support.nightly import by_day, run, some


@looped(("nightly", "size", "rows"), [(False, 3, [1, 3, 5]), (True, 9, [1, 2, 3, 4, 5])], ids=["a change", "the night"])
def test_a_change_checks_some_and_the_night_all(nightly: bool, size: int, rows: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "nightly", nightly)
        assert by_day(3, 9) == size
        assert some((1, 2, 3, 4, 5), 2) == rows
