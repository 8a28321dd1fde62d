"""`MAP.md`: every source file with the sentence that its docstring opens with, room by room.

`python -m tests.support.house_map` writes it.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.support.rooms import ROOMS
from tests.support.source_rules import room_of

ROOT: Final = Path(__file__).resolve().parents[2]

HEAD: Final = """\
# Where things are

Every source file with its first sentence. Files at a package's top are its vocabulary, folders are rooms; a room
imports the vocabulary and rooms that stand above it. Written by `make generate` from the docstrings.
"""


def texts(*folders: str) -> dict[str, str]:
    """Path from the root, with slashes, to text, of every Python file under the folders."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def house_map(files: Mapping[str, str]) -> str:
    """The map as Markdown, of source texts by path: a section for each room, in the order of imports."""
    return "\n".join([HEAD, *(line for package in ROOMS for line in _package(package, files))])


def _package(package: str, files: Mapping[str, str]) -> Iterator[str]:
    yield f"## `{package}`\n"
    order = list(ROOMS[package])
    rooms = {room_of(path) for path in files if path.startswith(f"{package}/")}
    for room in sorted(
        rooms, key=lambda room: (order.index(room) if room in order else order.index("dialects/*"), room)
    ):
        folder = package if room == "." else f"{package}/{room}"
        yield f"### `{folder}/`\n\n{_opening(files[f'{folder}/__init__.py'])}\n"
        for path, text in files.items():
            if path.rpartition("/")[0] == folder and not path.endswith("__init__.py"):
                yield f"- `{path.rpartition('/')[2]}`: {_opening(text)}"
        yield ""


def _opening(text: str) -> str:
    """The first paragraph of a module's docstring, on one line."""
    return " ".join((ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0].split())


if __name__ == "__main__":
    (ROOT / "MAP.md").write_text(house_map(texts(*ROOMS)), encoding="utf-8")
