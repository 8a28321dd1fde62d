"""The output of commands: colours on a terminal, exit statuses, and the one-line error for the operator."""

import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import TextIO

FAILED = 1
"""Exit status: the command ran, and its result is negative."""

USAGE = 2
"""Exit status: wrong usage, such as a name that does not exist."""


INCOMPLETE = 3
"""Exit status: the command ran, and its result lacks something."""


UNEQUIPPED = 4
"""Exit status: the command ran and its result is valid, but this machine lacks something that the result needs, such as
an extra."""


class CommandError(Exception):
    """A command cannot continue. The message is one line for the operator, without a secret; `status` is the exit
    status."""

    def __init__(self, message: str, status: int = FAILED) -> None:
        super().__init__(message)
        self.status = status


class Style(StrEnum):
    """Text styles, as parameters of the terminal's SGR sequence."""

    BOLD = "1"
    DIM = "2"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"


def at_terminal(*streams: TextIO | None) -> bool:
    """Return whether all streams are terminals. `None` is a stream that was closed before the program began."""
    return all(stream is not None and stream.isatty() for stream in streams)


def paint(text: str, ink: Style, stream: TextIO | None = None, env: Mapping[str, str] = os.environ) -> str:
    """Return the text, styled if `stream` (by default standard output) shows colours."""
    return f"\x1b[{ink}m{text}\x1b[0m" if shows_colour(stream or sys.stdout, env) else text


def shows_colour(stream: TextIO, env: Mapping[str, str]) -> bool:
    """Return whether a stream is a terminal with colours enabled. An empty NO_COLOR has no effect (no-color.org)."""
    return stream.isatty() and not env.get("NO_COLOR") and env.get("TERM") != "dumb"


def require_output() -> None:
    """Raise CommandError if standard output was closed before the program began."""
    if sys.stdout is None:
        raise CommandError("cannot write the output: standard output is closed")
