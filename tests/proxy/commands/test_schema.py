"""What editors are given is what is committed."""

from pathlib import Path

import pytest

from proxy.commands.schema import schema

COMMITTED = Path(__file__).resolve().parents[3] / "config" / "schema.json"


def test_the_schema_is_printed_as_it_is_committed(capsys: pytest.CaptureFixture[str]) -> None:
    assert schema() == 0
    assert capsys.readouterr().out == COMMITTED.read_text(encoding="utf-8")
