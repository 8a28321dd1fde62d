"""Call a plugin's code and return its exceptions as values, without their messages.

The message of an exception may contain a prompt or an option. So the log gets only its type and the line that raised
it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Returned(Generic[T]):
    """The return value of a call."""

    value: T


@dataclass(frozen=True, slots=True)
class Raised:
    """The exception that a call raised, without its traceback."""

    error: BaseException
    where: str

    def __str__(self) -> str:
        return f"{type(self.error).__name__}{self.where}"


def attempted(work: Callable[[], T]) -> Returned[T] | Raised:
    """Return the value or exception of `work`. `work` has no await, so no task can be cancelled within it. So even
    CancelledError and SystemExit come from the plugin's code itself."""
    try:
        return Returned(work())
    except BaseException as error:
        return raised(error)


def raised(error: BaseException) -> Raised:
    """Return an exception as a value, with the line that raised it. The traceback is dropped, because it would keep
    the objects in its frames alive."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = "" if last is None else f" at {PurePath(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno}"
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return Raised(error, where)
