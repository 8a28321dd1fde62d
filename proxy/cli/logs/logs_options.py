"""The arguments of `dragoman logs`."""

import argparse
from typing import Final

LOGS_EXAMPLES: Final = (
    *("logs gateway.log -f", "logs gateway.log --failed --since 10m"),
    "logs - --team search --status 5xx < gateway.log",
)


def add_logs_options(parser: argparse.ArgumentParser) -> None:
    """Add the log file, the filters and the formats to the parser of the command."""
    parser.add_argument("log", nargs="?", default="-", metavar="FILE|-", help="the log; - or nothing: standard input")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is added, rotated or not")
    parser.add_argument("--team", help="only requests of this team")
    parser.add_argument("--status", metavar="5xx", help="only with such a status: 429, 5xx, or several between commas")
    parser.add_argument("--model", metavar="NAME", help="only for a model, or by a deployment; * stands for anything")
    parser.add_argument("--since", metavar="TIME", help="only since then: 10m, or a time as in the log")
    parser.add_argument(
        "--id",
        metavar="ID",
        help="only the request with this id: its own, its trace's or a vendor's; with its parts of time",
    )
    parser.add_argument("--slow", metavar="2s", help="only what took so long")
    parser.add_argument("--failed", action="store_true", help="only what did not end well")
    parser.add_argument("--json", action="store_true", help="the lines as they are, for other programs")
