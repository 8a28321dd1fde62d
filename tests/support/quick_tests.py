"""Selects the tests that `make test` runs: the tests of pure files, and the tests marked `smoke`.

A file is pure if neither it nor a module of tests that it imports, directly or not, imports a module that opens sockets
or starts processes. `NoSockets` enforces the rule while a pure test runs. A test with a marker of `SLOW` is left out,
even if it is pure.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]

IMPURE: Final = frozenset(
    {
        "aiohttp",
        "http.client",
        "multiprocessing",
        "opentelemetry",
        "psycopg",
        "redis",
        "socket",
        "subprocess",
        "xllamacpp",
    }
)
"""Modules with sockets or processes."""

ASKED: Final = re.compile(r"\b(?:start_server|start_unix_server|open_connection|create_subprocess_\w+|os\.fork)\b")
"""Names of asyncio and os that open sockets or start processes."""

IMPORT: Final = re.compile(r"^[ \t]*(?:from ([\w.]+) import (\([^)]*\)|[^\n]*)|import ([\w., ]+))", re.MULTILINE)

FIXTURE: Final = re.compile(r"^@pytest(?:_asyncio)?\.fixture.*\n(?:async )?def (\w+)", re.MULTILINE)

SMOKE: Final = "smoke"
SLOW: Final = frozenset({"processes", "thorough", "engine", "clients", "browser", "nightly"})
"""Markers of tests that `make test` leaves out."""

SLOW_MARK: Final = re.compile(rf"mark\.(?:{'|'.join(sorted(SLOW))})\b")

FORBIDDEN: Final = frozenset({"socket.bind", "socket.connect", "subprocess.Popen", "os.fork", "os.posix_spawn"})
"""Python's audit events that a pure test must not raise."""


SCOPES: Final = ("quick", "rest", "all")
"""The tests of `make test`, all others, and both."""


def imported_modules(text: str) -> frozenset[str]:
    """Return the modules that a file's text imports. A name that is imported from a module counts as a module."""
    found: set[str] = set()
    for source, names, plain in IMPORT.findall(text):
        if plain:
            found |= {name.partition(" as ")[0].strip() for name in plain.split(",")}
        else:
            found.add(source)
            found |= {f"{source}.{name}" for name in re.findall(r"(\w+)(?: as \w+)?", names)}
    return frozenset(found)


@cache
def is_pure(path: Path) -> bool:
    """Return whether neither a test's file nor a module of tests that it imports uses sockets or processes."""
    return not any(_is_impure(each) for each in _reached(path))


def has_smoke(path: Path) -> bool:
    """Return whether some test of a file is marked `smoke`."""
    return "mark.smoke" in _text(path)


def is_quick(item: pytest.Item) -> bool:
    """Return whether `make test` runs a test."""
    if item.get_closest_marker(SMOKE):
        return True
    if any(item.get_closest_marker(name) for name in SLOW):
        return False
    fixtures = set(getattr(item, "fixturenames", ()))
    return is_pure(item.path) and all(
        is_pure(conftest) or fixtures.isdisjoint(_fixtures(conftest)) for conftest in _conftests(item.path.parent)
    )


def scope_of(config: pytest.Config) -> str:
    """Return the scope of a run: `all` if its command names paths, tests or markers, otherwise `quick`."""
    option = config.option
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    return option.scope or (
        "all" if named or option.keyword or option.markexpr or getattr(option, "lf", False) else "quick"
    )


def in_scope(scope: str, item: pytest.Item) -> bool:
    """Return whether a run of `scope` includes a test."""
    return scope == "all" or is_quick(item) == (scope == "quick")


def has_quick_tests(path: Path) -> bool:
    """Return whether a file may have tests that `make test` runs."""
    return is_pure(path) or has_smoke(path)


def has_other_tests(path: Path) -> bool:
    """Return whether a file may have tests that `make test` leaves out: it is not pure, or a mark or a fixture may make
    a test of it slow."""
    if not is_pure(path) or any(not is_pure(conftest) and _fixtures(conftest) for conftest in _conftests(path.parent)):
        return True
    return any(SLOW_MARK.search(_text(each)) for each in _reached(path))


def has_tests_in(scope: str, path: Path) -> bool:
    """Return whether a file may have tests of a scope. A file without any need not be imported."""
    asked = {"quick": has_quick_tests, "rest": has_other_tests}.get(scope)
    return asked is None or asked(path)


@cache
def _conftests(folder: Path) -> tuple[Path, ...]:
    """Return the `conftest.py` of a folder of tests and of the folders above it."""
    if not folder.is_relative_to(ROOT / "tests"):
        return ()
    own = folder / "conftest.py"
    return (*([own] if own.is_file() else []), *_conftests(folder.parent))


@cache
def _fixtures(conftest: Path) -> frozenset[str]:
    return frozenset(FIXTURE.findall(_text(conftest)))


@cache
def _reached(path: Path) -> frozenset[Path]:
    """Return a file and the modules of tests that it imports, directly or not."""
    reached, waiting = set(), [path]
    while waiting:
        one = waiting.pop()
        if one not in reached:
            reached.add(one)
            waiting += [found for module in imported_modules(_text(one)) if (found := _file_of(module))]
    return frozenset(reached)


@cache
def _is_impure(path: Path) -> bool:
    text = _text(path)
    modules = imported_modules(text)
    return bool(ASKED.search(text)) or any(
        module == name or module.startswith(f"{name}.") for module in modules for name in IMPURE
    )


@cache
def _file_of(module: str) -> Path | None:
    if not module.startswith("tests."):
        return None
    path = (ROOT / module.replace(".", "/")).with_suffix(".py")
    return path if path.is_file() else None


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


class NoSockets:
    """A guard that raises `AssertionError` in a pure test that opens a socket or starts a process."""

    def __init__(self) -> None:
        self._test = ""

    def install(self) -> None:
        """Subscribe to Python's audit events for as long as the process lives."""
        sys.addaudithook(self._audit)

    @contextmanager
    def in_test(self, name: str) -> Iterator[None]:
        """Watch the audit events while a test runs."""
        self._test = name
        try:
            yield
        finally:
            self._test = ""

    def _audit(self, event: str, _arguments: object) -> None:
        if self._test and event in FORBIDDEN:
            raise AssertionError(f"{self._test} raised {event}: mark it `smoke` or `processes`")
