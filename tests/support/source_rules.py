"""The rules on source text: pure functions that take a file's text, or paths, and return the violations.

A rule parses a text only if it contains the words that the rule looks for, because parsing all files takes seconds.
"""

import ast
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import TypeAlias

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Use:
    """One dotted name that a file imports or reads, with aliases resolved: `asyncio.create_task`, however it was
    imported."""

    name: str
    line: int
    imported: bool


def within(name: str, prefix: str) -> bool:
    """Return whether a dotted name is `prefix` or below it: `aiohttp.web` is within `aiohttp`, `aiohttp_x` is not."""
    return name == prefix or name.startswith(prefix + ".")


@cache
def uses(text: str) -> tuple[Use, ...]:
    """Return every import, and every attribute chain that starts at an imported name. The result is cached, because
    many rules read the same files."""
    return tuple(_uses(text))


def _uses(text: str) -> Iterator[Use]:
    tree = ast.parse(text)
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Use(alias.name, node.lineno, imported=True)
                top = alias.name.partition(".")[0]
                bound[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                yield Use(f"{module}.{alias.name}", node.lineno, imported=True)
                bound[alias.asname or alias.name] = f"{module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (name := _chain(node, bound)):
            yield Use(name, node.lineno, imported=False)


def _chain(node: ast.expr, bound: Mapping[str, str]) -> str | None:
    match node:
        case ast.Name(id=name):
            return bound.get(name)
        case ast.Attribute(value=value, attr=attr):
            base = _chain(value, bound)
            return f"{base}.{attr}" if base else None
        case ast.Call(func=func):
            base = _chain(func, bound)
            return f"{base}()" if base else None
        case _:
            return None


def foreign_imports(text: str, allowed: Collection[str]) -> list[str]:
    """Return imports whose top-level package is neither the standard library nor in `allowed`, and relative imports."""
    return [
        f"{use.line}: imports {use.name}"
        for use in uses(text)
        if use.imported and (top := use.name.partition(".")[0]) not in allowed and top not in sys.stdlib_module_names
    ]


def forbidden_uses(text: str, forbidden: Collection[str]) -> list[str]:
    """Return uses of a dotted name in `forbidden` or below it, imported or read."""
    return sorted(
        {f"{use.line}: uses {name}" for use in uses(text) for name in forbidden if within(use.name, name)},
    )


def clock_reads(text: str) -> list[str]:
    """Return calls that read the current time from a date type."""
    if not any(name in text for name in ("now", "today")):
        return []
    return [
        f"{node.lineno}: reads the clock with {ast.unparse(node)}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today"}
    ]


def loop_tasks(text: str) -> list[str]:
    """Return tasks that are started by a method of an event loop. The imports of a file do not show such a call. Task
    groups are fine: they own their tasks."""
    if "create_task" not in text:
        return []
    return [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr == "create_task" and "loop" in ast.unparse(node.value).lower()
    ]


def secret_reads(text: str) -> list[str]:
    """Return the function around each read of a secret's value, or `<module>`."""
    if "_secret" not in text:
        return []
    tree = ast.parse(text)
    owners: dict[int, str] = {}
    for function in functions(tree):
        for node in ast.walk(function):
            owners[id(node)] = function.name
    return [
        owners.get(id(node), "<module>")
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr in {"get_secret_value", "_secret_value"})
        or (isinstance(node, ast.Constant) and node.value in {"get_secret_value", "_secret_value"})
    ]


def broad_excepts(text: str) -> list[str]:
    """Return handlers and `suppress` calls that catch every exception. A handler whose last statement re-raises is
    allowed."""
    if not re.search(r"\bexcept\s*:|Exception", text):
        return []
    found = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ExceptHandler(type=None, body=[*_, last]) if not _reraises(last):
                found.append(f"{node.lineno}: bare except")
            case ast.ExceptHandler(type=ast.expr() as caught, body=[*_, last]) if not _reraises(last):
                found += [f"{node.lineno}: except {name}" for name in _broad_names(caught)]
            case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=args):
                found += [f"{node.lineno}: suppress({name})" for arg in args for name in _broad_names(arg)]
            case _:
                pass
    return found


def _reraises(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Raise) and statement.exc is None


def _broad_names(caught: ast.expr) -> Iterator[str]:
    for node in ast.walk(caught):
        if isinstance(node, ast.Name) and node.id in {"Exception", "BaseException"}:
            yield node.id


def functions(tree: ast.AST) -> Iterator[Function]:
    """Yield every function and method, outer ones before the ones inside them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def too_long(text: str) -> list[str]:
    """Return a violation if the file has too many lines, and one for each function that has too many. Decorators and a
    function's docstring do not count."""
    found = []
    if (lines := len(text.splitlines())) > MAX_FILE_LINES:
        found.append(f"1: {lines} lines, {MAX_FILE_LINES} allowed")
    return [*found, *_long_functions(text)]


def _long_functions(text: str) -> Iterator[str]:
    for function in _defined(ast.parse(text)):
        length = (function.end_lineno or function.lineno) - function.lineno + 1 - _docstring_lines(function)
        if length > MAX_FUNCTION_LINES:
            yield f"{function.lineno}: {function.name} has {length} lines, {MAX_FUNCTION_LINES} allowed"


def _defined(tree: ast.AST) -> Iterator[Function]:
    """Yield every function and method. Search statements only: no other node contains one."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for node in getattr(tree, name, ()):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node
            yield from _defined(node)


def _docstring_lines(node: Function) -> int:
    first = node.body[0]
    return (first.end_lineno or first.lineno) - first.lineno + 1 if ast.get_docstring(node, clean=False) else 0


def lacks_docstring(text: str) -> bool:
    """Return whether the module lacks a docstring."""
    opening = re.match(r"(?:\s|#.*\n)*(?P<quotes>\"{3}|'{3})(?P<words>.*?)(?P=quotes)", text, re.DOTALL)
    return opening is None or not opening["words"].strip()


def has_code(text: str) -> bool:
    """Return whether a module contains anything but its docstring."""
    tree = ast.parse(text)
    return len(tree.body) > (1 if ast.get_docstring(tree) is not None else 0)


def has_functions(text: str) -> bool:
    """Return whether a module has functions that a test could call. The `...` bodies of a protocol do not count."""
    return any(not _is_stub(function) for function in functions(ast.parse(text)))


def _is_stub(function: Function) -> bool:
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in function.body)


def mirror_of(source: str) -> str:
    """Return the test file of a source file: `proxy/surfaces/scale_genai.py` has
    `tests/proxy/surfaces/test_scale_genai.py`."""
    path = PurePosixPath(source)
    return str("tests" / path.parent / f"test_{path.stem.strip('_')}.py")


def missing_mirrors(sources: Mapping[str, str], tests: Collection[str]) -> list[str]:
    """Return the source files with functions whose test file is not among `tests`. `sources` maps paths to texts."""
    return [
        f"{path}: has no {mirror_of(path)}"
        for path, text in sources.items()
        if has_functions(text) and mirror_of(path) not in tests
    ]


def folders_without_init(paths: Iterable[str]) -> list[str]:
    """Return folders that contain Python files, directly or further down, but no `__init__.py`."""
    present = set(paths)
    folders = {parent for path in present for parent in PurePosixPath(path).parents if parent != PurePosixPath(".")}
    return sorted(str(folder) for folder in folders if str(folder / "__init__.py") not in present)


def room_of(path: str) -> str:
    """Return the folder of a source file below its package. It is `.` at the package's top."""
    return str(PurePosixPath(*PurePosixPath(path).parts[1:-1]))


def first_party_files(text: str, files: Collection[str]) -> list[tuple[int, str]]:
    """Return the line and the path of each import from `files`: of a module, or of a name in a module."""
    found = []
    for use in uses(text):
        if use.imported:
            names = [use.name, use.name.rpartition(".")[0]]
            paths = [f"{name.replace('.', '/')}.py" for name in names]
            found += [(use.line, path) for path in paths if path in files][:1]
    return found


def out_of_room(path: str, text: str, may_import: Collection[str], files: Collection[str]) -> list[str]:
    """Return imports within a file's own package that its layer may not make.

    It may import its own layer, the package's top and `may_import`. An entry of `may_import` is a layer, a single file
    without `.py`, or `a/*` for all layers in `a` that no other entry names.
    """
    package, own = PurePosixPath(path).parts[0], room_of(path)
    found = []
    for line, imported in first_party_files(text, files):
        room = room_of(imported)
        known = {room, f"{room}/{PurePosixPath(imported).stem}", str(PurePosixPath(room).parent / "*")}
        if PurePosixPath(imported).parts[0] == package and room not in {own, "."} and not known & set(may_import):
            found.append(f"{path}:{line}: {own} may not import {imported}")
    return found


def class_names(text: str) -> list[str]:
    """Return every class that a text defines, with nested classes."""
    if not re.search(r"\bclass\s", text):
        return []
    return [node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
