"""Follows the functions of the packages that run between two moments, and the changes of room among them.

A change of room is a call of a function of another room than that of the nearest calling function, whatever the
standard library or aiohttp does between the two. Files at a package's top are its vocabulary and no room: a call of one
of their functions is a call, and no change of room.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Final

from tests.support.rooms import ROOMS
from tests.support.source_rules import room_of

ROOT: Final = Path(__file__).resolve().parents[2]

PARTS: Final = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})
"""Names of code that is a part of a function to its reader, and since Python 3.12 to the interpreter in part."""


@dataclass(frozen=True, slots=True)
class FollowedCall:
    """A call of a function in a file of the packages. `room` is `proxy` for the vocabulary of that package; `caller` is
    the room of the nearest calling function that has one, `None` if there is none."""

    room: str
    function: str
    caller: str | None

    @property
    def changes_room(self) -> bool:
        """Whether the call goes from one room to another."""
        return self.room not in ROOMS and self.caller is not None and self.caller != self.room


class FollowedCalls:
    """The calls on this thread from `begin` to the first call of a function that `ends` is true of.

    A coroutine that goes on after a pause is not called again.
    """

    def __init__(self, ends: Callable[[FrameType], bool]) -> None:
        self._ends = ends
        self.calls: list[FollowedCall] = []
        self._frames: set[FrameType] = set()

    def begin(self) -> None:
        """Follow calls from now on."""
        sys.setprofile(self._note)

    def end(self) -> None:
        """Follow no more calls."""
        sys.setprofile(None)
        self._frames.clear()

    @property
    def changes(self) -> int:
        """How many of the calls go from one room to another."""
        return sum(each.changes_room for each in self.calls)

    def __str__(self) -> str:
        """Return the calls in their order, each on a line; an arrow marks a change of room."""
        rows = [f"{'->' if each.changes_room else '  '} {each.room:28} {each.function}" for each in self.calls]
        return "\n".join([f"{len(self.calls)} calls, {self.changes} changes of room:", *rows])

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        if self._ends(frame):
            self.end()
            return
        room = room_of_code(frame.f_code.co_filename)
        if room is None or frame.f_code.co_name in PARTS or frame in self._frames:
            return
        self._frames.add(frame)
        self.calls.append(FollowedCall(room, frame.f_code.co_qualname, calling_room(frame)))


def calling_room(frame: FrameType) -> str | None:
    """Return the room of the nearest function that calls a frame and is in a room; `None` if there is none."""
    before = frame.f_back
    while before is not None:
        room = room_of_code(before.f_code.co_filename)
        if room is not None and room not in ROOMS:
            return room
        before = before.f_back
    return None


@cache
def room_of_code(filename: str) -> str | None:
    """Return the room of a file as a path from the root, or the package of a file at its top; `None` for a file outside
    of the packages."""
    path = Path(filename)
    if not path.is_relative_to(ROOT):
        return None
    inside = path.relative_to(ROOT).as_posix()
    package = inside.partition("/")[0]
    if package not in ROOMS:
        return None
    room = room_of(inside)
    return package if room == "." else f"{package}/{room}"
