"""As whom a command asks. Never keys: the operator names a team."""

from config.problems import did_you_mean
from proxy.snapshot import ANYONE, Snapshot, Team
from proxy.terminal import USAGE, CommandError


def find_team(snapshot: Snapshot, name: str | None) -> Team:
    """The team of that name; without a name somebody who may ask for everything. Raises CommandError."""
    if name is None:
        return ANYONE
    team = snapshot.teams.get(name)
    if team is None:
        known = did_you_mean(name, snapshot.teams) if snapshot.teams else "; the table has no teams"
        raise CommandError(f"no team named {name!r}{known}", USAGE)
    return team
