"""The arguments of `dragoman import`."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

GATEWAYS: Final[Mapping[str, str]] = {
    "litellm": "the config.yaml of LiteLLM's proxy",
    "bifrost": "Bifrost's config.json",
    "portkey": "a config object of Portkey's, as JSON",
}
"""Gateways whose configurations can be imported, and the file that is read."""

IMPORT_EXAMPLES: Final[Sequence[str]] = (
    "import litellm config.yaml -o table.yaml",
    "import litellm config.yaml --teams teams.json --keys keys.json",
    "import bifrost config.json",
    "import portkey config.json",
)


def add_import_options(parser: argparse.ArgumentParser, gateway: str) -> None:
    """Add the arguments for one gateway."""
    parser.set_defaults(name=None, keys=[], teams=[], models=[])
    parser.add_argument("file", type=Path, metavar="FILE", help="the configuration")
    if gateway == "litellm":
        _add_database_options(parser)
    if gateway == "portkey":
        parser.add_argument("--name", help="the route's name; without it the file's")


def _add_database_options(parser: argparse.ArgumentParser) -> None:
    for option, source in (
        ("--keys", "LiteLLM's /key/list?return_full_object=true (or its key table as CSV)"),
        ("--teams", "its /team/list"),
        ("--models", "its /model/info"),
    ):
        parser.add_argument(
            option, type=Path, action="append", metavar="FILE", help=f"a file with {source}; repeated for each page"
        )
