"""What changed between two tables, by name: never a value, since any may be a secret. Pure."""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain, islice
from typing import Final

from pydantic import BaseModel

from config.table.table_schema import GatewayConfig

MOST_CHANGES: Final = 50
"""Changes of one reload that are named."""

_NAMED: Final[Mapping[str, str]] = {
    "vendors": "vendor",
    "models": "model",
    "routes": "route",
    "teams": "team",
    "plugins": "plugin",
}
"""The parts of a table that have entries by name, with what one of them is."""


def table_changes(before: GatewayConfig, after: GatewayConfig, needs_restart: Collection[str] = ()) -> tuple[str, ...]:
    """Return the changes, a line each; how many more there are stands for those beyond MOST_CHANGES. Those that
    `needs_restart` names come first and say so: without a change of the table a ledger may come or go too."""
    every = chain(
        (f"{name} changed (needs a restart)" for name in needs_restart), _changes(before, after, needs_restart)
    )
    named = list(islice(every, MOST_CHANGES))
    more = sum(1 for _ in every)
    return (*named, f"and {more} more") if more else tuple(named)


def _changes(before: GatewayConfig, after: GatewayConfig, told: Collection[str]) -> Iterator[str]:
    for part, entry in _NAMED.items():
        yield from _entries(entry, getattr(before, part), getattr(after, part))
    for part in ("server", "defaults"):
        keys = _keys(getattr(before, part), getattr(after, part))
        yield from (f"{part}.{key} changed" for key in keys if f"{part}.{key}" not in told)


def _entries(what: str, before: Mapping[str, BaseModel], after: Mapping[str, BaseModel]) -> Iterator[str]:
    yield from (f"{what} {name} added" for name in after if name not in before)
    yield from (f"{what} {name} removed" for name in before if name not in after)
    for name, now in after.items():
        then = before.get(name)
        if then is not None and then != now:
            yield f"{what} {name} changed: {', '.join(_keys(then, now))}"


def _keys(before: BaseModel, after: BaseModel) -> list[str]:
    """Return the keys whose values differ."""
    names = type(after).model_fields
    return [name for name in names if getattr(before, name) != getattr(after, name)]
