"""The options of the command line reach the command."""

import argparse

from proxy.cli.arguments import argument_parser
from proxy.cli.command_parser import CommandParser
from proxy.cli.logs.logs_options import add_logs_options


def test_every_option_has_a_help_and_the_log_is_standard_input_unless_named() -> None:
    parser = CommandParser(prog="logs")
    add_logs_options(parser)
    assert parser.parse_args([]).log == "-"
    assert all(action.help for action in parser._actions)
    parsed: argparse.Namespace = argument_parser().parse_args(["logs", "a.log", "-f", "--slow", "2s", "--failed"])
    assert (parsed.log, parsed.follow, parsed.slow, parsed.failed, parsed.team) == ("a.log", True, "2s", True, None)
