"""A dict that removes the key that was set longest ago."""

from proxy.bounded_dict import BoundedDict


def test_the_entry_that_was_set_longest_ago_makes_room() -> None:
    held: BoundedDict[str, int] = BoundedDict(2)
    for key in ("a", "b", "a", "c"):
        held[key] = 1
    assert list(held) == ["a", "c"]


def test_what_is_in_use_stays_beyond_the_limit() -> None:
    held: BoundedDict[str, int] = BoundedDict(2, lambda value: not value)
    for key, value in {"a": 1, "b": 0, "c": 1, "d": 1}.items():
        held[key] = value
    assert held == {"a": 1, "c": 1, "d": 1}


def test_a_value_that_is_false_or_none_counts_like_others() -> None:
    held: BoundedDict[None, None] = BoundedDict(1)
    held[None] = None
    assert held == {None: None}
