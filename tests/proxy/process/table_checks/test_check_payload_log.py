"""A payload log that cannot be written is reported before its first entry is dropped, by every process that serves
the configuration."""

from pathlib import Path

import pytest

from proxy.process.load_table import Source
from tests.proxy.kit.table_reloader import GOOD

MISSING = "its folder does not exist: until it does, entries of the payload log are dropped"
FOLDER = "this is a folder: entries of the payload log are dropped"


@pytest.mark.parametrize(
    ("path", "message"), [("gone/p.jsonl", MISSING), ("there", FOLDER), ("there/p.jsonl", None), ("p.jsonl", None)]
)
def test_a_path_that_cannot_be_written_is_a_warning_at_it(tmp_path: Path, path: str, message: str | None) -> None:
    (tmp_path / "there").mkdir()
    table = tmp_path / "t.yaml"
    table.write_text(f"{GOOD}server:\n  payload_log:\n    path: {path}\n    teams: ['*']\n", encoding="utf-8")
    told = [each for each in Source(table, {}).load_to_serve().warnings if each.path == "server.payload_log.path"]
    line = GOOD.count("\n") + 3
    expected = [] if message is None else [(str(table), line, 11, message)]
    assert [(each.file, each.line, each.column, each.message) for each in told] == expected


def test_a_table_without_one_has_no_warning(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(GOOD, encoding="utf-8")
    assert "payload" not in str(Source(tmp_path / "t.yaml", {}).load_to_serve().warnings)
