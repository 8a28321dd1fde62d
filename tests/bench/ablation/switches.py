"""Switches a mechanism off in this process: the names of `mechanisms.py` with what they stand for."""

from collections.abc import Callable, Mapping

from tests.bench.ablation import ordinary
from tests.bench.ablation.mechanisms import CONNECTIONS, Mechanism
from tests.bench.ablation.patches import DELETED, Patch, apply, holder_of

_INSTEAD: Mapping[str, object] = {
    "loop_time": ordinary.loop_time,
    "deleted": DELETED,
    "never_property": property(ordinary.never),
    "never": ordinary.never,
    "nothing": ordinary.nothing,
    "ordinary_take": lambda self, decoder, take: take,
    "each_read": ordinary.each_read,
    "new_head": ordinary.new_head,
    "whole_response": ordinary.WholeResponse,
    "set_timer": ordinary.set_timer,
    "drop_timer": ordinary.drop_timer,
    "set_alone": ordinary.set_alone,
    "below_zero": -1,
    "collect_as_python": ordinary.collect_as_python,
}


def _uncached(path: str) -> object:
    """Return the function whose results a cache (`functools.lru_cache`) keeps."""
    holder, name = holder_of(path)
    found: Callable[..., object] = vars(holder)[name].__wrapped__
    return found


def patch_of(path: str, name: str) -> Patch:
    """Return what puts the thing of this name in the place of what stands at a path."""
    instead = _uncached(path) if name == "uncached" else _INSTEAD[name]
    # Connections send BufferedResponses, and only those, by themselves: others go aiohttp's way.
    except_in = frozenset({CONNECTIONS}) if name == "whole_response" else frozenset[str]()
    return Patch(path, instead, except_in)


def switch_off(mechanism: Mechanism) -> None:
    """Let this process do without a mechanism. Raises Missing where a part of it is no longer there."""
    for path, name in mechanism.patches:
        apply(patch_of(path, name))
