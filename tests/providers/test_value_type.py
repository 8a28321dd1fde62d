from dataclasses import replace

import pytest

from providers.value_type import value_type


@value_type
class Point:
    """A value."""

    x: int = 0
    y: int = 0


def test_a_value_is_compared_and_replaced_by_its_members() -> None:
    assert replace(Point(1), y=2) == Point(1, 2) != Point(2, 2)


def test_a_value_has_its_members_in_slots() -> None:
    assert not hasattr(Point(), "__dict__")


def test_a_value_that_could_change_has_no_hash() -> None:
    with pytest.raises(TypeError):
        hash(Point())


def test_a_value_shows_its_members() -> None:
    assert repr(Point(1)) == "Point(x=1, y=0)"
