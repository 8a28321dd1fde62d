"""Model names matched by patterns: the first matching model is used."""

from providers.list_prices.match_model import ModelNames
from tests.support.looped import looped

NAMES = ModelNames(
    [
        {"equals": ["a", "same"]},
        {"starts_with": ["b-"], "ends_with": ["-b"]},
        {"contains": ["mid"], "equals": ["c"]},
        {"regex": ["^d-[0-9]{4}-[0-9]{2}-[0-9]{2}$"]},
        {"all": [{"contains": ["x"]}, {"contains": ["y"]}]},
        {"equals": ["same", "mid-late", "late"]},
        None,
    ]
)


@looped(
    ("name", "place"),
    [
        *(("a", 0), ("same", 0), ("b-1", 1), ("1-b", 1), ("amid", 2), ("c", 2), ("mid-late", 2), ("late", 5)),
        *(("d-2026-01-02", 3), ("d-20260102", 3), ("d-20261302", None), ("xy", 4), ("x", None), ("", None)),
    ],
)
def test_a_name_means_the_first_model_that_matches(name: str, place: int | None) -> None:
    assert NAMES.find(name) == place
