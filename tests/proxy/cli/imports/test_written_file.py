"""A file is written completely or not at all, and an existing one is only replaced on request."""

from pathlib import Path

import pytest

from proxy.cli.imports.written_file import put_file, write_new, write_over
from proxy.cli.terminal import CommandError


def test_a_file_that_is_there_is_kept_unless_it_is_to_be_written_over(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    put_file(path, "one", write_new)
    with pytest.raises(CommandError, match="already exists; --force overwrites it"):
        put_file(path, "two", write_new)
    assert path.read_text(encoding="utf-8") == "one"
    put_file(path, "two", write_over)
    assert path.read_text(encoding="utf-8") == "two"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("write", [write_new, write_over])
def test_a_place_that_cannot_be_written_is_one_line(write: object, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"cannot write .*: No such file or directory"):
        put_file(tmp_path / "gone" / "t.yaml", "x", write)  # type: ignore[arg-type]
