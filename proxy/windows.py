"""The context windows that engines named, in errors and by their tokenizers.

Never a request's own numbers, and never the operator's: the table's window is part of the target.
"""

from providers.context import Overflow
from providers.dialect import Target, UpstreamRequest

MOST = 4096
"""Engines remembered. A row for any model takes names from clients, so that there is no natural end to them."""


class Windows:
    """What each engine said last, the oldest forgotten first. An engine is an address and what it is told the model is
    called, so that what was learned outlives the table it was learned under, and holds for all its deployments."""

    __slots__ = ("_learned", "_most")

    def __init__(self, most: int = MOST) -> None:
        self._learned: dict[tuple[str, str], int] = {}
        self._most = most

    def learn(self, target: Target, window: int) -> None:
        """Remember the tokens that prompt and answer may have together, at least 1."""
        engine = engine_of(target)
        self._learned.pop(engine, None)
        self._learned[engine] = window
        if len(self._learned) > self._most:
            del self._learned[next(iter(self._learned))]

    def learn_from_error(self, sent: UpstreamRequest, overflow: Overflow) -> None:
        """Remember the window that an error named, unless the call itself had that number in its body or headers: a
        vendor that repeats what it was sent would let one client set the window of all."""
        window = overflow.window
        if not window:
            return
        headers = " ".join(sent.headers.values()).encode()
        numbers = str(window).encode(), f"{window:,}".encode()
        if not any(number in sent.body or number in headers for number in numbers):
            self.learn(sent.target, window)

    def known(self, target: Target) -> int | None:
        """The window to keep within: the engine's, or the table's where the operator wants it smaller."""
        known = [
            window for window in (target.context_window, self._learned.get(engine_of(target))) if window is not None
        ]
        return min(known, default=None)


def engine_of(target: Target) -> tuple[str, str]:
    """Which engine a target is; some servers have several models, and clients may name ones that are not there."""
    return target.base_url, target.upstream_model
