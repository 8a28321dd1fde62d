"""The kinds of vendors: the vendors of one kind have the same dialect and rewrite messages by the same hooks."""

from collections.abc import Iterable, Mapping

import pytest

from providers.profile import Profile
from providers.profiles.load_profiles import load_profiles


def kind_of(profile: Profile) -> tuple[str, ...]:
    """Return the dialect of a profile and its hooks."""
    return (profile.dialect, *sorted(profile.hooks))


def others_nightly(rows: Iterable[str], profiles: Mapping[str, Profile] | None = None) -> list[object]:
    """Return rows of `parametrize` for profiles by name: the first of each kind, and the others marked `nightly`.

    For tests of a mechanism that is the same for all vendors of a kind. A row whose name is not a profile is a kind of
    its own.
    """
    known = load_profiles() if profiles is None else profiles
    seen: set[object] = set()
    chosen: list[object] = []
    for row in rows:
        kind = kind_of(known[row]) if row in known else row
        chosen.append(pytest.param(row, marks=pytest.mark.nightly) if kind in seen else row)
        seen.add(kind)
    return chosen
