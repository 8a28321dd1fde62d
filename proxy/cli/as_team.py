"""The team for which a command resolves names; the operator names it, without a key."""

from config.problem import did_you_mean
from proxy.cli.terminal import USAGE, CommandError
from proxy.routing.snapshot import ANYONE, Snapshot, Team


def find_team(snapshot: Snapshot, name: str | None) -> Team:
    """Return the team of that name; without a name one that may use everything. Raises CommandError."""
    if name is None:
        return ANYONE
    team = snapshot.teams.get(name)
    if team is None:
        known = did_you_mean(name, snapshot.teams) if snapshot.teams else "; the table has no teams"
        raise CommandError(f"no team named {name!r}{known}", USAGE)
    return team
