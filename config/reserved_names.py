"""Names that no team and no route may have: metrics and logs use them for requests without a team or route."""

from collections.abc import Set
from typing import Final

RESERVED_TEAMS: Final[Set[str]] = frozenset({"anonymous", "other", "unknown"})
"""Requests to a table without teams, past the limit of label values, and without a known key."""

RESERVED_ROUTES: Final[Set[str]] = frozenset({"none", "other"})
"""Requests that no deployment answered, or that name nothing in the table."""


def taken(kind: str, reserved: Set[str]) -> str:
    """Return the message for a reserved name; `kind` is `team` or `route`."""
    names = ", ".join(sorted(reserved))
    return f"this name is taken: metrics and the log use {names} for requests without a {kind}; choose another"
