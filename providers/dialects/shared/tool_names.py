"""Changes names of functions and ids of calls to match a vendor's pattern, and lists the functions that a request
offers."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from providers.adaptation.forced_calls import chosen_name
from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.unified_request import Params

_MISTRAL_ID_LENGTH = 9


class DistinctNames:
    """A set of unique names. A name that is already in use gets `mark` and the smallest free number from 2 on as a
    suffix.

    `taken` are names that are in use elsewhere. `most` is the maximal number of characters of a name, `None` for no
    limit. The time for any sequence of names is linear in their total length.
    """

    __slots__ = ("_mark", "_most", "_next", "_taken")

    def __init__(self, taken: Iterable[str] = (), most: int | None = None, mark: str = "_") -> None:
        self._taken = set(taken)
        self._most = most
        self._mark = mark
        # By stem and number of digits: the next number to try. A longer suffix may leave a shorter stem.
        self._next: dict[tuple[str, int], int] = {}

    def add(self, base: str) -> str:
        """Add and return the name. If it is in use, it gets a number and is shortened to fit."""
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
    """The names of one request's functions as sent to the vendor. `history` lists the names that only the conversation
    uses.

    A vendor's subclass sets the pattern `fits` of allowed names, the pattern `foreign` of characters to replace, and
    the maximal length `most` (`None` for no limit). `lead` is put before a name whose first character is not allowed.
    """

    __slots__ = ("_distinct", "_wire", "history")

    fits: ClassVar[re.Pattern[str]]
    foreign: ClassVar[re.Pattern[str]]
    most: ClassVar[int | None] = None
    lead: ClassVar[str] = ""

    def __init__(self, offered: Iterable[str]) -> None:
        names = list(offered)
        # Names that fit are registered first, so that only a name that does not fit is ever changed.
        self._wire = {name: name for name in names if self.fits.fullmatch(name)}
        self._distinct = DistinctNames(self._wire, self.most)
        self.history: list[str] = []
        for name in names:
            if name not in self._wire:
                self._fit(name)

    def __getitem__(self, name: str) -> str:
        """Return the vendor's name of an offered tool."""
        return self._wire[name]

    def __contains__(self, name: object) -> bool:
        return name in self._wire

    def keep(self, name: str) -> None:
        """Register a name that stays unchanged, since it is the name of the vendor's own tool."""
        self._wire[name] = name

    def used(self, name: str) -> str:
        """Return the vendor's name of a tool that the conversation has called."""
        if name not in self._wire:
            self.history.append(self._fit(name))
        return self._wire[name]

    def changed(self) -> Mapping[str, str]:
        """Return a mapping from the vendor's name to the client's name, for all names that differ."""
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
    """Return the names of the request's functions. Raises Refusal for another kind of tool and for a repeated name."""
    names: dict[str, None] = {}
    for tool in params.get("tools", ()):
        function = tool.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if (kind := tool.get("type")) != "function":
            raise Refusal("tools", f"The vendor has no tools of the type '{str(kind)[:64]}'.")
        if not isinstance(name, str):
            raise Refusal("tools", "A tool of the type 'function' must name its function.", "invalid_value")
        if name in names:
            raise Refusal("tools", f"'tools' lists the function '{name}' twice.", "invalid_value")
        names[name] = None
    return list(names)


def native_choice(
    choice: str | JsonObject | None,
    words: Mapping[str, JsonObject | None],
    names: FittedNames,
    named: Callable[[str], JsonObject],
) -> JsonObject | None:
    """Return the vendor's form of a `tool_choice`; `None` for the vendor's default. A mode is looked up in `words`; a
    tool's name is passed to `named`."""
    if choice is None or isinstance(choice, str):
        return words[choice or "auto"]
    return named(names[chosen_name(choice, names)])


def nine_character_id(given: str) -> str:
    """Return the id if it is nine letters and digits, which Mistral's models require; otherwise a digest of it."""
    if len(given) == _MISTRAL_ID_LENGTH and given.isascii() and given.isalnum():
        return given
    return hashlib.blake2b(given.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()[:_MISTRAL_ID_LENGTH]


def fit_call_id(given: str, fits: re.Pattern[str]) -> str:
    """Return the id if it matches the vendor's pattern, otherwise a digest of it."""
    if fits.fullmatch(given):
        return given
    return f"call_{hashlib.sha256(given.encode(errors='surrogatepass')).hexdigest()[:32]}"
