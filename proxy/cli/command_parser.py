"""An argparse parser that suggests the nearest known word for a mistyped one, and that can describe its commands.

Source: `argparse` of Python 3.11 to 3.14. Its message for a wrong choice begins with the choice in quotation marks.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NoReturn

from config.problem import did_you_mean, one_line
from proxy.cli.terminal import USAGE

_WRONG_CHOICE: Final = re.compile(
    r"argument (?P<what>.*?): invalid choice: (?P<quote>['\"])(?P<word>.*?)(?P=quote)[, ]"
)
_MAX_WORD: Final = 60
"""The maximum characters of a mistyped word in a message."""

_FILES: Final = frozenset({"FILE", "FILE|-", "REQUEST.json|-"})
"""The placeholders of arguments that are files."""


MAX_WORKERS: Final = 256
"""The same limit as for `server.workers`. It is not imported from there, because that import takes longer than
`dragoman version` may."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An option with its names, or a positional argument, which has none. `choices` are its allowed values.
    `takes_value` is set if it has a value, and `is_file` if the value is a file."""

    names: tuple[str, ...]
    summary: str
    takes_value: bool
    choices: tuple[str, ...]
    is_file: bool


@dataclass(frozen=True, slots=True)
class CommandTree:
    """A command with its arguments and subcommands."""

    summary: str
    arguments: tuple[Argument, ...]
    commands: "Mapping[str, CommandTree]"

    @property
    def options(self) -> tuple[Argument, ...]:
        """The arguments that have names."""
        return tuple(argument for argument in self.arguments if argument.names)

    @property
    def takes_files(self) -> bool:
        """Whether a positional argument is a file."""
        return any(argument.is_file and not argument.names for argument in self.arguments)


class CommandParser(argparse.ArgumentParser):
    """The parser of a command's arguments. A mistyped command, option or value ends the program with a one-line
    message and status 2."""

    _written: tuple[str, ...] = ()

    def parse_known_args(  # type: ignore[override] # argparse's stub has overloads for namespaces of other types
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the known arguments. Arguments that are left over are refused by the command for which they were
        written."""
        self._written = tuple(sys.argv[1:] if args is None else args)
        parsed, left = super().parse_known_args(args, namespace)
        if left and not self._commands():
            self._refuse(left)
        return parsed, left

    def error(self, message: str) -> NoReturn:
        """End the program with a one-line message, with a suggestion if a word is mistyped."""
        wrong = _WRONG_CHOICE.match(message)
        if wrong is None:
            if message.startswith("unrecognized arguments: "):
                self._refuse(message.removeprefix("unrecognized arguments: ").split(" "))
            # A mistyped option before the command is not left over, because argparse first reports that the command is
            # missing.
            if unknown := [word for word in self._written if word.startswith("--") and not self._begins_option(word)]:
                self._refuse(unknown)
            super().error(message)
        known = [each for action in self._actions if _name(action) == wrong["what"] for each in action.choices or ()]
        self._end("no such value", f"of {wrong['what']}", wrong["word"], known)

    def add_forms(self, *forms: str) -> None:
        """Add the option for the output format. The first format is the default."""
        self.add_argument("--output", choices=forms, default=forms[0], help="form of the output")

    def tree(self) -> CommandTree:
        """Return the parser's commands and arguments, subcommands included."""
        arguments = tuple(
            _argument(action) for action in self._actions if action.nargs != argparse.PARSER and action.help is not None
        )
        commands = {name: parser.tree() for name, parser in self._commands().items()}
        return CommandTree(self.description or "", arguments, commands)

    def _commands(self) -> "dict[str, CommandParser]":
        return {
            name: parser
            for action in self._actions
            if action.nargs == argparse.PARSER and isinstance(action.choices, Mapping)
            for name, parser in action.choices.items()
            if isinstance(parser, CommandParser)
        }

    def _begins_option(self, word: str) -> bool:
        name = word.partition("=")[0]
        return any(option.startswith(name) for action in self._actions for option in action.option_strings)

    def _refuse(self, left: Sequence[str]) -> NoReturn:
        word = next((each for each in left if each.startswith("-")), left[0])
        options = [name for action in self._actions for name in action.option_strings]
        if word.startswith("-"):
            self._end("no such option", "", word.partition("=")[0], options)
        self._end("one argument too many", "", word, ())

    def _end(self, what: str, of: str, word: str, known: Sequence[str]) -> NoReturn:
        shown = one_line(word if len(word) <= _MAX_WORD else f"{word[:_MAX_WORD]}...")
        if of == "of COMMAND":
            what, of = "no such command", ""
        near = did_you_mean(word[:_MAX_WORD], known) or (f"; known: {', '.join(known)}" if known else "")
        line = f"{self.prog}: {' '.join(filter(None, (what, of)))}: {shown}{near}"
        print(line, file=sys.stderr)
        self.exit(USAGE)


def _name(action: argparse.Action) -> str:
    """Return the name of an argument in argparse's messages."""
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest
    return "/".join(action.option_strings) or metavar


def _argument(action: argparse.Action) -> Argument:
    return Argument(
        tuple(action.option_strings),
        action.help or "",
        takes_value=action.nargs != 0,
        choices=tuple(map(str, action.choices or ())),
        is_file=action.type is Path or action.metavar in _FILES,
    )


def port_number(text: str) -> int:
    """Return an argument as a port. Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 0 to 65535")
    return int(text)


def worker_count(text: str) -> "int | Literal['auto']":
    """Return an argument as a number of workers, or `auto`. Raises ArgumentTypeError."""
    if text == "auto":
        return "auto"
    if not text.isdecimal() or not 1 <= int(text) <= MAX_WORKERS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of workers: 1 to {MAX_WORKERS}, or auto")
    return int(text)
