"""The metrics of the current configuration in a scrape."""

import math

from proxy.telemetry.table_metrics import MOST_KEYS, ConfigurationFamilies, ExpiringKey


def shown(families: ConfigurationFamilies) -> dict[str, float]:
    return {
        f"{name.removeprefix('dragoman_')}{dict(labels)}": value
        for family in families()
        for (name, labels), value in family.samples
    }


def test_a_name_has_as_many_targets_left_as_are_asked_as_usual() -> None:
    states = {"v/m/a": 2, "v/m/b": 1, "v/n/default": 0}
    families = ConfigurationFamilies(states.items)
    families.use({"fast": ("v/m/a", "v/m/b", "v/n/default", "v/never/asked"), "v/m": ("v/m/a", "v/m/b")}, (), None)
    assert shown(families) == {
        "targets_available{'model': 'fast'}": 2,
        "targets_available{'model': 'v/m'}": 0,
    }
    states["v/m/a"] = 0
    assert shown(families)["targets_available{'model': 'v/m'}"] == 1


def test_what_expires_is_shown_and_nothing_that_does_not() -> None:
    families = ConfigurationFamilies(tuple)
    keys = [ExpiringKey("search", "ci", 1.8e9), ExpiringKey("search", "for ever", math.inf)]
    families.use({}, keys, 1.9e9)
    assert shown(families) == {
        "certificate_expiry_timestamp_seconds{}": 1.9e9,
        "key_expiry_timestamp_seconds{'team': 'search', 'key': 'ci'}": 1.8e9,
    }


def test_another_table_leaves_nothing_of_the_one_before() -> None:
    families = ConfigurationFamilies(tuple)
    families.use({"old": ("v/m/a",)}, [ExpiringKey("search", "ci", 1.8e9)], 1.9e9)
    families.use({"new": ("v/m/a",)}, (), None)
    assert shown(families) == {"targets_available{'model': 'new'}": 1}


def test_the_number_of_keys_is_bounded_and_the_first_to_expire_are_shown() -> None:
    families = ConfigurationFamilies(tuple)
    families.use({}, [ExpiringKey("search", f"k{number}", 2e9 - number) for number in range(MOST_KEYS + 500)], None)
    ends = shown(families).values()
    assert len(ends) == MOST_KEYS
    assert max(ends) < 2e9 - 500 + 1


def test_keys_of_one_name_are_one_series_of_the_first_to_expire() -> None:
    families = ConfigurationFamilies(tuple)
    families.use({}, [ExpiringKey("search", "ci", 1.9e9), ExpiringKey("search", "ci", 1.8e9)], None)
    assert list(shown(families).values()) == [1.8e9]
