"""What of a table runs out, seen from a moment: keys and the listener's certificate. Never makes a table unusable.

Apart from the other checks because they hold whenever they are asked; these take the time as an argument.
"""

from collections.abc import Iterator
from typing import Final

from config.loader import Loaded
from config.problems import Path, Problem
from config.schema import Team

DAY: Final = 86400.0

SOON: Final = 14 * DAY
"""Seconds before its end from which on something is warned of."""


def expiry_warnings(loaded: Loaded, now: float) -> tuple[Problem, ...]:
    """What has expired or will soon, and the teams that have no key left; `now` is in unix seconds."""
    keys = (problem for name, team in loaded.config.teams.items() for problem in _keys(loaded, name, team, now))
    return (*_certificate(loaded, now), *keys)


def expiry(ends: float, now: float) -> str | None:
    """What to say of something that ends then, in unix seconds; None as long as that is far off."""
    left = ends - now
    if left <= 0:
        return "has expired"
    if left > SOON:
        return None
    days = int(left // DAY)
    return f"expires in {days} day{'' if days == 1 else 's'}" if days else "expires in less than a day"


def _certificate(loaded: Loaded, now: float) -> Iterator[Problem]:
    if loaded.pair is not None and (told := expiry(loaded.pair.ends, now)):
        path: Path = ("server", "tls", "cert")
        yield Problem.at(loaded.locate(path), path, f"the certificate {told}")


def _keys(loaded: Loaded, name: str, team: Team, now: float) -> Iterator[Problem]:
    path: Path = ("teams", name, "keys")
    for index, own in enumerate(team.keys):
        if told := expiry(own.ends, now):
            here: Path = (*path, index, "not_after")
            yield Problem.at(
                loaded.locate(here), here, f"{'this key' if own.name is None else f'the key {own.name}'} {told}"
            )
    if all(own.ends <= now for own in team.keys):
        yield Problem.at(loaded.locate(path), path, "every key of this team has expired: nobody can ask as this team")
