"""The Python files of the repository, as texts."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


def texts(*folders: str) -> dict[str, str]:
    """Return the text of every Python file under the folders, by its path from the root, with slashes."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
    }
