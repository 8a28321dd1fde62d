"""tests/README.md names every folder of tests, and no folder that does not exist."""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
TEXT = (TESTS / "README.md").read_text(encoding="utf-8")
QUOTED = re.findall(r"`([^`\n]+)`", TEXT)


def test_every_folder_is_named() -> None:
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= set(QUOTED)


def test_every_file_that_is_named_is_there() -> None:
    paths = [name for name in QUOTED if re.fullmatch(r"tests/[a-z0-9_/.]+", name)]
    assert paths
    assert [path for path in paths if not (TESTS.parent / path).exists()] == []


def test_every_target_of_make_that_is_named_is_there() -> None:
    makefile = (TESTS.parent / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"`make ([a-z-]+)", TEXT)
    assert targets
    assert [name for name in targets if f"\n{name}:" not in makefile] == []
