"""`docs/reference/cli.md`: every command with its options, by the parser itself: `python -m tests.docs.cli_page`."""

import argparse
from collections.abc import Iterator
from typing import Final

from proxy.cli.arguments import argument_parser
from tests.docs.marked_pages import DOCS, in_cell

FILE: Final = DOCS / "reference" / "cli.md"

HEAD: Final = """\
# Commands

Written by `make generate` from the parser. `dragoman COMMAND --help` shows the same.

Exit status: 0 done; 1 the result is no, with the reason; 2 wrong usage; 3 done with parts left out (imports). `dragoman
import` also has 4: valid, but an extra or a credential is missing here.
"""


def cli_page() -> str:
    """Return the page: a section for each command, in the order of the help."""
    return HEAD + "".join(_sections("dragoman", argument_parser()))


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of a command's subcommands by their names."""
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return {name: each for action in found for name, each in action.choices.items()}


def _sections(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    for word, each in subcommands(parser).items():
        if subcommands(each):
            yield from _sections(f"{name} {word}", each)
        else:
            yield _section(f"{name} {word}", each)


def _section(name: str, parser: argparse.ArgumentParser) -> str:
    rows = [f"| {_names(each)} | {_cell(each.help or '')} |" for each in parser._actions if each.dest != "help"]
    table = ["", "| argument | meaning |", "|---|---|", *rows, ""] if rows else [""]
    examples = [line for line in (parser.epilog or "").splitlines() if line.startswith("  ")]
    shown = ["", "```", *(line.strip() for line in examples), "```", ""] if examples else []
    return "\n".join([f"\n## `{name}`", "", parser.description or "", *table[:-1], *shown])


def _names(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else _value(action)
    if not action.option_strings:
        return in_cell(value)
    return ", ".join(in_cell(f"{option} {value}".rstrip()) for option in action.option_strings)


def _value(action: argparse.Action) -> str:
    if action.choices is not None:
        return "|".join(map(str, action.choices))
    if isinstance(action.metavar, str):
        return action.metavar
    return action.dest.upper()


def _cell(text: str) -> str:
    return text.replace("%%", "%").replace("|", "\\|")


if __name__ == "__main__":
    FILE.write_text(cli_page(), encoding="utf-8")
