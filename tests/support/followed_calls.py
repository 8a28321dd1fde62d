"""Records the functions of `config`, `providers` and `proxy` that run between two moments, and the calls that go from
one package to another.

A change of package is a call of a function in another folder than the folder of the nearest calling function. Frames of
the standard library and of aiohttp between the two do not count. Every package may import a file at the top of the
three. So a call of a function in such a file is no change of package.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Final

from tests.support.rooms import ROOMS

ROOT: Final = Path(__file__).resolve().parents[2]

PARTS: Final = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})
"""Names of code objects that are part of their function to a reader. Since Python 3.12 the interpreter inlines some of
them."""


@dataclass(frozen=True, slots=True)
class FollowedCall:
    """A call of a function. `package` is the path of its folder, which is in `ROOMS` for a file at the top; `caller` is
    the package of the nearest calling function below the top, `None` if there is none."""

    package: str
    function: str
    caller: str | None

    @property
    def changes_package(self) -> bool:
        """Return whether the call goes from one package to another."""
        return self.package not in ROOMS and self.caller is not None and self.caller != self.package


class FollowedCalls:
    """The calls on this thread from `begin` to the first call of a function for which `ends` is true.

    A coroutine that resumes after a pause is not recorded again.
    """

    def __init__(self, ends: Callable[[FrameType], bool]) -> None:
        self._ends = ends
        self.calls: list[FollowedCall] = []
        self._frames: set[FrameType] = set()

    def begin(self) -> None:
        """Start to record calls."""
        sys.setprofile(self._note)

    def end(self) -> None:
        """Stop recording calls."""
        sys.setprofile(None)
        self._frames.clear()

    @property
    def changes(self) -> int:
        """Return how many of the calls go from one package to another."""
        return sum(each.changes_package for each in self.calls)

    def __str__(self) -> str:
        """Return the calls in their order, each on a line; an arrow marks a change of package."""
        rows = [f"{'->' if each.changes_package else '  '} {each.package:28} {each.function}" for each in self.calls]
        return "\n".join([f"{len(self.calls)} calls, {self.changes} changes of package:", *rows])

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        if self._ends(frame):
            self.end()
            return
        package = package_of_code(frame.f_code.co_filename)
        if package is None or frame.f_code.co_name in PARTS or frame in self._frames:
            return
        self._frames.add(frame)
        self.calls.append(FollowedCall(package, frame.f_code.co_qualname, calling_package(frame)))


def calling_package(frame: FrameType) -> str | None:
    """Return the package of the nearest function that calls `frame` and is below the top. Return `None` if there is
    none."""
    before = frame.f_back
    while before is not None:
        package = package_of_code(before.f_code.co_filename)
        if package is not None and package not in ROOMS:
            return package
        before = before.f_back
    return None


@cache
def package_of_code(filename: str) -> str | None:
    """Return the folder of a file as a path from the root. Return `None` for a file outside of the three packages."""
    path = Path(filename)
    if not path.is_relative_to(ROOT):
        return None
    folder = path.parent.relative_to(ROOT).as_posix()
    return folder if folder.partition("/")[0] in ROOMS else None
