"""Names that no team and no route may have: metrics and logs use them for requests without a team or route."""

from collections.abc import Set
from typing import Final

RESERVED_TEAMS: Final[Set[str]] = frozenset({"anonymous", "other", "unknown"})
"""The names for requests without teams in the configuration, for requests beyond the limit of label values, and for
requests without a known key."""

RESERVED_ROUTES: Final[Set[str]] = frozenset({"none", "other"})
"""The names for requests that reached no deployment, and for requests whose name is not in the configuration."""


def reserved_name_message(kind: str, reserved: Set[str]) -> str:
    """Return the message for a reserved name. `kind` is `team` or `route`."""
    names = ", ".join(sorted(reserved))
    return f"this name is reserved: metrics and the log use {names} for requests without a {kind}; choose another"
