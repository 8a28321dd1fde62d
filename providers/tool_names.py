"""Names of functions as a vendor's pattern allows them, and which functions a request offers.

Never a vendor's pattern, a definition on the wire, or a call.
"""

import re
from collections.abc import Container, Iterable, Mapping
from typing import ClassVar

from providers.failure import Refusal
from providers.unified import JsonObject, Params


class DistinctNames:
    """Names of which none occurs twice: the least free number from 2 on follows one that is taken.

    `taken` are the names given out elsewhere, `most` the characters of a name at most (None for any), `mark` stands
    before the number. The time for any sequence of names is linear in their total length.
    """

    __slots__ = ("_mark", "_most", "_next", "_taken")

    def __init__(self, taken: Iterable[str] = (), most: int | None = None, mark: str = "_") -> None:
        self._taken = set(taken)
        self._most = most
        self._mark = mark
        # By stem and number of digits, since a longer suffix may leave a shorter stem: every lower number is taken.
        self._next: dict[tuple[str, int], int] = {}

    def add(self, base: str) -> str:
        """The name itself where it is free, else the name with a number, shortened to fit."""
        name, digits = base, 1
        while name in self._taken:
            stem = base if self._most is None else base[: self._most - len(self._mark) - digits]
            number = self._next.get((stem, digits), max(2, 10 ** (digits - 1)))
            if number == 10**digits:
                digits += 1
                continue
            self._next[stem, digits] = number + 1
            name = f"{stem}{self._mark}{number}"
        self._taken.add(name)
        return name


class FittedNames:
    """The names of one request as the vendor takes them. `history` lists those on the wire that only the conversation
    uses.

    A vendor's own class says what `fits`, which characters are `foreign`, and how long a name may `most` be; `lead` is
    put before a name that begins as none may.
    """

    __slots__ = ("_distinct", "_wire", "history")

    fits: ClassVar[re.Pattern[str]]
    foreign: ClassVar[re.Pattern[str]]
    most: ClassVar[int]
    lead: ClassVar[str] = ""

    def __init__(self, offered: Iterable[str]) -> None:
        names = list(offered)
        # Names that fit keep themselves whatever the order, so that only a name that does not fit is ever changed.
        self._wire = {name: name for name in names if self.fits.fullmatch(name)}
        self._distinct = DistinctNames(self._wire, self.most)
        self.history: list[str] = []
        for name in names:
            self._fit(name)

    def __getitem__(self, name: str) -> str:
        """The wire name of an offered tool."""
        return self._wire[name]

    def __contains__(self, name: object) -> bool:
        return name in self._wire

    def used(self, name: str) -> str:
        """The wire name of a tool that the conversation has called."""
        if name not in self._wire:
            self.history.append(self._fit(name))
        return self._wire[name]

    def changed(self) -> Mapping[str, str]:
        """Wire name to the client's, where they differ."""
        return {wire: name for name, wire in self._wire.items() if wire != name}

    def _fit(self, name: str) -> str:
        if name in self._wire:
            return self._wire[name]
        base = self.foreign.sub("_", name)[: self.most] or "_"
        if not self.fits.fullmatch(base):
            base = (self.lead + base)[: self.most]
        fitting = self._wire[name] = self._distinct.add(base)
        return fitting


def offered_names(params: Params) -> list[str]:
    """The names of the request's functions. Raises Refusal for another kind of tool and for a name given twice."""
    names: dict[str, None] = {}
    for tool in params.get("tools", ()):
        function = tool.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if tool.get("type") != "function" or not isinstance(name, str):
            raise Refusal("tools", "Only tools of type 'function' can be translated.")
        if name in names:
            raise Refusal("tools", f"'tools' lists the function '{name}' twice.", "invalid_value")
        names[name] = None
    return list(names)


def chosen_name(choice: JsonObject, offered: Container[str]) -> str:
    """The function that a `tool_choice` names. Raises Refusal for another kind and for one that is not offered."""
    function = choice.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    if choice.get("type") != "function" or not isinstance(name, str):
        raise Refusal("tool_choice", "Only a choice of type 'function' can be translated.")
    if name not in offered:
        raise Refusal("tool_choice", f"'tool_choice' names '{name}', which is not among 'tools'.", "invalid_value")
    return name
