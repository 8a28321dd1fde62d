"""Entries stored for owners: their bounds, their lifetime, and the owner whose entries are evicted first."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from proxy.conversations.stored_entries import OVERHEAD, StoredEntries
from tests.support.cpu_growth import growth

BYTES = 64 * 1024 * 1024

DATA = b"x" * (1000 - OVERHEAD)
"""An entry that counts 1,000 bytes."""


def keys_of(kept: StoredEntries, owner: str, count: int, now: float = 0.0) -> list[int]:
    found = kept.take(owner, [str(number) for number in range(count)], now)
    return [int(key) for key in found]


def test_an_entry_is_its_owner_s_alone() -> None:
    kept = StoredEntries(BYTES, 3600.0)
    kept.put("a", "k", b"1", 0.0)
    kept.put("b", "k", b"2", 0.0)
    assert kept.take("a", ["k", "other"], 1.0) == {"k": b"1"}
    assert kept.take("b", ["k"], 1.0) == {"k": b"2"}
    assert kept.take("c", ["k"], 1.0) == {}
    assert kept.take("", ["ak"], 1.0) == {}


def test_a_later_entry_of_the_same_key_takes_its_place() -> None:
    kept = StoredEntries(BYTES, 3600.0)
    kept.put("a", "k", DATA, 0.0)
    kept.put("a", "k", b"", 0.0)
    assert (len(kept), kept.size) == (1, OVERHEAD)
    assert kept.take("a", ["k"], 0.0) == {"k": b""}


def test_an_entry_ends_some_time_after_its_last_use() -> None:
    kept = StoredEntries(BYTES, 10.0)
    kept.put("a", "used", DATA, 0.0)
    kept.put("a", "left", DATA, 1.0)
    assert list(kept.take("a", ["used"], 5.0)) == ["used"]
    kept.forget_ended(11.0)
    assert len(kept) == 1
    assert list(kept.take("a", ["used", "left"], 14.0)) == ["used"]
    assert kept.take("a", ["used"], 24.0) == {}
    assert (len(kept), kept.size) == (0, 0)


def test_an_owner_alone_may_use_all_and_loses_what_was_not_used_for_longest() -> None:
    kept = StoredEntries(10_000, 3600.0)
    for number in range(10):
        kept.put("a", str(number), DATA, 0.0)
    assert keys_of(kept, "a", 1) == [0]
    for number in range(10, 13):
        kept.put("a", str(number), DATA, 0.0)
    assert keys_of(kept, "a", 13) == [0, *range(4, 13)]
    assert kept.size == 10_000


def test_who_has_most_gives_way_to_who_has_less() -> None:
    kept = StoredEntries(10_000, 3600.0)
    for number in range(10):
        kept.put("flood", str(number), DATA, 0.0)
    for number in range(5):
        kept.put("light", str(number), DATA, 0.0)
    for number in range(10, 1000):
        kept.put("flood", str(number), DATA, 0.0)
    assert keys_of(kept, "light", 5) == [0, 1, 2, 3, 4]
    assert len(keys_of(kept, "flood", 1000)) == 5


def test_an_entry_larger_than_all_room_is_not_kept() -> None:
    kept = StoredEntries(1000, 3600.0)
    kept.put("a", "k", DATA, 0.0)
    kept.put("a", "k", DATA + b"x", 0.0)
    assert (len(kept), kept.size) == (0, 0)


STEPS = st.tuples(st.sampled_from("abcd"), st.integers(0, 9), st.integers(0, 3000), st.floats(0, 3))


@given(st.lists(STEPS, max_size=120))
def test_sizes_hold_and_nobody_falls_below_an_equal_share(steps: list[tuple[str, int, int, float]]) -> None:
    kept, now, most = StoredEntries(16_000, 10.0), 0.0, 16_000
    for owner, key, length, later in steps:
        now += later
        before = {each: owned.size for each, owned in kept._owners.items()}
        kept.put(owner, str(key), b"x" * length, now)
        assert kept.size <= most
        assert kept.size == sum(entry.size for entry in kept._entries.values())
        assert {each: owned.size for each, owned in kept._owners.items()} == {
            each: sum(entry.size for (whose, _), entry in kept._entries.items() if whose == each)
            for each in {whose for whose, _ in kept._entries}
        }
        assert all(entry.until > now for entry in kept._entries.values())
        for each, size in before.items():
            owned = kept._owners.get(each)
            lost = size - (0 if owned is None else owned.size)
            if each != owner and lost > 0 and later == 0:
                # Only an owner over its equal share before the last eviction can have lost an entry.
                assert size >= most / (len(before) + 1)


def test_a_client_that_makes_thousands_of_ids_is_bounded_and_quick() -> None:
    def flooded(ids: int, most: int) -> StoredEntries:
        kept = StoredEntries(most, 3600.0)
        kept.put("light", "mine", b"x" * 1000, 0.0)
        for number in range(ids):
            kept.put("flood", str(number), b"x" * 2000, 0.0)
        return kept

    assert growth(partial(flooded, 5_000, BYTES), partial(flooded, 20_000, BYTES)) == ""
    kept = flooded(20_000, BYTES)
    assert kept.size <= BYTES
    assert kept.take("light", ["mine"], 0.0)


def test_thousands_of_owners_are_bounded_and_quick() -> None:
    def crowded(owners: int) -> StoredEntries:
        kept = StoredEntries(BYTES, 3600.0)
        for number in range(owners):
            kept.put(str(number), "k", b"x" * 2000, 0.0)
        return kept

    assert growth(partial(crowded, 5_000), partial(crowded, 20_000)) == ""
    kept = crowded(20_000)
    assert kept.size <= BYTES
    assert len(kept._owners) == len(kept)
    assert len(kept._largest) <= 64 + 4 * len(kept)
