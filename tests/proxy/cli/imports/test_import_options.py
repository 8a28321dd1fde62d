"""The arguments of `dragoman import`."""

import argparse
from pathlib import Path

import pytest

from proxy.cli.imports.import_command import READERS
from proxy.cli.imports.import_options import GATEWAYS, add_import_options
from tests.support.looped import looped


def parsed(gateway: str, line: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_import_options(parser, gateway)
    return parser.parse_args(line.split())


def test_pages_are_repeated() -> None:
    args = parsed("litellm", "c.yaml --keys a --keys b --teams t")
    assert (args.keys, args.teams, args.models) == ([Path("a"), Path("b")], [Path("t")], [])
    assert parsed("litellm", "c.yaml").keys == []


@looped("gateway", [gateway for gateway in GATEWAYS if gateway != "litellm"])
def test_other_gateways_have_no_database(gateway: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises((SystemExit, argparse.ArgumentError)):
        parsed(gateway, "c.json --keys a")
    assert parsed(gateway, "c.json").keys == []
    capsys.readouterr()


def test_every_gateway_has_a_reader() -> None:
    assert GATEWAYS.keys() == READERS.keys()
