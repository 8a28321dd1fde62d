"""Compute the order in which LiteLLM tries the fallbacks of a name, including their own fallbacks.

Source: `run_async_fallback` of `router_utils/fallback_event_handlers.py` in litellm 1.108.7, November 2026: it calls
each fallback with that fallback's own fallbacks, one level deeper, and tries no name twice.
"""

from collections.abc import Callable, Sequence
from typing import Final

from proxy.cli.imports.endpoints import MAX_TARGETS

MAX_FALLBACKS: Final = 5
"""LiteLLM's default depth limit (`ROUTER_MAX_FALLBACKS`), which `max_fallbacks` overrides."""


def fallback_order(name: str, chain_of: Callable[[str], Sequence[str]], deepest: int = MAX_FALLBACKS) -> list[str]:
    """Return the names in the order in which they are tried after `name`, at most as many as a route may have.
    `chain_of` returns the direct fallbacks of a name."""
    found: dict[str, None] = {}
    waiting = [(name, 0)]
    while waiting and len(found) < MAX_TARGETS:
        current, depth = waiting.pop()
        if current in found or (current == name and depth):
            continue
        if depth:
            found[current] = None
        if depth < deepest:
            waiting += reversed([(each, depth + index) for index, each in enumerate(chain_of(current), 1)])
    return list(found)
