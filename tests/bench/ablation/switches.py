"""Switches a mechanism off in this process. It maps the names in `mechanisms.py` to the replacements."""

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
    """Return the function whose results are cached (`functools.lru_cache`)."""
    holder, name = holder_of(path)
    found: Callable[..., object] = vars(holder)[name].__wrapped__
    return found


def patch_of(path: str, name: str) -> Patch:
    """Return the patch that puts the replacement named `name` at `path`."""
    instead = _uncached(path) if name == "uncached" else _INSTEAD[name]
    # Only BufferedResponses are sent by the connections themselves. All others use aiohttp's code.
    except_in = frozenset({CONNECTIONS}) if name == "whole_response" else frozenset[str]()
    return Patch(path, instead, except_in)


def switch_off(mechanism: Mechanism) -> None:
    """Switch a mechanism off in this process. Raise Missing if a part of it no longer exists."""
    for path, name in mechanism.patches:
        apply(patch_of(path, name))
