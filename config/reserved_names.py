"""Names that no team and no route may have: metrics and the log say them of requests that have none.

Never where a name stands in a table.
"""

from collections.abc import Set
from typing import Final

RESERVED_TEAMS: Final[Set[str]] = frozenset({"anonymous", "other", "unknown"})
"""Whose requests are those of a table without teams, those past the limit of label values, and those without a key."""

RESERVED_ROUTES: Final[Set[str]] = frozenset({"none", "other"})
"""What requests ask for that were answered by no deployment, or that name nothing of the table."""


def taken(kind: str, reserved: Set[str]) -> str:
    """What is wrong with such a name of a `team` or a `route`."""
    names = ", ".join(sorted(reserved))
    return f"this name is taken: metrics and the log use {names} for requests without a {kind}; choose another"
