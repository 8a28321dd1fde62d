"""Time zones by name, near misses, and machines without time zone data."""

import datetime
import zoneinfo

import pytest

from config.time_zones import zone_fault, zone_named
from tests.config.tables import complaints, load
from tests.support.looped import looped

SUMMER = datetime.datetime(2026, 7, 1, tzinfo=datetime.UTC)


def test_a_zone_is_found_by_its_name() -> None:
    assert zone_named("UTC") is datetime.UTC
    assert SUMMER.astimezone(zone_named("Europe/Berlin")).utcoffset() == datetime.timedelta(hours=2)


@looped("name", ["Europe", "../etc/passwd", "/etc/localtime", "", "a\0b", "Nowhere/There"])
def test_what_is_no_zone_is_one_error_whatever_the_path(name: str) -> None:
    with pytest.raises(zoneinfo.ZoneInfoNotFoundError):
        zone_named(name)


@looped(
    ("name", "fault"),
    [
        ("UTC", None),
        ("America/Sao_Paulo", None),
        ("Europe/Berln", "no time zone has this name; did you mean Europe/Berlin or Europe/Dublin or Europe/Belfast?"),
        ("europe/berlin", None),
        ("canary-9", "no time zone has this name; it is written like Europe/Berlin"),
        ("x" * 65, "must be the name of a time zone, such as Europe/Berlin"),
        ("a\nb", "must be the name of a time zone, such as Europe/Berlin"),
    ],
)
def test_an_unknown_zone_is_told_with_the_nearest_names(name: str, fault: str | None) -> None:
    if name == "europe/berlin" and zone_fault(name) is not None:
        assert "did you mean Europe/Berlin?" in str(zone_fault(name))
    else:
        assert zone_fault(name) == fault


def test_a_machine_without_zones_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> zoneinfo.ZoneInfo:
        raise zoneinfo.ZoneInfoNotFoundError(name)

    monkeypatch.setattr(zoneinfo, "ZoneInfo", none)
    monkeypatch.setattr(zoneinfo, "available_timezones", set)
    told = zone_fault("Europe/Berlin")
    assert told == "this machine has no time zones but UTC: install the package tzdata (pip install tzdata)"
    assert zone_fault("UTC") is None


def test_the_table_names_its_zone() -> None:
    assert load("version: 1\nvendors: {v: {}}\nmodels: {v/m: {}}").config.server.timezone == "UTC"
    told = complaints("version: 1\nserver: {timezone: Europe/Berln}\nvendors: {v: {}}\nmodels: {v/m: {}}")
    assert told == [
        "2:20 server.timezone: no time zone has this name; did you mean Europe/Berlin or Europe/Dublin or "
        "Europe/Belfast?"
    ]
