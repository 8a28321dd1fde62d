"""A property gets a share of its examples with every change."""

import pytest

from tests.support.examples import examples
from tests.support.looped import looped
from tests.support.nightly import run


@looped(
    ("most", "by_day"), [(1_000, 250), (100, 25), (60, 25), (20, 20)], ids=["a quarter", "least", "no fewer", "all"]
)
def test_a_change_tries_a_share_and_the_night_all(most: int, by_day: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for nightly, tried in ((False, by_day), (True, most)):
            patch.setattr(run, "nightly", nightly)
            assert examples(most).max_examples == tried
            assert examples(most).deadline is None
