"""The context windows that engines named, in errors and through their tokenizers."""

from providers.context_overflow import Overflow
from providers.dialect import UpstreamRequest
from providers.target import Target
from proxy.bounded_dict import BoundedDict

MOST = 4096
"""Engines remembered. Under an entry for any model clients choose the names, so that there is no natural limit."""


class Windows:
    """The latest window of each engine, the oldest forgotten first. An engine is an address and the model's name there,
    so that a window outlives the table and holds for all deployments of the engine."""

    __slots__ = ("_learned",)

    def __init__(self, most: int = MOST) -> None:
        self._learned: BoundedDict[tuple[str, str], int] = BoundedDict(most)

    def learn(self, target: Target, window: int) -> None:
        """Remember the tokens that prompt and answer may have together, at least 1."""
        self._learned[engine_of(target)] = window

    def known(self, target: Target) -> int | None:
        """Return the window to keep within: the engine's, or the operator's where that is smaller."""
        known = [
            window for window in (target.context_window, self._learned.get(engine_of(target))) if window is not None
        ]
        return min(known, default=None)


def named_by_vendor(sent: UpstreamRequest, overflow: Overflow) -> int | None:
    """Return the window that an error named, unless the call had that number in its body or headers: if a vendor
    repeats its input, one client could set the window of all."""
    window = overflow.window
    if not window:
        return None
    headers = " ".join(sent.headers.values()).encode()
    numbers = str(window).encode(), f"{window:,}".encode()
    return None if any(number in sent.body or number in headers for number in numbers) else window


def engine_of(target: Target) -> tuple[str, str]:
    """Return the identity of a target's engine."""
    return target.base_url, target.upstream_model
