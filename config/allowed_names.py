"""The patterns of allow lists: `*`, `vendor/*`, or a name."""


def covers(pattern: str, name: str) -> bool:
    """Return whether a pattern of an allow list matches a name."""
    return pattern in ("*", name) or (pattern.endswith("/*") and name.startswith(pattern[:-1]))
