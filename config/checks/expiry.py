"""Warn of keys of teams, and of a listener's certificate, that expire. Unlike the other checks, these checks depend on
the current time."""

from collections.abc import Iterator
from typing import Final, Protocol

from config.checks.open_listener import LocatedConfig
from config.problem import Path, Problem
from config.reading.read_certificates import Pair
from config.sections.team_section import TeamSection

DAY: Final = 86400.0

WARNING_TIME: Final = 14 * DAY
"""Seconds before an expiry from which on there is a warning."""


class _Expiring(LocatedConfig, Protocol):
    @property
    def pair(self) -> Pair | None: ...


def expiry_warnings(loaded: _Expiring, now: float) -> tuple[Problem, ...]:
    """Return warnings for keys and certificates that have expired or will soon, and for teams without a valid key.
    `now` is in unix seconds."""
    keys = (problem for name, team in loaded.config.teams.items() for problem in _keys(loaded, name, team, now))
    return (*_certificate(loaded, now), *keys)


def expiry(ends: float, now: float) -> str | None:
    """Return the message for something that expires at `ends`, in unix seconds; `None` if it does not expire soon."""
    left = ends - now
    if left <= 0:
        return "has expired"
    if left > WARNING_TIME:
        return None
    days = int(left // DAY)
    return f"expires in {days} day{'' if days == 1 else 's'}" if days else "expires in less than a day"


def _certificate(loaded: _Expiring, now: float) -> Iterator[Problem]:
    if loaded.pair is not None and (message := expiry(loaded.pair.ends, now)):
        path: Path = ("server", "tls", "cert")
        yield Problem.at(loaded.locate(path), path, f"the certificate {message}")


def _keys(loaded: _Expiring, name: str, team: TeamSection, now: float) -> Iterator[Problem]:
    path: Path = ("teams", name, "keys" if team.keys else "keys_from")
    for kind, index, own in team.every_key():
        if message := expiry(own.ends, now):
            here: Path = ("teams", name, kind, index, own.expires_key)
            yield Problem.at(
                loaded.locate(here), here, f"{'this key' if own.name is None else f'the key {own.name}'} {message}"
            )
    ends = [own.ends for _, _, own in team.every_key()]
    if ends and max(ends) <= now:
        yield Problem.at(loaded.locate(path), path, "every key of this team has expired: no client can use this team")
