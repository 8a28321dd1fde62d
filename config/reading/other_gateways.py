"""Recognise configurations of other gateways by their outermost keys, since `dragoman import` reads them."""

from collections.abc import Collection, Mapping
from typing import Final

_ONLY_LITELLM: Final = frozenset({"model_list", "litellm_settings", "router_settings", "general_settings"})
_GATEWAY_OF_KEY: Final[Mapping[str, str]] = {
    **dict.fromkeys(sorted(_ONLY_LITELLM), "litellm"),
    **dict.fromkeys(("providers", "governance", "config_store"), "bifrost"),
    **dict.fromkeys(("strategy", "targets", "virtual_key", "virtualKey", "override_params"), "portkey"),
}
"""Outermost keys that a Dragoman configuration does not have, and the gateway whose configurations have them."""

_OWN_KEYS: Final = frozenset({"version", "vendors", "models"})


def foreign_key(keys: Collection[str]) -> str | None:
    """Return the first outermost key that identifies a file as another gateway's configuration; `None` for a Dragoman
    configuration, in which such a key may be a mistake."""
    is_own = not _OWN_KEYS.isdisjoint(keys)
    return next((key for key in _GATEWAY_OF_KEY if key in keys and (key in _ONLY_LITELLM or not is_own)), None)


def import_hint(key: str) -> str:
    """Return the hint for a file that has such a key."""
    return f"a configuration of another gateway: `dragoman import {_GATEWAY_OF_KEY[key]} FILE` converts it"
