"""Words for the operator: colours where a person reads, and the error that is one line and an exit status.

Never what a command says.
"""

import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import TextIO

FAILED = 1
"""Exit status: the command ran, and the answer is no."""

USAGE = 2
"""Exit status: the command was asked for something that it does not have."""


class CommandError(Exception):
    """A command cannot go on. The text is one line for the operator, without a secret; `status` the exit status."""

    def __init__(self, message: str, status: int = FAILED) -> None:
        super().__init__(message)
        self.status = status


class Ink(StrEnum):
    """Styles, as the parameter of the terminal's SGR sequence."""

    BOLD = "1"
    DIM = "2"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"


def at_terminal(*streams: TextIO | None) -> bool:
    """Whether a person reads all of them; one that was closed before the program began is read by nobody."""
    return all(stream is not None and stream.isatty() for stream in streams)


def paint(text: str, ink: Ink, stream: TextIO | None = None, env: Mapping[str, str] = os.environ) -> str:
    """The text in a style when `stream` (standard output unless named) shows colours, else the text."""
    return f"\x1b[{ink}m{text}\x1b[0m" if shows_colour(stream or sys.stdout, env) else text


def shows_colour(stream: TextIO, env: Mapping[str, str]) -> bool:
    """Whether a person watches who did not refuse colours; NO_COLOR counts when it is not empty (no-color.org)."""
    return stream.isatty() and not env.get("NO_COLOR") and env.get("TERM") != "dumb"
