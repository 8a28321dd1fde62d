"""Numbers with a unit, as the config file has them."""

from config.units import duration, size
from tests.support.looped import looped


@looped(
    ("seconds", "text"),
    [
        (5.0, "5s"),
        (0.5, "0.5s"),
        (600.0, "600s"),
        (3600.0, "1h"),
        (7200, "2h"),
        (5400.0, "5400s"),
        (86400.0, "1d"),
        (34_560_000.0, "400d"),
        (0.0, "0s"),
    ],
)
def test_a_duration_is_shown_as_a_table_writes_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@looped(("number", "text"), [(1024, "1KiB"), (2**25, "32MiB"), (2**30, "1GiB"), (1500, "1500 bytes"), (0, "0 bytes")])
def test_a_size_is_shown_as_a_table_writes_it(number: int, text: str) -> None:
    assert size(number) == text
