"""Choose the table that a command works on, and report which it is.

The first of: the file named on the command line, the one named by DRAGOMAN_CONFIG, `table.yaml` in the working folder,
the embedded table.

The team for which a command resolves names; the operator names it, without a key.
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
    """Return the team of that name; without a name one that may use everything. Raises CommandError."""
    if name is None:
        return ANYONE
    team = snapshot.teams.get(name)
    if team is None:
        known = did_you_mean(name, snapshot.teams) if snapshot.teams else "; the table has no teams"
        raise CommandError(f"no team named {name!r}{known}", USAGE)
    return team


VARIABLE: Final = "DRAGOMAN_CONFIG"
"""The environment variable that names the table where the command line does not."""

FILE: Final = "table.yaml"
"""The file that is taken without being named."""


@dataclass(frozen=True, slots=True)
class ChosenTable:
    """A table's file, None for the embedded one, and how it was found where the command line does not name it."""

    path: Path | None
    found: str = ""


def chosen_table(option: Path | None, argument: Path | None, env: Mapping[str, str], folder: Path) -> ChosenTable:
    """Choose the table: `option` is the file after -c, `argument` the one without it, `folder` the working folder.
    Raises CommandError where both are given."""
    if option is not None and argument is not None:
        raise CommandError(f"one table at a time: {argument} and -c {option}", USAGE)
    if (named := option or argument) is not None:
        return ChosenTable(named)
    if env.get(VARIABLE):
        return ChosenTable(Path(env[VARIABLE]), f"named by {VARIABLE}")
    # A broken link or a folder of that name is a mistake to report, not a reason for another table.
    if os.path.lexists(folder / FILE):
        return ChosenTable(Path(FILE), "found in this folder")
    return ChosenTable(None)


def report_checked_table(source: Source, stream: TextIO) -> None:
    """Print the first line of a check."""
    print(f"checking {source.title}", file=stream)
    _warn_of_embedded(source)


def report_unnamed_table(source: Source) -> None:
    """Print to standard error which table is used where the command line does not name it."""
    if source.found:
        print(f"dragoman: the table is {source.title}", file=sys.stderr)
    _warn_of_embedded(source)


def _warn_of_embedded(source: Source) -> None:
    if source.path is None:
        print(f"dragoman: warning: {EMBEDDED}", file=sys.stderr)
