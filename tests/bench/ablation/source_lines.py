"""The number of lines of a part of the source."""

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tests.support.gateway import ROOT

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@lru_cache(maxsize=64)
def _tree(file: Path) -> ast.Module | None:
    return ast.parse(file.read_text(encoding="utf-8")) if file.exists() else None


def lines_of(part: str, root: Path = ROOT) -> int:
    """Return the lines of a file, or of a function or class in it. Return 0 if the part does not exist."""
    name, _, names = part.partition(":")
    tree = _tree(root / name)
    if tree is None:
        return 0
    if not names:
        return len((root / name).read_text(encoding="utf-8").splitlines())
    found: _Definition | None = None
    for each in names.split("."):
        found = next((child for child in _defined(found or tree) if child.name == each), None)
        if found is None:
            return 0
    return 0 if found is None else (found.end_lineno or 0) - found.lineno + 1


def _defined(node: ast.AST) -> Iterator[_Definition]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Definition):
            yield child
