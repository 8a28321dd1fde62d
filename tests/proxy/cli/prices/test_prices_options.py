"""The arguments of `dragoman prices`."""

import argparse

from proxy.cli.prices.prices_options import add_prices_options
from tests.support.looped import looped


@looped(
    ("words", "models", "diff", "output"),
    [
        ([], [], None, "table"),
        (["a/b", "--json"], ["a/b"], None, "json"),
        (["--diff"], [], "installed", "table"),
        (["a/b", "--diff", "f.jsonl"], ["a/b"], "f.jsonl", "table"),
    ],
)
def test_what_is_asked_for(words: list[str], models: list[str], diff: str | None, output: str) -> None:
    parser = argparse.ArgumentParser()
    add_prices_options(parser)
    args = parser.parse_args(words)
    assert (args.models, args.diff, args.output) == (models, diff, output)
