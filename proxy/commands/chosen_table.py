"""Which table a command works on, and telling it. Never what is in the table.

The first that there is: the file named on the command line, the one in DRAGOMAN_CONFIG, `table.yaml` in the working
folder, the embedded one.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from proxy.reload import EMBEDDED, Source
from proxy.terminal import USAGE, CommandError

VARIABLE: Final = "DRAGOMAN_CONFIG"
"""The environment variable that names the table where the command line does not."""

FILE: Final = "table.yaml"
"""What the table is called that needs no naming."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A table's file, None for the embedded one, and how it was found where nobody named it on the command line."""

    path: Path | None
    found: str = ""


def chosen_table(option: Path | None, argument: Path | None, env: Mapping[str, str], folder: Path) -> Chosen:
    """The table to work on: `option` came after -c, `argument` by itself, `folder` is the working one. Raises
    CommandError where both were given."""
    if option is not None and argument is not None:
        raise CommandError(f"one table at a time: {argument} and -c {option}", USAGE)
    if (named := option or argument) is not None:
        return Chosen(named)
    if env.get(VARIABLE):
        return Chosen(Path(env[VARIABLE]), f"named by {VARIABLE}")
    # A link that leads nowhere, or a folder of that name, is a mistake to tell, and no reason for another table.
    if os.path.lexists(folder / FILE):
        return Chosen(Path(FILE), "found in this folder")
    return Chosen(None)


def tell_what_is_checked(source: Source, stream: TextIO) -> None:
    """The first line of a check."""
    print(f"checking {source.title}", file=stream)
    _warn_of_embedded(source)


def tell_unnamed(source: Source) -> None:
    """On standard error, the table that nobody named on the command line."""
    if source.found:
        print(f"dragoman: the table is {source.title}", file=sys.stderr)
    _warn_of_embedded(source)


def _warn_of_embedded(source: Source) -> None:
    if source.path is None:
        print(f"dragoman: warning: {EMBEDDED}", file=sys.stderr)
