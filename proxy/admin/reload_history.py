"""The last reloads of the table: when, with what result, and what changed.

What changed between two tables, by name: never a value, since any may be a secret. Pure.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, Protocol

from pydantic import BaseModel

from config.problem import Problem
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


def _changes(before: GatewayConfig, after: GatewayConfig, listed: Collection[str]) -> Iterator[str]:
    for part, entry in _NAMED.items():
        yield from _entries(entry, getattr(before, part), getattr(after, part))
    for part in ("server", "defaults"):
        keys = _keys(getattr(before, part), getattr(after, part))
        yield from (f"{part}.{key} changed" for key in keys if f"{part}.{key}" not in listed)


def _entries(kind: str, before: Mapping[str, BaseModel], after: Mapping[str, BaseModel]) -> Iterator[str]:
    yield from (f"{kind} {name} added" for name in after if name not in before)
    yield from (f"{kind} {name} removed" for name in before if name not in after)
    for name, now in after.items():
        then = before.get(name)
        if then is not None and then != now:
            yield f"{kind} {name} changed: {', '.join(_keys(then, now))}"


def _keys(before: BaseModel, after: BaseModel) -> list[str]:
    """Return the keys whose values differ."""
    names = type(after).model_fields
    return [name for name in names if getattr(before, name) != getattr(after, name)]


MOST_RELOADS: Final = 20

MOST_PROBLEMS: Final = 20
"""Problems of one refused table that are kept."""


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """The digest in force after a reload, the problems for which the new table was refused, and the settings of the new
    table that are not in force before a restart."""

    digest: str
    problems: tuple[Problem, ...] = ()
    needs_restart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PastReload:
    """A reload: when in unix seconds, the digest in force after it, and what changed; `problems` are those for which
    the new table was refused."""

    when: float
    digest: str
    changes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def result(self) -> str:
        """What became of it, in a word."""
        return "refused" if self.problems else "taken"


class ReloadHistory:
    """Keeps the last reloads. `wall` returns unix seconds."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._kept: deque[PastReload] = deque(maxlen=MOST_RELOADS)

    def taken(
        self, before: GatewayConfig, after: GatewayConfig, digest: str, needs_restart: Sequence[str] = ()
    ) -> None:
        """Keep a reload that put a table in force, but for settings that need a restart."""
        self._kept.append(PastReload(self._wall(), digest, table_changes(before, after, needs_restart)))

    def refused(self, digest: str, problems: Sequence[Problem]) -> None:
        """Keep a reload that changed nothing."""
        told = tuple(str(problem) for problem in problems[:MOST_PROBLEMS])
        self._kept.append(PastReload(self._wall(), digest, (), told))

    @property
    def newest(self) -> tuple[PastReload, ...]:
        """The reloads that are kept, the newest first."""
        return tuple(reversed(self._kept))


class ReloadableTable(Protocol):
    """The table in force, as the operator's listener needs it."""

    history: ReloadHistory

    @property
    def warnings(self) -> Sequence[Problem]:
        """The warnings of the table in force."""

    async def reload(self) -> ReloadResult:
        """Load the table again."""
