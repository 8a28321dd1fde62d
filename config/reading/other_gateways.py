"""Tell other gateways' configurations by their outermost keys, since `dragoman import` reads those."""

from collections.abc import Collection, Mapping
from typing import Final

_UNMISTAKABLE: Final = frozenset({"model_list", "litellm_settings", "router_settings", "general_settings"})
_KEYS: Final[Mapping[str, str]] = {
    **dict.fromkeys(sorted(_UNMISTAKABLE), "litellm"),
    **dict.fromkeys(("providers", "governance", "config_store"), "bifrost"),
    **dict.fromkeys(("strategy", "targets", "virtual_key", "virtualKey", "override_params"), "portkey"),
}
"""Outermost keys that a table has not, and the gateway whose configurations have them."""

_OF_TABLES: Final = frozenset({"version", "vendors", "models"})


def foreign_key(keys: Collection[str]) -> str | None:
    """Return the first of a file's outermost keys that says that it is another gateway's configuration; None for a
    table, in which such a key may be a mistake."""
    is_table = not _OF_TABLES.isdisjoint(keys)
    return next((key for key in _KEYS if key in keys and (key in _UNMISTAKABLE or not is_table)), None)


def import_hint(key: str) -> str:
    """Return what to say of a file that has such a key."""
    return f"a configuration of another gateway: `dragoman import {_KEYS[key]} FILE` writes the table that it means"
