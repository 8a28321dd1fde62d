"""The data file is generated from the installed library, and the same version gives the same file."""

from pathlib import Path

import pytest

from providers.list_prices.list_prices import SHIPPED
from proxy.cli.prices import write_list_prices


def test_the_same_version_gives_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "list_prices.jsonl"
    copy.write_bytes(SHIPPED.read_bytes())
    monkeypatch.setattr(write_list_prices, "SHIPPED", copy)
    write_list_prices.main()
    assert copy.read_bytes() == SHIPPED.read_bytes()
