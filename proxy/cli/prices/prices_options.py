"""The arguments of `dragoman prices`, besides the config file."""

import argparse
from typing import Final

PRICES_EXAMPLES: Final = (
    "prices -c table.yaml",
    "prices openai/gpt-4o fast -c table.yaml",
    "prices -c table.yaml --diff",
    "prices -c table.yaml --yaml > prices.yaml",
)

_DIFF: Final = (
    "what the data of a newer list_prices.jsonl, or of the installed genai-prices (extra: prices), would change: 1 if "
    "anything, else 0"
)
_FORMS: Final = (("json", "as a JSON object"), ("yaml", "list prices as a file to review and include"))


def add_prices_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to the command's parser."""
    parser.add_argument("models", nargs="*", metavar="MODEL", help="names of models and routes; without any, all")
    parser.add_argument("--diff", nargs="?", const="installed", metavar="FILE", help=_DIFF)
    form = parser.add_mutually_exclusive_group()
    for name, words in _FORMS:
        form.add_argument(f"--{name}", dest="output", action="store_const", const=name, default="table", help=words)
