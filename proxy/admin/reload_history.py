"""The last reloads of the configuration: when they were, their result, and the changes.

Changes between two configurations are given by name, never by value, because any value may be a secret. Pure.
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
"""The most changes of one reload that are listed."""

_NAMED_SECTIONS: Final[Mapping[str, str]] = {
    "vendors": "vendor",
    "models": "model",
    "routes": "route",
    "teams": "team",
    "plugins": "plugin",
}
"""The sections of a configuration with named entries, and the noun for one entry."""


def config_changes(before: GatewayConfig, after: GatewayConfig, needs_restart: Collection[str] = ()) -> tuple[str, ...]:
    """Return the changes, one line each; a last line counts the changes beyond MOST_CHANGES. Changes named in
    `needs_restart` come first and carry a note. They may come without a change of the configuration, for example if a
    ledger is added or removed."""
    lines = chain(
        (f"{name} changed (needs a restart)" for name in needs_restart), _changes(before, after, needs_restart)
    )
    named = list(islice(lines, MOST_CHANGES))
    more = sum(1 for _ in lines)
    return (*named, f"and {more} more") if more else tuple(named)


def _changes(before: GatewayConfig, after: GatewayConfig, listed: Collection[str]) -> Iterator[str]:
    for part, entry in _NAMED_SECTIONS.items():
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
"""The most problems of one refused configuration that are stored."""


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """The result of a reload: the digest of the configuration that is current afterwards, the problems for which the
    new configuration was refused, and the settings of the new configuration that take effect only after a restart."""

    digest: str
    problems: tuple[Problem, ...] = ()
    needs_restart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PastReload:
    """A past reload: its time in unix seconds, the digest of the configuration that was current afterwards, and the
    changes. `problems` are the reasons if the new configuration was refused."""

    when: float
    digest: str
    changes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def result(self) -> str:
        """The result in one word."""
        return "refused" if self.problems else "taken"


class ReloadHistory:
    """Stores the last reloads. `wall` returns unix seconds."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._reloads: deque[PastReload] = deque(maxlen=MOST_RELOADS)

    def taken(
        self, before: GatewayConfig, after: GatewayConfig, digest: str, needs_restart: Sequence[str] = ()
    ) -> None:
        """Store a reload that replaced the configuration, except for settings that need a restart."""
        self._reloads.append(PastReload(self._wall(), digest, config_changes(before, after, needs_restart)))

    def refused(self, digest: str, problems: Sequence[Problem]) -> None:
        """Store a reload that changed nothing."""
        texts = tuple(str(problem) for problem in problems[:MOST_PROBLEMS])
        self._reloads.append(PastReload(self._wall(), digest, (), texts))

    @property
    def newest(self) -> tuple[PastReload, ...]:
        """The stored reloads, the newest first."""
        return tuple(reversed(self._reloads))


class ReloadableConfig(Protocol):
    """The current configuration, as the operator's listener needs it."""

    history: ReloadHistory

    @property
    def warnings(self) -> Sequence[Problem]:
        """The warnings of the current configuration."""

    async def reload(self) -> ReloadResult:
        """Load the configuration again."""
