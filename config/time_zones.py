"""Time zones by their names in the IANA database, from the system or the package `tzdata`.

Source: `zoneinfo` of Python 3.11 to 3.14. A key that is a folder or no path raises OSError or ValueError.
"""

import datetime
import zoneinfo
from typing import Final

from config.problem import did_you_mean

UTC_NAME: Final = "UTC"
_MOST_NAME_CHARACTERS: Final = 64


def zone_named(name: str) -> datetime.tzinfo:
    """Return the zone with this name. UTC needs no database. Raises ZoneInfoNotFoundError."""
    if name == UTC_NAME:
        return datetime.UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (OSError, ValueError):
        raise zoneinfo.ZoneInfoNotFoundError(name) from None


def zone_fault(name: str) -> str | None:
    """Return why the text names no zone, with similar names; `None` if it names a zone."""
    if len(name) > _MOST_NAME_CHARACTERS or not name.isprintable():
        return "must be the name of a time zone, such as Europe/Berlin"
    try:
        zone_named(name)
    except zoneinfo.ZoneInfoNotFoundError:
        known = zoneinfo.available_timezones()
        if not known:
            return "this machine has no time zones but UTC: install the package tzdata (pip install tzdata)"
        return f"no time zone has this name{did_you_mean(name, known) or '; it is written like Europe/Berlin'}"
    return None
