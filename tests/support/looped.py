"""`looped`: one test checks the rows of a table one after the other, instead of a test for each row.

`pytest.mark.parametrize` makes a test of each row, which costs 5 ms of CPU for collection, fixtures and reports. A row
of a loop costs nothing. All rows run even if some fail, and the failure names each failed row. Use `parametrize` if a
row needs fixtures of its own, or if its duration deserves a line in the report.

`--row TEXT` runs only the rows whose name contains the text, as `-k` does with tests.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, cast

import pytest

MOST_SHOWN: Final = 10
"""The number of failed rows that are shown with their tracebacks. The message names the others too."""

LONGEST_TEXT: Final = 60
"""The most characters of a value in the name of its row."""

Ids: TypeAlias = Iterable[str] | Callable[[Any], str | None] | None

PARAM: Final = type(pytest.param())
"""The result of `pytest.param`: a row's values, and its name."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row's name, and its values by the names of the test's arguments."""

    name: str
    values: Mapping[str, object]


@dataclass(slots=True)
class Selection:
    """The rows that a run checks: the rows whose name contains `text`."""

    text: str = ""


selection: Final = Selection()


def looped(names: str | Sequence[str], table: Iterable[object], ids: Ids = None) -> Callable[..., Any]:
    """Run a test, synchronous or not, once for each row of a table. Take the same arguments as
    `pytest.mark.parametrize`.

    Raise `ValueError` if the table has no rows, or if a row has marks: only a test can have marks.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = _rows(arguments, table, ids)
    if not rows:
        raise ValueError(f"the table of {', '.join(arguments)} has no rows")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(function):
            test: Callable[..., Any] = _asynchronous(function, rows)
        else:
            test = _synchronous(function, rows)
        signature = inspect.signature(function)
        missing = set(arguments) - signature.parameters.keys()
        if missing:
            raise ValueError(f"{function.__name__} has no argument {', '.join(sorted(missing))}")
        left = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        test.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return test

    return decorate


def _synchronous(function: Callable[..., None], rows: Sequence[Row]) -> Callable[..., None]:
    @functools.wraps(function)
    def test(*bound: object, **fixtures: object) -> None:
        failures = _Failures()
        for row in _selected(rows):
            with failures.of(row):
                function(*bound, **fixtures, **row.values)
        failures.raise_if_any(len(rows))

    return test


def _asynchronous(function: Callable[..., Awaitable[None]], rows: Sequence[Row]) -> Callable[..., Awaitable[None]]:
    @functools.wraps(function)
    async def test(*bound: object, **fixtures: object) -> None:
        failures = _Failures()
        for row in _selected(rows):
            with failures.of(row):
                await function(*bound, **fixtures, **row.values)
        failures.raise_if_any(len(rows))

    return test


class _Failures:
    """The rows of one test that failed, and the rows that were skipped. If none failed, skipped rows skip the test
    after each row has run."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._errors: list[Exception] = []
        self._reasons: dict[str, None] = {}

    @contextmanager
    def of(self, row: Row) -> Iterator[None]:
        """Collect the exception of a row."""
        try:
            yield
        except Exception as error:
            self._add(row.name, error)
        except pytest.skip.Exception as error:
            self._reasons[str(error)] = None
        except pytest.fail.Exception as error:
            self._add(row.name, AssertionError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__))

    def _add(self, name: str, error: Exception) -> None:
        self._names.append(name)
        if len(self._errors) < MOST_SHOWN:
            error.add_note(f"row: {name}")
            self._errors.append(error)

    def raise_if_any(self, rows: int) -> None:
        """Raise an `ExceptionGroup` that names each failed row, if there is one. If none failed but rows were skipped,
        skip the test for the first reason."""
        if self._errors:
            raise ExceptionGroup(f"{len(self._names)} of {rows} rows failed: {', '.join(self._names)}", self._errors)
        if self._reasons:
            pytest.skip(next(iter(self._reasons)))


def _selected(rows: Sequence[Row]) -> Sequence[Row]:
    chosen = [row for row in rows if selection.text in row.name]
    if not chosen:
        pytest.skip(f"no row has {selection.text!r} in its name")
    return chosen


def _rows(arguments: Sequence[str], table: Iterable[object], ids: Ids) -> list[Row]:
    rows = []
    for values, name in _values_and_names(arguments, table):
        name = name or "-".join((callable(ids) and ids(value)) or _text(value) for value in values)
        rows.append(Row(name, dict(zip(arguments, values, strict=True))))
    if ids is None or callable(ids):
        return rows
    return [replace(row, name=str(name)) for row, name in zip(rows, ids, strict=True)]


def _values_and_names(arguments: Sequence[str], table: Iterable[object]) -> Iterator[tuple[Sequence[object], str]]:
    for row in table:
        if isinstance(row, PARAM):
            if row.marks:
                raise ValueError(f"a row of a loop has marks: {row}")
            yield row.values, str(row.id or "")
        else:
            yield ((row,) if len(arguments) == 1 else cast(Sequence[object], row)), ""


def _text(value: object) -> str:
    text = str(getattr(value, "__name__", value))
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
