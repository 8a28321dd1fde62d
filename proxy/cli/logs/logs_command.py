"""`dragoman logs`: show the gateway's log in a readable form, filter it, and follow it."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

from proxy.cli.logs.choose_lines import Fields, LineChoice, LogsOptions, line_choice
from proxy.cli.logs.draw_parts import bars
from proxy.cli.logs.read_lines import Batch, follow_all, follow_end, read_input, read_whole
from proxy.cli.logs.show_lines import LineForm, coloured, for_people, for_programs, parsed
from proxy.cli.terminal import shows_colour

Show = Callable[[bytes, Fields | None], Iterator[str]]

INPUT: Final = "-"


def logs(name: str, options: LogsOptions, show: Callable[[LineForm], Show]) -> int:
    """Print the lines of a log that the options select. Return 1 if the log ends and no line has the requested id.
    Raises CommandError if the log cannot be read."""
    choice = line_choice(options, datetime.now(UTC))
    form = terminal_form(sys.stdout, os.environ)
    if options.id is not None:
        form = replace(form, below=bars)
    found = print_lines(batches(name, options), choice, show(form), sys.stdout)
    if found or options.id is None:
        return 0
    sys.stderr.write("dragoman: the log has no such request with this id\n")
    return 1


def terminal_form(stream: TextIO, env: Mapping[str, str]) -> LineForm:
    """Return the form of lines for a stream. On a terminal, lines are wrapped at the terminal's width, and coloured if
    the terminal shows colours."""
    if not stream.isatty():
        return LineForm()
    width = shutil.get_terminal_size().columns
    return LineForm(coloured, width) if shows_colour(stream, env) else LineForm(width=width)


def batches(name: str, options: LogsOptions) -> Iterator[Batch]:
    """Return the lines of a file or of standard input. Standard input is always followed. A followed file starts with
    its last lines, or with all lines if a time is given."""
    if name == INPUT:
        return read_input()
    if not options.follow:
        return read_whole(Path(name))
    return follow_end(Path(name)) if options.since is None else follow_all(Path(name))


def print_lines(read: Iterator[Batch], choice: LineChoice, show: Show, output: TextIO) -> bool:
    """Print the selected lines of each batch at once. Return whether any line was selected."""
    found = False
    for batch in read:
        for line in batch:
            fields = parsed(line)
            if choice.takes(line, fields):
                found = True
                output.writelines(f"{shown}\n" for shown in show(line, fields))
        output.flush()
    return found


def _people(form: LineForm) -> Show:
    return lambda line, fields: for_people(line, fields, form)


LINE_FORMS: Final[Mapping[bool, Callable[[LineForm], Show]]] = {False: _people, True: lambda form: for_programs}
"""Output formats by whether `--json` is given."""
