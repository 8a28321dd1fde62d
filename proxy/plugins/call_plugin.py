"""Calls code that is not the gateway's: whatever it raises is a value here, and never what its exception says.

The text of an exception may hold a prompt or an option; the log gets its type and the line that raised it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Returned(Generic[T]):
    """What a call returned."""

    value: T


@dataclass(frozen=True, slots=True)
class Raised:
    """What a call raised, without its traceback."""

    error: BaseException
    where: str

    def __str__(self) -> str:
        return f"{type(self.error).__name__}{self.where}"


def attempted(work: Callable[[], T]) -> Returned[T] | Raised:
    """Return what `work` returns or raises. It runs to its end in one go: no task is cancelled in the midst of it, so
    that even what would cancel a task, or end the process, is raised by the code itself."""
    try:
        return Returned(work())
    except BaseException as error:
        return raised(error)


def raised(error: BaseException) -> Raised:
    """Return an exception as a value, with the line it comes from; its traceback would keep what it refers to."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = "" if last is None else f" at {PurePath(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno}"
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return Raised(error, where)
