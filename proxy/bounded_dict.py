"""A dict of limited size, for keys that clients can choose freely."""

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(dict[K, V]):
    """A dict of at most `most` entries. `[key] = value` makes the key the newest. If there are then too many entries,
    the oldest entry for which `unused` returns true is deleted."""

    __slots__ = ("_most", "_unused")

    def __init__(self, most: int, unused: Callable[[V], bool] = lambda value: True) -> None:
        super().__init__()
        self._most = most
        self._unused = unused

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > self._most:
            for each, held in self.items():
                if self._unused(held):
                    del self[each]
                    break
