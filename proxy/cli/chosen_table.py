"""Choose the config file of a command and the team for which it resolves names.

The config file is the first of: the file named on the command line, the file named by DRAGOMAN_CONFIG, `table.yaml` in
the working folder, the embedded configuration. The operator names the team without a key.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from config.problem import did_you_mean
from proxy.cli.terminal import USAGE, CommandError
from proxy.process.load_table import EMBEDDED, Source
from proxy.routing.snapshot import ANYONE, Snapshot, Team


def find_team(snapshot: Snapshot, name: str | None) -> Team:
    """Return the team with this name. Without a name, return a team that may use everything. Raises CommandError if
    there is no such team."""
    if name is None:
        return ANYONE
    team = snapshot.teams.get(name)
    if team is None:
        known = did_you_mean(name, snapshot.teams) if snapshot.teams else "; the configuration has no teams"
        raise CommandError(f"no team named {name!r}{known}", USAGE)
    return team


VARIABLE: Final = "DRAGOMAN_CONFIG"
"""The environment variable with the path of the config file, used if the command line names none."""

FILE: Final = "table.yaml"
"""The default name of the config file."""


@dataclass(frozen=True, slots=True)
class ChosenTable:
    """A config file, or `None` for the embedded configuration. `found` states how it was found if the command line
    does not name it."""

    path: Path | None
    found: str = ""


def chosen_table(option: Path | None, argument: Path | None, env: Mapping[str, str], folder: Path) -> ChosenTable:
    """Choose the config file. `option` is the file after -c, `argument` the positional one, `folder` the working
    folder. Raises CommandError if both are given."""
    if option is not None and argument is not None:
        raise CommandError(f"only one config file: {argument} and -c {option}", USAGE)
    if (named := option or argument) is not None:
        return ChosenTable(named)
    if env.get(VARIABLE):
        return ChosenTable(Path(env[VARIABLE]), f"named by {VARIABLE}")
    # A broken link or a folder with this name is an error to report, not a reason to use another configuration.
    if os.path.lexists(folder / FILE):
        return ChosenTable(Path(FILE), "found in this folder")
    return ChosenTable(None)


def report_checked_table(source: Source, stream: TextIO) -> None:
    """Print the first line of a check: the configuration that is checked."""
    print(f"checking {source.title}", file=stream)
    _warn_of_embedded(source)


def report_unnamed_table(source: Source) -> None:
    """Print the config file to standard error if the command line does not name it."""
    if source.found:
        print(f"dragoman: the config file is {source.title}", file=sys.stderr)
    _warn_of_embedded(source)


def _warn_of_embedded(source: Source) -> None:
    if source.path is None:
        print(f"dragoman: warning: {EMBEDDED}", file=sys.stderr)
